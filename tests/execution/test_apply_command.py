"""`apply` and `rehearse` as far as they need no Spark: bad plans, nothing to do, refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.execution.progress import TableObservation, TableWatcher
from tests.conftest import Ran
from tests.execution.files import changed
from tests.support.contract import validate
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)


def plan(cli: Cli, log: Log, *words: str) -> str:
    file = Path(log.table).parent / "plan.json"
    command = "plan-upgrade" if {"--enable", "--set"} & {*words} else "plan-downgrade"
    assert cli(command, log.table, *words, "--format", "json", "--output", str(file)).code in (0, 1)
    return str(file)


@pytest.fixture
def table(log: Log) -> Log:
    return log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())


@pytest.mark.parametrize("command", ["apply", "rehearse"])
class TestBadPlans:
    def test_a_file_that_is_not_there(self, command: str, cli: Cli) -> None:
        ran = cli(command, "/nowhere/plan.json")
        assert ran.code == 2
        assert ran.err.startswith("error: cannot read /nowhere/plan.json: No such file")

    def test_one_that_was_changed(self, command: str, cli: Cli, table: Log) -> None:
        file = plan(cli, table, "--lowest")
        changed(file, table="other")
        ran = cli(command, file, "--format", "json")
        assert ran.code == 2
        assert "was changed after it was made" in ran.json["error"]["message"]
        validate("error", ran.json)

    def test_one_that_is_cut_off(self, command: str, cli: Cli, table: Log) -> None:
        file = Path(plan(cli, table, "--lowest"))
        file.write_text(file.read_text()[:-50])
        ran = cli(command, str(file))
        assert ran.code == 2
        assert "is not a plan" in ran.err

    def test_a_table_that_could_not_be_planned_counts(
        self, command: str, cli: Cli, table: Log
    ) -> None:
        file = Path(table.table).parent / "plans.json"
        words = (table.table, "/nowhere", "--lowest", "--format", "json", "--output", str(file))
        assert cli("plan-downgrade", *words).code == 3
        ran = cli(command, str(file))
        assert ran.code == 3
        assert "/nowhere" in ran.err


class TestWithoutSpark:
    def test_nothing_to_do_needs_no_spark_and_no_yes(self, cli: Cli, table: Log) -> None:
        file = plan(cli, table, "--lowest")
        ran = cli("apply", file, "--format", "json", "--quiet")
        assert (ran.code, ran.err) == (0, "")
        validate("apply", ran.json)
        (result,) = ran.json["results"]
        assert result["status"] == "nothing-to-do"
        assert cli("rehearse", file).code in (0, 3)

    def test_a_blocked_plan_is_refused(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 7, None, ["clustering", "domainMetadata"]), metadata())
        ran = cli("apply", plan(cli, log, "--drop", "clustering"), "--yes", "--format", "json")
        assert ran.code == 1
        (result,) = ran.json["results"]
        assert result["status"] == "refused"
        assert "blocked: clustering" in result["message"]

    def test_sql_on_another_table_is_refused(self, cli: Cli, table: Log) -> None:
        # Statements about rows are executed as they were written.
        file = Path(table.table).parent / "plan.json"
        words = ("--sql", "DELETE FROM elsewhere.orders", "--format", "json", "-o", str(file))
        assert cli("plan-upgrade", table.table, *words).code == 0
        ran = cli("apply", str(file), "--yes", "--format", "json")
        assert ran.code in (2, 3)
        gates = {gate["name"]: gate for gate in ran.json["results"][0]["gates"]}
        assert not gates["plan"]["passed"]
        assert "s1 is a statement on elsewhere.orders" in gates["plan"]["message"]
        assert f"delta.`{table.table}`" in gates["plan"]["hint"]

    def test_a_plan_with_steps_says_that_spark_is_missing(self, cli: Cli, table: Log) -> None:
        file = plan(cli, table, "--enable", "deletionVectors")
        ran = cli("apply", file, "--yes", "--format", "json")
        assert ran.code == 3
        (result,) = ran.json["results"]
        assert "pyspark is not installed" in result["message"]
        assert not (Path(file).parent / ".deltaproto").exists()

    def test_a_stale_plan_is_told_before_spark_is_asked_for_anything(
        self, cli: Cli, table: Log
    ) -> None:
        file = plan(cli, table, "--lowest")
        table.commit(1, commit_info("SET TBLPROPERTIES"), metadata({"delta.appendOnly": "true"}))
        ran = cli("apply", file, "--yes", "--format", "json")
        assert ran.code == 4
        (result,) = ran.json["results"]
        assert "schema or properties changed since: version 1" in result["message"]

    def test_a_number_that_makes_no_sense(self, cli: Cli, table: Log) -> None:
        ran = cli("apply", plan(cli, table, "--lowest"), "--parallel", "0")
        assert ran.code == 2
        assert "--parallel 0" in ran.err

    @pytest.mark.parametrize("parallel", ["1", "2"])
    def test_a_defect_on_one_plan_does_not_hide_the_others(
        self, cli: Cli, table: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: str
    ) -> None:
        good, other = plan(cli, table, "--lowest"), Log(tmp_path / "deep" / "other")
        other.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
        bad, look = plan(cli, other, "--lowest"), TableWatcher.observe

        def fails(self: TableWatcher, since: int) -> TableObservation:
            if self.uri.endswith("other"):
                raise RuntimeError("c4n4ry")
            return look(self, since)

        monkeypatch.setattr(TableWatcher, "observe", fails)
        words = ("--yes", "--format", "json", "--parallel", parallel)
        ran = cli("apply", good, bad, *words)
        assert ran.code == 3
        states = {Path(each["table"]).name: each["status"] for each in ran.json["results"]}
        assert states == {"table": "nothing-to-do", "other": "unreadable"}
        assert "c4n4ry" in ran.out
        assert cli("apply", bad, *words).json["error"]["code"] == "internal"

    def test_the_same_plan_in_two_files_is_refused(self, cli: Cli, table: Log) -> None:
        file = Path(plan(cli, table, "--lowest"))
        twin = file.with_name("twin.json")
        twin.write_text(file.read_text())
        ran = cli("apply", str(file), str(twin), "--yes")
        assert ran.code == 2
        assert "are the same plan" in ran.err

    def test_a_hostile_name_is_shown_and_not_obeyed(self, cli: Cli, tmp_path: Path) -> None:
        log = Log(tmp_path / "a\x1b[31m`; drop table x --")
        log.commit(0, protocol(1, 2), metadata())
        ran = cli("apply", plan(cli, log, "--lowest"), "--yes")
        assert ran.code == 0, ran
        assert "\x1b" not in ran.out + ran.err

    def test_credentials_in_the_plan_never_come_out(self, cli: Cli, table: Log) -> None:
        file = plan(cli, table, "--lowest")
        secret = "c4n4ryV4lue9"
        changed(file, sealed=True, table=f"s3://user:{secret}@bucket/orders")
        document = json.loads(Path(file).read_text())
        assert secret in document["table"]
        for format_ in ("text", "json"):
            ran = cli("apply", file, "--yes", "--format", format_)
            assert secret not in ran.out + ran.err
