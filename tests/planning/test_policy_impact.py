"""What a policy says of a plan: new and worsened violations, and those that were there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Blocked
from deltaproto.planning.policy_impact import (
    UnpredictableError,
    assess_policy_impact,
    describe_fixes,
    explain_unmet,
    predict_facts,
)
from deltaproto.policy.context import TableFacts
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.policy.rules import client_unknown
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given

PAIR, PROPERTY, LEVEL = "DP204", "DP209", "DP208"


def facts(pair: tuple[int, int], configuration: dict[str, Any], level: str) -> TableFacts:
    protocol = Protocol(*pair)
    return TableFacts(
        table="t",
        location="file:///t",
        version=0,
        needs=table_requirements(protocol, {}, configuration),
        configuration=configuration,
        isolation={"delta-spark": level},
        findings=(),
        complete=True,
    )


OFF = {"delta.appendOnly": "false"}
RAISED = "max_reader_version: 1, max_writer_version: 2"
APPENDS, STRICT = "require_properties: {delta.appendOnly: true}", "isolation: Serializable"


@pytest.mark.parametrize(
    ("settings", "before", "after", "new", "existing"),
    [
        (RAISED, ((1, 2), {}, "S"), ((1, 2), {}, "S"), [], 0),
        (RAISED, ((1, 2), {}, "S"), ((1, 4), {}, "S"), [PAIR], 0),
        # The violations are there already, and stay as they are.
        (RAISED, ((2, 5), {}, "S"), ((2, 5), {}, "S"), [], 2),
        (RAISED, ((2, 5), {}, "S"), ((2, 6), {}, "S"), [PAIR], 1),
        (RAISED, ((1, 4), {}, "S"), ((2, 5), {}, "S"), [PAIR, PAIR], 0),
        (RAISED, ((2, 6), {}, "S"), ((2, 5), {}, "S"), [], 2),
        (APPENDS, ((1, 2), {}, "S"), ((1, 3), {}, "S"), [], 1),
        (APPENDS, ((1, 2), {}, "S"), ((1, 2), OFF, "S"), [PROPERTY], 0),
        (APPENDS, ((1, 2), OFF, "S"), ((1, 2), OFF, "S"), [], 1),
        (APPENDS, ((1, 2), OFF, "S"), ((1, 2), {"delta.appendOnly": "true"}, "S"), [], 0),
        (STRICT, ((1, 2), {}, "W"), ((1, 2), {}, "W"), [], 1),
        (STRICT, ((1, 2), {}, "S"), ((1, 2), {}, "W"), [LEVEL], 0),
        (STRICT, ((1, 2), {}, "N"), ((1, 2), {}, "W"), [LEVEL], 0),
    ],
)
def test_new_and_worsened_violations_are_the_plans(
    settings: str, before: Any, after: Any, new: list[str], existing: int, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"policy_version: 1\ntables: {{'*': {{{settings}}}}}\n", encoding="utf-8")
    policy = load_local_policy(str(file))
    checker = Checker(policy, load_local_catalog((), policy))
    levels = {"S": "Serializable", "W": "WriteSerializable", "N": "SnapshotIsolation"}
    one, two = (
        facts(pair, configuration, levels[level]) for pair, configuration, level in (before, after)
    )
    impact = assess_policy_impact(checker, one, two, "a goal")
    assert [each.rule for each in impact.violations] == new
    assert impact.remaining == existing


def checker_of(text: str, folder: Path) -> Checker:
    file = folder / "policy.yaml"
    file.write_text(f"policy_version: 1\n{text}", encoding="utf-8")
    policy = load_local_policy(str(file))
    return Checker(policy, load_local_catalog((), policy))


IMPLIED = ", and implied by (1,4)"
FORBIDDEN = "tables: {'*': {forbid_features: [changeDataFeed, generatedColumns]}}\n"


def test_losses_are_not_violations_too_and_hidden_findings_are_counted(tmp_path: Path) -> None:
    clients = "clients: [{client: deltalake/pyarrow@1.6.6, access: [read]}]\n"
    waiver = (
        "waivers: [{rule: DP205, table: '*', feature: changeDataFeed, reason: r, "
        "expires: 2099-01-01}]\n"
    )
    settings = FORBIDDEN.replace("]}}", "], max_writer_version: 4}}")
    checker = checker_of(f"{clients}{settings}severities: {{DP204: off}}\n{waiver}", tmp_path)
    one, two = (facts(pair, {}, "Serializable") for pair in ((1, 2), (2, 5)))
    impact = assess_policy_impact(checker, one, two, "a goal")
    assert [(each.client, each.access) for each in impact.losses] == [
        ("deltalake/pyarrow@1.6.6", "read"),
    ]
    assert [each.feature for each in impact.violations] == ["generatedColumns"]
    assert [ruling.approved for ruling in impact.rulings] == [False]
    assert [loss for loss, _ in impact.unapproved] == [*impact.losses]
    assert (impact.remaining, impact.waived, impact.off) == (0, 1, 1)
    assert impact.before is not None
    assert impact.then is not None
    assert (len(impact.before.findings), len(impact.then.findings)) == (0, 2)
    assert impact.in_words[-1] == (
        "generatedColumns is forbidden by the policy, and implied by (2,5)"
    )
    assert len(impact.in_words) == 2
    # The same loss is none for a table that has lost the access already.
    again = assess_policy_impact(checker, two, two, "a goal")
    assert (again.losses, again.violations, again.remaining) == ((), (), 2)


def test_an_approval_may_name_the_table_as_its_catalog_does(tmp_path: Path) -> None:
    policy = (
        "clients: [{client: deltalake/pyarrow@1.6.6, access: [read]}]\n"
        "approvals: [{client: deltalake/pyarrow, access: [read], table: main.sales.orders, "
        "goal: a goal, approver: ada, reason: r, expires: 2099-01-01}]\n"
    )
    checker = checker_of(policy, tmp_path)
    one, two = (facts(pair, {}, "Serializable") for pair in ((1, 2), (2, 5)))
    for names, approved in (((), False), (("main.sales.orders",), True)):
        impact = assess_policy_impact(checker, one._replace(other_names=names), two, "a goal")
        assert [ruling.approved for ruling in impact.rulings] == [approved]


def test_what_a_plan_fixes_and_leaves(tmp_path: Path) -> None:
    checker = checker_of(FORBIDDEN, tmp_path)
    both, one, none = (
        checker.check(facts(pair, {}, "Serializable")) for pair in ((1, 4), (1, 3), (1, 2))
    )
    assert one.findings == ()
    assert [*describe_fixes(both, none)] == [
        f"DP205: changeDataFeed is forbidden by the policy{IMPLIED}",
        f"DP205: generatedColumns is forbidden by the policy{IMPLIED}",
    ]
    assert [*describe_fixes(both, both)] == [*describe_fixes(none, both)] == []
    reasons = (
        Blocked("changeDataFeed", "it is in use", "stop it", "E"),
        Blocked("other", "nothing drops other", "nothing"),
        Blocked("unnamed", "nothing drops it", "copy"),
        Blocked(None, "no feature", "wait"),
    )
    first, second, *rest = explain_unmet(both, reasons)
    assert first == Blocked(
        "changeDataFeed",
        f"DP205: changeDataFeed is forbidden by the policy{IMPLIED}; it is in use",
        "stop it",
        "E",
    )
    assert second._replace(remedy="") == Blocked(
        "generatedColumns", f"DP205: generatedColumns is forbidden by the policy{IMPLIED}", ""
    )
    assert second.remedy == both.findings[1].hint != ""
    other, unnamed, last = reasons[1:]
    assert rest == [other, unnamed._replace(reason="unnamed: nothing drops it"), last]
    assert [each.feature for each in explain_unmet(none, reasons)] == [
        each.feature for each in reasons
    ]


def test_clients_with_one_cause_are_one_violation(tmp_path: Path) -> None:
    checker = checker_of("clients: [trino@400, trino@410, presto@0.298]\n", tmp_path)
    then = checker.check(facts((2, 5), {}, "Serializable"))
    reasons = (
        Blocked(None, "trino@400, append: it does not support writer version 5", "upgrade"),
        Blocked(None, "trino@476, append: it does not support writer version 5", "upgrade"),
    )
    first, second, *rest = explain_unmet(then, reasons)
    assert first.reason.startswith("DP201: trino@400, trino@410 cannot append: ")
    assert first.remedy.startswith("no known version works")
    assert first.remedy.endswith("--for-client trino@400 --access append")
    assert second.reason == "DP201: presto@0.298 cannot append: it offers no writing"
    # What the findings already say is not repeated.
    assert rest == [reasons[1]]


def test_several_clients_that_are_unknown_for_one_cause(tmp_path: Path) -> None:
    checker = checker_of("clients: [duckdb@1.5.5]\n", tmp_path)
    then = checker.check(facts((1, 2), {}, "Serializable"))
    found = [
        client_unknown.RULE.finding(
            "t", f"{client} is not known to be able to read: x", "try it", client=client
        )
        for client in ("a@1", "b@2")
    ]
    (first,) = explain_unmet(then._replace(findings=tuple(found)), ())
    assert first.reason == "DP203: a@1, b@2 are not known to be able to read: x"


def test_a_table_after_the_steps_of_its_plan(tmp_path: Path) -> None:
    table = given(Protocol(1, 3), {"delta.constraints.c": "id > 0"})
    plan = plan_downgrade(table, DowngradeRequest(drop=("checkConstraints",)))
    today = facts((1, 3), {"delta.constraints.c": "id > 0"}, "Serializable")
    after = predict_facts(today, table.table, plan.steps, plan)
    assert after.protocol == plan.protocol_after == Protocol(1, 2)
    assert after.configuration == {}
    assert after.isolation == {
        "delta-spark": "Serializable",
        "databricks": "WriteSerializable",
        "delta-rs": "Serializable",
    }
    assert after.table == today.table
    with pytest.raises(UnpredictableError, match=r"^s2: .*constraint"):
        predict_facts(today, table.table, plan.steps[1:], plan)
    # A refusal that the plan expects, and a wait.
    old = given(Protocol(2, 5), {"delta.columnMapping.mode": "name"})
    waiting = plan_downgrade(old, DowngradeRequest(to=(1, 4)))
    assert waiting.steps[0].expects is not None
    ending = predict_facts(facts((2, 5), {}, "S"), old.table, waiting.steps, waiting)
    assert ending.protocol == Protocol(1, 4)
    level = {"delta.isolationLevel": "Nothing"}
    changed = predict_facts(today, table.table._replace(configuration=level), (), plan)
    assert changed.isolation["databricks"] is None
