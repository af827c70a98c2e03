"""Operations that a Databricks compute resolves by row, if the table allows it.

Source: the Databricks page "Isolation levels and write conflicts", its sections on row-level
concurrency, its limitations, and its preview behavior.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.conflicts.operation import CHANGE_OPERATIONS, Operation
from deltaproto.protocol.databricks_runtime import Runtime

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
