"""Parse the parts of a query to the conflict matrix. `flag` is an argument's name in errors."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.conflicts import delta_rs, exceptions, operation
from deltaproto.conflicts.matrix import MatrixEngine
from deltaproto.conflicts.operation import ExceptionName, ExceptionRecord, Operation
from deltaproto.conflicts.row_level import Compute
from deltaproto.errors import UsageError
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.isolation import DECLARABLE_LEVELS, IsolationLevel


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
    found, near = exceptions.find_exception(text)
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
