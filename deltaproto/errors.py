"""The errors shown to users, and the process's exit codes.

Every expected failure is a `DeltaprotoError`: a one-line cause, a hint, and a stable code
for programs. Any other exception is reported as an internal error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import Any

from deltaproto.redaction import redact_addresses_in

MAX_QUOTED = 60
"""most characters of a quoted text in messages"""


def is_debugged(words: Sequence[str]) -> bool:
    """Return True if a command line, or the variable of its option, turns on `--debug`."""
    stored = os.environ.get("DELTAPROTO_DEBUG", "")
    return "--debug" in words or stored.lower() in ("1", "true", "t", "yes", "y", "on")


def quote_short(text: str) -> str:
    """Quote `text` for a message, on one line and shortened."""
    import json

    short = text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
    return f'"{short}"' if short.isprintable() else json.dumps(short)


class ExitCode(IntEnum):
    """Exit codes of every command (see docs/manual/exit-codes.md)."""

    OK = 0
    """done; no finding at or above `--fail-on`"""
    FINDINGS = 1
    """findings, or a blocked plan"""
    USAGE = 2
    """an invalid argument or configuration"""
    UNREADABLE = 3
    """a table or engine could not be read"""
    STALE = 4
    """the table changed since the plan; nothing was changed"""
    FAILED = 5
    """a step failed: part of the plan may be applied"""
    CHANGES = 10
    """with `--detailed-exitcode`: changes are pending"""

    @staticmethod
    def worst(codes: Iterable[ExitCode]) -> ExitCode:
        """Return the exit code of a batch: the first of 5, 4, 2, 3, 1, 10, 0 that occurs."""
        return min(codes, key=_WORST_FIRST.index, default=ExitCode.OK)


_WORST_FIRST = (
    ExitCode.FAILED,
    ExitCode.STALE,
    ExitCode.USAGE,
    ExitCode.UNREADABLE,
    ExitCode.FINDINGS,
    ExitCode.CHANGES,
    ExitCode.OK,
)


class ErrorCode(StrEnum):
    """Why a table has no result; the `error.code` of the JSON output."""

    NOT_FOUND = "not-found"
    NOT_A_DELTA_TABLE = "not-a-delta-table"
    CORRUPT_LOG = "corrupt-log"
    PERMISSION_DENIED = "permission-denied"
    UNSUPPORTED_PROTOCOL = "unsupported-protocol"
    CATALOG_MANAGED = "catalog-managed"
    TIMEOUT = "timeout"
    STORAGE = "storage"
    ENGINE = "engine-unavailable"
    NO_TABLES = "no-tables"
    INTERNAL = "internal"


class DeltaprotoError(Exception):
    """An expected failure. `str(error)` is the message, and the hint on a line of its own."""

    exit_code: ExitCode = ExitCode.USAGE
    """the exit code of the commands for this failure"""
    code: str = "usage"
    """a stable name of the reason, as in the commands' JSON"""
    message: str
    """the cause, in one line"""
    hint: str
    """the next action, in one line; may be empty"""
    lines: tuple[str, ...] = ()
    """one line for each error that `message` joins; empty for a single one"""

    def __init__(self, message: str, hint: str = "") -> None:
        # Messages quote files, addresses and engine errors, which may contain credentials.
        self.message = redact_addresses_in(message)
        self.hint = redact_addresses_in(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are pickled by executors; subclasses take other arguments than `args`.
        return _restore_error, (type(self), self.args, self.__dict__)


def _restore_error(
    kind: type[DeltaprotoError], args: tuple[Any, ...], members: dict[str, Any]
) -> DeltaprotoError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(members)
    return error


class UsageError(DeltaprotoError):
    """An invalid flag, argument or configuration. Exit code 2."""


class TableError(DeltaprotoError):
    """A table that cannot be read. Exit code 3. Never stops the other tables of a batch."""

    exit_code = ExitCode.UNREADABLE

    final = False
    """True: the same request always fails, although errors with this code are often transient"""

    def __init__(self, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def no_tables_error(source: str, check: str = "the path and the patterns") -> TableError:
    """Return the error for a source (folder, file, list, inventory, catalog) without tables.

    Args:
        check: what the hint says to check.
    """
    return TableError(
        ErrorCode.NO_TABLES,
        f"no tables found in {source}",
        f"check {check}; pass --allow-empty if an empty result is expected",
    )


class EngineError(TableError):
    """An engine (Spark, Java, delta-rs) that is missing or fails to start. Exit code 3."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(ErrorCode.ENGINE, message, hint)


class ResultError(DeltaprotoError):
    """A result that is not ok: raised by `raise_for_status()`.

    The exit code is that of the command with the same result.
    """

    code = "not-ok"
    result: Any
    """the result"""

    def __init__(self, result: object, exit_code: ExitCode, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.result = result
        self.exit_code = exit_code


class SavedError(TableError):
    """A table that could not be read when its inspection was saved."""

    def __init__(self, table: str, code: ErrorCode, message: str, hint: str) -> None:
        super().__init__(code, message, hint)
        self.table = table
