"""The lowest versions of the most common engines that can use a table."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.model import Access
from deltaproto.clients.usability import Usability, find_usability
from deltaproto.inspection.facts import facts_from_inspection
from deltaproto.inspection.interface import Inspection

ENGINES = {
    "databricks-runtime": "Databricks Runtime",
    "delta-spark": "Delta Spark",
    "delta-rs": "delta-rs",
}
"""the clients shown, by id, with their usual names"""


def least_versions(inspection: Inspection) -> Iterator[Usability]:
    """Yield what each engine can do with the table, and the first version that can."""
    # Loading these takes time, and only some outputs need them.
    from deltaproto.clients.catalog import Catalogue

    needs = facts_from_inspection(inspection).needs
    for name in ENGINES:
        yield from find_usability(Catalogue().get(name), (Access.READ, Access.APPEND), needs)
