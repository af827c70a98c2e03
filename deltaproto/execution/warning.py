"""The warning before execution: affected writers and readers, from recent commits. Pure.

Source: Delta Spark's conflict checker and the Databricks documentation on write conflicts, as
recorded in the plan. How other engines react to an unexpected commit is never promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from deltaproto.execution.progress import table_address
from deltaproto.execution.runner import EngineFacts
from deltaproto.inspection.activity import Activity
from deltaproto.planning.advice import reenables_itself
from deltaproto.planning.enable import find_disabled
from deltaproto.planning.engine import EngineName
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import Plan, Step, StepConflict, StreamImpact
from deltaproto.policy.approvals import AccessLoss, Approvals, LossRuling
from deltaproto.policy.document import Policy, settings_for
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.patterns import TableNames
from deltaproto.policy.document.windows import is_open, next_opening

_S3 = ("s3", "s3a", "s3n")
_LOG_STORES = ("spark.delta.logStore.{}.impl", "spark.delta.logStore.class")
_COORDINATED = "DynamoDB"


class ConflictWarning(NamedTuple):
    """A writer or reader affected by the plan."""

    steps: tuple[str, ...]
    engine: str
    who: str
    exceptions: tuple[str, ...]
    loser: str
    """who fails: `writer` or `step`"""


class MaintenanceWindowStatus(NamedTuple):
    """The current status of the policy's maintenance windows."""

    open: bool
    next: datetime | None


class ApplyWarning(NamedTuple):
    """The warning to read before the first commit."""

    steps: tuple[Step, ...]
    """the remaining steps"""
    hits: tuple[ConflictWarning, ...]
    streams: tuple[tuple[str, StreamImpact], ...]
    """step and stream, for the streams that stop"""
    activity: Activity | None
    """recent activity; None: the log's commits could not be read"""
    window: MaintenanceWindowStatus | None
    """window status; None: the policy has no windows"""
    sources: tuple[str, ...]
    """possible causes that re-enable a dropped feature"""
    notes: tuple[str, ...]


def build_warning(
    plan: Plan,
    left: Sequence[Step],
    activity: Activity | None,
    engine: EngineFacts | None,
    windows: Sequence[Window] | None,
    now: float,
) -> ApplyWarning:
    """Build the warning for the remaining steps; `now` is in seconds since the epoch."""
    statements = [step for step in left if step.sql is not None]
    moment = datetime.fromtimestamp(now, UTC)
    return ApplyWarning(
        steps=tuple(left),
        hits=tuple(_conflict_warnings(statements)),
        streams=tuple(
            (step.id, stream)
            for step in statements
            for stream in step.streams
            if stream.effect.value != "continues"
        ),
        activity=activity,
        window=None
        if windows is None
        else MaintenanceWindowStatus(is_open(windows, moment), next_opening(windows, moment)),
        sources=tuple(dict.fromkeys(_reenabling_sources(plan, engine))) if statements else (),
        notes=tuple(dict.fromkeys(_find_notes(plan, statements, engine))),
    )


def maintenance_windows_for(policy: Policy | None, plan: Plan) -> tuple[Window, ...] | None:
    """Return the maintenance windows that a policy sets for a plan's table, or None."""
    # Looking up the settings of a table compares it with every pattern.
    if policy is None or all(each.settings.maintenance_windows is None for each in policy.tables):
        return None
    of = table_address(plan), plan.location, plan.other_names
    return settings_for(policy, *of).maintenance_windows


def rule_on_losses(
    plan: Plan, approvals: Approvals | None, today: date | None = None
) -> tuple[LossRuling, ...]:
    """Return a plan's losses of access that the policy approves; empty without approvals."""
    if not approvals:
        return ()
    names = TableNames(table_address(plan), plan.location, others=plan.other_names)
    day = today or datetime.now(UTC).date()
    lost = [each for each in plan.clients if is_worse(each)]
    return tuple(
        approvals.rule_on(
            names, AccessLoss(each.client, each.access, each.because, plan.goal_text), day
        )
        for each in lost
    )


def _conflict_warnings(steps: Iterable[Step]) -> Iterator[ConflictWarning]:
    found: dict[tuple[str, str, str], list[tuple[str, StepConflict]]] = {}
    for step in steps:
        for clash in step.clashes:
            key = (clash.loser, clash.engine, clash.who)
            found.setdefault(key, []).append((step.id, clash))
    for (loser, engine, who), each in sorted(found.items(), key=lambda item: item[0][0] == "step"):
        yield ConflictWarning(
            steps=tuple(dict.fromkeys(step for step, _ in each)),
            engine=engine,
            who=who,
            exceptions=tuple(dict.fromkeys(clash.exception for _, clash in each)),
            loser=loser,
        )


def _find_notes(plan: Plan, steps: Sequence[Step], engine: EngineFacts | None) -> Iterator[str]:
    if not steps:
        return
    yield (
        "Other engines may not detect such a commit: only Delta Spark and Databricks are known to "
        "fail cleanly. Stop writers on other engines first."
    )
    yield from _log_store_note(plan.location, engine)
    if any(not step.reversible for step in steps):
        yield (
            "RESTORE does not roll back the protocol: it removes no features, adds dropped ones "
            "again, and cannot reach deleted history."
        )


def _reenabling_sources(plan: Plan, engine: EngineFacts | None) -> Iterator[str]:
    for name in (*plan.features_removed, *find_disabled(plan)):
        yield from reenables_itself(name, {} if engine is None else engine.conf)


def _log_store_note(location: str, engine: EngineFacts | None) -> Iterator[str]:
    scheme = location.partition(":")[0].lower()
    if scheme not in _S3 or (engine is not None and engine.name is EngineName.DATABRICKS):
        return
    conf: Mapping[str, str] = {} if engine is None else engine.conf
    stores = [conf.get(key.format(scheme), "") for key in _LOG_STORES]
    if not any(_COORDINATED in store for store in stores):
        yield (
            "The table is on S3, and this session has no multi-cluster log store. If another "
            "driver writes at the same time, commits can be lost. Stop every other writer, or set "
            f"spark.delta.logStore.{scheme}.impl to S3DynamoDBLogStore in all of them."
        )
