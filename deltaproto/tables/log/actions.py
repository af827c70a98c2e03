"""Actions in the log's JSON files: one object per line, with file and line in every error."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.decoding import decoded, members

# A commit can hold an action for each of a million files. Their lines are only checked for
# being whole when there are this many bytes of them: the protocol never depends on them.
_PARSE_ALL_BYTES = 16 * 1024 * 1024
_LONGEST_LINE = 64 * 1024 * 1024
"""bytes; the longest that Delta writes is a metaData action, with the schema"""
_FILE_ACTIONS = (b'{"add":{', b'{"remove":{', b'{"cdc":{')


def corrupt(name: str, line: int | None, why: str) -> TableError:
    """The error for a log file that breaks the format."""
    place = name if line is None else f"{name} line {line}"
    return TableError(
        ErrorCode.CORRUPT_LOG,
        f"{place}: {why}",
        "the log is damaged there; restore the file from a backup or another replica",
    )


def read_actions(
    name: str, file: IO[bytes], *, files: bool = False, holding: bytes = b""
) -> Iterator[dict[str, Any]]:
    """Each line's object, without its null members.

    Blank lines, CRLF and a byte order mark are accepted, as Spark accepts them. Actions on data
    files are left out unless `files`; with `holding` most of those whose line lacks these bytes.

    Raises:
        TableError: corrupt-log, naming file and line.
    """
    seen = 0
    for number, raw in enumerate(lines(name, file), 1):
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        line = line.strip()
        seen += len(line)
        if not line:
            continue
        on_file = line.startswith(_FILE_ACTIONS)
        unwanted = holding not in line if files else seen > _PARSE_ALL_BYTES
        if on_file and unwanted:
            if not line.endswith(b"}}"):
                raise corrupt(name, number, "the JSON is cut off")
            continue
        action = parse_object(name, number, line)
        if files or not on_file:
            yield action


def lines(name: str, file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a log file, none of them longer than fits into memory.

    Raises:
        TableError: corrupt-log.
    """
    for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE + 1), b""), 1):
        if len(line) > _LONGEST_LINE:
            raise corrupt(name, number, f"a line of more than {_LONGEST_LINE} bytes")
        yield line


def commit_info(actions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The first commitInfo among the actions; empty where the writer recorded none."""
    infos = (action.get("commitInfo") for action in actions)
    return next((info for info in infos if isinstance(info, dict)), {})


def parse_object(
    name: str, line: int | None, text: bytes, only: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The JSON object in `text`, without its null members; of the others all, or `only` these."""
    try:
        value = members(text, only) if only else decoded(text)
    except UnicodeDecodeError:
        raise corrupt(name, line, "not UTF-8 text") from None
    except RecursionError:
        raise corrupt(name, line, "JSON nested too deeply") from None
    except ValueError as error:
        column = getattr(error, "colno", None)
        cut_off = getattr(error, "pos", -1) >= len(text) - 1
        why = "the JSON is cut off" if cut_off else "malformed JSON"
        raise corrupt(name, line, f"{why} at column {column}" if column else why) from None
    if not isinstance(value, dict):
        raise corrupt(name, line, f"a JSON {type(value).__name__} where an action belongs")
    if None not in value.values():
        return value
    return {key: member for key, member in value.items() if member is not None}
