"""The user's programs that run before and after the tables of a rollout."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from typing import IO, NamedTuple

from deltaproto.errors import UsageError

BEFORE_TABLE, AFTER_TABLE = "before-table", "after-table"
BEFORE_WAVE, ON_FAILURE = "before-wave", "on-failure"
_NAMES = (BEFORE_TABLE, AFTER_TABLE, BEFORE_WAVE, ON_FAILURE)
_MAX_MESSAGE = 300
_MAX_OUTPUT = 64 << 10
_SECONDS_AFTER_KILL = 5.0
_MAX_ARGUMENT = 64 << 10
"""Linux accepts 128 KiB"""


class Hooks(NamedTuple):
    """A folder of programs, each named after the event for which it runs."""

    folder: str
    seconds: float
    """how long a program may run"""

    def run(self, name: str, file: str, *arguments: str) -> str | None:
        """Run a program with a file as its standard input. Return why it failed, or None.

        A program that is missing passes. One that runs too long is killed, and has failed.
        """
        path = os.path.join(self.folder, name)
        if not os.path.lexists(path):
            return None
        try:
            with open(file, "rb") as document:
                process = subprocess.Popen(
                    [os.path.abspath(path), *map(_to_argument, arguments)],
                    stdin=document,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                output, timed_out = _wait(process, self.seconds)
        except OSError as error:
            return f"hook {name}: {error.strerror or error}"
        said = output.decode("utf-8", "replace").strip().rpartition("\n")[2][:_MAX_MESSAGE]
        if timed_out:
            return f"hook {name} was killed after {self.seconds:.0f} s"
        if process.returncode:
            return f"hook {name} exited with {process.returncode}{': ' + said if said else ''}"
        return None


def _to_argument(text: str) -> bytes:
    """Return the text as an argument: without NUL, and no longer than an argument may be."""
    shown = text.replace("\0", "\\x00")
    try:
        encoded = os.fsencode(shown)
    except UnicodeEncodeError:
        encoded = shown.encode("utf-8", "backslashreplace")
    return encoded[:_MAX_ARGUMENT]


def open_hooks(folder: str, seconds: float) -> Hooks:
    """Return the hooks of a folder.

    Raises:
        UsageError: when the folder cannot be read or has no hook, or a hook is not executable.
    """
    try:
        names = [name for name in os.listdir(folder) if name in _NAMES]
    except OSError as error:
        raise UsageError(f"cannot read {folder}: {error.strerror}", "check --hooks") from None
    if not names:
        raise UsageError(f"{folder} has no hook", f"name the programs {', '.join(_NAMES)}")
    for name in sorted(names):
        path = os.path.join(folder, name)
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            raise UsageError(f"{path} is not an executable file", f"run chmod +x {path}")
    return Hooks(folder, seconds)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool]:
    """Return the last part of the output, and whether the program was killed as too slow."""
    tail, end = bytearray(), time.monotonic() + seconds
    assert process.stdout is not None
    reader = threading.Thread(target=_read_end, args=(process.stdout, tail), daemon=True)
    reader.start()
    try:
        reader.join(seconds)
        if reader.is_alive():
            raise subprocess.TimeoutExpired(process.args, seconds)
        process.wait(max(end - time.monotonic(), 0))
    except BaseException as error:
        # Its children would keep the output open.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (AttributeError, OSError):
            process.kill()
        process.wait()
        reader.join(_SECONDS_AFTER_KILL)
        if isinstance(error, subprocess.TimeoutExpired):
            return bytes(tail), True
        raise
    return bytes(tail), False


def _read_end(output: IO[bytes], tail: bytearray) -> None:
    """Read all output, and keep its last part."""
    with output:
        while chunk := os.read(output.fileno(), _MAX_OUTPUT):
            tail += chunk
            del tail[:-_MAX_OUTPUT]
