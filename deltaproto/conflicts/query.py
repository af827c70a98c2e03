"""A question to the conflict matrix: a pending statement, or a pair of operations."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.operation import CHANGES, ExceptionRecord, Operation
from deltaproto.conflicts.row_level import Compute
from deltaproto.protocol.databricks_runtime import Runtime
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.protocol.protocol import Protocol

_STRICT = Runtime(14, 2)


class Condition(NamedTuple):
    """What the condition of an UPDATE, DELETE or MERGE says about the target."""

    target: str | None
    """the alias or name to write before the target's columns; None for bare columns"""
    literals: frozenset[str]
    """the target's columns, casefolded, that it compares with literals in every case"""
    columns: frozenset[str] = frozenset()
    """every column that it uses, casefolded"""


class Versions(NamedTuple):
    """The protocol versions that a statement sets; None: it does not set that one."""

    reader: int | None
    writer: int | None

    def raises(self, protocol: Protocol) -> bool:
        """Whether one of them is higher than the protocol's."""
        reader, writer = protocol.min_reader_version, protocol.min_writer_version
        return (self.reader or 0) > reader or (self.writer or 0) > writer


class Classification(NamedTuple):
    """A statement as the matrices see it."""

    operation: Operation | None
    """None when it is not understood, or takes no part in conflicts"""
    understood: bool
    blind_append: bool | None = None
    """None for what adds no rows, and when not understood"""
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """why Databricks compares files, not rows; empty when nothing rules rows out"""
    condition: Condition | None = None
    versions: Versions | None = None
    """the protocol versions that it sets, if it changes the protocol by nothing else"""

    def on(self, protocol: Protocol) -> Classification:
        """As it counts on a table with this protocol."""
        if self.versions is None or self.versions.raises(protocol):
            return self
        return self._replace(
            operation=Operation.METADATA_CHANGE,
            reasons=(
                "It sets protocol versions that the table has already, or that are lower: the "
                "protocol stays, and the statement stores the metadata again.",
            ),
        )


def not_understood(*reasons: str) -> Classification:
    """Nothing is claimed about the statement."""
    return Classification(None, understood=False, reasons=reasons)


def needed_by_merge(classification: Classification, compute: Compute) -> tuple[str, ...]:
    """What a MERGE needs on this compute, up to 14.2, to be compared by rows."""
    runtime = compute.runtime
    if classification.operation is not Operation.MERGE:
        return ()
    if runtime is not None and (runtime > _STRICT or compute.photon):
        return needs_predicate(classification, runtime)
    if runtime is not None and runtime < _STRICT:
        return ("Up to Databricks Runtime 14.1 row-level resolution of a MERGE needs Photon.",)
    needed = "On Databricks Runtime 14.2 row-level resolution of a MERGE needs Photon"
    if needs_predicate(classification, _STRICT):
        needed += " and an explicit predicate on the target, which this one lacks"
    return (f"{needed}; from 14.3 LTS on it is not needed.",)


def needs_predicate(classification: Classification, runtime: Runtime | None) -> tuple[str, ...]:
    """Why a MERGE is compared by files on 14.2; empty on other runtimes, and when it is not."""
    condition = classification.condition
    if runtime != _STRICT or classification.operation is not Operation.MERGE:
        return ()
    if condition is None or condition.literals:
        return ()
    return (
        "On Databricks Runtime 14.2 row-level resolution of a MERGE needs an explicit predicate "
        "on the target, which this one lacks.",
    )


def predicates(classification: Classification, partition_columns: Sequence[str]) -> tuple[str, ...]:
    """The literal predicates that this statement lacks on the table's partition columns."""
    condition = classification.condition
    if condition is None or classification.operation not in CHANGES:
        return ()
    prefix = "" if condition.target is None else f"{_quoted(condition.target)}."
    missing = [c for c in partition_columns if c.casefold() not in condition.literals]
    if not missing:
        return ()
    text = " ".join(f"AND {prefix}{_quoted(column)} = '<value>'" for column in missing)
    where = "its ON condition" if classification.operation is Operation.MERGE else "its condition"
    return (f"Add to {where}: {text}",)


def _quoted(name: str) -> str:
    plain = name.isascii() and name.isidentifier()
    return name if plain else f"`{name.replace('`', '``')}`"


class RowLevel(StrEnum):
    """What `--row-level-concurrency` takes; `auto` is the table's, and off without a table."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class PendingStatement(NamedTuple):
    """A pending statement, and what it counts as."""

    sql: str
    classification: Classification


class Question(NamedTuple):
    """What is asked of the matrix. An operation of None stands for all."""

    engine: MatrixEngine = MatrixEngine.DATABRICKS
    release: str | None = None
    """of deltalake; None: the newest that is known, or another engine"""
    isolation: IsolationLevel | None = None
    """None: the table's, or else the engine's default"""
    row_level: RowLevel = RowLevel.AUTO
    compute: Compute = Compute()
    """the Databricks compute that writes, as far as it is known"""
    operation: Operation | None = None
    against: Operation | None = None
    exception: ExceptionRecord | None = None
    """only cells that may raise it"""
    statement: PendingStatement | None = None
    """only cells of this statement's operation, which `operation` must not contradict"""
