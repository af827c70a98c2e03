"""The conflict matrix for one engine, isolation level and layout, and resolution by row."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.conflicts import databricks, delta_rs, delta_spark
from deltaproto.conflicts.operation import CHANGE_OPERATIONS, Cell, Operation
from deltaproto.protocol.databricks_runtime import Runtime
from deltaproto.protocol.isolation import (
    DECLARABLE_LEVELS,
    Isolation,
    IsolationLevel,
    WriterEngine,
    evaluate_isolation,
)

PREVIEW_SETTING = "spark.databricks.delta.rowLevelConcurrencyPreview"
_LIQUID, _PREVIEW, _GENERAL, _FREE_MERGE = (
    Runtime(13, 3),
    Runtime(14, 0),
    Runtime(14, 2),
    Runtime(14, 3),
)


class Compute(NamedTuple):
    """The writing Databricks compute. None means unknown."""

    runtime: Runtime | None = None
    photon: bool | None = None
    preview: bool | None = None
    """True if `PREVIEW_SETTING` is enabled"""


class ResolvedByRow(NamedTuple):
    """The operations whose conflicts are resolved by row, with the reason."""

    operations: frozenset[Operation]
    reason: str


def resolve_by_row(liquid: bool, compute: Compute) -> ResolvedByRow:
    """Return what this compute resolves by row on a table that allows it.

    If the rule or its inputs are unknown, assume no row-level resolution.
    """
    runtime = compute.runtime
    if runtime is None:
        return ResolvedByRow(CHANGE_OPERATIONS, "assuming Databricks Runtime 14.2 or later")
    if runtime >= _FREE_MERGE:
        return ResolvedByRow(
            CHANGE_OPERATIONS, f"Databricks Runtime {runtime} has it for UPDATE, DELETE and MERGE"
        )
    if runtime >= _GENERAL:
        if compute.photon:
            return ResolvedByRow(
                CHANGE_OPERATIONS,
                f"Databricks Runtime {runtime} with Photon supports it, for MERGE only with an "
                "explicit predicate on the target",
            )
        return ResolvedByRow(
            CHANGE_OPERATIONS - {Operation.MERGE},
            f"on Databricks Runtime {runtime}, MERGE requires Photon, which {_photon(compute)}",
        )
    if not liquid:
        if runtime < _PREVIEW:
            return ResolvedByRow(
                frozenset(),
                f"Databricks Runtime {runtime} does not support it without liquid clustering",
            )
        if not compute.preview:
            state = "is not known to be" if compute.preview is None else "is not"
            return ResolvedByRow(
                frozenset(),
                f"on Databricks Runtime {runtime} it needs {PREVIEW_SETTING} = true, which {state} "
                "set",
            )
    elif runtime < _LIQUID:
        return ResolvedByRow(
            frozenset(),
            f"Databricks Runtime {runtime} does not support it (added in 13.3 LTS)",
        )
    if compute.photon:
        return ResolvedByRow(
            CHANGE_OPERATIONS, f"Databricks Runtime {runtime} with Photon supports it"
        )
    return ResolvedByRow(
        frozenset({Operation.DELETE}),
        f"up to Databricks Runtime 14.1, only DELETE supports it without Photon, which "
        f"{_photon(compute)}",
    )


def _photon(compute: Compute) -> str:
    return "the compute lacks" if compute.photon is False else "the compute is not known to have"


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


def matrix_level(engine: MatrixEngine, isolation: Isolation) -> IsolationLevel:
    """Return a table's level on an engine; the default for a level that no table may declare."""
    effective = isolation.effective[WriterEngine(engine)]
    if effective is None or effective not in DECLARABLE_LEVELS:
        return default_level(engine)
    return effective


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
