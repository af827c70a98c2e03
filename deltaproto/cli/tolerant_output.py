"""A writer whose failures never interrupt a plan; they are reported at the end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO

from deltaproto.errors import ExitCode


class TolerantWriter:
    """Writes to `file` until a write fails, then discards.

    A closed pipe is not a failure.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._failed = False
        self.code = ExitCode.OK
        """exit code of the write failure"""

    def isatty(self) -> bool:
        return not self._failed and self._file.isatty()

    def write(self, text: str) -> int:
        if not self._failed:
            try:
                return self._file.write(text)
            except OSError as error:
                self._fails(error)
        return len(text)

    def flush(self) -> None:
        if not self._failed:
            try:
                self._file.flush()
            except OSError as error:
                self._fails(error)

    def _fails(self, error: OSError) -> None:
        self._failed = True
        # Buffered data must not fail again when the file is closed.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._file.fileno())
            os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            return
        self.code = ExitCode.USAGE
        with suppress(OSError):
            print(
                f"error: cannot write the output: {error.strerror}\n"
                "hint: it is truncated, and the plans continue; free some space",
                file=sys.stderr,
            )
