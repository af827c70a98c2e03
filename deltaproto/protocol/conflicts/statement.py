"""What a pending statement counts as in the conflict matrices, and what to add to it.

Source: the Databricks page "Isolation levels and write conflicts": blind appends, limitations of
row-level concurrency, metadata changes, and literal predicates on partition columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deltaproto.protocol.conflicts.by_row import Compute
from deltaproto.protocol.conflicts.operation import CHANGES, Operation
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.runtime import Runtime

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
