"""The conflict matrix for one engine, isolation level and table layout."""

from __future__ import annotations

from enum import StrEnum

from deltaproto.conflicts import databricks, delta_rs, delta_spark
from deltaproto.conflicts.operation import Cell, Operation
from deltaproto.protocol.isolation import (
    DECLARABLE_LEVELS,
    IsolationLevel,
    WriterEngine,
    evaluate_isolation,
)


class MatrixEngine(StrEnum):
    """Engines with known conflict rules: documented, or measured and read from source."""

    DATABRICKS = WriterEngine.DATABRICKS.value
    DELTA_SPARK = WriterEngine.DELTA_SPARK.value
    DELTA_RS = WriterEngine.DELTA_RS.value


def default_level(engine: MatrixEngine) -> IsolationLevel:
    """Return the level of a table that declares none."""
    level = evaluate_isolation(None).effective[WriterEngine(engine)]
    assert level is not None
    return level


def build_cells(
    engine: MatrixEngine,
    level: IsolationLevel,
    *,
    by_row: frozenset[Operation] = frozenset(),
    deletion_vectors: bool | None = None,
    identity: bool | None = False,
    release: delta_rs.Release = delta_rs.NEWEST,
) -> tuple[Cell, ...]:
    """Return the cells for every pair of operations, in the order of `Operation`.

    `by_row` are the operations with row-level concurrency, which implies deletion vectors. Delta
    Spark and delta-rs have neither in their rules. `identity` is True if the table has identity
    columns; None: unknown. `release` is delta-rs's.

    Raises:
        ValueError: for a level that no table can declare, or row-level concurrency on an engine
            without it.
    """
    if level not in DECLARABLE_LEVELS:
        raise ValueError(f"tables cannot declare {level}")
    pairs = [(operation, against) for operation in Operation for against in Operation]
    match engine:
        case MatrixEngine.DATABRICKS:
            vectors = bool(by_row) or deletion_vectors
            layout = databricks.MatrixInputs(level, by_row, vectors, identity)
            return tuple(databricks.databricks_cell(*pair, layout) for pair in pairs)
        case MatrixEngine.DELTA_SPARK:
            if by_row:
                raise ValueError("Delta Spark has no row-level concurrency")
            return tuple(
                delta_spark.delta_spark_cell(*pair, level, identity=identity) for pair in pairs
            )
        case MatrixEngine.DELTA_RS:
            if by_row:
                raise ValueError("delta-rs has no row-level concurrency")
            return tuple(delta_rs.delta_rs_cell(*pair, level, release=release) for pair in pairs)
