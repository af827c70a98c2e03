"""Files of `_delta_log`: their names, and the actions in their lines."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, NamedTuple

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.decoding import decode_json, decode_members, use_fast_decoder
from deltaproto.protocol.stored_secrets import hide_in_commit_info
from deltaproto.tables.log.file_changes import (
    ADD,
    FileChange,
    changes_in_line,
    changes_of_action,
    is_short_add,
    usual_change,
)
from deltaproto.tables.storage.interface import STAGED_COMMITS, FolderEntry

_VERSION_DIGITS = 20
_PART_DIGITS = 10


# Delta Spark takes these for commits and checkpoints, and then looks for names of 20 digits.
CHECKPOINT_HINT = "_last_checkpoint"
_MISNAMED = re.compile(r"[0-9]+\.(?:json|checkpoint\.(?:[0-9]+\.[0-9]+\.)?parquet)")


class Checkpoint(NamedTuple):
    """A checkpoint with all of its parts, in order."""

    version: int
    files: tuple[str, ...]
    v2_name: bool = False
    """named with a UUID, as only V2 checkpoints are; others may have a classic name"""


class LogListing:
    """The contents of one listing of the log.

    Incomplete multi-part checkpoints and checkpoint files of 0 bytes are ignored, as in Delta
    Spark (SnapshotManagement).
    """

    def __init__(self) -> None:
        self.commits: dict[int, str] = {}
        self.checksums: dict[int, str] = {}
        self.checkpoints: dict[int, list[Checkpoint]] = {}
        self.empty_checkpoints: list[str] = []
        self.misnamed: list[str] = []
        """commits and checkpoints whose version does not have 20 digits"""
        self.staged_commits = False
        self.checkpoint_hint = False
        """there is a `_last_checkpoint`"""

    @property
    def newest(self) -> int | None:
        """The newest version: of a commit, or of a checkpoint whose commits were deleted."""
        if not self.checkpoints:
            return max(self.commits, default=None)
        return max((*self.commits, *self.checkpoints))

    def missing(self, base: int, version: int) -> int | None:
        """Return the newest missing commit after `base` and up to `version`."""
        for each in range(version, base, -1):
            if each not in self.commits:
                return each
        return None

    def checkpoints_up_to(self, version: int) -> list[Checkpoint]:
        """Return complete checkpoints at or below `version`, newest first."""
        versions = sorted((v for v in self.checkpoints if v <= version), reverse=True)
        return [checkpoint for v in versions for checkpoint in self.checkpoints[v]]

    def last_checkpoints(self, version: int) -> list[Checkpoint]:
        """Return the checkpoints at or below `version` with the newest version; there may be
        several.
        """
        versions = [v for v in self.checkpoints if v <= version]
        return self.checkpoints[max(versions)] if versions else []


def build_listing(entries: Iterable[FolderEntry]) -> LogListing:
    """Build the listing from `entries`; files that do not belong to a log are ignored."""
    listing = LogListing()
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name, size, _ in entries:
        digits, rest = name[:_VERSION_DIGITS], name[_VERSION_DIGITS:]
        # Inlined version of `_number`, which saves a function call per name.
        if not (rest and digits.isdigit() and digits.isascii()):
            listing.staged_commits |= name == STAGED_COMMITS
            listing.checkpoint_hint |= name == CHECKPOINT_HINT
            if _MISNAMED.fullmatch(name) is not None:
                listing.misnamed.append(name)
        elif rest == ".json":
            listing.commits[int(digits)] = name
        elif rest == ".crc":
            listing.checksums[int(digits)] = name
        elif rest.startswith(".checkpoint."):
            if size == 0:
                listing.empty_checkpoints.append(name)
            else:
                _sort_checkpoint(listing, parts, int(digits), rest.split(".")[2:], name)
        elif _MISNAMED.fullmatch(name) is not None:
            listing.misnamed.append(name)
    for (version, total), found in parts.items():
        # A single file name may declare ten billion parts.
        if len(found) == total and min(found) == 1 and max(found) == total:
            _add(listing, Checkpoint(version, tuple(found[n] for n in sorted(found))))
    for same_version in listing.checkpoints.values():
        same_version.sort(key=lambda checkpoint: checkpoint.files)
    return listing


def _sort_checkpoint(
    listing: LogListing,
    parts: dict[tuple[int, int], dict[int, str]],
    version: int,
    rest: list[str],
    name: str,
) -> None:
    match rest:
        case ["parquet"]:
            _add(listing, Checkpoint(version, (name,)))
        case [part, total, "parquet"] if _is_number(part, _PART_DIGITS) and _is_number(
            total, _PART_DIGITS
        ):
            parts.setdefault((version, int(total)), {})[int(part)] = name
        case [identity, "json" | "parquet"] if _is_uuid(identity):
            _add(listing, Checkpoint(version, (name,), v2_name=True))


def _is_number(text: str, digits: int) -> bool:
    return len(text) == digits and text.isascii() and text.isdigit()


def _is_uuid(text: str) -> bool:
    return len(text) >= 8 and text.isascii() and text.replace("-", "").isalnum()


def _add(listing: LogListing, checkpoint: Checkpoint) -> None:
    listing.checkpoints.setdefault(checkpoint.version, []).append(checkpoint)


# A commit can contain actions for a million files. If they exceed this many bytes, their lines
# are only searched for what `seen` shows: the protocol never depends on them.
_PARSE_ALL_BYTES = 16 * 1024 * 1024
_FAST_FROM_BYTES = 1024 * 1024
"""a commit of this size justifies the import of the fast decoder"""
MOST_STATISTICS = 100
"""maximum number of data files per commit whose statistics are passed on"""
_LONGEST_LINE = 64 * 1024 * 1024
"""bytes; the longest line that Delta writes is a metaData action, with the schema"""
_FILE_ACTIONS = (ADD, b'{"remove":{', b'{"cdc":{')


def corrupt_error(name: str, line: int | None, why: str) -> TableError:
    """Return the error for a log file that violates the format."""
    place = name if line is None else f"{name} line {line}"
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{place}: {why}",
        "the log is damaged there; restore the file from a backup or another replica",
    )


def read_actions(
    name: str,
    file: IO[bytes],
    *,
    files: bool = False,
    holding: bytes = b"",
    seen: Callable[[Mapping[str, Any], list[FileChange], bool], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield each line's object, without its null members.

    Accepts blank lines, CRLF and a byte order mark, like Spark. Actions on data files are skipped
    unless `files`; with `holding`, most actions whose line lacks these bytes are skipped too.

    Args:
        seen: called at the end with the commit's provenance, the change of each data file, and
            whether the log file starts with a byte order mark.

    Raises:
        TableError: corrupt-log, naming file and line.
    """
    size = 0
    mark = False
    info: Mapping[str, Any] = {}
    changes: list[FileChange] = []
    for number, raw in enumerate(read_lines(name, file), 1):
        line = raw
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            mark, line = True, raw.removeprefix(codecs.BOM_UTF8)
        line = line.strip()
        size += len(line)
        if not line:
            continue
        if size > _FAST_FROM_BYTES >= size - len(line):
            use_fast_decoder()
        on_file = line.startswith(_FILE_ACTIONS)
        unwanted = holding not in line if files else size > _PARSE_ALL_BYTES
        if on_file and unwanted:
            if not line.endswith(b"}}"):
                raise corrupt_error(name, number, "the JSON is truncated")
            if seen is not None:
                wanted = len(changes) < MOST_STATISTICS
                if not line.startswith(ADD):
                    changes += changes_in_line(line)
                elif usual := usual_change(line, statistics=wanted):
                    changes.append(usual)
                else:
                    action = parse_object(name, number, line)
                    changes += changes_of_action(action, statistics=wanted)
            continue
        if seen is not None and on_file and not files and is_short_add(line):
            usual = usual_change(line, statistics=len(changes) < MOST_STATISTICS)
            if usual is not None:
                changes.append(usual)
                continue
        action = parse_object(name, number, line)
        if seen is not None:
            if "add" in action or "remove" in action:
                changes += changes_of_action(action, statistics=len(changes) < MOST_STATISTICS)
            if "commitInfo" in action:
                info = info or commit_info([action])
        # An action on a file that shares its object with another action.
        if files or not on_file or len(action) > 1:
            yield action
    if seen is not None:
        seen(info, changes, mark)


