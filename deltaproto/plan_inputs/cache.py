"""Plan each group of identical tables once.

Most tables of a fleet fall into a few groups. The name and address of each table are inserted into
the plan afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from deltaproto.plan_inputs.client_scope import ClientScope, PolicyCheckedPlan
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.cost import Files

# A quoted name in SQL that no table can have: paths have no NUL.
_TABLE_PLACEHOLDER = "delta.`\0table\0`"
_CACHE_SIZE = 4096


class CachingPlanner:
    """A planner that caches plans of identical tables, with the check of their results.

    Args:
        plan: plans for one table with its clients, and checks the result.
    """

    def __init__(
        self,
        plan: Callable[[PlanInput], PolicyCheckedPlan],
        users: ClientScope,
        *,
        by_version: bool = False,
    ) -> None:
        self._plan, self._users, self._by_version = plan, users, by_version
        self._known: dict[Hashable, PolicyCheckedPlan] = {}

    def __call__(self, inputs: PlanInput) -> PolicyCheckedPlan:
        """Return the plan for one table."""
        group = self._users.group_of(inputs)
        if group is None:
            return self._plan(inputs)
        key = (group, _cache_key(inputs, by_version=self._by_version))
        # Most plans rewrite no files, and are the same for any.
        found = self._known.get(key) or self._known.get((key, inputs.files))
        if found is not None:
            self._users.observe(found, inputs)
            return found._replace(plan=_with_table(found.plan, inputs))
        files = _WatchedFiles(*inputs.files)
        found = self._plan(inputs._replace(sql=_TABLE_PLACEHOLDER, files=files))
        if not _names_table(found.plan, inputs):
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            self._known[(key, inputs.files) if files.used else key] = found
        return found._replace(plan=_with_table(found.plan, inputs))


class _WatchedFiles(Files):
    """Files that know whether a plan depends on them."""

    used = False

    @property
    def files(self) -> int | None:
        self.used = True
        return self[0]

    @property
    def bytes(self) -> int | None:
        self.used = True
        return self[1]

    def rewritten(self, rewrite: Rewrite) -> tuple[int | None, int | None]:
        if rewrite is not Rewrite.NONE:
            self.used = True
        return super().rewritten(rewrite)


def _cache_key(inputs: PlanInput, *, by_version: bool) -> Hashable:
    table = inputs.table
    return (
        inputs.fingerprint.version if by_version else None,
        table.protocol,
        *(value for value in table[1:] if not isinstance(value, Mapping)),
        *sorted(table.configuration.items()),
        *sorted(table.left.items()),
        inputs.needs,
        inputs.complete,
        inputs.releases,
        inputs.warnings,
        tuple(id(client.candidate) for client in inputs.clients),
        tuple(client[1:] for client in inputs.clients),
        tuple((s.name, s.enabled, s.present, s.required_by, s.evidence) for s in inputs.states),
    )


def _names_table(plan: Plan, inputs: PlanInput) -> bool:
    """Return True if the plan's text names the table, so that no other table can have the plan."""
    text = repr(plan._replace(table="", location="", sql_name="", fingerprint=inputs.fingerprint))
    return any(name and name in text for name in (inputs.name, inputs.location))


def _with_table(plan: Plan, inputs: PlanInput) -> Plan:
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


def _with_table_name(steps: tuple[Step, ...], sql: str) -> tuple[Step, ...]:
    return tuple(
        step._replace(
            sql=None if step.sql is None else step.sql.replace(_TABLE_PLACEHOLDER, sql),
            undo=None if step.undo is None else step.undo.replace(_TABLE_PLACEHOLDER, sql),
        )
        for step in steps
    )
