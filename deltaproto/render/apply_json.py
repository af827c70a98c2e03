"""Convert the results of plans to the JSON of `apply`."""

from __future__ import annotations

from typing import Any

from deltaproto.execution.preflight import GateResult
from deltaproto.execution.result import ApplyResult, StepRecord
from deltaproto.execution.warning import ApplyWarning
from deltaproto.render.activity import activity_fields
from deltaproto.render.inspection_json import protocol_fields
from deltaproto.render.plan_json import stamp


def applied_fields(applied: ApplyResult) -> dict[str, Any]:
    """Return the result of one plan as JSON."""
    plan = applied.planned.plan
    return {
        "plan_id": applied.planned.id,
        "plan_file": applied.planned.path,
        "table": plan.table,
        "location": plan.location,
        "status": str(applied.status),
        "exit_code": int(applied.code),
        "message": applied.message,
        "hint": applied.hint or None,
        "version": applied.version,
        "protocol": None if applied.protocol is None else protocol_fields(applied.protocol),
        "protocol_after": protocol_fields(plan.protocol_after),
        "not_before": stamp(applied.earliest),
        "steps": [_step(record) for record in applied.steps],
        "gates": [_gate(gate) for gate in applied.gates],
        "warning": None if applied.warning is None else _warning(applied.warning),
        "journal": applied.journal,
        "remarks": list(applied.remarks),
    }


def _step(record: StepRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "state": str(record.done),
        "versions": list(record.versions),
        "operations": list(record.operations),
        "attempts": record.attempts,
        "seconds": round(record.seconds, 3),
        "message": record.message or None,
        "remarks": list(record.remarks),
        "delta_rs": record.delta_rs or None,
    }


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "name": gate.name,
        "passed": gate.passed,
        "message": gate.message,
        "hint": gate.hint or None,
    }


def _warning(warning: ApplyWarning) -> dict[str, Any]:
    window = warning.window
    return {
        "hits": [
            {
                "steps": list(hit.steps),
                "engine": hit.engine,
                "who": hit.who,
                "exceptions": list(hit.exceptions),
                "loser": hit.loser,
            }
            for hit in warning.hits
        ],
        "streams": [
            {
                "step": step,
                "reads": stream.reads,
                "effect": str(stream.effect),
                "why": stream.why,
            }
            for step, stream in warning.streams
        ],
        "activity": None if warning.activity is None else activity_fields(warning.activity),
        "window": None
        if window is None
        else {
            "open": window.open,
            "next": None if window.next is None else stamp(window.next.timestamp()),
        },
        "notes": [*warning.sources, *warning.notes],
    }
