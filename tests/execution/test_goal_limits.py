"""A plan file that was sealed again does no more than its goal asks for."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.execution.goal_limits import TableUse, find_unrelated_undo, find_unrequested_change
from deltaproto.planning.downgrade import plan_downgrade
from deltaproto.planning.enable import DISABLEABLE_FEATURES
from deltaproto.planning.plan import Plan, plan_id
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import Action
from tests.conftest import Ran
from tests.execution.test_rebuild import forge, planned, read
from tests.planning.oracle import planned as planned_input
from tests.planning.random_goals import random_goal
from tests.planning.test_lowest import tables
from tests.support.examples import examples
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
READERS = ["deletionVectors", "vacuumProtocolCheck"]
EVERY = [*READERS, "appendOnly", "changeDataFeed", "checkConstraints", "invariants"]
VECTORS_ON = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@given(table=tables(), seed=st.integers(0, 10**6))
@settings(max_examples=examples(150))
def test_honest_downgrades_stay_within_their_goals(table: PlanInput, seed: int) -> None:
    # These tables have no properties: what a property enables is not in use.
    off, needs = DISABLEABLE_FEATURES & table.needs.used, table.needs
    needs = needs._replace(used=needs.used - off, unused=needs.unused | off)
    table = table._replace(needs=needs)
    plan = plan_downgrade(table, random_goal(Random(seed), table.table.protocol.supported))
    use = TableUse(table.states, table.needs, ClientCatalog(), table.table.domains)
    assert find_unrequested_change(plan, use) is None
    assert find_unrequested_change(plan) is None


PROPERTY = "require_properties: {delta.appendOnly: 'true'}"


@pytest.mark.parametrize(
    ("writer", "stored", "policy"),
    [
        (2, {}, "require_features: [changeDataFeed]"),
        ([], {}, f"{PROPERTY}, max_writer_version: 4"),
        (2, {"rowTracking": "enabled"}, "require_features: [changeDataFeed]"),
        (["domainMetadata"], {"inCommitTimestamp": "supported"}, f"{PROPERTY}, protocol: lowest"),
        (["domainMetadata"], {"v2Checkpoint": "supported"}, f"{PROPERTY}, max_writer_version: 6"),
        (
            ["domainMetadata"],
            {"inCommitTimestamp": "supported"},
            f"{PROPERTY}, forbid_features: [inCommitTimestamp]",
        ),
    ],
)
def test_a_plan_for_a_policy_adds_and_drops_no_more_than_its_goal_needs(
    writer: int | list[str],
    stored: dict[str, str],
    policy: str,
    log: Log,
    cli: Cli,
    tmp_path: Path,
) -> None:
    """Versions add features and keep the protocol legacy; stored properties add some to drop."""
    properties = {f"delta.feature.{name}": value for name, value in stored.items()}
    before = protocol(1, writer) if isinstance(writer, int) else protocol(1, 7, None, writer)
    schema = schema_string(column("id"))
    log.commit(0, commit_info("CREATE TABLE"), before, metadata(properties, schema))
    (tmp_path / "policy.yaml").write_text(f"policy_version: 1\ntables:\n  '*': {{{policy}}}\n")
    file = tmp_path / "plan.json"
    words = ("--policy", str(tmp_path / "policy.yaml"), "--format", "json", "-o", str(file))
    cli("plan", log.table, *words)
    plan = read(file)
    assert plan.steps
    for number in range(len(plan.steps)):
        assert find_unrequested_change(plan, None, plan.steps[number:]) is None


@pytest.mark.parametrize("goal", [("--lowest",), ("--to", "1,2"), ("--drop", "domainMetadata")])
def test_a_downgrade_drops_what_stored_properties_add(
    goal: tuple[str, ...], log: Log, cli: Cli, tmp_path: Path
) -> None:
    listed = ["clustering", "domainMetadata", "rowTracking"]
    before = protocol(1, 7, None, listed if "--lowest" in goal else listed[1:2])
    stored = metadata({"delta.feature.inCommitTimestamp": "supported"}, schema_string(column("id")))
    log.commit(0, commit_info("CREATE TABLE"), before, stored)
    file = tmp_path / "plan.json"
    cli("plan-downgrade", log.table, *goal, "--format", "json", "-o", str(file))
    plan = read(file)
    dropped = {step.feature for step in plan.steps if step.action is Action.DROP}
    assert ("inCommitTimestamp" in dropped) is ("--drop" not in goal)
    given = planned_input(log.table)
    use = TableUse(given.states, given.needs, ClientCatalog(), given.table.domains)
    assert find_unrequested_change(plan, use) is None


@pytest.fixture
def table(log: Log, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    properties = {**VECTORS_ON, "delta.constraints.positive": "id > 0"}
    return log.commit(
        0,
        commit_info("CREATE TABLE"),
        protocol(3, 7, READERS, EVERY),
        metadata(properties, schema_string(column("id"), column("b"), column("c"))),
    )


def refused(cli: Cli, file: Path) -> str:
    """Why `apply` refuses a file; the text is empty if it does not."""
    plan = json.loads(file.read_text())
    plan["plan_id"] = plan_id(read(file))
    forge(file, lambda document: document.update(plan))
    ran = cli("apply", str(file), "--dry-run", "--allow-irreversible", "--format", "json")
    (result,) = ran.json["results"]
    gates = {gate["name"]: gate for gate in result["gates"]}
    return "" if gates["plan"]["passed"] else str(gates["plan"]["message"])


def borrow(file: Path, goal: dict[str, Any], command: str = "plan-downgrade") -> None:
    """Give the plan another goal, as whoever wants to use another plan's approval would."""

    def change(document: dict[str, Any]) -> None:
        document["command"] = command
        kept = {} if command == "plan-upgrade" else {"history": None, "rewrite": False}
        document["goal"] = {**kept, **goal, "text": ""}

    forge(file, change)


