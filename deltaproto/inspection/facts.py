"""Table facts from a live inspection."""

from __future__ import annotations

from deltaproto.clients.requirements import feature_usage, table_requirements
from deltaproto.inspection import Inspection
from deltaproto.location import LocationKind, locate
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
            by_name=locate(state.table).kind is LocationKind.NAME,
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
    )
