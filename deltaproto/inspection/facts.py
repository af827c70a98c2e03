"""Facts from a live inspection, and the lowest engine versions that can use the table."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

from deltaproto.clients.model import Access
from deltaproto.clients.requirements import TableRequirements, feature_usage, table_requirements
from deltaproto.clients.usability import Usability, find_usability
from deltaproto.inspection.interface import Inspection
from deltaproto.location import locate
from deltaproto.policy.context import TableFacts
from deltaproto.policy.hazards import (
    describe_inconsistencies,
    hazards_from_state,
    uninspected_hazards,
)


def facts_from_inspection(inspection: Inspection) -> TableFacts:
    """Convert an inspection to a check's input."""
    state = inspection.state
    configuration = state.metadata.configuration
    return TableFacts(
        table=state.table,
        location=state.location,
        version=state.version,
        needs=table_requirements(
            state.protocol,
            feature_usage(inspection.subject.features),
            configuration,
            by_name=locate(state.table).by_name,
            doubts=describe_inconsistencies(inspection.findings, configuration),
            hazards=hazards_from_state(state, inspection.findings),
            unseen=uninspected_hazards(state),
            absent=(each.name for each in inspection.subject.features if each.present is False),
        ),
        configuration=configuration,
        isolation={
            str(engine): None if level is None else str(level)
            for engine, level in inspection.isolation.effective.items()
        },
        findings=inspection.findings,
        complete=inspection.complete,
        changes=state.changes,
        id=state.metadata.id,
        clustering=state.clustering_columns,
    )


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
    from deltaproto.clients.catalog import ClientCatalog

    catalog = ClientCatalog()
    found = (
        find_usability(catalog.get(name), (Access.READ, Access.APPEND), needs) for name in ENGINES
    )
    return tuple(chain.from_iterable(found))