FOR_TRINO = [{"client": "trino@476", "access": ["read"]}]


@pytest.mark.parametrize(
    ("words", "goal", "said"),
    [
        (("--lowest", "--include-enabled"), {"kind": "lowest", "include_enabled": False}, "drops "),
        (("--drop", "deletionVectors"), {"kind": "lowest", "include_enabled": False}, "drops del"),
        (("--drop", "vacuumProtocolCheck"), {"kind": "to", "reader": 3, "writer": 7}, "drops vac"),
        (("--drop", "checkConstraints"), {"kind": "to", "reader": 1, "writer": 7}, "drops a const"),
        (("--drop", "deletionVectors"), {"kind": "for-client", "clients": FOR_TRINO}, "drops del"),
        (
            ("--drop", "vacuumProtocolCheck", "--history", "truncate"),
            {"kind": "drop", "features": ["vacuumProtocolCheck"], "history": "keep"},
            "deletes history",
        ),
        (
            ("--drop", "vacuumProtocolCheck"),
            {"kind": "for-client", "clients": [{"client": "nobody@1", "access": ["read"]}]},
            "a client of its goal is unknown",
        ),
    ],
)
def test_a_downgrade_does_what_its_goal_needs_and_no_more(
    words: tuple[str, ...], goal: dict[str, Any], said: str, cli: Cli, table: Log
) -> None:
    file = planned(cli, table, *words)
    assert refused(cli, file) == ""
    borrow(file, goal)
    assert said in refused(cli, file)


@pytest.mark.parametrize(
    ("words", "goal", "said"),
    [
        (("--cluster-by", "id"), {"enable": ["clustering"], "cluster_by": ["b"]}, "changes the c"),
        (("--cluster-by", "id,b"), {"enable": ["clustering"], "cluster_by": ["b", "id"]}, "change"),
        (("--cluster-by", "id"), {"enable": ["clustering"]}, "changes the clustering"),
        (
            ("--enable", "columnMapping=name"),
            {"enable": ["columnMapping"], "mapping_mode": "id"},
            "mode to name",
        ),
        (("--protocol", "1,4"), {"to": {"reader": 1, "writer": 2}}, "sets the versions 1, 4"),
        (("--set", "delta.appendOnly=false"), {"enable": ["appendOnly"]}, "appendOnly to false"),
        (
            ("--set", "delta.enableDeletionVectors=true"),
            {"enable": ["icebergCompatV2"]},
            "sets delta.enableDeletionVectors to true",
        ),
        (("--sql", "ALTER TABLE t UNSET TBLPROPERTIES ('a')"), {"enable": ["x"]}, "removes a"),
        (("--sql", "ALTER TABLE t ADD COLUMN z INT"), {"enable": ["rowTracking"]}, "runs another"),
    ],
)
def test_an_upgrade_does_what_its_goal_asks_for_and_no_more(
    words: tuple[str, ...], goal: dict[str, Any], said: str, cli: Cli, log: Log
) -> None:
    schema = schema_string(column("id"), column("b"))
    log.commit(0, commit_info(), protocol(1, 2), metadata({"a": "1"}, schema))
    plan = read(planned(cli, log, *words))
    assert find_unrequested_change(plan) is None
    forged = plan._replace(goal={"kind": "upgrade", **goal})
    assert said in (find_unrequested_change(forged) or "")


def test_a_goal_shows_clustering_columns_and_the_mapping_mode(cli: Cli, log: Log) -> None:
    """Approvals name the text of a goal."""
    log.commit(0, commit_info(), protocol(1, 2), metadata({}, schema_string(column("id"))))
    plan = read(planned(cli, log, "--cluster-by", "id", "--enable", "columnMapping=name"))
    assert plan.goal_text == "enable columnMapping name, clustering; cluster by id"


class TestUndo:
    @pytest.fixture
    def original(self, cli: Cli, table: Log) -> Path:
        return planned(cli, table, "--drop", "vacuumProtocolCheck")

    def test_a_plan_that_calls_itself_an_undo_is_refused(self, cli: Cli, original: Path) -> None:
        borrow(original, {"kind": "upgrade", "undo": "0" * 16}, "plan-upgrade")
        assert "the plan undoes another one" in refused(cli, original)

    def test_a_rollback_of_something_else_is_refused(self, cli: Cli, original: Path) -> None:
        name = read(original).sql_name
        other = f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')"
        forge(original, lambda document: document["steps"][0].update(undo=other))
        assert "s1: undo does not match its statement" in refused(cli, original)

    def test_an_undo_plan_only_undoes_its_plan(self, cli: Cli, original: Path) -> None:
        plan, name = read(original), read(original).sql_name
        (step,) = plan.steps
        (undo,) = [text for text in (step.undo or "").split("; ") if text]
        back = self.undo_plan(plan, undo)
        assert find_unrelated_undo(back, plan, "a" * 16) is None
        assert "is not the undo plan" in (find_unrelated_undo(back, plan, "b" * 16) or "")
        more = self.undo_plan(plan, f"ALTER TABLE {name} DROP FEATURE `deletionVectors`")
        assert "does not undo a step" in (find_unrelated_undo(more, plan, "a" * 16) or "")
        elsewhere = back._replace(location="file:///other")
        assert "it changes" in (find_unrelated_undo(elsewhere, plan, "a" * 16) or "")

    def undo_plan(self, plan: Plan, sql: str) -> Plan:
        steps = tuple(each._replace(sql=sql) for each in plan.steps)
        return plan._replace(goal={"kind": "upgrade", "undo": "a" * 16}, steps=steps)
