"""A child process that is stopped when it hangs or prints too much, and may die."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

_TICK = 0.25
_TAIL = 4000
_PROC = Path("/proc")


class ProcessLimits(NamedTuple):
    """Limits of a client. Memory is monitored on Linux only."""

    seconds: float = 30.0
    """seconds for one request"""
    starting: float = 180.0
    """seconds until the client is ready"""
    first: float = 60.0
    """extra seconds for the very first request, which loads most of an engine"""
    output: int = 16 * 1024 * 1024
    """bytes that one request may print, on both streams together"""
    memory: int = 8 * 1024**3
    """bytes of resident memory, of the process and its children"""


class ProcessEnd(StrEnum):
    """Why a process ended or was stopped."""

    DIED = "died"
    TIMED_OUT = "timed out"
    FLOODED = "flooded"
    MEMORY = "used too much memory"


class ProcessStopped(Exception):
    """The error of a process that has ended; `error_output` is the end of its standard error."""

    def __init__(self, why: ProcessEnd, detail: str, error_output: str = "") -> None:
        super().__init__(detail)
        self.why, self.detail, self.error_output = why, detail, error_output


class Process:
    """A started process with its own group; its standard output is read line by line.

    Args:
        command: program and arguments.
        environment: its complete environment.
        folder: its working directory.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        limits: ProcessLimits,
    ) -> None:
        self._limits = limits
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._printed = 0
        self._tail = b""
        self._lock = threading.Lock()
        assert isinstance(self._process.stdout, BufferedReader)
        assert isinstance(self._process.stderr, BufferedReader)
        self._readers = [
            threading.Thread(target=self._read_lines, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_tail, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send(self, text: str, *, end: bool = False) -> None:
        """Write to its standard input, and close it if this is the end."""
        stream = self._process.stdin
        assert stream is not None
        # A dead process is detected when its response is awaited.
        with contextlib.suppress(OSError, ValueError):
            stream.write(text.encode())
            stream.flush()
            if end:
                stream.close()

    def line(self, seconds: float, *, since: float | None = None) -> bytes | None:
        """Return the next line of its standard output, or None at the end.

        Args:
            seconds: how long to wait, from `since`.
            since: a time of `time.monotonic`; None: now.

        Raises:
            ProcessStopped: when it takes too long, prints too much or uses too much memory.
        """
        until = (time.monotonic() if since is None else since) + seconds
        while True:
            self._check()
            try:
                return self._lines.get(timeout=min(_TICK, max(0.0, until - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= until:
                    self.kill()
                    raise ProcessStopped(
                        ProcessEnd.TIMED_OUT, f"no response within {seconds:g} s", self.error_output
                    ) from None

    def ended(self, seconds: float, *, since: float | None = None) -> int:
        """Return its exit code after it has closed its output; negative for a signal.

        Waits like `line`.
        """
        until = (time.monotonic() if since is None else since) + seconds
        try:
            return self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise ProcessStopped(
                ProcessEnd.TIMED_OUT, f"did not end within {seconds:g} s", self.error_output
            ) from None

    def forget_output(self) -> None:
        """Restart the output limit: earlier output no longer counts."""
        with self._lock:
            self._printed = 0

    @property
    def error_output(self) -> str:
        """The end of its standard error."""
        with self._lock:
            return self._tail.decode("utf-8", "replace").strip()

    def how_it_died(self) -> ProcessStopped:
        """Return the error of a process whose output ended too early."""
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            return ProcessStopped(ProcessEnd.DIED, "it closed its output", self.error_output)
        for reader in self._readers:
            reader.join(1)
        if code < 0:
            with contextlib.suppress(ValueError):
                return ProcessStopped(
                    ProcessEnd.DIED, f"killed by {signal.Signals(-code).name}", self.error_output
                )
        return ProcessStopped(ProcessEnd.DIED, f"ended with exit code {code}", self.error_output)

    def kill(self) -> None:
        """Kill it and all processes that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()

    def _check(self) -> None:
        with self._lock:
            printed = self._printed
        if printed > self._limits.output:
            self.kill()
            raise ProcessStopped(
                ProcessEnd.FLOODED,
                f"printed more than {self._limits.output // 1024**2} MiB",
                self.error_output,
            )
        if _resident_bytes(self._process.pid) > self._limits.memory:
            self.kill()
            most = self._limits.memory // 1024**2
            raise ProcessStopped(
                ProcessEnd.MEMORY, f"used more than {most:,} MiB of memory", self.error_output
            )

    def _read_lines(self, stream: BufferedReader) -> None:
        rest = b""
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read1(65536):
                if self._counted(len(chunk)):
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put(line)
        if rest:
            self._lines.put(rest)
        self._lines.put(None)

    def _read_tail(self, stream: BufferedReader) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read1(65536):
                if self._counted(len(chunk)):
                    break
                with self._lock:
                    self._tail = (self._tail + chunk)[-_TAIL:]

    def _counted(self, size: int) -> bool:
        with self._lock:
            self._printed += size
            return self._printed > self._limits.output


def _resident_bytes(group: int) -> int:
    """Return the resident bytes of a process group; 0 if unknown."""
    total = 0
    page = os.sysconf("SC_PAGE_SIZE") if _PROC.exists() else 0
    for entry in _PROC.glob("[0-9]*") if page else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in parentheses may contain spaces; the fields after it do not.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int((entry / "statm").read_text().split()[1]) * page
    return total
