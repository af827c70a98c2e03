"""Actions in the log's JSON files: one object per line, with file and line in every error."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.decoding import decoded, members

# A commit can hold an action for each of a million files. Their lines are only checked for
# being whole when there are this many bytes of them: the protocol never depends on them.
_PARSE_ALL_BYTES = 16 * 1024 * 1024
_LONGEST_LINE = 64 * 1024 * 1024
"""bytes; the longest that Delta writes is a metaData action, with the schema"""
_PATH = re.compile(rb'\{"(\w+)":\{[^{}]*?"path":"([^"]*)"')
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
    name: str,
    file: IO[bytes],
    *,
    files: bool = False,
    holding: bytes = b"",
    seen: Callable[[Mapping[str, Any], list[tuple[str, str]], bool], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Each line's object, without its null members.

    Blank lines, CRLF and a byte order mark are accepted, as Spark accepts them. Actions on data
    files are left out unless `files`; with `holding` most of those whose line lacks these bytes.

    Args:
        seen: called at the end with the commit's provenance, action and path of each data file, and
            whether the file begins with a byte order mark.

    Raises:
        TableError: corrupt-log, naming file and line.
    """
    size = 0
    mark = False
    info: Mapping[str, Any] = {}
    paths: list[tuple[str, str]] = []
    for number, raw in enumerate(lines(name, file), 1):
        line = raw
        if number == 1 and raw.startswith(codecs.BOM_UTF8):
            mark, line = True, raw.removeprefix(codecs.BOM_UTF8)
        line = line.strip()
        size += len(line)
        if not line:
            continue
        on_file = line.startswith(_FILE_ACTIONS)
        unwanted = holding not in line if files else size > _PARSE_ALL_BYTES
        if on_file and unwanted:
            if not line.endswith(b"}}"):
                raise corrupt(name, number, "the JSON is cut off")
            if seen is not None:
                paths += _path_in(line)
            continue
        action = parse_object(name, number, line)
        if seen is not None:
            paths += _path_of(action)
            info = info or commit_info([action])
        if files or not on_file:
            yield action
    if seen is not None:
        seen(info, paths, mark)


def _path_of(action: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for kind in ("add", "remove"):
        if isinstance(file := action.get(kind), dict) and isinstance(file.get("path"), str):
            yield kind, file["path"]


def _path_in(line: bytes) -> Iterator[tuple[str, str]]:
    """As `_path_of`, of a line that is not worth parsing."""
    found = _PATH.match(line)
    if found is not None and found[1] in (b"add", b"remove"):
        yield found[1].decode(), found[2].decode("utf-8", "replace").replace("\\/", "/")


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
