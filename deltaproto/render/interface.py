"""Output formats and the envelope that every machine-readable output shares."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum, StrEnum
from typing import IO, Any

from deltaproto import __version__
from deltaproto.errors import DeltaprotoError

SCHEMA_VERSION = "1.1"
DEFAULT_LIMIT = 20
"""number of groups of tables to show"""
NOTICES: list[str] = []
"""notices about weakened checks in this run, set at its start and shown in every format"""
_CONTROL = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\n")
}
# They reorder the text that follows, or end a line, invisibly (Unicode UAX #9).
_UNSEEN = (
    0x061C,
    0x200B,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    0x2060,
    *range(0x2066, 0x206A),
    0xFEFF,
)
_CONTROL |= {code: f"\\u{code:04x}" for code in _UNSEEN}
# GitHub Actions interprets `::name::` at the start of a line, `##[name]` anywhere; so do Azure
# Pipelines and TeamCity with `##vso[` and `##teamcity[`.
# Compiled when first used: hardly any text needs them.
_LINE_COMMAND = r"(?m)^((?:[^\S\n]|\x1b\[[0-9;]*m)*)::"
_COMMAND = r"##(?=\w*\[)"
NEUTRALIZED_COMMAND = ("##", "#\\u0023")
"""text replaced in JSON and its replacement, so that no line contains `##[`"""
_WORTH_IMPORTING = 2_000_000
"""characters of JSON whose indentation takes as long as the import of msgspec"""
_BYTES = 4 << 20
_COPIED = 1 << 18
_ENTRY = ",\n    "
ENTRY_START = "\0"
"""marks the start of each entry; JSON never contains this character unescaped"""
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""what RFC 3339 can express: the years 1 to 9999"""
_STAMP_LENGTH = len("0001-01-01T00:00:00Z")


class Format(StrEnum):
    """Values of `--format`."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


class PageFormat(StrEnum):
    """Values of `--format` for commands that can also write a page."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    HTML = "html"


def envelope(command: str, payload: Mapping[str, Any], *, complete: bool = True) -> dict[str, Any]:
    """Return a command's JSON document: its author, its time, and whether anything is missing."""
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "deltaproto", "version": __version__},
        "command": command,
        "generated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "complete": complete,
        **({"notices": list(NOTICES)} if NOTICES else {}),
        **payload,
    }


def escape_control_chars(text: str) -> str:
    """Return `text` with every control character except the line feed as a backslash escape.

    Marks that change the writing direction are escaped too. So is the beginning of `##[…]`,
    which CI systems interpret anywhere in a line: the output shows exactly what is in the text.
    """
    shown = text.translate(_CONTROL)
    return re.sub(_COMMAND, r"#\\x23", shown) if "##" in shown else shown


def neutralize_lines(text: str) -> str:
    """Return `text` with `::` at the start of a line as `\\x3a:`, so that CI systems ignore it.

    Pass whole lines: names can begin a line, and long texts can wrap anywhere.
    """
    return re.sub(_LINE_COMMAND, r"\1\\x3a:", text) if "::" in text else text


def json_text(
    command: str, payload: Mapping[str, Any], *, line: bool, complete: bool = True
) -> str:
    """Return the text of one document with a final line feed; `line`: on one line, for `jsonl`."""
    return (
        dump_json(envelope(command, payload, complete=complete), indent=None if line else 2) + "\n"
    )


def write_json(
    command: str, payload: Mapping[str, Any], file: IO[str], *, line: bool, complete: bool = True
) -> None:
    """Write the document of `json_text`; iterators are written entry by entry."""
    file.write(open_envelope(command, complete=complete, line=line))
    gap, inner = (", ", "") if line else (",\n  ", "\n    ")
    for name, value in payload.items():
        file.write(f'{gap}"{name}": ')
        if not isinstance(value, Iterator):
            text = dump_json(value, indent=None if line else 2)
            file.write(text.replace("\n", "\n  "))
            continue
        separator = "["
        for entry in value:
            file.write(f"{separator}{inner}{dump_json(entry, indent=None)}")
            separator = ", " if line else ","
        file.write("[]" if separator == "[" else "]" if line else "\n  ]")
    file.write("}\n" if line else "\n}\n")


