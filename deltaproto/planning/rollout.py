"""Divides plans into the waves of a rollout, and compares a table's plan with a new one. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.counts import counted
from deltaproto.planning.impact import is_worse
from deltaproto.planning.plan import Plan
from deltaproto.planning.search.cost import Cost
from deltaproto.policy.document.model import RolloutSettings
from deltaproto.policy.document.patterns import TableNames

CANARY = "canary"
_TABLE = "<table>"


class RolloutTable(NamedTuple):
    """A table with a plan."""

    plan_id: str
    """the id of its plan"""
    table: str
    """the name given by the user"""
    location: str
    """absolute URI"""
    file: str
    """name of the plan's file in its folder"""

    def __repr__(self) -> str:
        return f"<RolloutTable {self.table}: plan {self.plan_id}>"


class Wave(NamedTuple):
    """Tables that may run at the same time."""

    name: str
    """`canary`, or `wave` and its number"""
    tables: tuple[RolloutTable, ...]


def assign_waves(
    settings: RolloutSettings,
    planned: Iterable[tuple[RolloutTable, Cost]],
    other_names: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> tuple[Wave, ...]:
    """Return the waves, none of them empty. The same plans always get the same waves.

    Within and across waves, cheaper plans come first; equal plans are in order of location.

    Args:
        other_names: further names of tables, by plan id.
    """
    ordered = sorted(planned, key=lambda each: (each[1], each[0].location, each[0].plan_id))
    canaries: list[RolloutTable] = []
    others: list[RolloutTable] = []
    for table, _ in ordered:
        others_of = other_names.get(table.plan_id, ())
        names = TableNames(table.table, table.location, others=others_of)
        is_canary = any(map(names.match, settings.canary))
        (canaries if is_canary else others).append(table)
    waves = [Wave(CANARY, tuple(canaries))]
    begin = 0
    for number, end in enumerate(_wave_ends(settings, len(others)), 1):
        waves.append(Wave(f"wave {number}", tuple(others[begin:end])))
        begin = end
    return tuple(wave for wave in waves if wave.tables)


def _wave_ends(settings: RolloutSettings, count: int) -> Sequence[int]:
    """Return, for each wave, the number of tables in it and in earlier waves."""
    ends: list[int] = []
    for size in settings.waves:
        # Percentages are rounded up, so no wave is empty while tables remain.
        tables = -(-count * size.number // 100) if size.percent else size.number
        ends.append(min(count, (ends[-1] if ends else 0) + tables))
    return [*ends, count]


def group_id(plan: Plan) -> str:
    """Return an id, equal for plans that send the same statements to tables of equal protocols."""
    statements = [
        step.wait_hours if step.sql is None else step.sql.replace(plan.sql_name, _TABLE)
        for step in plan.steps
    ]
    protocols = [str(each) for each in (plan.protocol_before, plan.protocol_after)]
    features = [sorted(each.supported) for each in (plan.protocol_before, plan.protocol_after)]
    text = json.dumps([protocols, features, statements])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_objections(old: Plan, new: Plan) -> Iterator[str]:
    """Yield why a new plan for a table must not replace the approved one without a decision.

    The new plan may not affect other clients, cost more, or be less reversible.
    """
    for blocked in new.blocked:
        yield f"it is blocked: {blocked.reason}"
    if not new.steps:
        for unmet in new.unmet[:1]:
            yield f"no statement improves the table's compliance: {unmet.reason}"
    lost = {(each.client, each.access) for each in filter(is_worse, old.clients)}
    for each in filter(is_worse, new.clients):
        if (each.client, each.access) not in lost:
            yield f"{each.client} {each.access} would be {each.after}"
    for name, before, after in zip(Cost._fields, old.cost, new.cost, strict=True):
        if after > before:
            objection, *noun = _COSTS[name]
            yield objection.format(counted(after, *noun), before)


_COSTS = {
    "irreversible": ("{} cannot be reverted, instead of {:,}", "loss", "losses"),
    "history": ("it deletes history", ""),
    "bytes": ("it rewrites up to {}, instead of {:,}", "byte"),
    "waits": ("it waits {}, instead of {:,}", "time"),
    "commits": ("it makes up to {}, instead of {:,}", "commit"),
}
"""the objection to a higher cost, and the noun of that cost"""
