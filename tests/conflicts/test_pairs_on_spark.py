"""The OSS matrix, run: two transactions on a real Spark, one committing while the other works.

The loser is held inside a UDF until the winner has committed, so that the interleaving is the
same every time. What happens to it must be what the matrix says of the pair.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from deltaproto.conflicts.matrix import build_cells
from deltaproto.conflicts.operation import Operation
from deltaproto.protocol.isolation import IsolationLevel, WriterEngine
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SERIALIZABLE, WRITE_SERIALIZABLE = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE

# `held(x)` is x, once the winner has committed.
LOSERS = {
    Operation.INSERT: "insert into {t} select held(id), 'new', 1 from range(100, 101)",
    Operation.UPDATE: "update {t} set s = 'u' where p = 1 and held(id) = 1",
    Operation.DELETE: "delete from {t} where p = 1 and held(id) = 1",
    Operation.MERGE: (
        "merge into {t} t using (select held(id) id from range(1, 2)) n "
        "on t.id = n.id and t.p = 1 when matched then update set s = 'm'"
    ),
}
READING_INSERT = "insert into {t} select held(id) + 50, s, p from {t} where p = 1"


class Pair(NamedTuple):
    loser: Operation
    winner: Operation
    by: str
    """the winner's statement"""
    raises: str | None
    level: IsolationLevel = SERIALIZABLE
    statement: str | None = None
    """the loser's statement, when it is not the usual one"""
    partitioned: bool = False
    since: str = "3.1"
    """the first Delta Spark of which it holds"""


INS, U, D, M = Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.MERGE
META, PROTO = Operation.METADATA_CHANGE, Operation.PROTOCOL_CHANGE
APPEND = "insert into {t} values (7, 'w', 1)"
ELSEWHERE = "insert into {t} values (7, 'w', 2)"
PAIRS: dict[str, Pair] = {
    "insert-insert": Pair(INS, INS, APPEND, None),
    "insert-update": Pair(INS, U, "update {t} set s = 'w' where id = 2", None),
    "insert-delete": Pair(INS, D, "delete from {t} where id = 2", None),
    "insert-optimize": Pair(INS, Operation.OPTIMIZE, "optimize {t}", None),
    "update-insert": Pair(U, INS, APPEND, "ConcurrentAppendException"),
    "update-insert-ws": Pair(U, INS, APPEND, None, WRITE_SERIALIZABLE),
    "delete-insert": Pair(D, INS, APPEND, "ConcurrentAppendException"),
    "delete-insert-ws": Pair(D, INS, APPEND, None, WRITE_SERIALIZABLE),
    "merge-insert": Pair(M, INS, APPEND, "ConcurrentAppendException"),
    "merge-insert-ws": Pair(M, INS, APPEND, None, WRITE_SERIALIZABLE),
    "reading-insert-insert": Pair(
        M, INS, APPEND, "ConcurrentAppendException", statement=READING_INSERT
    ),
    "update-insert-elsewhere": Pair(U, INS, ELSEWHERE, None, partitioned=True),
    "update-delete-elsewhere": Pair(
        U, D, "delete from {t} where p = 2 and id = 2", None, partitioned=True
    ),
    # A winner that rewrites files also adds some, and Delta looks at these first.
    "update-delete": Pair(
        U, D, "delete from {t} where id = 1", "ConcurrentAppendException", WRITE_SERIALIZABLE
    ),
    "update-delete-all": Pair(U, D, "delete from {t}", "ConcurrentDeleteReadException"),
    "delete-update": Pair(D, U, "update {t} set s = 'w' where id = 1", "ConcurrentAppendException"),
    "update-merge": Pair(
        U,
        M,
        "merge into {t} t using (select 1L id) n on t.id = n.id when matched then delete",
        "ConcurrentAppendException",
        WRITE_SERIALIZABLE,
    ),
    "update-optimize": Pair(U, Operation.OPTIMIZE, "optimize {t}", "ConcurrentAppendException"),
    "insert-property": Pair(
        INS, META, "alter table {t} set tblproperties ('team'='a')", "MetadataChangedException"
    ),
    "insert-add-column": Pair(
        INS, META, "alter table {t} add columns (z int)", "MetadataChangedException"
    ),
    "update-change-feed": Pair(
        U,
        META,
        "alter table {t} set tblproperties ('delta.enableChangeDataFeed'='true')",
        "MetadataChangedException",
    ),
    "insert-enable-vectors": Pair(
        INS,
        META,
        "alter table {t} set tblproperties ('delta.enableDeletionVectors'='true')",
        None,
        since="4.1",
    ),
    "insert-enable-row-tracking": Pair(
        INS, META, "alter table {t} set tblproperties ('delta.enableRowTracking'='true')", None
    ),
    "insert-unset": Pair(
        INS, META, "alter table {t} unset tblproperties ('kept')", "MetadataChangedException"
    ),
    "insert-add-feature": Pair(
        INS,
        PROTO,
        "alter table {t} set tblproperties ('delta.feature.v2Checkpoint'='supported')",
        None,
        since="4.1",
    ),
    "insert-drop-feature": Pair(
        INS, PROTO, "alter table {t} drop feature vacuumProtocolCheck", "ProtocolChangedException"
    ),
    "update-drop-feature": Pair(
        U, PROTO, "alter table {t} drop feature vacuumProtocolCheck", "ProtocolChangedException"
    ),
}


