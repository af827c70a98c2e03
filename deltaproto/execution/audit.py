"""The audit log: who ran which statement on which table, and what came of it; only appended to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltaproto.errors import UsageError
from deltaproto.whoami import whoami

NAME = "audit.jsonl"
_MODE = 0o640


class Audit:
    """Appends a line for each statement, without credentials.

    Several processes may append to one file: each line is written at once.

    Raises:
        UsageError: when the file cannot be written.
    """

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        self._path, self._redact = path, redact
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _MODE)
        except OSError as error:
            raise UsageError(
                f"cannot write the audit log {path}: {error.strerror}",
                "give a file that can be written with --audit; nothing was changed",
            ) from None

    def add(self, **members: Any) -> str | None:
        """One line; what went wrong, if anything did: a statement is done by then."""
        told = {**members, **whoami()._asdict()}
        line = json.dumps({key: self._told(value) for key, value in told.items()}) + "\n"
        try:
            os.write(self._file, line.encode())
            os.fsync(self._file)
        except OSError as error:
            return f"the audit log {self._path} could not be written: {error.strerror}"
        return None

    def close(self) -> None:
        """No more lines."""
        os.close(self._file)

    def _told(self, value: Any) -> Any:
        return self._redact(value) if isinstance(value, str) else value
