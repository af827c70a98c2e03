"""A plan file that was changed and sealed again is refused before anything is sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import UsageError
from deltaproto.execution.goal_limits import find_unrequested_change
from deltaproto.execution.plan_file import read_plans
from deltaproto.execution.rebuild import _can_undo, find_mismatch
from deltaproto.execution.run_log import Journal
from deltaproto.execution.verify import StatementResult, StepVerdict, verify_step
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.plan import CHECKSUM_FIELD, Plan, compute_checksum
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    Purge,
    SetProperties,
    Statement,
    UnsetProperties,
)
from tests.conftest import Ran
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
TWO = ("--set", "delta.appendOnly=true", "--enable", "columnMapping")


@pytest.fixture
def table(log: Log) -> Log:
    schema = schema_string(column("id"), column("a-b", "string"), column("c`d", "string"))
    listed = ["appendOnly", "checkConstraints", "clustering", "domainMetadata", "invariants"]
    properties = {"delta.constraints.positive": "id > 0"}
    return log.commit(
        0,
        commit_info("CREATE TABLE"),
        protocol(1, 7, None, listed),
        metadata(properties, schema),
        {"domainMetadata": {"domain": "delta.clustering", "configuration": "{}", "removed": False}},
    )


def planned(cli: Cli, log: Log, *words: str) -> Path:
    file = Path(log.table).parent / "plan.json"
    command = "plan-downgrade" if {"--drop", "--lowest"} & {*words} else "plan-upgrade"
    ran = cli(command, log.table, *words, "--format", "json", "--output", str(file))
    assert ran.code == 0, ran
    return file


def read(file: Path) -> Plan:
    (found,) = read_plans(str(file))
    plan: Plan = found.plan  # type: ignore[union-attr]
    return plan


def forge(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(file.read_text())
    change(document)
    document[CHECKSUM_FIELD] = compute_checksum(document)
    file.write_text(json.dumps(document))


def step(number: int = 0, **members: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["steps"][number].update(members)


def sql(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for each in document["steps"]:
            each["sql"] = each["sql"].replace(old, new)

    return change


@pytest.mark.parametrize(
    "words",
    [
        TWO,
        ("--set", "delta.appendOnly=true", "--set", "we'ird=${x}\\", "--set", "new\nline=y"),
        ("--enable", "deletionVectors", "rowTracking"),
        ("--protocol", "3,7"),
        ("--enable", "clustering", "--cluster-by", "id"),
        ("--drop", "checkConstraints"),
        ("--drop", "checkConstraints", "--history", "truncate"),
        ("--lowest", "--include-enabled"),
        ("--sql", "ALTER TABLE t ADD CONSTRAINT c CHECK (id < 9); DELETE FROM {t} WHERE id = 1"),
        ("--sql", "ALTER TABLE t UNSET TBLPROPERTIES ('a'); OPTIMIZE t"),
    ],
    ids=" ".join,
)
def test_a_plan_as_it_was_made_fits(
    words: tuple[str, ...], cli: Cli, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    words = tuple(word.replace("{t}", f"delta.`{table.table}`") for word in words)
    plan = read(planned(cli, table, *words))
    assert plan.steps or words[0] == "--protocol"
    assert find_mismatch(plan) is None
    assert find_unrequested_change(plan) is None
    ran = cli("apply", str(Path(table.table).parent / "plan.json"), "--dry-run", "--format", "json")
    (result,) = ran.json["results"]
    assert all(gate["passed"] for gate in result["gates"] if gate["name"] == "plan"), result


@pytest.mark.parametrize(
    ("forgery", "said"),
    [
        (step(undo="DROP TABLE x"), "s1: undo does not match its statement"),
        (step(optional=True), "s1: optional does not match its statement"),
        (step(commits={"min": 0, "max": 3}), "s1: commits does not match"),
        (step(operations=[]), "s1: operations does not match"),
        (step(losses=["everything"]), "s1: losses does not match"),
        (step(action="wait", sql=None), "s1: a wait does not change the protocol"),
        (
            sql("'name')", "'name', 'delta.appendOnly' = 'true')"),
            "s1: undo does not match its statement",
        ),
        (
            sql("'name')", "'name', 'delta.logRetentionDuration' = 'interval 0 hours')"),
            "s1 sets delta.logRetentionDuration to interval 0 hours, which is not part of its goal",
        ),
    ],
)
def test_a_step_with_another_effect_than_its_plan_says_is_refused(
    forgery: Callable[[dict[str, Any]], None],
    said: str,
    cli: Cli,
    table: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = planned(cli, table, "--enable", "columnMapping")
    forge(file, forgery)
    ran = cli("apply", str(file), "--yes", "--format", "json")
    assert ran.code in (2, 3)
    gates = {gate["name"]: gate for gate in ran.json["results"][0]["gates"]}
    assert said in gates["plan"]["message"]


@pytest.mark.parametrize(
    "statement",
    [
        SetProperties({"a'b": "c\\d", "${x}": "`--`"}),
        SetProperties({"delta.feature.columnMapping": "supported"}),
        SetProperties({"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}),
        UnsetProperties(("a'b", "x\ny")),
        DropFeature("columnMapping"),
        DropFeature("columnMapping", truncate=True),
        DropConstraint("we`ird; --"),
        ClusterBy(()),
        ClusterBy(("a b", "c.d`e")),
        ClusterBy(("`c.d`", "e.`f``.g`")),
        Purge(),
    ],
    ids=lambda statement: statement.sql("t"),
)
def test_every_statement_that_plans_are_made_of_is_rebuilt(
    statement: Statement, cli: Cli, table: Log
) -> None:
    plan = read(planned(cli, table, "--enable", "columnMapping"))
    (only,) = plan.steps
    sql = statement.sql(plan.sql_name)
    assert sql is not None
    changed = only._replace(action=statement.action, sql=sql, feature=statement.feature, undo=None)
    if isinstance(statement, DropFeature):
        changed = changed._replace(truncates=statement.truncate)
    assert find_mismatch(plan._replace(steps=(changed,))) is None
    assert find_mismatch(plan._replace(steps=(changed._replace(sql=f"{sql} "),))) is not None


CTAS = "CREATE TABLE delta.`/tmp/other` USING delta AS SELECT * FROM text.`/etc/passwd`"
OTHER = "ALTER TABLE delta.`/other` SET TBLPROPERTIES ('delta.appendOnly' = 'true')"


@pytest.mark.parametrize(
    "forgery",
    [
        step(sql=CTAS),
        step(sql=OTHER),
        step(sql=None),
        step(sql=CTAS, action="sql"),
        step(action="reorg"),
        step(id="s9"),
        step(feature="identityColumns"),
        sql("'true'", "'false'), delta.x ("),
        sql("SET TBLPROPERTIES", "UNSET TBLPROPERTIES"),
        sql(")", "); DROP TABLE x"),
        sql(")", ") -- "),
        sql("columnMapping.mode", "feature.deletionVectors"),
        lambda document: document.update(sql_name="delta.`/other`"),
        lambda document: document.update(location="file:///other"),
        lambda document: document["goal"].update(sql=[CTAS]) or step(sql=CTAS)(document),
        lambda document: document.update(protocol_after=document["protocol_before"]),
    ],
)
def test_a_forged_plan_is_refused_and_says_why(
    forgery: Callable[[dict[str, Any]], None],
    cli: Cli,
    table: Log,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = planned(cli, table, *TWO)
    forge(file, forgery)
    plan = read(file)
    assert find_mismatch(plan) is not None
    ran = cli("apply", str(file), "--yes", "--format", "json")
    assert ran.code in (2, 3)
    (result,) = ran.json["results"]
    if result["gates"]:
        gates = {gate["name"]: gate for gate in result["gates"]}
        assert not gates["plan"]["passed"]


@pytest.mark.parametrize(
    ("words", "goal", "said"),
    [
        (
            ("--enable", "columnMapping", "vacuumProtocolCheck"),
            {"kind": "upgrade", "enable": ["columnMapping"]},
            "sets delta.feature.vacuumProtocolCheck",
        ),
        (
            ("--cluster-by", "id"),
            {"kind": "upgrade", "enable": ["rowTracking"]},
            "s1 changes the clustering",
        ),
        (
            ("--drop", "checkConstraints"),
            {"kind": "drop", "features": ["appendOnly"]},
            "s1 drops a constraint",
        ),
    ],
)
def test_a_plan_that_does_more_than_its_goal_is_refused(
    words: tuple[str, ...], goal: dict[str, Any], said: str, cli: Cli, table: Log
) -> None:
    """Approvals go by the goal, so a plan must not borrow another one's."""
    file = planned(cli, table, *words)
    forge(file, lambda document: document["goal"].clear() or document["goal"].update(goal, text=""))
    assert said in (find_unrequested_change(read(file)) or "")


