"""The fixture `delta_spark`: run statements in live Spark, or replay their recorded results.

A test calls Spark through a `DeltaSpark` only. Each call is an action: its text, the files that it
changed in the table logs below the test's folder, its result and its error class.
`LiveDeltaSpark` executes actions and collects them. `ReplayedDeltaSpark` requires that the test
takes exactly the recorded actions in their order, and restores the recorded files byte for byte.
"""

from __future__ import annotations

import base64
import json
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "{folder}"
"""replaces the test's folder in recorded text"""


class File(TypedDict, total=False):
    """A file of a table log: its text or, if it is not UTF-8, its bytes in Base64."""

    text: str
    base64: str
    mtime_ns: int


class Action(TypedDict):
    """One call of Spark."""

    text: str
    """the statement, or what a function does"""
    error: str | None
    """Spark's error class, empty if the error has none"""
    result: Any
    """rows, or a function's return value, as JSON"""
    files: dict[str, File | None]
    """changed files by their path in the test's folder; None: deleted"""
    time: float
    """seconds since the epoch when the action ended"""


class Recording(TypedDict):
    """The actions of one test."""

    start: float
    """seconds since the epoch when the test began"""
    actions: list[Action]


class StatementError(Exception):
    """Spark refused a statement.

    Attributes:
        error_class: Delta's or Spark's error class; empty if the error has none.
    """

    def __init__(self, error_class: str) -> None:
        super().__init__(error_class)
        self.error_class = error_class


class NotRecorded(AssertionError):
    """The test does something else than was recorded."""


class DeltaSpark(ABC):
    """Runs statements of one test."""

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Execute a statement and return its rows.

        Raises:
            StatementError: if Spark refuses it.
        """
        rows: list[dict[str, Any]] = self.run(
            statement, lambda spark: [row.asDict(True) for row in run(spark, statement)]
        )
        return rows

    @abstractmethod
    def run(self, text: str, function: Callable[[SparkSession], Any]) -> Any:
        """Call `function` with the session and return its result, which must be JSON.

        Args:
            text: identifies the call; in a replay it must equal the recorded text.

        Raises:
            StatementError: if the function raises one.
        """


class LiveDeltaSpark(DeltaSpark):
    """Executes actions in `spark` and collects them if there is a folder to watch."""

    def __init__(self, spark: SparkSession, folder: Path | None = None) -> None:
        self._spark, self._folder = spark, folder
        self.recording = Recording(start=time.time(), actions=[])

    def run(self, text: str, function: Callable[[SparkSession], Any]) -> Any:
        before = _stamps(self._folder) if self._folder else {}
        result, error = None, None
        try:
            result = function(self._spark)
        except StatementError as raised:
            error = raised
        # As a replay gives it.
        result = json.loads(json.dumps(result, default=str))
        if self._folder:
            self._collect(self._folder, text, before, result, error)
        if error is not None:
            raise error
        return result

    def _collect(
        self,
        folder: Path,
        text: str,
        before: dict[str, tuple[int, int]],
        result: Any,
        error: StatementError | None,
    ) -> None:
        after = _stamps(folder)
        changed = sorted(name for name in before | after if before.get(name) != after.get(name))
        self.recording["actions"].append(
            Action(
                text=text.replace(str(folder), FOLDER),
                error=error.error_class if error else None,
                result=_replaced(result, str(folder), FOLDER),
                # A shallow clone's log holds the absolute paths of its source.
                files={
                    name: _replaced(_read(folder / name), str(folder), FOLDER)
                    if name in after
                    else None
                    for name in changed
                },
                time=time.time(),
            )
        )


class ReplayedDeltaSpark(DeltaSpark):
    """Replays the actions of a recording.

    `time.time` and `time.time_ns` show the recorded time, so that retention periods come out as
    they did in Spark.
    """

    def __init__(
        self, recording: Recording, folder: Path, set_time: Callable[[float], None]
    ) -> None:
        self._actions, self._folder, self._set_time = recording["actions"], folder, set_time
        self._next = 0
        set_time(recording["start"])

    def run(self, text: str, function: Callable[[SparkSession], Any]) -> Any:
        text = text.replace(str(self._folder), FOLDER)
        if self._next == len(self._actions):
            raise NotRecorded(f"not recorded: run make record\n  statement: {text}")
        action = self._actions[self._next]
        if action["text"] != text:
            raise NotRecorded(
                "not as recorded: run make record\n"
                f"  statement: {text}\n  recorded:  {action['text']}"
            )
        self._next += 1
        for name, file in action["files"].items():
            _write(self._folder / name, _replaced(file, FOLDER, str(self._folder)))
        self._set_time(action["time"])
        if action["error"] is not None:
            raise StatementError(action["error"])
        return _replaced(action["result"], FOLDER, str(self._folder))

    def finish(self) -> None:
        """Check that the test took every recorded action.

        Raises:
            NotRecorded: if it did not.
        """
        if self._next < len(self._actions):
            text = self._actions[self._next]["text"]
            raise NotRecorded(f"not as recorded: run make record\n  missing: {text}")

    @property
    def replayed(self) -> int:
        """Actions so far."""
        return self._next


def run(spark: SparkSession, statement: str) -> Sequence[Any]:
    """Execute a statement and return its rows.

    Raises:
        StatementError: if Spark refuses it.
    """
    try:
        rows: Sequence[Any] = spark.sql(statement).collect()
    except Exception as error:
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.toString())
        found = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", text)
        raise StatementError(found[1] if found else "") from error
    return rows


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file in the table logs, except Hadoop's own checksums."""
    found = {}
    for log in _logs(folder):
        for place, _, names in os.walk(log):
            for name in names:
                if not name.startswith("."):
                    stat = os.stat(os.path.join(place, name))
                    path = os.path.relpath(os.path.join(place, name), folder)
                    found[path] = (stat.st_mtime_ns, stat.st_size)
    return found


def _logs(folder: Path) -> list[str]:
    logs = []
    for place, folders, _ in os.walk(folder):
        if "_delta_log" in folders:
            logs.append(os.path.join(place, "_delta_log"))
            folders.remove("_delta_log")
    return logs


def _read(path: Path) -> File:
    content, mtime_ns = path.read_bytes(), path.stat().st_mtime_ns
    try:
        return File(text=content.decode(), mtime_ns=mtime_ns)
    except UnicodeDecodeError:
        return File(base64=base64.b64encode(content).decode(), mtime_ns=mtime_ns)


def _write(path: Path, file: File | None) -> None:
    if file is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = file.get("text")
    path.write_bytes(base64.b64decode(file["base64"]) if text is None else text.encode())
    os.utime(path, ns=(file["mtime_ns"], file["mtime_ns"]))


def _replaced(value: Any, old: str, new: str) -> Any:
    """The JSON value with `old` replaced in every text."""
    match value:
        case str():
            return value.replace(old, new)
        case list() | tuple():
            return [_replaced(each, old, new) for each in value]
        case dict():
            return {_replaced(k, old, new): _replaced(v, old, new) for k, v in value.items()}
    return value
