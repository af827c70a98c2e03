"""Output streams: closed pipes, files that keep their old content, failures that stop no plan."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

from deltaproto.errors import ExitCode, UsageError


class StreamError(OSError):
    """Standard output or standard error could not be written, as on a full disk."""


def unwritten_error(where: str, error: OSError) -> UsageError:
    """Return the error of output that could not be written completely."""
    return UsageError(
        f"cannot write {where}: {error.strerror}", "the output is truncated; free some space"
    )


class PipeFile(io.FileIO):
    """A file that discards what is written after the reader has closed the pipe.

    Other errors are raised once, as StreamError: buffered data must not fail again at exit.
    """

    _failed = False

    def write(self, data: Any, /) -> int:
        if not self._failed:
            try:
                return super().write(data)
            except OSError as error:
                self._failed = True
                if not isinstance(error, BrokenPipeError):
                    raise StreamError(error.errno, error.strerror) from None
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


class TruncateOnFirstWrite(io.TextIOWrapper):
    """Text output file: created when opened, truncated by the first write or a successful close.

    Raises:
        OSError: when the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._made = not os.path.lexists(path)
        self._raw = _TruncatingFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        super().__init__(io.BufferedWriter(self._raw), "utf-8", "backslashreplace")

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.flush()
            if kind is None:
                self._raw.empty()
        finally:
            untouched = not self._raw.emptied
            self.close()
        if kind is not None and untouched and self._made:
            os.unlink(self._path)


class _TruncatingFile(PipeFile):
    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w")
        self.emptied = False

    def empty(self) -> None:
        if not self.emptied:
            self.emptied = True
            # Pipes and terminals cannot be truncated.
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                self.truncate(0)

    def write(self, data: Any, /) -> int:
        self.empty()
        return super().write(data)


@contextmanager
def write_at_end(target: TruncateOnFirstWrite) -> Iterator[IO[str]]:
    """Return a text file whose content is written to `target` if the block succeeds.

    Pipes and terminals get the text as it arrives.
    """
    if not stat.S_ISREG(os.fstat(target.fileno()).st_mode):
        yield target
        return
    import shutil
    import tempfile

    with tempfile.TemporaryFile() as parts:
        text = io.TextIOWrapper(parts, "utf-8", "backslashreplace", write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()
        parts.seek(0)
        shutil.copyfileobj(parts, target.buffer)


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


def attach_results(error: BaseException, results: Mapping[str, Any]) -> None:
    """Keep the results of a run that this error ends, for its JSON document."""
    error.results_so_far = results  # type: ignore[attr-defined]


def attached_results(error: BaseException) -> Mapping[str, Any]:
    """Return what `attach_results` kept; empty if nothing."""
    found: Mapping[str, Any] = getattr(error, "results_so_far", {})
    return found