def quiet(document: dict[str, Any]) -> None:
    """Let no step of a plan lose anything."""
    for each in document["steps"]:
        each.update(history_lost_before=None, retention_hours=None, losses=[], reversible=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--drop", "deletionVectors", "--history", "truncate"), "it deletes history, which the"),
        (("--drop", "rowTracking"), "losses does not match its statement"),
        (("--drop", "deletionVectors", "rowTracking"), "losses does not match its statement"),
        (("--drop", "columnMapping"), "losses does not match its statement"),
        (("--lowest", "--include-enabled", "--history", "truncate"), "it deletes history, which"),
    ],
    ids=str,
)
def test_a_drop_that_loses_more_than_its_plan_says_is_refused(
    words: tuple[str, ...], said: str, cli: Cli, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise `apply` needs no --allow-irreversible for it."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    stored = protocol(
        3,
        7,
        ["deletionVectors", "columnMapping"],
        ["deletionVectors", "columnMapping", "rowTracking", "domainMetadata"],
    )
    enabled = {
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": "id",
        "delta.rowTracking.materializedRowIdColumnName": "a",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "b",
    }
    log.commit(0, commit_info("CREATE TABLE"), stored, metadata(enabled))
    file = planned(cli, log, *words)
    ran = cli("apply", str(file), "--yes", "--format", "json")
    gates = {gate["name"]: gate["passed"] for gate in ran.json["results"][0]["gates"]}
    assert (gates.get("plan", True), gates["irreversible"]) == (True, False)
    forge(file, quiet)
    ran = cli("apply", str(file), "--yes", "--format", "json")
    gates = {gate["name"]: gate["message"] for gate in ran.json["results"][0]["gates"]}
    assert said in gates["plan"]


