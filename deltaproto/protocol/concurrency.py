"""Row-level concurrency on Databricks: can writers of different rows of one file coexist?

Source: the Databricks page "Isolation levels and write conflicts", its sections on row-level
concurrency, its limitations, and its preview behaviour. Row-level concurrency exists on Databricks
alone; the other engines detect conflicts by file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.protocol.layers import FeatureState


class Answer(StrEnum):
    """The answer for a runtime that is not known: yes means from 14.2 on."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RowLevelConcurrency(NamedTuple):
    """Whether Databricks resolves conflicts by row on the table, and why."""

    databricks: Answer
    reason: str
    liquid: bool | None = False
    """liquid-clustered, which has it in earlier runtimes; None: the reader does not show it"""


def row_level_concurrency(
    features: tuple[FeatureState, ...],
    partition_columns: tuple[str, ...],
    clustering_columns: tuple[str, ...] | None,
) -> RowLevelConcurrency:
    """The answer for one table from its layout and features."""
    by_name = {state.name: state for state in features}
    identity = by_name.get("identityColumns")
    if identity is not None and identity.enabled:
        return RowLevelConcurrency(
            Answer.NO, "tables with identity columns support no concurrent transactions"
        )
    if partition_columns:
        return RowLevelConcurrency(Answer.NO, "partitioned tables have none")
    vectors = by_name.get("deletionVectors")
    if vectors is None or vectors.enabled is False:
        return RowLevelConcurrency(Answer.NO, "it needs deletion vectors, which are not enabled")
    if vectors.enabled is None or (identity is not None and identity.enabled is None):
        return RowLevelConcurrency(Answer.UNKNOWN, "this reader does not show all that decides it")
    clustering = by_name.get("clustering")
    if clustering_columns is None and clustering is not None:
        return RowLevelConcurrency(
            Answer.YES,
            "deletion vectors and no partitions: since Databricks Runtime 13.3 LTS if the table is "
            "liquid-clustered, which this reader does not show, else since 14.2",
            liquid=None,
        )
    if clustering_columns:
        return RowLevelConcurrency(
            Answer.YES,
            "liquid clustering with deletion vectors: since Databricks Runtime 13.3 LTS",
            liquid=True,
        )
    return RowLevelConcurrency(
        Answer.YES,
        "deletion vectors and no partitions: since Databricks Runtime 14.2",
    )
