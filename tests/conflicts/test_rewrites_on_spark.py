"""The OSS matrix, run: losers without rows to hold, that is rewrites and changes of metadata.

OPTIMIZE, REORG and ADD CONSTRAINT cannot be held inside a UDF, but their jobs wait while others
take every slot of Spark; deltalake, which needs none, commits meanwhile. Property changes run
no job: their transaction is opened, and committed after the winner, through Delta's own classes.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import deltalake
import pytest

from deltaproto.conflicts.matrix import build_cells
from deltaproto.conflicts.operation import Operation
from deltaproto.protocol.isolation import IsolationLevel, WriterEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
APPEND, DELETE = Operation.INSERT, Operation.DELETE
META, PROTO = Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE


class Pair(NamedTuple):
    loser: Operation
    statement: str
    winner: Operation
    by: Callable[[deltalake.DeltaTable], Any]
    raises: str | None


def append(table: deltalake.DeltaTable) -> None:
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    deltalake.write_deltalake(
        table, pa.table({"id": [7], "s": ["w"]}, schema=schema), mode="append"
    )


OPTIMIZE, ZORDER = "optimize {t}", "optimize {t} zorder by (id)"
CHECK = "alter table {t} add constraint positive check (id >= 0)"
PAIRS = {
    "optimize-insert": Pair(Operation.OPTIMIZE, OPTIMIZE, APPEND, append, None),
    "zorder-insert": Pair(Operation.OPTIMIZE_ZORDER, ZORDER, APPEND, append, None),
    "optimize-delete": Pair(
        Operation.OPTIMIZE,
        OPTIMIZE,
        DELETE,
        lambda t: t.delete("id = 1"),
        "ConcurrentDeleteReadException",
    ),
    "zorder-update": Pair(
        Operation.OPTIMIZE_ZORDER,
        ZORDER,
        Operation.UPDATE,
        lambda t: t.update({"s": "'w'"}, predicate="id = 1"),
        "ConcurrentDeleteReadException",
    ),
    "optimize-optimize": Pair(
        Operation.OPTIMIZE,
        OPTIMIZE,
        Operation.OPTIMIZE,
        lambda t: t.optimize.compact(),
        "ConcurrentDeleteReadException",
    ),
    "optimize-property": Pair(
        Operation.OPTIMIZE,
        OPTIMIZE,
        META,
        lambda t: t.alter.set_table_properties({"delta.appendOnly": "false"}),
        None,
    ),
    "optimize-add-feature": Pair(
        Operation.OPTIMIZE,
        OPTIMIZE,
        PROTO,
        lambda t: t.alter.add_feature(
            deltalake.TableFeatures.AppendOnly, allow_protocol_versions_increase=True
        ),
        None,
    ),
    "constraint-insert": Pair(META, CHECK, APPEND, append, "ConcurrentAppendException"),
    "constraint-property": Pair(
        META,
        CHECK,
        META,
        lambda t: t.alter.set_table_properties({"delta.appendOnly": "false"}),
        "MetadataChangedException",
    ),
}


@contextmanager
def no_free_slot(spark: SparkSession, folder: Path) -> Iterator[Callable[[], None]]:
    """Take every slot until the given function is called, or the block ends."""
    place, context = str(folder), spark.sparkContext

    def wait(numbers: Iterator[int]) -> Iterator[int]:
        import os
        import time

        for number in numbers:
            with open(f"{place}/in-{number}", "w"):
                pass
            deadline = time.monotonic() + 60
            while not os.path.exists(f"{place}/go") and time.monotonic() < deadline:
                time.sleep(0.02)
            yield number

    def free() -> None:
        (folder / "go").touch()

    slots = context.defaultParallelism
    job = context.parallelize(range(slots), slots).mapPartitions(wait)
    thread = threading.Thread(target=job.count)
    thread.start()
    try:
        until(lambda: len(list(folder.glob("in-*"))) == slots)
        yield free
    finally:
        free()
        thread.join(90)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of every pair."""
    path = tmp_path_factory.mktemp("made") / "t"
    table = f"delta.`{path}`"
    spark.sql(f"create table {table} (id bigint, s string) using delta")
    for start in range(3):
        rows = f"select /*+ coalesce(1) */ id, 's' from range({start}, {start + 4})"
        spark.sql(f"insert into {table} {rows}")
    return path


