"""The files that record a run: the journal of each plan, and the audit log."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from deltaproto.errors import DeltaprotoError, ExitCode, UsageError
from deltaproto.identity import current_actor
from deltaproto.input_file import open_input
from deltaproto.planning.plan import Fingerprint
from deltaproto.protocol.protocol import Protocol

STATE_FOLDER = ".deltaproto"
"""folder of journals and undo plans, next to the plan files"""
JOURNAL_SUFFIX, AUDIT_FILE, UNDO_SUFFIX = ".journal.jsonl", "audit.jsonl", ".undo.json"
RECORD_SUFFIXES = (JOURNAL_SUFFIX, AUDIT_FILE, UNDO_SUFFIX)
"""file name endings in that folder"""


_MAX_JOURNAL_BYTES = 1 << 28
_PIPE = "it is a named pipe or socket, not a file"


def find_append_obstacle(path: Path) -> str | None:
    """Return why nothing can be appended to the file at `path`, or None. Creates nothing."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_fifo() or path.is_socket():
            return _PIPE
        place = path
        while not os.path.lexists(place):
            place = place.parent
        if place != path and not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except OSError as error:
        return error.strerror
    wanted = os.W_OK if place == path else os.W_OK | os.X_OK
    return None if os.access(place, wanted) else os.strerror(errno.EACCES)