def test_a_plan_that_drops_another_feature_than_its_goal_is_refused(cli: Cli, log: Log) -> None:
    both = ["deletionVectors", "vacuumProtocolCheck"]
    log.commit(0, commit_info("CREATE TABLE"), protocol(3, 7, both, both), metadata())
    file = planned(cli, log, "--drop", "vacuumProtocolCheck")
    assert find_unrequested_change(read(file)) is None
    forge(file, lambda document: document["goal"].update(features=["deletionVectors"]))
    assert "drops vacuumProtocolCheck" in (find_unrequested_change(read(file)) or "")


def test_a_statement_that_leads_elsewhere_than_the_plan_says_is_refused(
    cli: Cli, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = planned(cli, table, "--set", "a=b")
    name = f"delta.`{table.table}`"
    text = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    forge(file, step(sql=text, undo=None))
    assert find_mismatch(read(file)) is None
    ran = cli("apply", str(file), "--yes", "--format", "json")
    gates = {gate["name"]: gate for gate in ran.json["results"][0]["gates"]}
    assert "s1 would lead to" in gates["plan"]["message"]
    assert ran.code in (2, 3)


@pytest.mark.parametrize("plan_id", ["../../x", "0" * 15, "0" * 17, "A" * 16, "0" * 16 + "\n", ""])
def test_an_id_that_is_not_16_hexadecimal_digits(plan_id: str, cli: Cli, table: Log) -> None:
    file = planned(cli, table, *TWO)
    forge(file, lambda document: document.update(plan_id=plan_id))
    with pytest.raises(UsageError, match="plan_id is not 16 hexadecimal digits"):
        read_plans(str(file))


@pytest.mark.parametrize(
    "goal", [{"enable": 5}, {"enable": [{}]}, {"sql": 7}, {"set": ["a"]}, {"set": {"a": True}}]
)
def test_a_goal_of_another_type_is_an_error(goal: dict[str, Any], cli: Cli, table: Log) -> None:
    file = planned(cli, table, *TWO)
    forge(file, lambda document: document["goal"].update(goal))
    ran = cli("apply", str(file), "--dry-run")
    assert ran.code == 2
    assert "plan.json" in ran.err
    assert "internal error" not in ran.err


def test_a_step_without_its_commit_is_not_done(cli: Cli, table: Log) -> None:
    plan = read(planned(cli, table, "--set", "a=b"))
    (only,) = plan.steps
    found = verify_step(only, StatementResult(), [], plan.protocol_after, frozenset())
    assert found.verdict is StepVerdict.UNEXPECTED
    assert "no commit of s1" in found.message
    again = verify_step(only, StatementResult(), [], plan.protocol_after, frozenset(), resumed=True)
    assert again.verdict is StepVerdict.AS_PREDICTED


def test_a_saved_table_is_named_by_its_location_wherever_it_is_planned(
    cli: Cli, table: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(table.table).parent)
    saved = str(tmp_path / "saved.json")
    assert cli("inspect", Path(table.table).name, "--format", "json", "-o", saved).code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ran = cli("plan-upgrade", saved, "--set", "a=b", "--format", "json")
    (found,) = ran.json["plans"]
    assert found["sql_name"] == f"delta.`{table.table}`"


@pytest.mark.parametrize(
    "expression",
    ["id > 0); DROP TABLE x; --", "id > 0) OR (1 = 1", "id > 0 -- ", "id > 0 /* ", "name = 'a"],
)
def test_an_expression_that_leaves_its_parenthesis_is_never_part_of_a_rollback(
    expression: str, cli: Cli, log: Log
) -> None:
    properties = {"delta.constraints.bad": expression, "delta.constraints.good": "(id > 0) -- x\n"}
    listed = ["checkConstraints", "appendOnly", "invariants"]
    log.commit(0, commit_info(), protocol(1, 7, None, listed), metadata(properties))
    file = planned(cli, log, "--drop", "checkConstraints")
    text = file.read_text()
    assert expression not in json.loads(text)["goal"].values()
    steps = {each["why"].split(",")[0].split()[-1]: each for each in json.loads(text)["steps"]}
    assert steps["bad"]["undo"] is None
    assert any("review it" in loss for loss in steps["bad"]["losses"])
    assert "ADD CONSTRAINT `good` CHECK ((id > 0))" in steps["good"]["undo"]
    script = cli("plan-downgrade", log.table, "--drop", "checkConstraints", "--script", "sql").out
    assert expression not in script


DODGES = ("x.y", "elsewhere", "/elsewhere/table", "../other", "delta.`/other`", "s3://b/table")


@pytest.mark.parametrize("name", DODGES)
def test_a_plan_that_calls_its_table_otherwise_is_refused_by_every_gate(
    name: str, cli: Cli, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    file = planned(cli, table, "--enable", "typeWidening")
    forge(file, lambda document: document.update(table=name))
    policy = file.with_name("policy.yaml")
    client = "{client: deltalake/engine@1.6.6, access: [read]}"
    policy.write_text(
        f"policy_version: 1\ntables:\n  table: {{clients: [{client}], maintenance_windows: []}}\n"
    )
    ran = cli("apply", str(file), "--policy", str(policy), "--yes", "--format", "json")
    (result,) = ran.json["results"]
    passed = {gate["name"]: gate["passed"] for gate in result["gates"]}
    assert not any(passed[gate] for gate in ("plan", "policy", "window")), result
    assert f"the plan names {name}, but changes" in result["message"]


@pytest.mark.parametrize("name", ["table", ".", "../x/table", "table/_delta_log", "a/../table"])
def test_a_relative_name_of_the_table_is_none_of_another(
    name: str, cli: Cli, table: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    plan = read(planned(cli, table, "--enable", "typeWidening"))
    if name == "../x/table":
        plan = plan._replace(
            location=plan.location.replace("/table", "/x/table"),
            sql_name=plan.sql_name.replace("/table", "/x/table"),
        )
    assert "the plan names" not in (find_mismatch(plan._replace(table=name)) or "")


class TestPlanId:
    """A plan with the id of another one would take the steps of that one's journal as its own."""

    @pytest.fixture
    def file(self, cli: Cli, table: Log, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setitem(sys.modules, "pyspark", None)
        file = planned(cli, table, "--enable", "typeWidening")
        forge(file, lambda document: document.update(plan_id="0123456789abcdef"))
        with Journal(str(file.parent / ".deltaproto"), "0123456789abcdef") as journal:
            fields = json.loads(file.read_text())["fingerprint"]
            members = {"version": 0, "protocol": fields["protocol"], "early": []}
            journal.add("done", 1.0, steps_done=1, metadata=fields["metadata"], **members)
        return file

    @pytest.mark.parametrize("words", [(), ("--dry-run",)])
    def test_apply_refuses_it(self, cli: Cli, file: Path, words: tuple[str, ...]) -> None:
        ran = cli("apply", str(file), "--yes", *words, "--format", "json")
        (result,) = ran.json["results"]
        assert ran.code != 0
        assert "its plan_id is 0123456789abcdef" in result["message"]

    def test_so_does_undo(self, cli: Cli, file: Path) -> None:
        ran = cli("apply", str(file), "--undo", "--yes")
        assert ran.code == 2
        assert "its plan_id is 0123456789abcdef" in ran.out + ran.err


STATEMENTS = {
    "drop": "ALTER TABLE t DROP FEATURE deletionVectors",
    "truncate": "ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY",
    "vectors": "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "feature": "ALTER TABLE t SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')",
    "append": "ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
    "both": "ALTER TABLE t SET TBLPROPERTIES "
    "('delta.appendOnly' = 'true', 'delta.enableDeletionVectors' = 'true')",
    "unset": "ALTER TABLE t UNSET TBLPROPERTIES ('delta.appendOnly')",
    "drop constraint": "ALTER TABLE t DROP CONSTRAINT c",
    "add constraint": "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)",
    "other constraint": "ALTER TABLE t ADD CONSTRAINT d CHECK (id > 0)",
    "cluster": "ALTER TABLE t CLUSTER BY (id)",
    "no cluster": "ALTER TABLE t CLUSTER BY NONE",
    "delete": "DELETE FROM t",
    "purge": "REORG TABLE t APPLY (PURGE)",
}
CAN_UNDO = {
    "drop": {"vectors", "feature"},
    "truncate": {"vectors", "feature"},
    "vectors": {"vectors", "drop"},
    "feature": {"feature", "drop"},
    "append": {"append", "unset", "drop"},
    "both": {"append", "both", "vectors", "unset", "drop"},
    "unset": {"append", "unset", "drop"},
    "drop constraint": {"add constraint"},
    "no cluster": {"cluster", "no cluster"},
}


def test_a_rollback_undoes_its_own_statement_and_nothing_else() -> None:
    """Every statement as the rollback of every other one."""
    parsed = {name: parse_script(text)[0].statement for name, text in STATEMENTS.items()}
    found = {
        done: {name for name, undo in parsed.items() if _can_undo(parsed[done], undo)}
        for done in parsed
    }
    assert {name: undone for name, undone in found.items() if undone} == CAN_UNDO


@pytest.mark.parametrize(
    "key", ["delta.ignoreProtocolDefaults", "delta.minWriterVersion", "delta.feature.appendOnly"]
)
def test_a_drop_that_first_removes_protocol_properties_is_part_of_its_goal(
    key: str, cli: Cli, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    value = "7" if key.endswith("Version") else "supported"
    stored = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    log.commit(0, commit_info("CREATE TABLE"), stored, metadata({key: value}))
    file = planned(cli, log, "--drop", "deletionVectors")
    assert f"UNSET TBLPROPERTIES ('{key}')" in json.loads(file.read_text())["steps"][0]["sql"]
    ran = cli("apply", str(file), "--yes", "--allow-irreversible", "--format", "json")
    gates = {gate["name"]: gate["passed"] for gate in ran.json["results"][0]["gates"]}
    assert gates.get("plan", True)
    assert gates["fingerprint"]
