"""Tables that are looked at now."""

from __future__ import annotations

from deltaproto.clients.needs import needs, usage
from deltaproto.inspection import Inspection
from deltaproto.policy.doubts import doubts
from deltaproto.policy.facts import Facts
from deltaproto.policy.hazards import hazards_seen, hazards_unseen
from deltaproto.tables.location import Kind, locate


def facts(inspection: Inspection) -> Facts:
    """What a check needs of an inspection."""
    state = inspection.state
    configuration = state.metadata.configuration
    return Facts(
        table=state.table,
        location=state.location,
        version=state.version,
        needs=needs(
            state.protocol,
            usage(inspection.subject.features),
            configuration,
            by_name=locate(state.table).kind is Kind.NAME,
            doubts=doubts(inspection.findings, configuration),
            hazards=hazards_seen(state, inspection.findings),
            unseen=hazards_unseen(state),
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