@pytest.fixture(scope="module")
def made_to_drop(spark: SparkSession, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a feature to drop."""
    path = shutil.copytree(made, tmp_path_factory.mktemp("made") / "t")
    name = "delta.feature.vacuumProtocolCheck"
    spark.sql(f"alter table delta.`{path}` set tblproperties ('{name}'='supported')")
    return path


@pytest.mark.parametrize("name", PAIRS)
def test_a_statement_that_only_runs_jobs(
    name: str, spark: SparkSession, made: Path, tmp_path: Path
) -> None:
    pair = PAIRS[name]
    table = f"delta.`{shutil.copytree(made, tmp_path / 't')}`"
    jobs = spark.sparkContext.statusTracker()
    gate = tmp_path / "gate"
    gate.mkdir()
    outcome: dict[str, BaseException | None] = {}

    def lose() -> None:
        try:
            spark.sql(pair.statement.format(t=table)).collect()
            outcome["error"] = None
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=lose)
    with no_free_slot(spark, gate) as free:
        before = set(jobs.getActiveJobsIds())
        thread.start()
        until(lambda: bool(set(jobs.getActiveJobsIds()) - before) or not thread.is_alive())
        assert thread.is_alive(), outcome
        pair.by(deltalake.DeltaTable(tmp_path / "t"))
        assert thread.is_alive(), outcome
        free()
        thread.join(120)
    error = outcome["error"]
    raised = None if error is None else type(error).__name__
    assert raised == pair.raises, error
    agrees(pair.loser, pair.winner, raised)


def agrees(loser: Operation, winner: Operation, raised: str | None) -> None:
    (cell,) = (
        cell
        for cell in build_cells(WriterEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE)  # type: ignore[arg-type]
        if (cell.operation, cell.against) == (loser, winner)
    )
    if raised is None:
        assert cell.conflict != "yes", cell
    else:
        assert cell.conflict != "no", cell
        assert raised in cell.exceptions, cell


ADD_FEATURE = "alter table {t} set tblproperties ('delta.feature.deletionVectors'='supported')"
ENABLE = "alter table {t} set tblproperties ('delta.enableDeletionVectors'='true')"
DROP = "alter table {t} drop feature vacuumProtocolCheck"
READING_NOTHING: dict[tuple[Operation, str], tuple[Operation, str | None]] = {
    (loser, winner): (operation, raised)
    for winner, operation, of_metadata, of_protocol in (
        ("insert into {t} values (2, 'b')", APPEND, None, None),
        ("delete from {t}", DELETE, None, None),
        ("alter table {t} set tblproperties ('x'='1')", META, "Metadata", "Metadata"),
        (ADD_FEATURE, PROTO, "Metadata", "Protocol"),
        (ENABLE, META, "Metadata", "Protocol"),
        (DROP, PROTO, "Protocol", "Protocol"),
    )
    for loser, raised in ((META, of_metadata), (PROTO, of_protocol))
}


@pytest.mark.parametrize(("loser", "winner"), READING_NOTHING)
def test_a_change_of_metadata_or_protocol_that_reads_nothing(
    loser: Operation, winner: str, spark: SparkSession, made_to_drop: Path, tmp_path: Path
) -> None:
    operation, raises = READING_NOTHING[loser, winner]
    table = f"delta.`{shutil.copytree(made_to_drop, tmp_path / 't')}`"
    commit = opened(spark, tmp_path / "t", loser)
    spark.sql(winner.format(t=table)).collect()
    raised = None
    try:
        commit()
    except Exception as error:
        raised = type(error).__name__
    assert raised == (f"{raises}ChangedException" if raises else None)
    agrees(loser, operation, raised)


def opened(spark: SparkSession, path: Path, loser: Operation) -> Callable[[], Any]:
    """A transaction of Delta's that sets a property or adds a feature; call it to commit."""
    jvm: Any = spark._jvm
    delta, none = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty()
    log = delta.DeltaLog.forTable(spark._jsparkSession, str(path))
    transaction = log.startTransaction(none, none)
    if loser is META:
        action = json.loads(transaction.metadata().json())
        action["metaData"].setdefault("configuration", {})["team"] = "b"
    else:
        action = json.loads(transaction.protocol().json())
        for name in ("readerFeatures", "writerFeatures"):
            action["protocol"][name] = [*action["protocol"][name], "v2Checkpoint"]
    actions = [delta.actions.Action.fromJson(json.dumps(action))]
    manual = getattr(delta, "DeltaOperations$ManualUpdate$")
    scala = jvm.org.apache.spark.api.python.PythonUtils.toSeq(actions)
    return lambda: transaction.commit(scala, getattr(manual, "MODULE$"))
