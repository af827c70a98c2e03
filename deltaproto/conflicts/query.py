"""A query to the conflict matrix: a pending statement, or a pair of operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.conflicts import delta_rs, operation
from deltaproto.conflicts.matrix import Compute, MatrixEngine
from deltaproto.conflicts.operation import (
    CHANGE_OPERATIONS,
    ExceptionName,
    ExceptionRecord,
    Operation,
)
from deltaproto.errors import UsageError
from deltaproto.protocol.databricks_runtime import Runtime, parse_runtime
from deltaproto.protocol.isolation import DECLARABLE_LEVELS, IsolationLevel
from deltaproto.protocol.protocol import Protocol

_STRICT = Runtime(14, 2)


class Condition(NamedTuple):
    """How the condition of an UPDATE, DELETE or MERGE restricts the target."""

    target: str | None
    """alias or name that qualifies the target's columns; None for unqualified columns"""
    literals: frozenset[str]
    """target columns, casefolded, that it always compares with literals"""
    columns: frozenset[str] = frozenset()
    """all columns that it uses, casefolded"""


class RequestedVersions(NamedTuple):
    """The protocol versions that a statement sets; None: not set."""

    reader: int | None
    writer: int | None

    def raises(self, protocol: Protocol) -> bool:
        """Return True if one of the versions is higher than the protocol's."""
        reader, writer = protocol.versions
        return (self.reader or 0) > reader or (self.writer or 0) > writer


class Classification(NamedTuple):
    """A statement's classification in the matrices."""

    operation: Operation | None
    """None if it is not understood or has no conflicts"""
    understood: bool
    blind_append: bool | None = None
    """None if it adds no rows or is not understood"""
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """why Databricks compares files instead of rows; empty if rows can be compared"""
    condition: Condition | None = None
    versions: RequestedVersions | None = None
    """the protocol versions that it sets, if it changes the protocol in no other way"""

    def for_protocol(self, protocol: Protocol) -> Classification:
        """Return the classification on a table with this protocol."""
        if self.versions is None or self.versions.raises(protocol):
            return self
        return self._replace(
            operation=Operation.METADATA_CHANGE,
            reasons=(
                "It sets protocol versions that the table already has, or lower ones: the protocol "
                "does not change, and the statement stores the metadata again.",
            ),
        )


def unknown_classification(*reasons: str) -> Classification:
    """Return the classification of a statement that is not understood."""
    return Classification(None, understood=False, reasons=reasons)


def merge_requirements(classification: Classification, compute: Compute) -> tuple[str, ...]:
    """Return what a MERGE needs for row-level resolution on this compute, up to 14.2."""
    runtime = compute.runtime
    if classification.operation is not Operation.MERGE:
        return ()
    if runtime is not None and (runtime > _STRICT or compute.photon):
        return why_predicate_needed(classification, runtime)
    if runtime is not None and runtime < _STRICT:
        return ("Up to Databricks Runtime 14.1, row-level resolution of MERGE requires Photon.",)
    needed = "On Databricks Runtime 14.2, row-level resolution of MERGE requires Photon"
    if why_predicate_needed(classification, _STRICT):
        needed += " and an explicit predicate on the target, which this statement lacks"
    return (f"{needed}; from 14.3 LTS on this is not required.",)


def why_predicate_needed(
    classification: Classification, runtime: Runtime | None
) -> tuple[str, ...]:
    """Return why a MERGE is compared by files on 14.2; empty otherwise."""
    condition = classification.condition
    if runtime != _STRICT or classification.operation is not Operation.MERGE:
        return ()
    if condition is None or condition.literals:
        return ()
    return (
        "On Databricks Runtime 14.2, row-level resolution of MERGE requires an explicit predicate "
        "on the target, which this statement lacks.",
    )


def missing_predicates(
    classification: Classification, partition_columns: Sequence[str]
) -> tuple[str, ...]:
    """Suggest the literal predicates on partition columns that this statement lacks."""
    condition = classification.condition
    if condition is None or classification.operation not in CHANGE_OPERATIONS:
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
    """Values of `--row-level-concurrency`; `auto`: as the table, or off without a table."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class PendingStatement(NamedTuple):
    """A pending statement and its classification."""

    sql: str
    classification: Classification


class MatrixQuery(NamedTuple):
    """The query. An operation of None means all operations."""

    engine: MatrixEngine = MatrixEngine.DATABRICKS
    release: str | None = None
    """deltalake version; None: the newest known one, or another engine"""
    isolation: IsolationLevel | None = None
    """None: the table's level, or the engine's default"""
    row_level: RowLevel = RowLevel.AUTO
    compute: Compute = Compute()
    """what is known about the writing Databricks compute"""
    operation: Operation | None = None
    against: Operation | None = None
    exception: ExceptionRecord | None = None
    """only cells that may raise this exception"""
    statement: PendingStatement | None = None
    """only cells of this statement's operation; must not contradict `operation`"""


