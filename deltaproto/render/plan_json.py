"""Plans as JSON, and the files of plans and of their rollout."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from deltaproto.errors import UsageError
from deltaproto.execution.rollout_file import SETTINGS
from deltaproto.planning.plan import (
    CHECKSUM_FIELD,
    Blocked,
    CellOutcome,
    ClientChange,
    ConcurrencyChange,
    Plan,
    Step,
    compute_checksum,
    plan_id,
)
from deltaproto.planning.search.cost import Cost
from deltaproto.render.inspection_json import isolation_fields, protocol_fields
from deltaproto.render.interface import dump_json, envelope, stamp

if TYPE_CHECKING:
    from deltaproto.planning.rollout import Wave
    from deltaproto.policy.document.model import RolloutSettings

_HOUR = 3600


def plan_fields(plan: Plan, now: float) -> dict[str, Any]:
    """Return one plan; `now` (seconds since the epoch) is its earliest execution time."""
    print_ = plan.fingerprint
    fields: dict[str, Any] = {
        "plan_id": plan_id(plan),
        "table": plan.table,
        **({"other_names": list(plan.other_names)} if plan.other_names else {}),
        "location": plan.location,
        "sql_name": plan.sql_name,
        "goal": {**plan.goal, "text": plan.goal_text},
        "engine": {"name": str(plan.engine.name), "version": plan.engine.version},
        "fingerprint": {
            "table_id": print_.table_id,
            "version": print_.version,
            "protocol": protocol_fields(print_.protocol),
            "metadata": print_.metadata,
        },
        "protocol_before": protocol_fields(plan.protocol_before),
        "protocol_after": protocol_fields(plan.protocol_after),
        "features_added": list(plan.features_added),
        "features_removed": list(plan.features_removed),
        "changes": plan.changes,
        "steps": _steps(plan.steps, now),
        "cost": cost_fields(plan.cost),
        "alternatives": [
            {
                "name": each.name,
                "text": each.text,
                "reaches_goal": each.reaches_goal,
                "protocol_after": protocol_fields(each.protocol_after),
                "cost": cost_fields(each.cost),
                "steps": _steps(each.steps, now),
            }
            for each in plan.alternatives
        ],
        "blocked": _stuck(plan.blocked),
        "kept": _stuck(plan.kept),
        **_policy_fields(plan),
        "warnings": list(plan.warnings),
        "clients": [client_change_fields(change) for change in plan.clients],
        "clients_declared": not plan.everybody,
        **({"concurrency": _concurrency(plan.concurrency)} if plan.concurrency else {}),
        "point_of_no_return": plan.point_of_no_return,
        "complete": plan.complete,
    }
    return {**fields, CHECKSUM_FIELD: compute_checksum(fields)}


def _policy_fields(plan: Plan) -> dict[str, Any]:
    if plan.goal.get("kind") != "policy":
        return {}
    return {"fixes": list(plan.fixes), "unmet": _stuck(plan.unmet)}


def _concurrency(change: ConcurrencyChange) -> dict[str, Any]:
    return {
        "before": isolation_fields(*change.before),
        "after": isolation_fields(*change.after),
        "cells": [
            {
                "engine": cell.engine,
                "operation": cell.operation,
                "against": cell.against,
                "before": _outcome(cell.before),
                "after": _outcome(cell.after),
            }
            for cell in change.cells
        ],
    }


def _outcome(found: CellOutcome) -> dict[str, Any]:
    return {
        "conflict": found.conflict,
        "exceptions": list(found.exceptions),
        "when": found.when,
    }


def cost_fields(cost: Cost) -> dict[str, int]:
    """Return the members in the order in which plans are compared."""
    return dict(cost._asdict())


def step_times(steps: Iterable[Step], now: float) -> list[tuple[float | None, float | None]]:
    """For each step, return its earliest time and the time before which it deletes history.

    Both are seconds since the epoch. The earliest time is None if the step can run at once; for a
    wait, it is the end of the wait. The second time is None if nothing is deleted.
    """
    found: list[tuple[float | None, float | None]] = []
    waited = 0.0
    for step in steps:
        at = now + waited * _HOUR
        lost = None if step.retention_hours is None else at - step.retention_hours * _HOUR
        waited += step.wait_hours
        over = at + step.wait_hours * _HOUR
        found.append((over if waited else None, lost))
    return found


def _stuck(entries: Iterable[Blocked]) -> list[dict[str, Any]]:
    return [
        {
            "feature": each.feature,
            "reason": each.reason,
            "remedy": each.remedy,
            "error": each.error or None,
        }
        for each in entries
    ]


def _steps(steps: tuple[Step, ...], now: float) -> list[Mapping[str, Any]]:
    return [
        _step(step, earliest, lost)
        for step, (earliest, lost) in zip(steps, step_times(steps, now), strict=True)
    ]


def _step(step: Step, earliest: float | None, lost: float | None) -> Mapping[str, Any]:
    least, most = step.commits
    wait = None
    if step.wait_hours:
        wait = {"hours": step.wait_hours, "setting": step.setting}
    return {
        "id": step.id,
        "action": str(step.action),
        "sql": step.sql,
        "feature": step.feature,
        "why": step.why,
        "operations": list(step.operations),
        "protocol_before": protocol_fields(step.protocol_before),
        "protocol_after": protocol_fields(step.protocol_after),
        "commits": {"min": least, "max": most},
        "rewrites": {
            "which": str(step.rewrites.which),
            "files": step.rewrites.files,
            "bytes": step.rewrites.bytes,
        },
        "history_lost_before": stamp(lost),
        "retention_hours": step.retention_hours,
        "not_before": stamp(earliest),
        "wait": wait,
        "expects": step.expects,
        "optional": step.optional,
        "conflicts": [
            {
                "exception": each.exception,
                "who": each.who,
                "why": each.why,
                "engine": each.engine,
                "loser": each.loser,
            }
            for each in step.clashes
        ],
        "streams": [
            {"reads": each.reads, "effect": str(each.effect), "why": each.why}
            for each in step.streams
        ],
        "reversible": step.reversible,
        "losses": list(step.losses),
        "undo": step.undo,
        "warnings": list(step.warnings),
    }


def save_plan_file(plan: Plan, path: str) -> None:
    """Write a plan atomically, in the format of the planning commands; waits count from now.

    Raises:
        UsageError: if it cannot be written.
    """
    fields = plan_fields(plan, time.time())
    write_plan_text(dump_json(envelope(plan.command, fields, complete=plan.complete)) + "\n", path)


def write_plan_text(text: str, path: str) -> None:
    """Write a file of a folder of plans atomically.

    Raises:
        UsageError: if it cannot be written.
    """
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        try:
            with open(aside, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(aside, path)
        except OSError:
            with suppress(OSError):
                os.remove(aside)
            raise
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            "choose another folder; no table was changed",
        ) from None


def client_change_fields(change: ClientChange) -> dict[str, Any]:
    """Return the access of a client before and after a change, as JSON."""
    return {
        "client": change.client,
        "label": change.label,
        "access": str(change.access),
        "before": str(change.before),
        "after": str(change.after),
        "because": list(change.because),
        "reason": change.reason or None,
    }


def save_rollout_file(
    settings: RolloutSettings,
    waves: Sequence[Wave],
    path: str,
    *,
    windows: bool,
    complete: bool,
) -> None:
    """Write `rollout.json`, the plans of each wave in a folder, atomically.

    Args:
        windows: True if the policy has maintenance windows for any of the tables.
        complete: False while plans are still being saved, so that none of them can be applied.

    Raises:
        UsageError: if it cannot be written.
    """
    fields: dict[str, Any] = {
        **{name: getattr(settings, name) for name in SETTINGS},
        "windows": windows,
        "waves": [
            {"name": wave.name, "plans": [table._asdict() for table in wave.tables]}
            for wave in waves
        ],
        "complete": complete,
    }
    fields[CHECKSUM_FIELD] = compute_checksum(fields)
    write_plan_text(dump_json(envelope("rollout", fields, complete=complete)) + "\n", path)
