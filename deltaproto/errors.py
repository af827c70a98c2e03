"""The errors shown to users, and the process's exit codes.

Every expected failure is a `DeltaprotoError`: a one-line cause, a hint, and a stable code
for programs. Any other exception is reported as an internal error.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Any

from deltaproto.redaction import redact_addresses_in


class ExitCode(IntEnum):
    """Exit codes of every command (see docs/manual/exit-codes.md)."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    UNREADABLE = 3
    STALE = 4
    FAILED = 5
    CHANGES = 10

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
    """An expected failure: `message` is a one-line cause, `hint` the next action."""

    exit_code = ExitCode.USAGE
    code: str = "usage"

    def __init__(self, message: str, hint: str = "") -> None:
        # Messages quote files, addresses and engines, whose texts may contain credentials.
        self.message = redact_addresses_in(message)
        self.hint = redact_addresses_in(hint)
        super().__init__(self.message)

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

    def __init__(self, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


def no_tables_error(source: str) -> TableError:
    """Return the error for a source (folder, file, list, inventory) without tables."""
    return TableError(
        ErrorCode.NO_TABLES,
        f"no tables found in {source}",
        "check the path and the patterns; pass --allow-empty if an empty result is expected",
    )


class EngineError(TableError):
    """An engine (Spark, Java, delta-rs) that is missing or fails to start. Exit code 3."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(ErrorCode.ENGINE, message, hint)


class SavedError(TableError):
    """A table that could not be read when its inspection was saved."""

    def __init__(self, table: str, code: ErrorCode, message: str, hint: str) -> None:
        super().__init__(code, message, hint)
        self.table = table
