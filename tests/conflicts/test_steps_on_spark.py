"""Steps that collide on a real Spark, and whether the plan of each side names the exception.

The loser is held where it prepares its commit, by an observer that Delta Spark has for its own
tests, until the winner has committed. So any statement can lose, also one without rows to hold.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.planning.conflict_impact import find_step_conflicts
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.writer_survival import Writers
from tests.conflicts.test_pairs_on_spark import WRITE_SERIALIZABLE, declare
from tests.planning.oracle import predict
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_delta("4.4", "its observer")]

APPEND, READ = "ConcurrentAppendException", "ConcurrentDeleteReadException"
METADATA, PROTOCOL = "MetadataChangedException", "ProtocolChangedException"
WRITE = "ConcurrentWriteException"
SET = "alter table {t} set tblproperties "
CHANGE = "metadata|protocol|every in-flight write"

# By name: a statement, and how plans of other steps call it.
STATEMENTS = {
    "insert": ("insert into {t} (id, s) values (7, 'w')", "INSERT|every in-flight write"),
    "copy": ("insert into {t} (id, s) select id + 50, s from {t}", "MERGE|every in-flight write"),
    "overwrite": ("insert overwrite {t} (id, s) values (7, 'w')", "MERGE|every in-flight write"),
    "update": ("update {t} set s = 'u' where id = 1", "UPDATE|every in-flight write"),
    "optimize": ("optimize {t}", "OPTIMIZE|every in-flight write"),
    "property": (SET + "('x' = '1')", CHANGE),
    "feature": (SET + "('delta.feature.vacuumProtocolCheck' = 'supported')", CHANGE),
    "check": ("alter table {t} add constraint positive check (id > 0)", CHANGE),
    "unmap": (SET + "('delta.columnMapping.mode' = 'none')", CHANGE),
    "cluster": ("alter table {t} cluster by (s)", CHANGE),
    "replace": ("replace table {t} (id bigint, s string) using delta", CHANGE),
    "restore": ("restore table {t} to version as of 1", "RESTORE|any other metadata"),
}
# Loser and winner; on a table that is WriteSerializable if the name ends so.
PAIRS: dict[tuple[str, str], str | None] = {
    ("copy", "insert"): APPEND,
    ("copy-ws", "insert"): None,
    ("update-ws", "copy"): APPEND,
    ("overwrite", "insert"): APPEND,
    ("optimize", "overwrite"): READ,
    ("check", "insert"): APPEND,
    ("check-ws", "insert"): APPEND,
    ("check", "optimize"): APPEND,
    ("check", "property"): METADATA,
    ("check", "feature"): PROTOCOL,
    ("check", "check"): PROTOCOL,
    ("check", "restore"): PROTOCOL,
    ("replace", "insert"): APPEND,
    ("replace", "update"): APPEND,
    ("unmap", "insert"): APPEND,
    ("unmap", "optimize"): APPEND,
    ("insert", "restore"): None,
    ("copy", "restore"): READ,
    ("restore", "insert"): WRITE,
    ("restore", "property"): WRITE,
    ("restore", "feature"): WRITE,
    ("restore", "cluster"): WRITE,
    ("property", "insert"): None,
    ("property", "feature"): METADATA,
    ("property", "restore"): METADATA,
    ("feature", "property"): METADATA,
    ("feature", "feature"): PROTOCOL,
    ("feature", "cluster"): PROTOCOL,
    ("cluster", "feature"): PROTOCOL,
    ("insert", "feature"): None,
    ("insert", "check"): METADATA,
}


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two versions with rows."""
    path = tmp_path_factory.mktemp("made") / "t"
    spark.sql(f"create table delta.`{path}` (id bigint, s string) using delta")
    for first in (1, 2):
        spark.sql(f"insert into delta.`{path}` values ({first}, 'a'), ({first + 2}, 'b')")
    return path


@pytest.fixture
def observer(spark: SparkSession) -> Any:
    """An observer that holds a transaction where it prepares its commit."""
    delta = spark._jvm.org.apache.spark.sql.delta
    phases = delta.fuzzer.OptimisticTransactionPhases.forName("loser")
    observer = delta.fuzzer.PhaseLockingTransactionExecutionObserver(phases)
    # A statement that retries begins a second transaction.
    idle = getattr(getattr(delta, "NoOpTransactionExecutionObserver$"), "MODULE$")
    observer.setNextObserver(idle, True)
    phases.initialPhase().entryBarrier().unblock()
    return observer


def release(phases: Any) -> None:
    for phase in (
        *(phases.preparePhase(), phases.commitPhase()),
        *(phases.backfillPhase(), phases.postCommitPhase()),
    ):
        phase.entryBarrier().unblock()
    phases.postCommitPhase().leave()


@pytest.mark.parametrize(("loser", "winner"), PAIRS)
def test_both_plans_name_the_exception(
    loser: str, winner: str, spark: SparkSession, made: Path, observer: Any, tmp_path: Path
) -> None:
    path = shutil.copytree(made, tmp_path / "t")
    if loser.endswith("-ws"):
        declare(path, WRITE_SERIALIZABLE)
    raises = PAIRS[loser, winner]
    loses, wins = (STATEMENTS[name.removesuffix("-ws")] for name in (loser, winner))
    of_winner, of_loser = said(path, wins[0], "writer"), said(path, loses[0], "step")
    assert collide(spark, f"delta.`{path}`", loses[0], wins[0], observer) == raises
    if raises is not None:
        assert raises in {e for who, e in of_winner if re.search(loses[1], who)}, of_winner
        assert raises in {e for who, e in of_loser if re.search(wins[1], who)}, of_loser


def said(path: Path, sql: str, loser: str) -> list[tuple[str, str]]:
    """Who is said to fail, or to make the step fail, and with which exception."""
    before, outcome = predict(str(path), sql.format(t=f"delta.`{path}`"))
    (each,) = parse_script(sql.format(t=f"delta.`{path}`"))
    writers = Writers(frozenset({RUNNING.version}))
    found = find_step_conflicts(each.statement, before, outcome, writers)
    return [(c.who, c.exception) for c in found if (c.engine, c.loser) == ("delta-spark", loser)]


def collide(spark: SparkSession, table: str, loser: str, winner: str, observer: Any) -> str | None:
    """Commit the winner while the loser is held; return the loser's exception."""
    outcome: list[str | None] = []

    def lose() -> None:
        delta = spark._jvm.org.apache.spark.sql.delta
        delta.TransactionExecutionObserver.setObserver(observer)
        try:
            spark.sql(loser.format(t=table)).collect()
            outcome.append(None)
        except Exception as error:
            outcome.append(type(error).__name__)

    thread, phases = threading.Thread(target=lose), observer.phases()
    thread.start()
    try:
        deadline = time.monotonic() + 60
        while thread.is_alive() and not phases.preparePhase().hasReached():
            assert time.monotonic() < deadline, "it does not commit"
            thread.join(0.02)
        assert thread.is_alive(), outcome
        spark.sql(winner.format(t=table)).collect()
    finally:
        release(phases)
        thread.join(120)
    return outcome[0]
