"""Output that tolerates a closed pipe: the run continues, and the exit code is the result's."""

from __future__ import annotations

import io
import sys
from typing import Any


class PipeFile(io.FileIO):
    """A file that discards what is written after the reader has closed the pipe.

    Other errors are raised once: buffered data must not fail again at exit.
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


def ignore_closed_pipes() -> None:
    """Make standard output and standard error tolerate closed pipes and undecodable text.

    Paths are bytes, and not every terminal or pipe can show every character. Those it cannot
    show are written as backslash escapes.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # A test or a host program may have replaced the stream; leave that one alone.
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
