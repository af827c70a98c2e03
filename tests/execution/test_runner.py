"""What a session gets around each statement, with a session that only keeps settings."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from deltaproto.app.executing import build_session
from deltaproto.errors import EngineError
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.runner import MAX_COMMIT_ATTEMPTS, USER_METADATA, StatementRunner
from deltaproto.execution.verify import StatementResult
from deltaproto.planning.engine import EngineName
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor

LOST = "Connection refused: localhost/127.0.0.1:1"
RUNTIME = "spark.databricks.clusterUsageTags.sparkVersion"


class Java(Exception):
    """An error as py4j raises it: its own text only names the call."""

    def __init__(self, text: str, *causes: str) -> None:
        super().__init__("An error occurred while calling o1.sql")
        chain: SimpleNamespace | None = None
        for each in reversed((text, *causes)):
            chain = SimpleNamespace(
                toString=lambda each=each: each, getCause=lambda chain=chain: chain
            )
        self.java_exception = chain


class Session:
    """Keeps settings and statements; `fails` are raised by the statements, one after the other."""

    version = "4.2.0"

    def __init__(self, *fails: BaseException, rejects: str = "", **values: str) -> None:
        self.values = {key.replace("__", "."): value for key, value in values.items()}
        self.fails, self.rejects = [*fails], rejects
        self.sent: list[tuple[str, dict[str, str]]] = []
        self.conf = SimpleNamespace(get=self.get, set=self.set, unset=self.unset)
        self.restored = True

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        if key == self.rejects:
            raise RuntimeError("[CANNOT_MODIFY_CONFIG]")
        self.values[key] = value

    def unset(self, key: str) -> None:
        self.values.pop(key, None)

    def sql(self, text: str) -> Session:
        self.sent.append((text, dict(self.values)))
        if self.fails:
            raise self.fails.pop(0)
        return self

    def collect(self) -> list[tuple[str, str]]:
        return list(self.values.items())

    def newSession(self) -> Session:
        return Session(**{key.replace(".", "__"): value for key, value in self.values.items()})


def runner(session: Session) -> StatementRunner:
    return StatementRunner(session)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "expected", "restored"),
    [
        (None, StatementResult(), True),
        (
            Java("org.x.DeltaE: [DELTA_METADATA_CHANGED] changed\n  at x"),
            StatementResult(
                "DELTA_METADATA_CHANGED", "org.x.DeltaE: [DELTA_METADATA_CHANGED] changed"
            ),
            True,
        ),
        (
            Java(
                "x.SparkException: awaitResult: ", "x.Aborted", "java.io.E: /t/a (denied)\n  at x"
            ),
            StatementResult(
                "", "x.SparkException: awaitResult: caused by java.io.E: /t/a (denied)"
            ),
            True,
        ),
        # Delta's own errors are complete, and a message that quotes its cause is.
        (
            Java("[DELTA_X] it failed", "java.io.E"),
            StatementResult("DELTA_X", "[DELTA_X] it failed"),
            True,
        ),
        (
            Java("x.E: java.io.F: no", "java.io.F: no"),
            StatementResult("", "x.E: java.io.F: no"),
            True,
        ),
        (RuntimeError("\n no class \n more"), StatementResult("", "no class"), True),
        (ValueError(), StatementResult("", "ValueError"), True),
        (RuntimeError(LOST), StatementResult("", LOST, lost=True), False),
    ],
)
@pytest.mark.parametrize("before", [{}, {USER_METADATA: "mine", MAX_COMMIT_ATTEMPTS: "7"}])
def test_the_tag_is_set_for_the_statement_only(
    error: BaseException | None,
    expected: StatementResult,
    restored: bool,
    before: dict[str, str],
) -> None:
    session = Session(*([error] if error else []))
    session.values.update(before)
    assert runner(session).run("ALTER TABLE t", "the tag") == expected
    ((sql, settings),) = session.sent
    assert sql == "ALTER TABLE t"
    assert (settings[USER_METADATA], settings[MAX_COMMIT_ATTEMPTS]) == ("the tag", "100")
    # A session that is gone is left alone.
    assert (session.values == before) is restored


def test_an_interruption_restores_the_settings() -> None:
    session = Session(KeyboardInterrupt(), **{"a": "b"})
    with pytest.raises(KeyboardInterrupt):
        runner(session).run("ALTER TABLE t", "the tag")
    assert session.values == {"a": "b"}


def test_without_a_tag_nothing_is_sent() -> None:
    """Without its tag a commit cannot be told from another writer's; retries are a preference."""
    session = Session(rejects=USER_METADATA)
    found = runner(session).run("ALTER TABLE t", "the tag")
    assert (found.error, found.lost, session.sent) == ("CANNOT_MODIFY_CONFIG", False, [])
    assert "CANNOT_MODIFY_CONFIG" in found.message
    session = Session(rejects=MAX_COMMIT_ATTEMPTS)
    assert runner(session).run("ALTER TABLE t", "the tag") == StatementResult()
    assert session.sent == [("ALTER TABLE t", {USER_METADATA: "the tag"})]


