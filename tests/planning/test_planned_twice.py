"""Plans for random policies: a second plan for the predicted result finds nothing more to do."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.requirements import table_requirements
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.plan import Plan
from deltaproto.planning.policy_impact import predict_facts
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Policy, PolicySettings, TableEntry
from deltaproto.protocol import feature_catalog
from tests.planning.test_search import planned_for, tables
from tests.support.examples import examples

_REQUIRED = (
    *("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors"),
    *("inCommitTimestamp", "rowTracking", "typeWidening", "v2Checkpoint"),
)
_PROPERTIES = {
    "delta.appendOnly": ("true", "false"),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.enableDeletionVectors": ("true",),
    "delta.enableRowTracking": ("true",),
    "delta.columnMapping.mode": ("name",),
}


@st.composite
def random_settings(draw: st.DrawFn, table: Table) -> PolicySettings:
    """Settings that may contradict each other."""
    keys = draw(st.sets(st.sampled_from(sorted(_PROPERTIES)), max_size=2))
    supported = sorted(table.protocol.supported) or ["none"]
    return PolicySettings(
        protocol=draw(st.sampled_from([None, "lowest", "lowest"])),
        require_features=tuple(sorted(draw(st.sets(st.sampled_from(_REQUIRED), max_size=2)))),
        cluster_by=draw(st.sampled_from([None, None, (), ("id",)])),
        require_properties={key: draw(st.sampled_from(_PROPERTIES[key])) for key in sorted(keys)},
        forbid_features=tuple(sorted(draw(st.sets(st.sampled_from(supported), max_size=1)))),
        min_writer_version=draw(st.sampled_from([None, None, 2, 4])),
        max_writer_version=draw(st.sampled_from([None, 4, 6])),
        max_reader_version=draw(st.sampled_from([None, None, 1])),
        history=draw(st.sampled_from([None, "keep", "truncate"])),
    )


def inputs_of(table: Table, facts: TableFacts) -> PlanInput:
    return planned_for(table)._replace(facts=facts, needs=facts.needs)


def predicted(plan: Plan, table: Table) -> Table:
    for step in plan.steps:
        if step.sql is None:
            table = table.waited(step.wait_hours)
        for parsed in parse_script(step.sql or ""):
            table = predict_statement(parsed.statement, table, plan.engine).table
    return table


def facts_of(table: Table) -> TableFacts:
    """What a check knows of the table, none of whose features that are off is in its files."""
    on = end_state_of(table, table).on
    protocol = table.protocol
    switchless = {n for n in protocol.supported if feature_catalog.feature_record(n).switchless}
    usage = {name: name in on | switchless for name in protocol.supported}
    return TableFacts(
        table="t",
        location="file:///t",
        version=0,
        needs=table_requirements(
            protocol, usage, table.configuration, absent=protocol.supported - on
        ),
        configuration=table.configuration,
        isolation={},
        findings=(),
        complete=True,
        clustering=table.clustering,
    )


@given(data=st.data())
@settings(max_examples=examples(100))
def test_nothing_is_left_to_do_after_a_plan(data: st.DataObject) -> None:
    table = data.draw(tables(most=2))
    wanted = data.draw(random_settings(table))
    entry = TableEntry("*", wanted, Position(1, 1))
    users = ClientScope(Policy("p.yaml", clients=(), tables=(entry,)), (), ())
    before = facts_of(table)
    plan = users.plan_for_policy(inputs_of(table, before)).plan
    after = predict_facts(before, table, plan.steps, plan)
    again = users.plan_for_policy(inputs_of(predicted(plan, table), after)).plan
    done, more = ([step.sql for step in each.steps] for each in (plan, again))
    assert more == [], (done, plan.unmet)