@pytest.fixture(scope="module")
def gate(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder through which the UDF says that it was reached, and is let go."""
    folder = tmp_path_factory.mktemp("gate")
    place = str(folder)

    def held(value: int) -> int:
        import os
        import time

        with open(f"{place}/reached", "w"):
            pass
        deadline = time.monotonic() + 60
        while not os.path.exists(f"{place}/go"):
            # If the loser went on by itself, the interleaving would be another one.
            assert time.monotonic() < deadline, "nobody opened the gate"
            time.sleep(0.02)
        return value

    spark.udf.register("held", held, "bigint")
    # The loser reads all its files in one task, which leaves Spark a slot for the winner.
    before = spark.conf.get(_TASKS, None)
    spark.conf.set(_TASKS, "1")
    yield folder
    if before is None:
        spark.conf.unset(_TASKS)
    else:
        spark.conf.set(_TASKS, before)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The table of every pair, partitioned or not."""
    folder = tmp_path_factory.mktemp("tables")
    return {partitioned: make(spark, folder, partitioned) for partitioned in (False, True)}


def make(spark: SparkSession, folder: Path, partitioned: bool) -> Path:
    path = folder / str(partitioned)
    table = f"delta.`{path}`"
    clause = "partitioned by (p)" if partitioned else ""
    spark.sql(
        f"create table {table} (id bigint, s string, p int) using delta {clause} tblproperties "
        "('kept'='1','delta.feature.vacuumProtocolCheck'='supported')"
    )
    for start in (0, 1):
        rows = ", ".join(f"({n}, 's', {1 + n % 2})" for n in range(start, 6, 2))
        spark.sql(f"insert into {table} select /*+ coalesce(1) */ * from values {rows} v(id, s, p)")
    spark.sql(f"insert into {table} values (1, 's', 1)")
    return path


def declare(path: Path, level: IsolationLevel) -> None:
    """Store a level as Databricks would: Delta Spark honors it, but refuses to set it."""
    log = path / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json"))
    action = json.loads(
        next(
            line
            for line in (log / f"{0:020d}.json").read_text().splitlines()
            if line.startswith('{"metaData"')
        )
    )
    action["metaData"]["configuration"]["delta.isolationLevel"] = str(level)
    (log / f"{newest + 1:020d}.json").write_text(json.dumps(action) + "\n")


_TASKS = "spark.sql.files.minPartitionNum"
REBASED = "writers that are rebased over a new feature"


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_delta(pair.since, REBASED)) for name, pair in PAIRS.items()],
)
def test_what_happens_is_what_the_matrix_says(
    name: str, spark: SparkSession, tables: dict[bool, Path], gate: Path, tmp_path: Path
) -> None:
    pair = PAIRS[name]
    path = shutil.copytree(tables[pair.partitioned], tmp_path / "t")
    table = f"delta.`{path}`"
    if pair.level is WRITE_SERIALIZABLE:
        declare(path, pair.level)
    for file in gate.iterdir():
        file.unlink()
    outcome: dict[str, BaseException | None] = {}

    def lose() -> None:
        try:
            spark.sql((pair.statement or LOSERS[pair.loser]).format(t=table)).collect()
            outcome["error"] = None
        except Exception as error:
            outcome["error"] = error

    thread = threading.Thread(target=lose)
    thread.start()
    try:
        deadline = 60.0
        while not (gate / "reached").exists() and thread.is_alive() and deadline > 0:
            thread.join(0.02)
            deadline -= 0.02
        assert (gate / "reached").exists(), outcome
        spark.sql(pair.by.format(t=table)).collect()
    finally:
        (gate / "go").touch()
        thread.join(120)
    error = outcome["error"]
    raised = None if error is None else type(error).__name__
    assert raised == pair.raises, error
    agree_with_matrix(pair, raised)


def agree_with_matrix(pair: Pair, raised: str | None) -> None:
    found: list[Any] = [
        cell
        for cell in build_cells(WriterEngine.DELTA_SPARK, pair.level)
        if (cell.operation, cell.against) == (pair.loser, pair.winner)
    ]
    (cell,) = found
    if raised is None:
        assert cell.conflict != "yes", cell
    else:
        assert cell.conflict != "no", cell
        assert raised in cell.exceptions, cell
