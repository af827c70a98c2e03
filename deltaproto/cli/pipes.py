"""Output whose reader may go away: the run goes on, so that the exit code is that of the answer."""

from __future__ import annotations

import io
import sys
from typing import Any


class PipeFile(io.FileIO):
    """A file that drops what is written after the reader of its pipe has gone.

    Other errors are raised once: what is still buffered must not fail again at exit.
    """

    _failed = False

    def write(self, data: Any, /) -> int:
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


class _Output(io.TextIOWrapper):
    pass


def outlive_readers() -> None:
    """Make standard output and standard error outlive their readers.

    Paths are bytes, and not every terminal or pipe knows every character: what cannot be shown
    appears as a backslash escape.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A test or a host program may have put another object there, and that is its own matter.
        if not isinstance(stream, io.TextIOWrapper):
            continue
        stream.reconfigure(errors="backslashreplace")
        if type(stream) is not io.TextIOWrapper:
            continue
        try:
            stream.flush()
            raw = PipeFile(stream.fileno(), "w", closefd=False)
        except (OSError, ValueError):
            continue
        output = _Output(
            io.BufferedWriter(raw),
            stream.encoding,
            "backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, output)
