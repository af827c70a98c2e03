"""Runs statements in Spark one at a time, and identifies the engine."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import EngineError
from deltaproto.execution.verify import StatementResult, find_error_class
from deltaproto.planning.engine import EngineName
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from deltaproto.sql.quoting import has_variable
from deltaproto.tables.engine_errors import (
    LOST_HINT,
    failure_cause,
    first_line,
    is_connection_lost,
    lost_cause,
    lost_engine_error,
    spark_message,
    spark_root_cause,
)
from deltaproto.tables.session import (
    DATABRICKS_RUNTIME,
    folder_exists,
    open_query,
    remove_folder,
    spark_session,
    without_substitution,
)
from deltaproto.tables.spark_connect import stop_retrying

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# A DROP FEATURE reads the table again for each attempt to commit, so fast writers starve it.
# Delta itself would retry ten million times.
MAX_COMMIT_ATTEMPTS = "spark.databricks.delta.maxCommitAttempts"
_ATTEMPT_LIMIT = "100"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_EXTENSION = "DeltaSparkSessionExtension"
_POLL_SECONDS = 0.5
_NOTHING: Mapping[str, str] = MappingProxyType({})
ProgressCallback = Callable[[int, int], None]
"""receives the finished tasks and the tasks known so far"""


class EngineFacts(NamedTuple):
    """The executing engine."""

    name: EngineName
    version: str | None
    """version of Delta Lake or the Databricks runtime; None: not reported"""
    spark: str
    delta: bool
    """whether Delta's SQL extension is loaded"""
    conf: Mapping[str, str]
    """the session's settings"""

    def __str__(self) -> str:
        return (
            f"{self.name}@{self.version}" if self.version else f"{self.name} (Spark {self.spark})"
        )


def lazy_runner(spark: SparkSettings) -> Callable[[], StatementRunner]:
    """Return a function for one runner of several threads; Spark starts on first use."""
    lock = threading.Lock()
    started: list[StatementRunner] = []

    def get() -> StatementRunner:
        with lock:
            if not started:
                started.append(StatementRunner.started(spark))
            return started[0]

    return get


