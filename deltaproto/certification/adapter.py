"""The client under test, behind an interface that processes requests.

There are two kinds: a Python file that `adapter_server.py` runs in one process for all requests,
and a command that is started for each request.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from deltaproto.certification.operation import AdapterRequest
from deltaproto.certification.process import Process, ProcessEnd, ProcessLimits, ProcessStopped
from deltaproto.errors import EngineError

ADAPTER_SERVER = Path(__file__).parent / "adapter_server.py"
_NUMBERS = ("count", "total")
_NO_KNOWN_FORM = (ValueError, KeyError, TypeError, AttributeError)
_INVALID_RESPONSE = "its process sent an invalid response"
_KEPT = re.compile(r"PATH|HOME|LANG|LC_.*|TMPDIR|TEMP|TMP|JAVA_HOME|USER|LOGNAME|.*_proxy|.*_PROXY")


class ReplyKind(StrEnum):
    """The outcome of one request."""

    ANSWERED = "answered"
    FAILED = "failed"
    """with the client's own error"""
    NOT_OFFERED = "not offered"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


class Reply(NamedTuple):
    """The response to one request."""

    kind: ReplyKind
    answer: Any = None
    message: str = ""
    """why it failed, or how its process ended"""


class Adapter(Protocol):
    """A client that processes requests."""

    release: str
    """version reported by the client, or empty"""

    def lacks(self, function: str) -> bool:
        """Return True if it has reported already that it lacks this function."""

    def ask(self, table: Path, request: AdapterRequest) -> Reply:
        """Send one request; a crash of the client is a reply, too."""

    def close(self) -> None:
        """Stop the client."""


