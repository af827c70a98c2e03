"""`apply` at its edges, with a runner that commits to a hand-made log instead of Spark."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltaproto.cli import apply as apply_command
from deltaproto.cli import plan_io
from deltaproto.cli.plan_io import ProgressDisplay
from deltaproto.errors import ExitCode
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.preflight import StopReason
from deltaproto.execution.result import ApplyResult, ApplyStatus
from deltaproto.execution.run_log import journal_path, read_journal
from deltaproto.execution.runner import EngineFacts
from deltaproto.execution.verify import StatementResult
from deltaproto.execution.waits import WaitHandler, WaitLimits
from deltaproto.planning.engine import EngineName
from deltaproto.render.apply import ApplyFormat, ApplyReport, ApplyText
from deltaproto.tables.spark_connect import stop_retrying
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
SET = "SET TBLPROPERTIES"
TWO = ("--set", "a=b", "--isolation", "Serializable")


class FakeRunner:
    """Makes the commit of each statement, and then what `after` does."""

    def __init__(self, log: Log) -> None:
        self._log, self.sent = log, 0
        self.after: Callable[[], StatementResult] = StatementResult

    def facts(self) -> EngineFacts:
        return EngineFacts(EngineName.DELTA_SPARK, "4.4.0", "4.2.0", True, {})

    def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
        self.sent += 1
        info = commit_info(SET, userMetadata=mark)
        self._log.commit(self.sent, info, metadata({"sent": str(self.sent)}))
        return self.after()


@pytest.fixture
def table(log: Log) -> Log:
    return log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())


@pytest.fixture
def runner(table: Log, monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    made = FakeRunner(table)
    monkeypatch.setattr(apply_command, "lazy_runner", lambda _: lambda: made)
    return made


@pytest.fixture
def file(cli: Cli, table: Log, tmp_path: Path) -> str:
    path = str(tmp_path / "plan.json")
    assert cli("plan-upgrade", table.table, *TWO, "--format", "json", "-o", path).code == 0
    return path


def apply(cli: Cli, file: str, *words: str) -> tuple[int, dict[str, Any]]:
    ran = cli("apply", file, "--yes", "--format", "json", "--quiet", *words)
    (result,) = ran.json["results"]
    return ran.code, result


def audit(file: str) -> list[dict[str, Any]]:
    path = Path(file).parent / ".deltaproto" / "audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestAudit:
    def test_nothing_is_sent_after_a_statement_without_its_line(
        self, cli: Cli, file: str, runner: FakeRunner
    ) -> None:
        code, result = apply(cli, file, "--audit", "/dev/full")
        assert (code, result["status"], runner.sent) == (5, "failed", 1)
        assert "the audit log /dev/full could not be written" in result["message"]
        assert "no more statements are sent" in result["message"]
        code, result = apply(cli, file)
        assert (code, runner.sent) == (0, 2)
        assert [(line["step"], line["outcome"]) for line in audit(file)] == [
            ("s1", "recovered"),
            ("s2", "as-predicted"),
        ]
        assert audit(file)[0]["commits"] == [1]

    def test_the_last_statement_counts_too(
        self, cli: Cli, file: str, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert apply(cli, file, "--audit", "/dev/full")[0] == 5
        assert apply(cli, file, "--audit", "/dev/full")[0] == 5
        assert runner.sent == 1
        again = str(Path(file).with_name("half.jsonl"))
        full = os.open("/dev/full", os.O_WRONLY)
        runner.after = lambda: self._fill(full, again)
        code, _ = apply(cli, file, "--audit", again)
        assert (code, runner.sent) == (5, 2)
        monkeypatch.setattr(runner, "run", None)
        assert apply(cli, file)[0] == 0
        assert [line["step"] for line in audit(file)] == ["s2"]
        assert apply(cli, file)[0] == 0
        assert len(audit(file)) == 1

    @staticmethod
    def _fill(full: int, path: str) -> StatementResult:
        """Let the disk of an open file be full from here on."""
        for number in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{number}") == os.path.realpath(path):
                os.dup2(full, int(number))
        return StatementResult()


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_step_that_always_conflicts_is_tried_once_more_than_its_retries(
    retries: int, cli: Cli, file: str, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    conflict = StatementResult("DELTA_METADATA_CHANGED", "changed")
    monkeypatch.setattr(runner, "run", lambda *_: conflict)
    monkeypatch.setattr("deltaproto.execution.executor._BACKOFF_SECONDS", 0.0)
    code, result = apply(cli, file, "--retries", str(retries))
    assert (code, result["steps"][0]["attempts"]) == (5, retries + 1)


def test_retries_below_zero_are_refused(cli: Cli, file: str, runner: FakeRunner) -> None:
    ran = cli("apply", file, "--yes", "--retries", "-1")
    assert (ran.code, runner.sent) == (2, 0)
    assert "--retries -1 is out of range" in ran.err


@pytest.mark.parametrize("option", ["--journal", "--audit"])
def test_a_dry_run_finds_that_records_cannot_be_written(
    option: str, cli: Cli, file: str, runner: FakeRunner, tmp_path: Path
) -> None:
    (tmp_path / "a-file").touch()
    place = tmp_path / "a-file" / "records"
    code, result = apply(cli, file, "--dry-run", option, str(place))
    assert (code, result["status"], runner.sent) == (2, "refused", 0)
    assert str(place) in result["message"]
    assert apply(cli, file, option, str(place))[0] == 2
    assert apply(cli, file, "--dry-run", option, str(tmp_path / "new" / "folder"))[0] == 0
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [("--dry-run",), ()], ids=["dry run", "run"])
def test_no_run_waits_for_the_reader_of_a_pipe(
    words: tuple[str, ...], cli: Cli, file: str, runner: FakeRunner, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, result = apply(cli, file, *words, "--audit", str(pipe))
    assert (code, result["status"], runner.sent) == (2, "refused", 0)
    assert "it is a named pipe or socket, not a file" in result["message"]


def test_a_dry_run_finds_a_folder_without_permission(
    cli: Cli, file: str, runner: FakeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may be root, to whom every folder is open.
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != Path(file).parent)
    code, result = apply(cli, file, "--dry-run")
    assert (code, result["status"], runner.sent) == (2, "refused", 0)
    assert result["message"].startswith(f"cannot write the journal {Path(file).parent}")
    assert result["message"].endswith("Permission denied")


@pytest.mark.parametrize("words", [("--dry-run",), ()], ids=["dry run", "run"])
def test_no_run_begins_without_its_lock(
    words: tuple[str, ...], cli: Cli, file: str, runner: FakeRunner, tmp_path: Path
) -> None:
    """Where somebody else made the lock, only the journal's folder may be writable."""
    plan_id = json.loads(Path(file).read_text())["plan_id"]
    lock = tmp_path / "shared" / f"{plan_id}.journal.jsonl.lock"
    lock.mkdir(parents=True)
    code, result = apply(cli, file, *words, "--journal", str(lock.parent))
    assert (code, result["status"], runner.sent) == (2, "refused", 0)
    assert "cannot write the journal" in result["message"]


