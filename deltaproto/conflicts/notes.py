"""What holds for a whole matrix, not for one cell: warnings, and advice for a table's layout.

Sources: the Databricks page "Isolation levels and write conflicts" (row-level concurrency, its
limitations and preview; WriteSerializable against history; partitions); Delta Spark's
`DeltaConfigs.ISOLATION_LEVEL`; delta-io/delta-rs#3665 (open) for what is said of delta-rs.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.conflicts import delta_rs
from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.releases import ENFORCE
from deltaproto.protocol.databricks_runtime import Runtime
from deltaproto.protocol.isolation import IsolationLevel


def notes(
    engine: MatrixEngine,
    level: IsolationLevel,
    *,
    row_level: bool,
    identity: bool | None,
    runtime: Runtime | None = None,
) -> tuple[str, ...]:
    """What a reader of the matrix has to know besides its cells."""
    found = [*_of_engine(engine), *_of_level(level, engine)]
    if engine is MatrixEngine.DATABRICKS:
        found += _of_rows(runtime) if row_level else _NO_ROW_LEVEL
    if engine is MatrixEngine.DELTA_RS:
        pass  # It writes no identity values: it refuses such tables.
    elif identity:
        found.append(_IDENTITY[engine])
    elif identity is None:
        found.append(
            "It is not known whether the table has identity columns. If it has: "
            f"{_IDENTITY[engine]}"
        )
    found.append(_DELTA_RS)
    return tuple(found)


def advice(
    engine: MatrixEngine,
    partition_columns: Sequence[str],
    *,
    row_level: bool,
    identity: bool = False,
) -> tuple[str, ...]:
    """How writers of a table with this layout keep out of each other's way."""
    if identity and engine is MatrixEngine.DATABRICKS:
        return (
            "Let jobs write one after the other: tables with identity columns support no "
            "concurrent transactions, and neither deletion vectors nor partitions change that. Or "
            "make the keys without an identity column.",
        )
    if partition_columns:
        names = [f"`{name.replace('`', '``')}`" for name in partition_columns]
        literals = " AND ".join(f"target.{name} = <literal>" for name in names)
        return (
            f"Let jobs that run together name different values of {', '.join(names)}, the "
            "partition columns, as literals in the condition of their UPDATE, DELETE or MERGE.",
            f"Add to the ON condition of each MERGE: {literals}. Equality with the source's "
            "columns alone may read every partition.",
        )
    if engine is MatrixEngine.DELTA_RS:
        return (
            "Give each UPDATE, DELETE and MERGE a predicate by whose columns the files differ: "
            "delta-rs compares it with the statistics of files. MERGE reads the whole table all "
            f"the same, so run it alone. {_CARDINALITY}",
        )
    if engine is MatrixEngine.DELTA_SPARK:
        return (
            "The table is not partitioned, so for Delta Spark every file that another transaction "
            "adds is one that an UPDATE, DELETE or MERGE reads. Run these one after the other, or "
            f"partition the table by what they filter on. {_CARDINALITY}",
        )
    if row_level:
        return ("Let jobs that run together change different rows; predicates need no partition.",)
    return (
        "Enable deletion vectors, with or without liquid clustering, so that Databricks resolves "
        f"conflicts by row; or partition the table by what its jobs filter on. {_CARDINALITY}",
    )


def _of_engine(engine: MatrixEngine) -> list[str]:
    if engine is MatrixEngine.DATABRICKS:
        return [
            "The documented matrix is symmetric: it speaks of pairs, whichever commits last.",
            "A metadata change also stops streaming reads of the table; restart them.",
        ]
    if engine is MatrixEngine.DELTA_RS:
        return [*_OF_DELTA_RS]
    return [
        "The operation commits last and may lose; what it is set against was committed meanwhile "
        "and is not disturbed.",
        "The loser's own release of Delta Spark decides which changes it survives: the cells show "
        "since when it does, with default settings. From 4.2 on, a loser whose session sets "
        f"{ENFORCE} to true is also aborted by most added features.",
        "A streaming read of the table goes on when a property is set or a feature enabled or "
        "added, and after DROP FEATURE deletionVectors. An added column stops it once. A renamed "
        "or dropped column, or DROP FEATURE columnMapping, ends it for good.",
        "With schemaTrackingLocation it stops at every one of these but plain properties, and goes "
        "on after a restart (two after DROP FEATURE deletionVectors or columnMapping); renamed and "
        "dropped columns also need spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop "
        "= always.",
    ]


def _of_rows(runtime: Runtime | None) -> list[str]:
    return [*(() if runtime is not None else _BY_RUNTIME), *_ROW_LEVEL]


def _of_level(level: IsolationLevel, engine: MatrixEngine) -> list[str]:
    if engine is MatrixEngine.DELTA_RS:
        return []
    if level is IsolationLevel.WRITE_SERIALIZABLE:
        return [
            "Under WriteSerializable history and content may disagree: transactions may take "
            "effect in another order than the history shows, and readers may see a state that "
            "never was in the log."
        ]
    return ["Under Serializable even blind appends can make other transactions fail."]


_CARDINALITY = "Partitioning by a column with very many values harms performance."
_BY_RUNTIME = (
    "Row-level concurrency needs Databricks Runtime 14.2 or later. On 14.0 and 14.1 tables with "
    "deletion vectors need the setting spark.databricks.delta.rowLevelConcurrencyPreview = true; "
    "liquid-clustered tables have it since 13.3 LTS; up to 14.1 without Photon only DELETE has it.",
    "On 14.2 a MERGE needs Photon and an explicit predicate on the target that filters the rows "
    "matched with the source; from 14.3 LTS on it needs neither.",
    "--runtime answers for one Databricks Runtime.",
)
_ROW_LEVEL = (
    "Commands with conditions on struct, array or map columns, with non-deterministic expressions "
    "and subqueries, or with correlated subqueries are judged as without row-level concurrency.",
    "Detecting conflicts by row costs run time, and with many transactions at once the writer "
    "may prefer to fail early. All limitations of deletion vectors apply.",
)
_NO_ROW_LEVEL = (
    "Partitioned tables, tables without deletion vectors and most tables on runtimes below 14.2 "
    "have no row-level concurrency. --row-level-concurrency on shows the matrix with it.",
)
_IDENTITY = {
    MatrixEngine.DATABRICKS: "Tables with identity columns support no concurrent transactions.",
    MatrixEngine.DELTA_SPARK: (
        "An identity column's counter is metadata, so that two transactions which make identity "
        "values conflict."
    ),
}
_OF_DELTA_RS = (
    "The operation commits last and may lose; what it is set against was committed meanwhile, by "
    "any engine, and is not disturbed.",
    f"In Python every conflict is {delta_rs.PYTHON}; the name in the cell is that of delta-rs's "
    "own error. A conflict that deltalake raises leaves the table as it was: run the loser again.",
    "delta-rs reads delta.isolationLevel in camel case only (writeSerializable), so that a table "
    "which Databricks sets to WriteSerializable is Serializable for it.",
    "An overwrite counts as DELETE, with its predicate or without. VACUUM, repair and reading "
    "never conflict. A table that is created in mode overwrite is never checked.",
    "Two commits can still collide on stores without conditional writes: on S3 set up a locking "
    "provider, or no conflict is seen at all.",
)
_DELTA_RS = (
    "delta-rs and other engines follow rules of their own: pause their writers before a metadata "
    "or protocol change, and do not count on them to fail (delta-io/delta-rs#3665)."
)
