"""Retargets a plan to a clone of its table."""

from __future__ import annotations

from deltaproto.errors import UsageError
from deltaproto.location import Location
from deltaproto.planning.advice import is_same_table
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.plan import Plan, Step
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import sql_table_name


def retarget_plan(plan: Plan, to: Location) -> Plan:
    """Return the plan with every statement on the table at `to`.

    Raises:
        UsageError: for a statement that would still change another table.
    """
    name = sql_table_name(to)
    steps = tuple(
        step
        if step.sql is None
        else step._replace(sql=_retarget_sql(step, step.sql, plan.sql_name, name))
        for step in plan.steps
    )
    return plan._replace(table=to.uri, location=to.uri, sql_name=name, steps=steps)


def without_features(plan: Plan, names: frozenset[str]) -> Plan:
    """Return the plan for a copy of its table that does not have these features."""

    def without(protocol: Protocol) -> Protocol:
        for name in sorted(names & protocol.supported):
            protocol = protocol.without_feature(name)
        return protocol

    steps = tuple(
        step._replace(
            protocol_before=without(step.protocol_before),
            protocol_after=without(step.protocol_after),
        )
        for step in plan.steps
    )
    return plan._replace(
        protocol_before=without(plan.protocol_before),
        protocol_after=without(plan.protocol_after),
        steps=steps,
    )


def _retarget_sql(step: Step, sql: str, before: str, name: str) -> str:
    made = sql.replace(before, name, 1)
    # Users write names in many ways, and more than once: only parsing the statement shows them.
    for parsed in parse_script(made):
        if parsed.target is None or not is_same_table(parsed.target, name):
            raise UsageError(
                f"{step.id} cannot be rehearsed: it does not name the table as {before}",
                "use this name for the table in the SQL, and plan again",
            )
    return made