class LineFile:
    """A file of JSON lines, open for appending. Several processes may append to it.

    Raises:
        OSError: when the file cannot be written.
    """

    def __init__(self, path: Path, mode: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_fifo() or path.is_socket():
            # Opening a pipe would wait for a reader.
            raise OSError(errno.EINVAL, _PIPE, str(path))
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode)
        self._cut_off = False

    def add(self, members: Mapping[str, Any]) -> None:
        """Append one line, which is on disk when this returns.

        It is written at once, as several processes may append. If the file ends with a part of a
        line, from a crash or a full disk, that part is terminated first.

        Raises:
            OSError: when the disk is full or fails.
        """
        line = (json.dumps(members) + "\n").encode()
        if self._cut_off or _ends_mid_line(self._path):
            line = b"\n" + line
        written = os.write(self._file, line)
        if written:
            # A file that is writable but not readable does not show where it ends.
            self._cut_off = written < len(line)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _ends_mid_line(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            # Another process may append meanwhile.
            return file.read(1) != b"\n"
    except OSError:
        # The file is empty, or it is writable but not readable.
        return False


_MODE = 0o600


class PlanLockedError(DeltaprotoError):
    """Another process is executing the same plan. Nothing was changed. Exit code 4."""

    exit_code = ExitCode.STALE
    code = "busy"


class JournalError(DeltaprotoError):
    """The journal cannot be written. Exit code 2 before the first statement, else 5."""

    code = "journal"


class SentStatement(NamedTuple):
    """A statement that was sent and may be missing in the audit log."""

    step: str
    run: str
    version: int
    """the table's version before it"""
    at: float
    """time it was sent, in seconds since the epoch"""


class JournalState(NamedTuple):
    """The contents of a plan's journal."""

    done: int
    early: frozenset[str]
    baseline: Fingerprint | None
    """state after the last finished step, or None"""
    since: float | None
    """when the last step finished, in seconds since the epoch"""
    holder: str | None
    """user, host and process of the last run"""
    unaudited: tuple[SentStatement, ...] = ()
    held: tuple[str, float] | None = None
    """the step that Delta refused because history is too young, and when it may be sent again"""


class Journal:
    """The journal file in `folder`, locked while it is open.

    Raises:
        PlanLockedError: when another process has locked it; the message names the process.
        UsageError: when it cannot be written, or is not a journal of this plan.
    """

    def __init__(self, folder: str, plan_id: str) -> None:
        self.path = journal_path(folder, plan_id)
        self._plan_id = plan_id
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = _acquire_lock(self.path, plan_id)
            self._file = LineFile(self.path, _MODE)
        except OSError as error:
            raise UsageError(
                f"cannot write the journal {self.path}: {error.strerror}",
                "pass a writable folder with --journal; nothing was changed",
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lock.release()

    def add(self, event: str, at: float, **members: Any) -> None:
        """Append one line, which is on disk when this returns.

        Raises:
            JournalError: when the disk is full or fails.
        """
        line = {"event": event, "at": at, "plan": self._plan_id, **members}
        try:
            self._file.add(line)
        except OSError as error:
            raise JournalError(
                f"cannot write the journal {self.path}: {error.strerror}",
                "free some space, and run the same command again: it reads from the table what is "
                "finished",
            ) from None


def default_journal_dir(path: str) -> str:
    """Return the default journal folder of a plan file."""
    folder = os.path.dirname(os.path.abspath(path))
    return (
        folder if os.path.basename(folder) == STATE_FOLDER else os.path.join(folder, STATE_FOLDER)
    )


def journal_path(folder: str, plan_id: str) -> Path:
    """Return the path of a plan's journal."""
    return Path(folder) / f"{plan_id}{JOURNAL_SUFFIX}"


def lock_path(journal: Path) -> Path:
    """Return the path of the file that a run locks while it writes a journal."""
    return journal.with_name(f"{journal.name}.lock")


def read_journal(path: Path, plan_id: str) -> JournalState:
    """Read the journal at `path`; the result is empty if there is no file.

    Raises:
        UsageError: when it cannot be read, or belongs to another plan.
    """
    found = JournalState(0, frozenset(), None, None, None)
    for event in read_events(path):
        if event.get("plan") != plan_id:
            raise UsageError(
                f"{path} is not a journal of plan {plan_id}",
                "pass another folder with --journal",
            )
        try:
            found = _with_event(found, event)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError(
                f"{path} is damaged", "move it away: finished steps are then read from the table"
            ) from None
    return found


def _with_event(found: JournalState, event: Mapping[str, Any]) -> JournalState:
    match event["event"]:
        case "begin":
            who = f"{event.get('actor')} on {event.get('host')}, process {event.get('pid')}"
            return found._replace(holder=who)
        # Journals without a version are from releases that did not track the audit log.
        case "start" if "version" in event:
            sent = SentStatement(
                str(event["step"]), str(event["run"]), int(event["version"]), float(event["at"])
            )
            return found._replace(unaudited=(*found.unaudited, sent), held=None)
        case "waiting" if event.get("refused"):
            return found._replace(held=(str(event["step"]), float(event["until"])))
        case "audited":
            key = event.get("step"), event.get("run")
            left = tuple(each for each in found.unaudited if (each.step, each.run) != key)
            return found._replace(unaudited=left)
        case "done":
            protocol = Protocol.stored(event["protocol"])
            return found._replace(
                done=int(event["steps_done"]),
                early=frozenset(event["early"]),
                baseline=Fingerprint(None, int(event["version"]), protocol, event["metadata"]),
                since=float(event["at"]),
                held=None,
            )
    return found


def read_events(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a journal, or nothing if there is no file.

    Raises:
        UsageError: when it cannot be read.
    """
    try:
        with open_input(path) as file:
            content = file.read(_MAX_JOURNAL_BYTES + 1)
        if len(content) > _MAX_JOURNAL_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            f"cannot read the journal {path}: {error.strerror}",
            "pass another folder with --journal",
        ) from None
    for line in content.decode("utf-8", "replace").splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            # A crash truncated the line. The table has the same information.
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            yield event


def _acquire_lock(path: Path, plan_id: str) -> Any:
    from filelock import FileLock, Timeout

    lock = FileLock(lock_path(path), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        holder = None
        with suppress(UsageError):
            holder = read_journal(path, plan_id).holder
        raise PlanLockedError(
            f"this plan is being executed by {holder or 'another process'}",
            "wait until it has finished; nothing was changed by this run",
        ) from None
    return lock


_AUDIT_MODE = 0o640


class AuditLog:
    """Appends one line per statement, without credentials.

    Raises:
        UsageError: when the file cannot be written.
    """

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        self._path, self._redact = path, redact
        try:
            self._file = LineFile(Path(path), _AUDIT_MODE)
        except OSError as error:
            raise UsageError(
                f"cannot write the audit log {path}: {error.strerror}",
                "pass a writable file with --audit; nothing was changed",
            ) from None

    def add(self, **members: Any) -> str | None:
        """Append one line. Return an error instead of raising it: the statement has already run."""
        record = {**members, **current_actor()._asdict()}
        try:
            self._file.add({key: self._redacted(value) for key, value in record.items()})
        except OSError as error:
            return f"the audit log {self._path} could not be written: {error.strerror}"
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _redacted(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._redacted(each) for each in value]
        return self._redact(value) if isinstance(value, str) else value
