"""The append-only audit log: who ran which statement on which table, with which result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltaproto.errors import UsageError
from deltaproto.execution import append_log
from deltaproto.identity import current_actor

_MODE = 0o640


class AuditLog:
    """Appends one line per statement, without credentials.

    Raises:
        UsageError: when the file cannot be written.
    """

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        self._path, self._redact = path, redact
        try:
            self._file = append_log.open_for_append(Path(path), _MODE)
        except OSError as error:
            raise UsageError(
                f"cannot write the audit log {path}: {error.strerror}",
                "pass a writable file with --audit; nothing was changed",
            ) from None

    def add(self, **members: Any) -> str | None:
        """Append one line. Return an error instead of raising it: the statement has already run."""
        told = {**members, **current_actor()._asdict()}
        try:
            append_log.append(self._file, {key: self._told(value) for key, value in told.items()})
        except OSError as error:
            return f"the audit log {self._path} could not be written: {error.strerror}"
        return None

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _told(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._told(each) for each in value]
        return self._redact(value) if isinstance(value, str) else value
