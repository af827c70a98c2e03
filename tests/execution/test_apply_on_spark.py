"""Plans carried out by real Spark: gates, steps, races, waits, crashes, resuming."""

from __future__ import annotations

import _thread
import io
import json
import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.execution import run_log as journals
from deltaproto.execution.progress import TableObservation, TableWatcher
from deltaproto.execution.run_log import Journal
from deltaproto.execution.runner import StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.tables.log.reader import LogReader
from tests.conftest import Ran
from tests.planning.random_tables import age
from tests.support.contract import validate
from tests.support.engines import needs_drop, skip_without_drop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Cli = Callable[..., Ran]


@pytest.fixture(scope="module")
def template(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with deletion vectors and a changed type history to copy; nobody may change it."""
    path = tmp_path_factory.mktemp("template") / "t"
    spark.sql(
        f"create table delta.`{path}` (id bigint, s string) using delta tblproperties "
        "('delta.enableDeletionVectors'='true')"
    )
    spark.sql(f"insert into delta.`{path}` select id, 'x' from range(0, 50, 1, 1)")
    spark.sql(f"delete from delta.`{path}` where id = 3")
    return path


@pytest.fixture
def table(template: Path, tmp_path: Path) -> Path:
    path = tmp_path / "orders"
    shutil.copytree(template, path)
    return path


def plan(cli: Cli, table: Path, *words: str, name: str = "plan") -> str:
    """A plan file beside the table; left out where the engine cannot drop what is to be dropped."""
    for word, name_of in pairwise(words):
        if word == "--drop":
            skip_without_drop(name_of)
    file = table.parent / f"{name}.json"
    command = "plan-upgrade" if {"--enable", "--set", "--sql"} & {*words} else "plan-downgrade"
    ran = cli(command, str(table), *words, "--format", "json", "--output", str(file))
    assert ran.code == 0, ran
    return str(file)


def apply(cli: Cli, *words: str) -> Ran:
    return cli("apply", *words, "--yes", "--allow-irreversible", "--format", "json")


def newest(table: Path) -> int:
    return max(int(file.stem) for file in (table / "_delta_log").glob("*.json"))


def infos(table: Path) -> list[dict[str, Any]]:
    found = []
    for file in sorted((table / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            if "commitInfo" in (action := json.loads(line)):
                found.append(action["commitInfo"])
    return found


def supported(table: Path) -> frozenset[str]:
    return LogReader().read(str(table)).protocol.supported


def rows(spark: SparkSession, table: Path) -> int:
    return spark.read.format("delta").load(str(table)).count()


def only(ran: Ran) -> dict[str, Any]:
    validate(ran.json["command"], ran.json)
    (result,) = ran.json["results"]
    return dict(result)


SCRIPT = "alter table delta.`{t}` set tblproperties ('delta.enableRowTracking' = 'true')"
SEPARATE = ("--set", "delta.appendOnly=true", "--isolation", "Serializable")
TWO_STEPS = ("--enable", "rowTracking", "--set", "delta.appendOnly=false")


class TestOnce:
    """One plan, undisturbed."""

    def test_a_plan_is_carried_out_as_predicted_and_recorded(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        planned = json.loads(Path(file).read_text())
        result = only(apply(cli, file))
        assert result["status"] == "done"
        assert result["protocol"] == planned["protocol_after"] == result["protocol_after"]
        assert [step["delta_rs"] for step in result["steps"]] == ["agrees"]
        made = infos(table)[planned["fingerprint"]["version"] + 1 :]
        marks = [json.loads(info["userMetadata"])["deltaproto"] for info in made]
        assert {mark["plan"] for mark in marks} == {planned["plan_id"]}
        assert [info["operation"] for info in made] == result["steps"][0]["operations"]
        (line,) = (table.parent / ".deltaproto" / "audit.jsonl").read_text().splitlines()
        audited = json.loads(line)
        assert audited["sql"] == planned["steps"][0]["sql"]
        assert audited["version_after"] == newest(table) == result["version"]
        assert audited["actor"]
        assert rows(spark, table) == 49

    def test_a_statement_whose_end_nobody_saw_is_on_record(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        version, run, look = newest(table), StatementRunner.run, TableWatcher.observe
        sent: list[str] = []

        def runs(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            sent.append(sql)
            return run(self, sql, mark, progress)

        def looks(self: TableWatcher, since: int) -> TableObservation:
            if sent:
                raise TableError(ErrorCode.TIMEOUT, "the store does not answer")
            return look(self, since)

        with monkeypatch.context() as away:
            away.setattr(StatementRunner, "run", runs)
            away.setattr(TableWatcher, "observe", looks)
            ran = apply(cli, file)
        result = only(ran)
        assert (ran.code, result["status"], result["steps"][0]["state"]) == (5, "failed", "failed")
        (line,) = (table.parent / ".deltaproto" / "audit.jsonl").read_text().splitlines()
        told = json.loads(line)
        assert (told["sql"], told["outcome"], told["version_after"]) == (*sent, "unseen", None)
        assert "the store does not answer" in told["message"]
        assert only(apply(cli, file))["status"] == "done"
        assert newest(table) == version + 1

    def test_applied_again_it_makes_no_commit(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, *TWO_STEPS)
        assert only(apply(cli, file))["status"] == "done"
        version = newest(table)
        again = apply(cli, file)
        assert (again.code, only(again)["status"]) == (0, "done")
        assert newest(table) == version

    def test_what_was_taken_back_can_be_planned_again(self, cli: Cli, table: Path) -> None:
        for number, value in enumerate(("true", "false", "true", "false")):
            words = ("--set", f"delta.appendOnly={value}")
            version = newest(table)
            file = plan(cli, table, *words, name=f"plan-{number}")
            assert only(apply(cli, file))["status"] == "done"
            assert newest(table) == version + 1

    def test_nothing_to_do_makes_no_commit(self, cli: Cli, table: Path) -> None:
        version = newest(table)
        ran = apply(cli, plan(cli, table, "--lowest"))
        assert (ran.code, only(ran)["status"]) == (0, "nothing-to-do")
        assert newest(table) == version

    @needs_drop("rowTracking")
    def test_a_dry_run_changes_nothing_and_leaves_nothing(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, *TWO_STEPS)
        version, beside = newest(table), sorted(table.parent.iterdir())
        ran = cli("apply", file, "--dry-run", "--format", "json")
        assert (ran.code, only(ran)["status"]) == (0, "ready")
        assert cli("apply", file, "--dry-run", "--detailed-exitcode").code == 10
        assert (newest(table), sorted(table.parent.iterdir())) == (version, beside)

    @pytest.mark.slow
    def test_the_session_keeps_no_mark(self, cli: Cli, table: Path, spark: SparkSession) -> None:
        assert apply(cli, plan(cli, table, *TWO_STEPS)).code == 0
        spark.sql(f"insert into delta.`{table}` values (100, 'y')")
        assert infos(table)[-1].get("userMetadata") is None

    @pytest.mark.slow
    def test_the_warning_comes_first_also_with_yes(self, cli: Cli, table: Path) -> None:
        ran = cli("apply", plan(cli, table, "--drop", "deletionVectors"), "--yes")
        assert ran.code == 0
        warned, gates, done = (ran.out.index(text) for text in ("WARNING", "Gates", "s1      done"))
        assert warned < gates < done
        assert "MetadataChangedException" in ran.out[warned:gates]
        assert "3 commits from" in ran.out[warned:gates]

    def test_a_relative_path_is_found_from_any_folder(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(table.parent)
        file = table.parent / "p.json"
        words = ("--set", "delta.appendOnly=true", "--format", "json", "--output", str(file))
        assert cli("plan-upgrade", table.name, *words).code == 0
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert only(apply(cli, str(file)))["status"] == "done"


class TestGates:
    """What is refused, with nothing changed."""

    def test_without_a_terminal_and_without_yes_nothing_hangs(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        monkeypatch.setattr("sys.stdin", io.StringIO())
        version = newest(table)
        ran = cli("apply", file)
        assert ran.code == 2
        assert "--yes" in ran.err
        assert newest(table) == version

    def test_the_irreversible_needs_a_word(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--history", "truncate")
        version = newest(table)
        ran = cli("apply", file, "--yes")
        assert ran.code == 2
        assert "--allow-irreversible" in ran.out
        assert newest(table) == version

    @pytest.mark.slow
    def test_data_commits_in_between_do_no_harm(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, *TWO_STEPS)
        spark.sql(f"insert into delta.`{table}` values (100, 'y')")
        assert only(apply(cli, file))["status"] == "done"

    @pytest.mark.parametrize(
        "statement",
        [
            "alter table {t} set tblproperties ('delta.enableChangeDataFeed'='true')",
            "alter table {t} add column more int",
            "alter table {t} set tblproperties ('delta.logRetentionDuration'='60 days')",
        ],
    )
    def test_a_changed_table_makes_the_plan_stale(
        self, statement: str, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        spark.sql(statement.format(t=f"delta.`{table}`"))
        version = newest(table)
        ran = apply(cli, file)
        assert (ran.code, only(ran)["status"]) == (4, "refused")
        assert "version 3" in only(ran)["message"]
        assert newest(table) == version

    def test_another_table_at_the_same_place(
        self, cli: Cli, table: Path, spark: SparkSession
    ) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        shutil.rmtree(table)
        spark.sql(f"create table delta.`{table}` (id bigint, s string) using delta")
        for id in range(4):
            spark.sql(f"insert into delta.`{table}` values ({id}, 'x')")
        ran = apply(cli, file)
        assert ran.code == 4
        assert "a different table" in only(ran)["message"]

    def test_a_table_that_is_gone(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--drop", "deletionVectors")
        shutil.rmtree(table)
        ran = apply(cli, file)
        assert (ran.code, only(ran)["status"]) == (3, "unreadable")

    def test_a_plan_for_another_engine(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--engine", "delta-spark@4.0")
        ran = apply(cli, file)
        assert ran.code == 4
        assert "delta-spark@4.0" in only(ran)["message"]

    @pytest.mark.parametrize(
        "policy",
        [
            "clients:\n- {client: deltalake/engine@1.6.6, access: [read]}\n",
            "tables:\n  '*': {forbid_features: [typeWidening]}\n",
        ],
    )
    def test_a_policy_that_the_result_would_break(self, policy: str, cli: Cli, table: Path) -> None:
        file = table.parent / "policy.yaml"
        file.write_text(f"policy_version: 1\n{policy}")
        made = plan(cli, table, "--enable", "typeWidening")
        version = newest(table)
        ran = apply(cli, made, "--policy", str(file))
        assert (ran.code, only(ran)["status"]) == (1, "refused")
        assert "typeWidening" in only(ran)["message"]
        assert newest(table) == version

    def test_what_a_policy_forbids_today_is_no_reason_to_refuse(
        self, cli: Cli, table: Path
    ) -> None:
        file = table.parent / "policy.yaml"
        file.write_text("policy_version: 1\ntables:\n  '*': {forbid_features: [deletionVectors]}\n")
        made = plan(cli, table, "--set", "delta.appendOnly=true")
        assert apply(cli, made, "--policy", str(file)).code == 0

    def test_outside_of_the_maintenance_window(self, cli: Cli, table: Path) -> None:
        import datetime

        file = plan(cli, table, "--set", "delta.appendOnly=true")
        tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
        day = tomorrow.strftime("%a").lower()
        policy = table.parent / "policy.yaml"
        policy.write_text(
            "policy_version: 1\ntables:\n  '*':\n    maintenance_windows:\n"
            f"    - {{days: [{day}], from: '01:00', to: '02:00'}}\n"
        )
        ran = apply(cli, file, "--policy", str(policy))
        assert ran.code == 4, ran
        assert "01:00 UTC" in only(ran)["message"]
        ran = apply(cli, file, "--policy", str(policy), "--outside-window")
        assert ran.code == 0, ran

    def test_two_at_once(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, *TWO_STEPS)
        plan_id = json.loads(Path(file).read_text())["plan_id"]
        version = newest(table)
        with Journal(str(table.parent / ".deltaproto"), plan_id) as held:
            held.add("begin", 0.0, actor="somebody", host="there", pid=7)
            ran = apply(cli, file)
        assert ran.code == 4
        assert "somebody on there, process 7" in only(ran)["message"]
        assert newest(table) == version

    def test_a_journal_that_cannot_be_written(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, *TWO_STEPS)
        version = newest(table)
        ran = apply(cli, file, "--journal", "/proc/nowhere")
        assert ran.code == 2
        assert "nothing was changed" in only(ran)["hint"]
        assert newest(table) == version


class TestWaits:
    """Drops in two calls."""

    @pytest.mark.slow
    def test_it_waits_and_then_goes_on(self, cli: Cli, table: Path, spark: SparkSession) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--history", "truncate")
        ran = apply(cli, file)
        assert (ran.code, only(ran)["status"]) == (0, "waiting")
        assert only(ran)["not_before"]
        version = newest(table)
        again = apply(cli, file, "--detailed-exitcode")
        assert (again.code, only(again)["status"]) == (10, "waiting")
        assert only(again)["not_before"] == only(ran)["not_before"]
        assert newest(table) == version
        age(str(table), 72)
        self.older(table, 72)
        done = only(apply(cli, file))
        assert done["status"] == "done"
        assert "deletionVectors" not in supported(table)
        assert rows(spark, table) == 49

    @pytest.mark.slow
    def test_delta_may_want_to_wait_longer(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, "--drop", "deletionVectors", "--history", "truncate")
        assert only(apply(cli, file))["status"] == "waiting"
        # By our journal the time has come, by the log it has not.
        self.older(table, 72)
        ran = apply(cli, file)
        assert (ran.code, only(ran)["status"]) == (0, "waiting")
        assert "deletionVectors" in supported(table)

    def older(self, table: Path, hours: float) -> None:
        (file,) = (table.parent / ".deltaproto").glob("*.journal.jsonl")
        events = [json.loads(line) for line in file.read_text().splitlines()]
        for event in events:
            event["at"] -= hours * 3600
        file.write_text("".join(json.dumps(event) + "\n" for event in events))


class TestRaces:
    """Other writers, at the worst moments."""

    def interfere(
        self, monkeypatch: pytest.MonkeyPatch, when: int, before: Callable[[], Any]
    ) -> None:
        """Let somebody else write just before the statement number `when` is executed."""
        seen = [0]
        run = StatementRunner.run

        def disturbed(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            seen[0] += 1
            if seen[0] == when:
                before()
            return run(self, sql, mark, progress)

        monkeypatch.setattr(StatementRunner, "run", disturbed)

    @pytest.mark.parametrize("when", [1, pytest.param(2, marks=pytest.mark.slow)])
    def test_somebody_changes_the_protocol_while_a_step_is_sent(
        self, when: int, cli: Cli, table: Path, spark: SparkSession, monkeypatch: Any
    ) -> None:
        file = plan(cli, table, *SEPARATE)
        other = f"alter table delta.`{table}` set tblproperties ('delta.enableRowTracking'='true')"
        self.interfere(monkeypatch, when, lambda: spark.sql(other))
        ran = apply(cli, file)
        assert ran.code == 5, ran
        assert "the protocol changed meanwhile" in only(ran)["message"]
        assert "UPGRADE PROTOCOL" in only(ran)["message"]
        assert "rowTracking" in supported(table)

    def test_a_lost_race_is_tried_again_and_the_winner_named(
        self, cli: Cli, table: Path, spark: SparkSession, monkeypatch: Any
    ) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        run, lost = StatementRunner.run, [0]

        def loses(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            lost[0] += 1
            if lost[0] < 3:
                spark.sql(f"insert into delta.`{table}` values ({lost[0]}, 'y')")
                return StatementResult("DELTA_CONCURRENT_APPEND", "a concurrent append")
            return run(self, sql, mark, progress)

        monkeypatch.setattr(StatementRunner, "run", loses)
        monkeypatch.setattr("deltaproto.execution.executor._BACKOFF_SECONDS", 0.0)
        ran = cli("apply", file, "--yes")
        assert ran.code == 0, ran
        assert ran.out.count("lost against version") == 2
        assert "WRITE" in ran.out

    def test_who_always_loses_gives_up(self, cli: Cli, table: Path, monkeypatch: Any) -> None:
        file = plan(cli, table, "--set", "delta.appendOnly=true")
        conflict = StatementResult("DELTA_METADATA_CHANGED", "changed")
        monkeypatch.setattr(StatementRunner, "run", lambda *_: conflict)
        monkeypatch.setattr("deltaproto.execution.executor._BACKOFF_SECONDS", 0.0)
        version = newest(table)
        ran = apply(cli, file, "--retries", "2")
        assert ran.code == 5
        assert only(ran)["steps"][0]["attempts"] == 3
        assert newest(table) == version

    def test_between_two_steps(
        self, cli: Cli, table: Path, spark: SparkSession, monkeypatch: Any
    ) -> None:
        file = plan(cli, table, *SEPARATE)
        add, seen = Journal.add, [0]
        other = f"alter table delta.`{table}` add column more int"

        def disturbed(self: Journal, event: str, at: float, **members: Any) -> None:
            add(self, event, at, **members)
            if event == "done" and not seen[0]:
                seen[0] = 1
                spark.sql(other)

        monkeypatch.setattr(Journal, "add", disturbed)
        ran = apply(cli, file)
        assert ran.code == 5
        assert "ADD COLUMNS" in only(ran)["message"]
        assert [step["state"] for step in only(ran)["steps"]] == ["done", "failed"]


class Killed(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


class TestCrashes:
    """Whatever is cut off where, the same command again ends as predicted."""

    @pytest.mark.parametrize(
        ("number", "point"),
        [
            (1, "answered"),
            (2, "sent"),
            pytest.param(1, "sent", marks=pytest.mark.slow),
            pytest.param(1, "journalled", marks=pytest.mark.slow),
            pytest.param(2, "answered", marks=pytest.mark.slow),
            pytest.param(2, "journalled", marks=pytest.mark.slow),
        ],
    )
    def test_resumed(
        self,
        point: str,
        number: int,
        cli: Cli,
        table: Path,
        spark: SparkSession,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        file = plan(cli, table, *TWO_STEPS)
        planned = json.loads(Path(file).read_text())
        run, add, seen = StatementRunner.run, Journal.add, [0]

        def dies(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            seen[0] += 1
            if seen[0] == number and point == "sent":
                raise Killed
            answer = run(self, sql, mark, progress)
            if seen[0] == number and point == "answered":
                raise Killed
            return answer

        def dies_later(self: Journal, event: str, at: float, **members: Any) -> None:
            add(self, event, at, **members)
            if event == "done" and seen[0] == number and point == "journalled":
                raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(StatementRunner, "run", dies)
            patched.setattr(Journal, "add", dies_later)
            with pytest.raises(Killed):
                apply(cli, file)
        result = only(apply(cli, file))
        assert result["status"] == "done"
        assert result["protocol"] == planned["protocol_after"]
        made = [info["operation"] for info in infos(table)[3:]]
        assert len(made) == sum(step["commits"]["max"] for step in planned["steps"])
        assert rows(spark, table) == 49

    @pytest.mark.slow
    def test_cut_off_twice_in_one_step(
        self, cli: Cli, table: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, "--isolation", "Serializable", "--sql", SCRIPT.format(t=table))
        planned = json.loads(Path(file).read_text())
        assert len(planned["steps"]) == 2
        run, calls = StatementRunner.run, [0]
        part = SCRIPT.format(t=table).replace("enableRowTracking", "feature.domainMetadata")
        part = part.replace("'true'", "'supported'")

        def dies(
            self: StatementRunner, sql: str, mark: str, progress: Any = None
        ) -> StatementResult:
            calls[0] += 1
            if calls[0] == 2:
                run(self, part, mark, progress)
            if calls[0] > 1:
                raise Killed
            return run(self, sql, mark, progress)

        with monkeypatch.context() as patched:
            patched.setattr(StatementRunner, "run", dies)
            for _ in range(2):
                with pytest.raises(Killed):
                    apply(cli, file)
        result = only(apply(cli, file))
        assert result["status"] == "done", result
        assert result["protocol"] == planned["protocol_after"]

    def test_without_its_journal_it_finds_out_from_the_table(self, cli: Cli, table: Path) -> None:
        file = plan(cli, table, *TWO_STEPS)
        assert only(apply(cli, file))["status"] == "done"
        shutil.rmtree(table.parent / ".deltaproto")
        version = newest(table)
        again = only(apply(cli, file))
        assert again["status"] == "done"
        assert {step["state"] for step in again["steps"]} == {"done-earlier"}
        assert newest(table) == version

    @pytest.mark.slow
    def test_a_full_disk_stops_it_and_says_so(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = plan(cli, table, *TWO_STEPS)
        write = journals.os.write

        def full(descriptor: int, data: bytes) -> int:
            if b'"event": "done"' in data:
                raise OSError(28, "No space left on device")
            return write(descriptor, data)

        with monkeypatch.context() as patched:
            patched.setattr(journals.os, "write", full)
            ran = apply(cli, file)
        assert ran.code == 5, ran
        assert "No space left" in only(ran)["message"]
        assert only(apply(cli, file))["status"] == "done"


class TestMany:
    """Several plans in one call."""

    def test_one_that_fails_does_not_stop_the_others(
        self, cli: Cli, table: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sessions, apart = [], StatementRunner.apart

        def counted(self: StatementRunner) -> StatementRunner:
            sessions.append(apart(self))
            return sessions[-1]

        monkeypatch.setattr(StatementRunner, "apart", counted)
        folder = table.parent / "plans"
        folder.mkdir()
        for name in ("a", "b", "c"):
            copy = table.parent / name
            shutil.copytree(table, copy)
            file = plan(cli, copy, "--set", "delta.appendOnly=true", name=name)
            shutil.move(file, folder / f"{name}.json")
        spark.sql(f"alter table delta.`{table.parent / 'b'}` add column more int")
        ran = apply(cli, str(folder), "--parallel", "2")
        assert ran.code == 4, ran
        # Sessions that plans share would mix up the marks of their commits.
        assert len({id(each) for each in sessions}) == len("ac")
        states = {Path(each["table"]).name: each["status"] for each in ran.json["results"]}
        assert states == {"a": "done", "b": "refused", "c": "done"}
        for name in ("a", "c"):
            # Each commit carries the mark of its own plan.
            planned = json.loads((folder / f"{name}.json").read_text())
            mark = json.loads(infos(table.parent / name)[-1]["userMetadata"])["deltaproto"]
            assert mark["plan"] == planned["plan_id"]
        assert ran.json["summary"] == {"plans": 3, "done": 2, "refused": 1}
        again = apply(cli, str(folder))
        assert again.json["summary"] == {"plans": 3, "done": 2, "refused": 1}

    @pytest.mark.slow
    def test_an_interruption_lets_nothing_else_begin(
        self, cli: Cli, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was sent comes to its end; the same command again does the rest."""
        folder = table.parent / "plans"
        folder.mkdir()
        names = "abcdef"
        for name in names:
            copy = table.parent / name
            shutil.copytree(table, copy)
            goals = ("--set", "delta.appendOnly=true", "--enable", "changeDataFeed")
            shutil.move(plan(cli, copy, *goals, name=name), folder / f"{name}.json")
        before = len(infos(table))
        sent = 0
        run = StatementRunner.run

        def interrupted(runner: StatementRunner, *words: Any) -> StatementResult:
            nonlocal sent
            sent += 1
            if sent == 2:
                _thread.interrupt_main()
                # The main thread waits for answers, and is woken up.
                time.sleep(1)
            return run(runner, *words)

        with monkeypatch.context() as patch:
            patch.setattr(StatementRunner, "run", interrupted)
            ran = cli("apply", str(folder), "--yes", "--allow-irreversible", "--parallel", "2")
        assert ran.code == 130
        assert ran.err.splitlines()[-2] == "interrupted"
        assert "run the same command again to resume" in ran.err
        assert "stopping: running statements finish" in ran.err
        made = {name: len(infos(table.parent / name)) - before for name in names}
        assert sum(made.values()) == sent
        assert sent <= 3
        again = apply(cli, str(folder), "--parallel", "2")
        assert (again.code, again.json["summary"]) == (0, {"plans": 6, "done": 6}), again
