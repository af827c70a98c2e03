"""The lowest versions of the most common engines that can use a table."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.usability import Usability, find_usability
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.interface import Inspection

ENGINES = {
    "databricks-runtime": "Databricks Runtime",
    "delta-spark": "Delta Spark",
    "delta-rs": "delta-rs",
}
"""the clients shown, by id, with their usual names"""


def least_versions(inspection: Inspection) -> tuple[Usability, ...]:
    """Return what each engine can do with the table, and the first version that can."""
    return _usability_of(facts_from_inspection(inspection).needs)


@lru_cache(maxsize=256)
def _usability_of(needs: TableRequirements) -> tuple[Usability, ...]:
    # Loading these takes time, and only some outputs need them.
    from deltaproto.clients.catalog import Catalogue

    catalog = Catalogue()
    found = (
        find_usability(catalog.get(name), (Access.READ, Access.APPEND), needs) for name in ENGINES
    )
    return tuple(chain.from_iterable(found))