@pytest.mark.parametrize(
    ("values", "engine", "version", "delta"),
    [
        ({}, EngineName.DELTA_SPARK, None, False),
        ({"spark.sql.extensions": "x.Other"}, EngineName.DELTA_SPARK, None, False),
        (
            {"spark.sql.extensions": "x.Other,io.delta.sql.DeltaSparkSessionExtension"},
            EngineName.DELTA_SPARK,
            None,
            True,
        ),
        ({RUNTIME: "16.4.x-photon-scala2.12"}, EngineName.DATABRICKS, "16.4", True),
        ({RUNTIME: "custom:release"}, EngineName.DATABRICKS, None, True),
    ],
)
def test_the_engine_is_identified_by_its_settings(
    values: dict[str, str], engine: EngineName, version: str | None, delta: bool
) -> None:
    session = Session()
    session.values.update(values)
    facts = runner(session).facts()
    assert (facts.name, facts.version, facts.spark) == (engine, version, "4.2.0")
    assert (facts.delta, facts.conf) == (delta, values)
    shown = f"{engine}@{version}" if version else f"{engine} (Spark 4.2.0)"
    assert str(facts) == shown


def test_the_version_of_delta_is_that_of_its_jar() -> None:
    field = SimpleNamespace(get=lambda _: SimpleNamespace(VERSION=lambda: "4.4.0"))
    package = SimpleNamespace(getField=lambda name: {"MODULE$": field}[name])
    utils = SimpleNamespace(classForName=lambda name, *_: {"io.delta.package$": package}[name])
    apache = SimpleNamespace(spark=SimpleNamespace(util=SimpleNamespace(Utils=utils)))
    session: Any = Session()
    session._jvm = SimpleNamespace(org=SimpleNamespace(apache=apache))
    assert runner(session).facts().version == "4.4.0"
    session._jvm = SimpleNamespace()
    assert runner(session).facts().version is None


@pytest.mark.parametrize("error", [RuntimeError(LOST), RuntimeError("no")])
def test_an_engine_that_does_not_respond(error: Exception) -> None:
    with pytest.raises(EngineError, match="Spark does not respond") as caught:
        runner(Session(error)).facts()
    assert str(error) in caught.value.message


def test_another_thread_has_its_own_tag() -> None:
    session = Session()
    here = runner(session)
    there = here.apart()
    assert there is not here
    assert there.run("x", "the tag") == StatementResult()
    assert session.sent == []
    remote: Any = SimpleNamespace(conf=session.conf)
    shared = StatementRunner(remote)
    assert shared.apart() is shared


def test_progress_counts_the_tasks_of_known_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported until the statement ends; a stage that is gone is left out."""
    told: list[tuple[int, int]] = []
    noticed = threading.Event()

    def progress(done: int, known: int) -> None:
        told.append((done, known))
        noticed.set()

    monkeypatch.setattr("deltaproto.execution.runner._POLL_SECONDS", 0.0)
    stages = {
        1: SimpleNamespace(numCompletedTasks=2, numTasks=5),
        2: None,
        3: SimpleNamespace(numCompletedTasks=1, numTasks=4),
    }
    tracker = SimpleNamespace(getActiveStageIds=lambda: [*stages], getStageInfo=stages.get)

    class Busy(Session):
        def collect(self) -> list[tuple[str, str]]:
            noticed.wait()
            return []

    session: Any = Busy()
    session.sparkContext = SimpleNamespace(statusTracker=lambda: tracker)
    assert runner(session).run("x", "the tag", progress) == StatementResult()
    assert {*told} == {(3, 9)}


def test_plans_that_run_at_the_same_time_share_one_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: SparkSettings) -> StatementRunner:
        time.sleep(0.05)
        return StatementRunner(Session())  # type: ignore[arg-type]

    monkeypatch.setattr("deltaproto.execution.runner.StatementRunner.started", start)
    context = ApplyContext({}, SparkSettings(), lambda _: "")
    session = build_session(context, Redactor(), None, dry_run=False, wait=False, retries=0)
    with ThreadPoolExecutor(4) as threads:
        runners = {id(each) for each in threads.map(lambda _: session.runner(), range(4))}
    assert len(runners) == 1