@pytest.mark.parametrize("command", [("apply", "--dry-run"), ("rehearse",)])
def test_a_table_without_a_plan_makes_the_document_incomplete(
    command: tuple[str, ...], cli: Cli, table: Log, tmp_path: Path
) -> None:
    """What was planned is done already, so that the results alone would be complete."""
    words = ("--protocol", "1,2", "--format", "json")
    cli("plan-upgrade", table.table, *words, "--output", str(tmp_path / "one.json"))
    name, *options = command
    alone = cli(name, str(tmp_path / "one.json"), *options, "--format", "json")
    both = str(tmp_path / "both.json")
    planned = cli("plan-upgrade", table.table, f"{table.table}-gone", *words, "--output", both)
    assert planned.code == 3
    ran = cli(name, both, *options, "--format", "json")
    assert ran.json["complete"] is False
    assert (ran.code, alone.code) == (3, 0)
    assert alone.json["complete"] is True


def test_results_are_in_the_order_of_the_plans(file: str) -> None:
    (planned,) = (each for each in read_plans(file) if isinstance(each, LoadedPlan))
    written = io.StringIO()
    report = ApplyReport("apply", ApplyFormat.JSON, written, str, complete=True)
    report.expect(["a", "b", "c"])
    for name in ("c", "a", "other", "b"):
        each = planned._replace(id=name)
        report.add(ApplyResult(each, ApplyStatus.NOTHING, ExitCode.OK, "", ""))
    report.close()
    ids = [result["plan_id"] for result in json.loads(written.getvalue())["results"]]
    assert ids == ["a", "b", "c", "other"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_handled_like_ctrl_c_and_the_next_run_completes_the_audit(
    number: signal.Signals, cli: Cli, file: str, runner: FakeRunner
) -> None:
    def killed() -> StatementResult:
        signal.raise_signal(number)
        raise AssertionError("the signal was not taken")

    runner.after = killed
    # Whoever started the tests may have had signals ignored, as nohup does.
    signal.signal(number, signal.SIG_DFL)
    before = signal.getsignal(number)
    ran = cli("apply", file, "--yes", "--quiet")
    assert ran.code == 128 + number
    first, hint = ran.err.splitlines()[-2:]
    assert first == f"interrupted by {number.name}"
    assert "run the same command again to resume" in hint
    assert signal.getsignal(number) is before
    (line,) = audit(file)
    assert (line["step"], line["outcome"]) == ("s1", "unseen")
    assert line["message"] == f"Terminated: received {number.name}"
    runner.after = StatementResult
    code, _ = apply(cli, file)
    assert (code, runner.sent) == (0, 2)
    lines = [(line["step"], line["outcome"], line["commits"]) for line in audit(file)[1:]]
    assert lines == [("s1", "recovered", [1]), ("s2", "as-predicted", [2])]
    plan_id = json.loads(Path(file).read_text())["plan_id"]
    path = journal_path(str(Path(file).parent / ".deltaproto"), plan_id)
    assert read_journal(path, plan_id).unaudited == ()


@pytest.fixture
def both(
    cli: Cli, runner: FakeRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[FakeRunner, str]:
    """The runner of another table's plan beside `file`, and that plan, also of two steps."""
    log = Log(tmp_path / "other")
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata(id="other"))
    path = str(tmp_path / "other.json")
    goal = ("--set", "a=b", "--isolation", "Serializable")
    assert cli("plan-upgrade", log.table, *goal, "--format", "json", "-o", path).code == 0
    other = FakeRunner(log)

    class Both(FakeRunner):
        def run(self, sql: str, mark: str, progress: object = None) -> StatementResult:
            return (other if "other" in sql else runner).run(sql, mark)

        def apart(self) -> FakeRunner:
            return self

    monkeypatch.setattr(apply_command, "lazy_runner", lambda _: lambda: Both(runner._log))
    return other, path


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set as soon as no plan may send another statement."""
    event = threading.Event()
    monkeypatch.setattr(ProgressDisplay, "halts", lambda _: event.set())
    return event


@pytest.mark.parametrize("words", [(), ("--parallel", "2")], ids=["one by one", "parallel"])
def test_json_of_an_interrupted_run_has_what_was_done(
    words: tuple[str, ...],
    cli: Cli,
    file: str,
    runner: FakeRunner,
    both: tuple[FakeRunner, str],
    stopping: threading.Event,
) -> None:
    """The first plan is done, and the second interrupted after its first step."""
    other, path = both
    all_sent = threading.Event()

    def killed() -> StatementResult:
        if other.sent == 2:
            assert all_sent.wait(30)
            # With --parallel, another thread takes it: the main thread, which handles it, is not
            # woken.
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            if words:
                assert stopping.wait(30)
        return StatementResult()

    def sent() -> StatementResult:
        if runner.sent == 2:
            all_sent.set()
        return StatementResult()

    runner.after, other.after = sent, killed
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ran = cli("apply", file, path, "--yes", "--format", "json", "--quiet", *words)
    assert ran.code == 143
    document = ran.json
    validate("apply", document)
    assert (document["complete"], document["error"]["code"]) == (False, "interrupted")
    assert "run the same command again to resume" in document["error"]["hint"]
    states = [
        (each["status"], [step["state"] for step in each["steps"]]) for each in document["results"]
    ]
    # A statement that another thread sent comes to its end.
    last = "done" if words else "failed"
    assert states == [("done", ["done", "done"]), ("done" if words else "failed", ["done", last])]


def test_nothing_more_is_sent_after_an_interruption_while_a_result_is_shown(
    cli: Cli,
    file: str,
    runner: FakeRunner,
    both: tuple[FakeRunner, str],
    stopping: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second plan is at its first step when the first one has ended."""
    (other, path), reached = both, threading.Event()

    def running() -> StatementResult:
        reached.set()
        assert stopping.wait(30)
        return StatementResult()

    def interrupted(_: ApplyText, applied: ApplyResult) -> None:
        assert reached.wait(30)
        if not stopping.is_set():
            raise KeyboardInterrupt

    other.after = running
    monkeypatch.setattr(ApplyText, "result", interrupted)
    ran = cli("apply", file, path, "--yes", "--parallel", "2", "--format", "json")
    assert (ran.code, runner.sent, other.sent) == (130, 2, 1)
    first, second = ran.json["results"]
    assert (first["status"], second["status"]) == ("done", "failed")
    assert second["message"] == "the run was interrupted"


def test_a_failure_after_commits_names_them_and_how_to_go_on(
    cli: Cli, file: str, runner: FakeRunner
) -> None:
    runner.after = lambda: StatementResult("DELTA_X", "boom")
    code, result = apply(cli, file)
    assert code == 5
    assert f"the table has its commits 1 ({SET})" in result["message"]
    assert "run the same command again: it resumes s1" in result["hint"]
    assert result["steps"][0]["versions"] == [1]


@pytest.mark.parametrize(
    ("said", "denied"),
    [
        ("java.io.FileNotFoundException: /t/_delta_log/.0.json.crc (Permission denied)", True),
        ("java.io.IOException: Mkdirs failed to create file:/t", True),
        ("/t/_delta_log/00000000000000000001.json: Read-only file system", True),
        ("software.amazon.awssdk.services.s3.model.S3Exception: Access Denied", True),
        ("org.apache.hadoop.security.AccessControlException: no", True),
        ("Operation failed: This request is not authorized to perform this", True),
        ("[INSUFFICIENT_PERMISSIONS] User lacks MODIFY", True),
        ("java.nio.file.AccessDeniedException: s3a://b/t/_delta_log/1.json", True),
        ("This operation is not permitted as the blob is immutable due to a policy.", True),
        ("[DELTA_UNKNOWN_CONFIGURATION] Unknown configuration", False),
    ],
)
def test_a_table_that_cannot_be_written_asks_for_permission(
    cli: Cli, file: str, runner: FakeRunner, said: str, denied: bool
) -> None:
    runner.run = lambda sql, mark, progress=None: StatementResult("", said)  # type: ignore[method-assign]
    code, result = apply(cli, file)
    assert (code, result["status"]) == (5, "failed")
    assert ("write access to the table's folder" in result["hint"]) is denied
    assert ("plan again" in result["hint"]) is not denied


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device", "free some"),
        ("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: 3 TB", "free some space"),
        (
            "awaitResult: caused by java.io.IOException: /t (Operation not permitted)",
            "write access",
        ),
    ],
)
def test_storage_that_refuses_to_be_written_needs_no_other_plan(
    cli: Cli, file: str, runner: FakeRunner, said: str, hint: str
) -> None:
    """Also after the first commits of a step."""
    runner.after = lambda: StatementResult("", said)
    code, result = apply(cli, file)
    assert (code, runner.sent) == (5, 1)
    assert f"the table has its commits 1 ({SET})" in result["message"]
    assert hint in result["hint"]
    assert "run the same command again" in result["hint"]


