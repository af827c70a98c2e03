"""Plan each group of identical tables once.

Most tables of a fleet fall into a few groups. The name and address of each table are inserted into
the plan afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.request import PlanInput

# A placeholder that no name or address can contain: paths have no NUL.
_TABLE_PLACEHOLDER = "\0table\0"
_CACHE_SIZE = 4096


class CachingPlanner:
    """A planner that caches plans of identical tables."""

    def __init__(self, planner: Callable[[PlanInput], Plan], *, by_version: bool = False) -> None:
        self._planner, self._by_version = planner, by_version
        self._known: dict[Hashable, Plan] = {}

    def __call__(self, inputs: PlanInput) -> Plan:
        """Return the plan for one table."""
        key = _cache_key(inputs, by_version=self._by_version)
        plan = self._known.get(key)
        if plan is None:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            plan = self._known[key] = self._planner(
                inputs._replace(name="", location="", sql=_TABLE_PLACEHOLDER)
            )
        return plan._replace(
            table=inputs.name,
            location=inputs.location,
            sql_name=inputs.sql,
            fingerprint=inputs.fingerprint,
            steps=_with_table_name(plan.steps, inputs.sql),
            alternatives=tuple(
                each._replace(steps=_with_table_name(each.steps, inputs.sql))
                for each in plan.alternatives
            ),
        )


def _cache_key(inputs: PlanInput, *, by_version: bool) -> Hashable:
    table = inputs.table
    return (
        inputs.fingerprint.version if by_version else None,
        table.protocol,
        *(value for value in table[1:] if not isinstance(value, Mapping)),
        *sorted(table.configuration.items()),
        *sorted(table.left.items()),
        inputs.needs,
        inputs.files,
        inputs.complete,
        inputs.releases,
        inputs.warnings,
        None if inputs.target is None else inputs.target.key,
        tuple(id(client.candidate) for client in inputs.clients),
        tuple(client[1:] for client in inputs.clients),
        tuple((s.name, s.enabled, s.present, s.required_by, s.evidence) for s in inputs.states),
    )


def _with_table_name(steps: tuple[Step, ...], sql: str) -> tuple[Step, ...]:
    return tuple(
        step._replace(
            sql=None if step.sql is None else step.sql.replace(_TABLE_PLACEHOLDER, sql),
            undo=None if step.undo is None else step.undo.replace(_TABLE_PLACEHOLDER, sql),
        )
        for step in steps
    )
