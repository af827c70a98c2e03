"""Output formats and the envelope that every machine-readable output shares."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from deltaproto import __version__
from deltaproto.errors import DeltaprotoError

SCHEMA_VERSION = "1.1"
NOTICES: list[str] = []
"""what weakens the gate of this run, set at its start; every format shows it"""
_CONTROL = {
    code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code != ord("\n")
}
# They turn the order of what follows, or end a line, without being seen (Unicode UAX #9).
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
# GitHub Actions obeys `::name::` at the start of a line, `##[name]` anywhere; so do Azure Pipelines
# and TeamCity with `##vso[` and `##teamcity[`.
_LINE_COMMAND = re.compile(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*)::", re.MULTILINE)
_COMMAND = re.compile(r"##(?=\w*\[)")
NEUTRALIZED_COMMAND = ("##", "#\\u0023")
"""what in JSON is replaced, and by what, so that no line of it holds `##[`"""


class Format(StrEnum):
    """What `--format` takes."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


class PageFormat(StrEnum):
    """What `--format` takes where the answer may be a page."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    HTML = "html"


def envelope(command: str, payload: Mapping[str, Any], *, complete: bool = True) -> dict[str, Any]:
    """The document of one command: who made it, when, and whether anything is missing."""
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
    """`text` with every control character but the line feed as a backslash escape.

    So are marks that change the direction of writing, and the beginning of `##[…]`, which CI
    systems obey anywhere in a line: what is shown is what is there.
    """
    shown = text.translate(_CONTROL)
    return _COMMAND.sub(r"#\\x23", shown) if "##" in shown else shown


def neutralize_lines(text: str) -> str:
    """`text` with `::` at the start of a line as `\\x3a:`, so that no CI system obeys the line.

    For whole lines: names can begin one, and long texts are folded anywhere.
    """
    return _LINE_COMMAND.sub(r"\1\\x3a:", text) if "::" in text else text


def json_text(
    command: str, payload: Mapping[str, Any], *, line: bool, complete: bool = True
) -> str:
    """The text of one document, with its line feed; with `line` as `jsonl` has it."""
    return (
        dump_json(envelope(command, payload, complete=complete), indent=None if line else 2) + "\n"
    )


def dump_json(document: Any, *, indent: int | None = 2) -> str:
    """JSON text in ASCII without `##`, so that no terminal, locale or CI system can break it."""
    return json.dumps(document, indent=indent, allow_nan=False).replace(*NEUTRALIZED_COMMAND)


def error_fields(error: DeltaprotoError) -> dict[str, Any]:
    """An error as the JSON outputs show it."""
    return {"code": str(error.code), "message": error.message, "hint": error.hint}


def format_timestamp(milliseconds: int | None) -> str | None:
    """A time in the log as RFC 3339 in UTC, to the second; None where there is none."""
    if milliseconds is None:
        return None
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(milliseconds / 1000))
    except (OverflowError, ValueError, OSError):
        return None