class ServedAdapter:
    """A Python adapter, run by `adapter_server.py` with the Python of the client's environment.

    A process that has ended is restarted for the next request.
    """

    def __init__(
        self,
        python: Path,
        file: Path,
        folder: Path,
        limits: ProcessLimits,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [str(python), str(ADAPTER_SERVER), str(file)]
        self._environment = {**clean_environment(), **(environment or {})}
        self._folder, self._limits = folder, limits
        self._process: Process | None = None
        self._answered = False
        self._number = 0
        self.release = ""
        self.offers: frozenset[str] | None = None
        self.python = ""

    def start(self) -> None:
        """Start the client to check that it can be started.

        Raises:
            EngineError: when it fails to start.
        """
        try:
            self._started()
        except ProcessStopped as stopped:
            raise EngineError(
                f"the client fails to start: {stopped.detail}",
                _last_line(stopped.error_output) or "the adapter reports no reason",
            ) from None

    def lacks(self, function: str) -> bool:
        return self.offers is not None and function not in self.offers

    def ask(self, table: Path, request: AdapterRequest) -> Reply:
        self._number += 1
        plain = {
            "id": self._number,
            "operation": request.function,
            "table": str(table),
            **request.arguments,
        }
        try:
            process = self._started()
            seconds = self._limits.seconds + (0 if self._answered else self._limits.first)
            if self.lacks(request.function):
                return Reply(ReplyKind.NOT_OFFERED)
            process.forget_output()
            process.send(json.dumps(plain) + "\n")
            line = process.line(seconds)
            if line is None:
                raise process.how_it_died()
            reply = _parse_reply(json.loads(line))
            self._answered = True
        except ProcessStopped as stopped:
            self._process = None
            return _reply_for_stopped(stopped)
        except _NO_KNOWN_FORM:
            self.close()
            return Reply(ReplyKind.CRASHED, message=_INVALID_RESPONSE)
        return reply

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _started(self) -> Process:
        if self._process is not None:
            return self._process
        process = Process(self._command, self._environment, self._folder, self._limits)
        line = process.line(self._limits.starting)
        if line is None:
            raise process.how_it_died()
        try:
            found = json.loads(line)
            if not found["ready"]:
                process.kill()
                raise ProcessStopped(
                    ProcessEnd.DIED, _describe_failure(found["failed"]), process.error_output
                )
            self.release, self.python = found["release"], found["python"]
            self.offers = frozenset(found["offers"])
        except _NO_KNOWN_FORM:
            process.kill()
            raise ProcessStopped(ProcessEnd.DIED, _INVALID_RESPONSE, process.error_output) from None
        self._process = process
        return process


class CommandAdapter:
    """Any program, called as `COMMAND OPERATION TABLE`, with the request in JSON on its input.

    It prints rows as JSON objects, one per line; a count or a sum as a number; a schema as objects
    with `name` and `type`; and nothing for a write. An exit code other than 0 is a refusal with its
    reason in the last line of standard error; 64 means that the operation is not supported.
    """

    release = ""
    python = ""
    _NO_SUCH_OPERATION = 64

    def __init__(self, command: str, folder: Path, limits: ProcessLimits) -> None:
        self._words = shlex.split(command)
        self._folder, self._limits = folder, limits

    def lacks(self, function: str) -> bool:
        # It may support rows without a condition, but not with one.
        return False

    def ask(self, table: Path, request: AdapterRequest) -> Reply:
        plain = {"operation": request.function, "table": str(table), **request.arguments}
        command = [*self._words, request.function, str(table)]
        try:
            process = Process(command, clean_environment(), self._folder, self._limits)
        except OSError as error:
            raise EngineError(
                f"cannot start {self._words[0]}: {error.strerror}", "check --command"
            ) from None
        try:
            process.send(json.dumps(plain) + "\n", end=True)
            limit, began = self._limits.seconds, time.monotonic()
            lines = []
            while (line := process.line(limit, since=began)) is not None:
                lines.append(line)
            code = process.ended(limit, since=began)
        except ProcessStopped as stopped:
            return _reply_for_stopped(stopped)
        finally:
            process.kill()
        if code < 0:
            return _reply_for_stopped(process.how_it_died())
        if code == self._NO_SUCH_OPERATION:
            return Reply(ReplyKind.NOT_OFFERED)
        if code:
            return Reply(
                ReplyKind.FAILED, message=_last_line(process.error_output) or f"exit code {code}"
            )
        return _parse_printed(request.function, [line for line in lines if line.strip()])

    def close(self) -> None:
        """Do nothing: no process is left running."""


def clean_environment() -> dict[str, str]:
    """Return the environment variables that clients need, without our own settings.

    The time zone is UTC: some clients return times in the zone of their process, without naming it.
    """
    kept = {key: value for key, value in os.environ.items() if _KEPT.fullmatch(key)}
    return {**kept, "TZ": "UTC"}


def _parse_printed(function: str, lines: list[bytes]) -> Reply:
    try:
        found = [json.loads(line) for line in lines]
    except ValueError:
        return Reply(ReplyKind.CRASHED, message="it printed invalid JSON")
    if function in _NUMBERS:
        return Reply(ReplyKind.ANSWERED, found[0] if len(found) == 1 else None)
    if function == "schema":
        with contextlib.suppress(KeyError, TypeError):
            return Reply(ReplyKind.ANSWERED, [[each["name"], each["type"]] for each in found])
        return Reply(ReplyKind.CRASHED, message="it printed columns without name and type")
    return Reply(ReplyKind.ANSWERED, found if function == "rows" else None)


def _parse_reply(found: Mapping[str, Any]) -> Reply:
    if "failed" in found:
        kind = ReplyKind.CRASHED if found["failed"]["panic"] else ReplyKind.FAILED
        return Reply(kind, message=_describe_failure(found["failed"]))
    if found.get("offered") is False:
        return Reply(ReplyKind.NOT_OFFERED)
    return Reply(ReplyKind.ANSWERED, found.get("answer"))


def _reply_for_stopped(stopped: ProcessStopped) -> Reply:
    kind = ReplyKind.TIMED_OUT if stopped.why is ProcessEnd.TIMED_OUT else ReplyKind.CRASHED
    last_line = _last_line(stopped.error_output) if stopped.why is ProcessEnd.DIED else ""
    return Reply(kind, message=f"{stopped.detail}: {last_line}" if last_line else stopped.detail)


def _describe_failure(failed: Mapping[str, Any]) -> str:
    return f"{failed['type']}: {failed['message']}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
