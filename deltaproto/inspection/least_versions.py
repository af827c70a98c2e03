"""The versions from which on the engines that most tables meet can use a table."""

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
"""the clients that are told of, and how people call them"""


def least_versions(inspection: Inspection) -> Iterator[Usability]:
    """What each of the engines can do with the table, and since which version."""
    # They take their time to load, and only some outputs need them.
    from deltaproto.clients.catalog import Catalogue

    needs = facts_from_inspection(inspection).needs
    for name in ENGINES:
        yield from find_usability(Catalogue().get(name), (Access.READ, Access.APPEND), needs)