def dump_json(document: Any, *, indent: int | None = 2) -> str:
    """Return ASCII JSON without `##`, which no terminal, locale or CI system can misinterpret."""
    text = json.dumps(document, allow_nan=False)
    if indent is not None:
        text = _indenter.indent(text, indent) or json.dumps(document, indent=indent)
    return text.replace(*NEUTRALIZED_COMMAND)


class _Indenter:
    """Indents JSON in a quarter of the time of the json module, which does it in Python."""

    def __init__(self) -> None:
        self._unpaid = _WORTH_IMPORTING

    def indent(self, text: str, indent: int) -> str | None:
        """Return JSON as the json module would indent it; None if that has to do it."""
        self._unpaid -= len(text)
        if self._unpaid > 0 and "msgspec" not in sys.modules:
            return None
        import msgspec

        # It refuses half of a surrogate pair, which names of tables can have.
        with suppress(msgspec.DecodeError, RecursionError):
            return msgspec.json.format(text, indent=indent)
        return None


_indenter = _Indenter()


def error_fields(error: DeltaprotoError) -> dict[str, Any]:
    """Return an error as JSON."""
    return {"code": str(error.code), "message": error.message, "hint": error.hint}


def format_timestamp(milliseconds: int | None) -> str | None:
    """Return a log timestamp as RFC 3339 in UTC, to the second.

    Returns None for None, and for times outside the years 1 to 9999.
    """
    seconds = None if milliseconds is None else milliseconds // 1000
    return None if seconds is None or seconds != _representable(seconds) else stamp(seconds)


def stamp(seconds: float | None) -> str | None:
    """Return a time as RFC 3339 in UTC, or the nearest time that RFC 3339 can express; None for
    None.
    """
    if seconds is None:
        return None
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(_representable(seconds)))
    return text.zfill(_STAMP_LENGTH)


def _representable(seconds: float) -> float:
    return min(max(seconds, _FIRST_SECOND), _LAST_SECOND)


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value or a record in which `change` was applied to every text.

    Keys and members of enumerations stay as they are.
    """
    if isinstance(value, str):
        return value if isinstance(value, Enum) else change(value)
    if isinstance(value, dict):
        return {key: map_texts(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        make = getattr(value, "_make", type(value))
        return make([map_texts(each, change) for each in value])
    return value


class JsonArraySpool:
    """Entries encoded in advance, without indentation, which would take ten times as long."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.SpooledTemporaryFile(_BYTES, "w+", encoding="ascii")  # noqa: SIM115

    def add(self, *entries: str) -> None:
        """Add entries as JSON texts."""
        self._file.write(
            "".join([_ENTRY + entry for entry in entries]).replace(*NEUTRALIZED_COMMAND)
        )

    def add_joined(self, entries: str, start: str) -> None:
        """Add entries as JSON texts without their beginning, each after `ENTRY_START`."""
        entries = entries.replace(ENTRY_START, _ENTRY + start)
        self._file.write(entries.replace(*NEUTRALIZED_COMMAND))

    def close(self, name: str, file: IO[str]) -> None:
        """Write the array as the next property of an open document."""
        import shutil

        file.write(f',\n  "{name}": [')
        self._file.seek(len(","))
        shutil.copyfileobj(self._file, file, _COPIED)
        file.write("\n  ]")
        self._file.close()


def open_envelope(command: str, *, complete: bool, line: bool = False) -> str:
    """Return the envelope of a document, open for more properties; `line`: on one line."""
    closed = dump_json(envelope(command, {}, complete=complete), indent=None if line else 2)
    return closed.removesuffix("}").removesuffix("\n")