def test_a_plan_without_a_fingerprint_of_the_metadata_is_refused(
    cli: Cli, table: Log, runner: FakeRunner, tmp_path: Path
) -> None:
    saved, file = str(tmp_path / "saved.json"), str(tmp_path / "plan.json")
    assert cli("inspect", table.table, "--format", "json", "-o", saved).code == 0
    assert cli("plan-upgrade", saved, "--set", "a=b", "--format", "json", "-o", file).code == 0
    code, result = apply(cli, file)
    assert (code, result["status"], runner.sent) == (2, "refused", 0)
    assert "no fingerprint of schema and properties" in result["message"]
    assert "--fresh" in result["hint"]


def test_every_gate_that_failed_is_named(
    cli: Cli, table: Log, runner: FakeRunner, tmp_path: Path
) -> None:
    file, rules = str(tmp_path / "plan.json"), tmp_path / "policy.yaml"
    words = ("--enable", "rowTracking", "--engine", "delta-spark@4.0")
    assert cli("plan-upgrade", table.table, *words, "--format", "json", "-o", file).code == 0
    policy = "policy_version: 1\ntables: {'**': {forbid_features: [rowTracking]%s}}\n"
    rules.write_text(policy % ", maintenance_windows: []")
    code, result = apply(cli, file, "--policy", str(rules))
    assert (code, runner.sent) == (4, 0)
    failed = [gate["name"] for gate in result["gates"] if not gate["passed"]]
    # The engine is another one too, but it is asked only when every gate before it passes.
    assert failed == ["policy", "window", "irreversible"]
    assert all(f"{name}: " in result["message"] for name in failed)
    assert "rowTracking is forbidden" in result["message"]