def read_lines(name: str, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a log file; a line that is too long for memory is an error.

    Raises:
        TableError: corrupt-log.
    """
    for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE + 1), b""), 1):
        if len(line) > _LONGEST_LINE:
            raise corrupt_error(name, number, f"a line of more than {_LONGEST_LINE} bytes")
        yield line


def commit_info(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first commitInfo among the actions, without credentials in its names.

    Empty if the writer recorded none.
    """
    return hide_in_commit_info(first_info(actions))


def first_info(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the first commitInfo among the actions as it is; empty if there is none."""
    for action in actions:
        info = action.get("commitInfo")
        if isinstance(info, dict):
            return info
    return {}


def parse_object(
    name: str, line: int | None, text: bytes, only: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Parse the JSON object in `text`, without its null members; if `only` is set, only those."""
    try:
        value = decode_members(text, only) if only else decode_json(text)
    except UnicodeDecodeError:
        raise corrupt_error(name, line, "not UTF-8 text") from None
    except RecursionError:
        raise corrupt_error(name, line, "JSON nested too deeply") from None
    except ValueError as error:
        column = getattr(error, "colno", None)
        cut_off = getattr(error, "pos", -1) >= len(text) - 1
        why = "the JSON is truncated" if cut_off else "malformed JSON"
        raise corrupt_error(name, line, f"{why} at column {column}" if column else why) from None
    if not isinstance(value, dict):
        raise corrupt_error(name, line, f"a JSON {type(value).__name__} instead of an action")
    if None not in value.values():
        return value
    return {key: member for key, member in value.items() if member is not None}