class StatementRunner:
    """Runs statements in one Spark session, and tags their commits."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._one_at_a_time = threading.Lock()

    @classmethod
    def started(cls, settings: SparkSettings) -> StatementRunner:
        """Return a runner for the active session, a remote one, or a new one.

        Raises:
            EngineError: naming what is missing or wrong.
        """
        return cls(spark_session(settings))

    def apart(self) -> StatementRunner:
        """Return a runner for another thread, whose statements have their own commit tags.

        Tags are settings of a session. Spark Connect has no separate session, so this runner itself
        is returned; statements then run one at a time.
        """
        try:
            return StatementRunner(self._session.newSession())
        except (AttributeError, NotImplementedError):
            return self

    def facts(self) -> EngineFacts:
        """Identify the engine.

        Raises:
            EngineError: when it does not respond.
        """
        try:
            return self._facts()
        except Exception as error:
            cause = failure_cause(error)
            if is_connection_lost(spark_message(error)):
                stop_retrying(self._session)
            raise EngineError(f"Spark does not respond: {Redactor()(cause)}", LOST_HINT) from None

    def _facts(self) -> EngineFacts:
        rows = self._session.sql("SET").collect()
        spark = str(self._session.version)
        conf = {str(row[0]): str(row[1]) for row in rows}
        runtime = self._session.conf.get(DATABRICKS_RUNTIME, None)
        if runtime:
            found = re.match(r"\d+\.\d+", str(runtime))
            return EngineFacts(EngineName.DATABRICKS, found and found[0], spark, True, conf)
        extensions = str(self._session.conf.get("spark.sql.extensions", "") or "")
        return EngineFacts(
            EngineName.DELTA_SPARK,
            _delta_version(self._session),
            spark,
            _EXTENSION in extensions,
            conf,
        )

    def query(self, sql: str) -> tuple[list[Row], str]:
        """Return the rows of a query, and its columns as text.

        Raises:
            EngineError: when Spark rejects it or does not respond.
        """
        try:
            with self._one_at_a_time:
                found = open_query(self._session, sql)
                return found.collect(), str(found.schema.simpleString())
        except EngineError:
            raise
        except Exception as error:
            if is_connection_lost(spark_message(error)):
                stop_retrying(self._session)
                raise lost_engine_error(error) from None
            raise EngineError(
                f"Spark rejected a query: {Redactor()(first_line(error))}",
                "fix the cause, and run the same command again",
            ) from None

    def run(
        self,
        sql: str,
        tag: str,
        progress: ProgressCallback | None = None,
        conf: Mapping[str, str] = _NOTHING,
    ) -> StatementResult:
        """Execute a statement exactly as written, with these settings; its commits carry `tag`."""
        try:
            with (
                self._one_at_a_time,
                ExitStack() as settings,
                without_substitution(self._session) if has_variable(sql) else nullcontext(),
                self._set(MAX_COMMIT_ATTEMPTS, _ATTEMPT_LIMIT, must=False),
                self._set(USER_METADATA, tag, must=True),
                _report_tasks(self._session, progress),
            ):
                for key, value in conf.items():
                    settings.enter_context(self._set(key, value, must=True))
                self._session.sql(sql).collect()
        except EngineError as error:
            return StatementResult("", f"{error.message}; nothing was sent: {error.hint}")
        except Exception as error:
            text = spark_message(error)
            if is_connection_lost(text):
                stop_retrying(self._session)
                return StatementResult("", lost_cause(error), lost=True)
            found, message = find_error_class(text), first_line(Exception(text))
            cause = "" if found else spark_root_cause(error)
            if cause and cause not in message:
                message += f" caused by {cause}"
            return StatementResult(found, message)
        return StatementResult()

    def removed(self, uri: str) -> bool:
        """Remove a folder through Spark's file system. Return False if the session exposes none."""
        return remove_folder(self._session, uri)

    def exists(self, uri: str) -> bool:
        """Return True if a folder exists, as far as the session exposes its file system."""
        return folder_exists(self._session, uri)

    @contextmanager
    def _set(self, key: str, value: str, *, must: bool) -> Iterator[None]:
        """Set a property for the block; without `must`, ignore a session that rejects it."""
        before = self._session.conf.get(key, None)
        try:
            self._session.conf.set(key, value)
        except Exception:
            if must:
                raise
        try:
            yield
        except Exception as error:
            # A disconnected session takes half a minute to fail, and there is nothing to restore.
            if not is_connection_lost(spark_message(error)):
                self._restore(key, before)
            raise
        except BaseException:
            self._restore(key, before)
            raise
        self._restore(key, before)

    def _restore(self, key: str, before: str | None) -> None:
        # The session may be disconnected, which is reported elsewhere.
        with suppress(Exception):
            if before is None:
                self._session.conf.unset(key)
            else:
                self._session.conf.set(key, str(before))


def _delta_version(session: SparkSession) -> str | None:
    """Return the version of Delta's jars; None over Spark Connect, which does not report it."""
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        return None
    try:
        found = jvm.org.apache.spark.util.Utils.classForName("io.delta.package$", True, False)
        return str(found.getField("MODULE$").get(None).VERSION())
    except Exception:
        return None


@contextmanager
def _report_tasks(session: SparkSession, progress: ProgressCallback | None) -> Iterator[None]:
    """Report Spark's tasks while the block runs, if the session exposes them."""
    try:
        tracker = session.sparkContext.statusTracker() if progress is not None else None
    except Exception:
        tracker = None
    if tracker is None or progress is None:
        yield
        return
    over = threading.Event()

    def poll() -> None:
        while not over.wait(_POLL_SECONDS):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Exception:
                return
            known = [stage for stage in stages if stage is not None]
            if known:
                progress(
                    sum(stage.numCompletedTasks for stage in known),
                    sum(stage.numTasks for stage in known),
                )

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
