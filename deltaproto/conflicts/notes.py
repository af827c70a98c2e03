"""Notes on a whole matrix: warnings, and advice for a table's layout.

Sources: the Databricks page "Isolation levels and write conflicts" (row-level concurrency, its
limitations and preview; WriteSerializable against history; partitions); Delta Spark's
`DeltaConfigs.ISOLATION_LEVEL`; delta-io/delta-rs#3665 (open) for delta-rs.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.conflicts import delta_rs
from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.releases import ENFORCE_ENABLEMENT_SETTING
from deltaproto.protocol.databricks_runtime import Runtime
from deltaproto.protocol.isolation import IsolationLevel


def matrix_notes(
    engine: MatrixEngine,
    level: IsolationLevel,
    *,
    row_level: bool,
    identity: bool | None,
    runtime: Runtime | None = None,
) -> tuple[str, ...]:
    """Return notes that apply to the whole matrix."""
    found = [*_engine_notes(engine), *_isolation_notes(level, engine)]
    if engine is MatrixEngine.DATABRICKS:
        found += _row_level_notes(runtime) if row_level else _NO_ROW_LEVEL
    if engine is MatrixEngine.DELTA_RS:
        pass  # delta-rs refuses tables with identity columns, so it writes no identity values.
    elif identity:
        found.append(_IDENTITY[engine])
    elif identity is None:
        found.append(
            f"It is unknown whether the table has identity columns. If it does: {_IDENTITY[engine]}"
        )
    found.append(_DELTA_RS)
    return tuple(found)


def layout_advice(
    engine: MatrixEngine,
    partition_columns: Sequence[str],
    *,
    row_level: bool,
    identity: bool = False,
) -> tuple[str, ...]:
    """Return advice for avoiding conflicts on a table with this layout."""
    if identity and engine is MatrixEngine.DATABRICKS:
        return (
            "Run jobs that write one at a time: tables with identity columns support no "
            "concurrent transactions, and deletion vectors or partitions do not change that. Or "
            "generate the keys without an identity column.",
        )
    if partition_columns:
        names = [f"`{name.replace('`', '``')}`" for name in partition_columns]
        literals = " AND ".join(f"target.{name} = <literal>" for name in names)
        return (
            f"Concurrent jobs should use different literal values of {', '.join(names)}, the "
            "partition columns, in the condition of their UPDATE, DELETE or MERGE.",
            f"Add to the ON condition of each MERGE: {literals}. Equality with source columns "
            "alone may read every partition.",
        )
    if engine is MatrixEngine.DELTA_RS:
        return (
            "Give each UPDATE, DELETE and MERGE a predicate on columns by which the files differ: "
            "delta-rs compares it with the file statistics. MERGE reads the whole table anyway, so "
            f"run it alone. {_CARDINALITY}",
        )
    if engine is MatrixEngine.DELTA_SPARK:
        return (
            "The table is not partitioned, so in Delta Spark an UPDATE, DELETE or MERGE reads "
            "every file that another transaction adds. Run these one at a time, or "
            f"partition the table by the columns they filter on. {_CARDINALITY}",
        )
    if row_level:
        return ("Concurrent jobs should change different rows; predicates need no partition.",)
    return (
        "Enable deletion vectors, with or without liquid clustering, so that Databricks resolves "
        f"conflicts by row; or partition the table by what its jobs filter on. {_CARDINALITY}",
    )


def _engine_notes(engine: MatrixEngine) -> list[str]:
    if engine is MatrixEngine.DATABRICKS:
        return [
            "The documented matrix is symmetric: it describes pairs in any commit order.",
            "A metadata change also stops streaming reads of the table; restart them.",
        ]
    if engine is MatrixEngine.DELTA_RS:
        return [*_OF_DELTA_RS]
    return [
        "The operation commits last and may lose; the other operation was committed concurrently "
        "and is not affected.",
        "The loser's own Delta Spark release decides which changes it survives: the cells show the "
        "first such release, with default settings. From 4.2 on, a loser whose session sets "
        f"{ENFORCE_ENABLEMENT_SETTING} to true is also aborted by most added features.",
        "A streaming read of the table continues after setting a property, enabling or adding a "
        "feature, and DROP FEATURE deletionVectors. An added column stops it once. A renamed or "
        "dropped column, or DROP FEATURE columnMapping, breaks it permanently.",
        "With schemaTrackingLocation it stops at all of these except plain properties, and "
        "continues after a restart (two after DROP FEATURE deletionVectors or columnMapping); "
        "renamed and dropped columns also require spark.databricks.delta.streaming."
        "allowSourceColumnRenameAndDrop = always.",
    ]


def _row_level_notes(runtime: Runtime | None) -> list[str]:
    return [*(() if runtime is not None else _BY_RUNTIME), *_ROW_LEVEL]


def _isolation_notes(level: IsolationLevel, engine: MatrixEngine) -> list[str]:
    if engine is MatrixEngine.DELTA_RS:
        return []
    if level is IsolationLevel.WRITE_SERIALIZABLE:
        return [
            "Under WriteSerializable, history and content may disagree: transactions may take "
            "effect in a different order than in the history, and readers may see a state that "
            "was never in the log."
        ]
    return ["Under Serializable, even blind appends can make other transactions fail."]


_CARDINALITY = "Partitioning by a column with many distinct values hurts performance."
_BY_RUNTIME = (
    "Row-level concurrency requires Databricks Runtime 14.2 or later. On 14.0 and 14.1, tables "
    "with deletion vectors require spark.databricks.delta.rowLevelConcurrencyPreview = true; "
    "liquid-clustered tables support it since 13.3 LTS. Without Photon, only DELETE up to 14.1.",
    "On 14.2 a MERGE requires Photon and an explicit predicate on the target that filters the rows "
    "matched with the source; from 14.3 LTS on it requires neither.",
    "Use --runtime for a specific Databricks Runtime.",
)
_ROW_LEVEL = (
    "Commands with conditions on struct, array or map columns, with non-deterministic expressions "
    "and subqueries, or with correlated subqueries are evaluated without row-level concurrency.",
    "Row-level conflict detection costs run time, and with many concurrent transactions the "
    "writer may fail early. All limitations of deletion vectors apply.",
)
_NO_ROW_LEVEL = (
    "Partitioned tables, tables without deletion vectors and most tables on runtimes below 14.2 "
    "have no row-level concurrency. Use --row-level-concurrency on to see the matrix with it.",
)
_IDENTITY = {
    MatrixEngine.DATABRICKS: "Tables with identity columns support no concurrent transactions.",
    MatrixEngine.DELTA_SPARK: (
        "An identity column's counter is metadata, so two transactions that generate identity "
        "values conflict."
    ),
}
_OF_DELTA_RS = (
    "The operation commits last and may lose; the other operation was committed concurrently by "
    "any engine and is not affected.",
    f"In Python, every conflict is {delta_rs.PYTHON}; the name in the cell is delta-rs's own "
    "error. A conflict that deltalake raises does not change the table: run the loser again.",
    "delta-rs reads delta.isolationLevel only in camel case (writeSerializable), so it treats a "
    "table that Databricks sets to WriteSerializable as Serializable.",
    "An overwrite counts as DELETE, with or without its predicate. VACUUM, repair and reads "
    "never conflict. Creating a table in overwrite mode is never checked.",
    "Two commits can still collide on stores without conditional writes: on S3, set up a locking "
    "provider; otherwise no conflict is detected.",
)
_DELTA_RS = (
    "delta-rs and other engines follow different rules: pause their writers before a metadata "
    "or protocol change, and do not rely on them to fail (delta-io/delta-rs#3665)."
)