def test_a_table_that_changed_is_not_blamed_on_the_plan(
    cli: Cli, table: Log, runner: FakeRunner, tmp_path: Path
) -> None:
    file = str(tmp_path / "plan.json")
    words = ("--set", "delta.appendOnly=true", "--format", "json", "-o", file)
    assert cli("plan-upgrade", table.table, *words).code == 0
    listed = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    table.commit(1, commit_info("UPGRADE PROTOCOL"), listed)
    code, result = apply(cli, file)
    assert (code, runner.sent) == (4, 0)
    failed = [gate["name"] for gate in result["gates"] if not gate["passed"]]
    assert failed == ["fingerprint"]
    assert "the protocol changed since" in result["message"]


def test_a_journal_with_more_steps_than_the_plan_is_refused(
    cli: Cli, file: str, runner: FakeRunner
) -> None:
    assert apply(cli, file)[0] == 0
    path = next((Path(file).parent / ".deltaproto").glob("*.journal.jsonl"))
    path.write_text(path.read_text().replace('"steps_done": 2', '"steps_done": 9'))
    code, result = apply(cli, file)
    assert code == 2
    assert "more finished steps than the plan has" in result["message"]


class TestWaiting:
    def test_a_run_that_stays_is_in_the_journal(self) -> None:
        noted: list[str] = []
        ledger = SimpleNamespace(
            waits=lambda step, until, now, refused: noted.append(f"{until}{refused or ''}")
        )
        clock = iter([0.0, 1.0, 99.0])
        limits = WaitLimits(wait=True, now=lambda: next(clock), sleep=lambda _: None)
        observer = SimpleNamespace(waits=lambda *_: noted.append("shown"))
        waiting = WaitHandler(None, limits, observer, ledger)  # type: ignore[arg-type]
        assert not waiting.ends(None, StopReason(ExitCode.CHANGES, "", "", 50.0))  # type: ignore[arg-type]
        assert noted == ["50.0", "shown"]

    def test_it_is_printed_from_time_to_time_where_there_is_no_terminal(
        self, file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (planned,) = read_plans(file)
        assert isinstance(planned, LoadedPlan)
        times = [0.0, 1.0, 599.0, 601.0]
        clock = iter(times)
        fake = SimpleNamespace(monotonic=lambda: next(clock), time=lambda: 0.0)
        monkeypatch.setattr(plan_io, "time", fake)
        capsys.readouterr()
        with ProgressDisplay(None, many=False, show=True) as display:  # type: ignore[arg-type]
            for _ in times:
                display.waits(planned, planned.plan.steps[0], 4_102_444_800.0)
        first, second = capsys.readouterr().err.splitlines()
        assert "s1 waits " in first
        assert "2100-01-01T00:00:00Z" in second


def test_no_thread_goes_on_trying_a_server_that_is_gone() -> None:
    policy = SimpleNamespace(max_retries=30)
    older = {"max_retries": 30}
    client = SimpleNamespace(_retry_policies=[policy], _retry_policy=older)
    stop_retrying(SimpleNamespace(_client=client))
    assert (policy.max_retries, older["max_retries"]) == (0, 0)
    stop_retrying(SimpleNamespace())
