"""Output that never stops a plan between two steps: what cannot be written is told at the end."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO

from deltaproto.errors import ExitCode


class TolerantWriter:
    """Writes to `file` until that fails, and nowhere from then on.

    A reader that goes away is no failure.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._failed = False
        self.code = ExitCode.OK
        """what the failure comes to"""

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
        # What is buffered must not fail again when the file is closed.
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
                "hint: it is cut off, and the plans go on; make room for it",
                file=sys.stderr,
            )