def parse_engine(text: str, flag: str) -> tuple[MatrixEngine, str | None]:
    """Parse an engine with an optional release; `flag` is the name of the argument in errors.

    Raises:
        UsageError: for an unknown engine, or a version of an engine without a matrix per release.
    """
    name, at, version = text.strip().partition("@")
    known = {str(engine): engine for engine in MatrixEngine}
    if (engine := known.get(name.casefold())) is None:
        import difflib

        near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.5)
        raise UsageError(
            f'{flag}: unknown engine "{name}"', _suggestion_hint(tuple(near), MatrixEngine)
        )
    if not at:
        return engine, None
    if engine is not MatrixEngine.DELTA_RS:
        hint = {
            MatrixEngine.DATABRICKS: f"give the runtime with {flag.replace('engine', 'runtime')}",
            MatrixEngine.DELTA_SPARK: "leave it out: the cells name the first release in which "
            "the operation no longer fails",
        }[engine]
        raise UsageError(f"{flag}: {engine} takes no version", hint)
    release = delta_rs.parse_release(version)
    if release is None or release < delta_rs.OLDEST:
        oldest = ".".join(map(str, delta_rs.OLDEST))
        raise UsageError(
            f'{flag}: "{version}" is not a version of deltalake from {oldest} on',
            f"for example {flag} delta-rs@0.25.5",
        )
    return engine, version


def parse_operation(text: str | None, flag: str) -> Operation | None:
    """Parse an operation; None for None. Raises UsageError for an unknown one."""
    if text is None:
        return None
    found, near = operation.find_operation(text)
    if found is None:
        raise UsageError(f'{flag}: unknown operation "{text}"', _suggestion_hint(near, Operation))
    return found


def parse_compute(
    runtime: str | None, photon: bool | None, preview: bool | None, flag: str
) -> Compute:
    """Return what is known about the writing compute.

    Args:
        preview: the setting of the row-level preview; None: not set.
        flag: the name of the argument `runtime` in errors.

    Raises:
        UsageError: for text that is not a runtime, or that contradicts `photon`.
    """
    if runtime is None:
        return Compute(None, photon, preview)
    named = parse_runtime(runtime)
    if named is None:
        raise UsageError(
            f"{flag}: {runtime} is not a Databricks Runtime", f"for example {flag} 14.3"
        )
    if named.photon and photon is False:
        raise UsageError(
            f"{flag} {runtime} has Photon, which contradicts "
            f"{flag.replace('runtime', 'photon')} off",
            "leave one of them out",
        )
    return Compute(named.runtime, named.photon or photon, preview)


def parse_exception(text: str | None, flag: str) -> ExceptionRecord | None:
    """Parse an exception's name; None for None. Raises UsageError for an unknown one."""
    if text is None:
        return None
    from deltaproto.conflicts.exceptions import find_exception

    found, near = find_exception(text)
    if found is None and text.rpartition(".")[2] == delta_rs.PYTHON.rpartition(".")[2]:
        raise UsageError(
            f"{flag}: deltalake raises {text} for every conflict",
            "pass its message, or one of " + ", ".join(delta_rs.VARIANTS.values()),
        )
    if found is None:
        raise UsageError(
            f"{flag}: no conflict raises {text}", _suggestion_hint(near, ExceptionName)
        )
    return found


def parse_isolation_level(text: str | None, flag: str) -> IsolationLevel | None:
    """Parse a level that tables can declare; None for None. Raises UsageError otherwise."""
    if text is None:
        return None
    named = {level.casefold(): level for level in DECLARABLE_LEVELS}
    wanted = "".join(character for character in text.casefold() if character.isalnum())
    if wanted not in named:
        import difflib

        near = difflib.get_close_matches(wanted, named, n=1, cutoff=0.5)
        raise UsageError(
            f"{flag}: a table cannot declare {text}",
            _suggestion_hint(tuple(str(named[key]) for key in near), DECLARABLE_LEVELS),
        )
    return named[wanted]


def _suggestion_hint(near: tuple[str, ...], every: Iterable[str]) -> str:
    return f"did you mean {', '.join(near)}?" if near else f"one of {', '.join(every)}"
