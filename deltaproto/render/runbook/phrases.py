"""The phrases of a runbook in the requested language; the texts are stored in `languages/`.

Texts that come from plans (why a step is needed, who is affected) are English.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from deltaproto.errors import UsageError, quote_short
from deltaproto.input_file import open_input
from deltaproto.render.document.blocks import Code, Inline, Line, Strong, Tone
from deltaproto.render.document.page import PageTexts
from deltaproto.render.interface import stamp

_FOLDER = Path(__file__).parent / "languages"
_ENGLISH = "en"
_RENAMED = {"clients.labelled": "clients.labeled", "activity.quiet": "activity.idle"}
"""keys of earlier releases and their current names"""
_RETIRED = ("and_more",)
"""phrases of earlier releases, which custom language files may still contain"""
_PARTS = re.compile(r"(`[^`]*`|\*\*[^*]*\*\*|\{\w+\})")
_NAME = re.compile(r"\{(\w+)\}")


class Phrases:
    """The phrases of one language; missing phrases are English."""

    def __init__(self, language: str, own: Mapping[str, str]) -> None:
        self.language = language
        self._phrases = {**english(), **own}

    def text(self, key: str, **values: str | int) -> str:
        """Return a phrase as plain text, for titles and headings."""
        texts = {name: _format_number(value) for name, value in values.items()}
        bare = self._phrases[key].replace("`", "")
        return _NAME.sub(lambda found: texts[found[1]], bare)

    def line(self, key: str, **values: str | int | Inline | Line) -> Line:
        """Return a phrase with its values inserted; the values are escaped as data.

        In a phrase, backticks mark code and two asterisks mark important text.
        """
        parts: list[Inline] = []
        for piece in _PARTS.split(self._phrases[key]):
            if piece.startswith("`"):
                parts.append(Code(_filled(piece[1:-1], values)))
            elif piece.startswith("**"):
                parts.append(Strong(_filled(piece[2:-2], values)))
            elif piece.startswith("{"):
                parts += _inlines(values[piece[1:-1]])
            elif piece:
                parts.append(piece)
        return tuple(parts)

    def count(self, key: str, number: int) -> str:
        """Return a number and its noun: `key` has the variants `.one` and `.many`."""
        return self.text(f"{key}.{'one' if number == 1 else 'many'}", count=_format_number(number))

    @property
    def words(self) -> PageTexts:
        """The texts of the page around the runbook."""
        texts = {
            name: self._phrases[f"page.{name}"] for name in PageTexts._fields if name != "tones"
        }
        return PageTexts(**texts, tones={tone: self._phrases[f"page.{tone}"] for tone in Tone})


def phrases(language: str) -> Phrases:
    """Return the phrases of a packaged language, or of a custom YAML file.

    Raises:
        UsageError: if the language does not exist, or the file is not a valid language file.
    """
    if language == _ENGLISH:
        return Phrases(_ENGLISH, {})
    if not os.path.isfile(language):
        known = ", ".join(sorted(path.stem for path in _FOLDER.glob("*.yaml")))
        raise UsageError(
            f"unknown language {quote_short(language)}",
            f"use {known}, or a YAML file with custom phrases",
        )
    own = _checked(_loaded(language), language)
    return Phrases(own.pop("language", Path(language).stem), own)


@cache
def english() -> Mapping[str, str]:
    """Return every phrase in English."""
    loaded: Mapping[str, str] = yaml.safe_load(
        (_FOLDER / f"{_ENGLISH}.yaml").read_text(encoding="utf-8")
    )
    return loaded


def _loaded(path: str) -> Any:
    try:
        with open_input(path) as file:
            return yaml.safe_load(file.read().decode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError):
        raise UsageError(f"{path} is not valid YAML", "map each phrase's key to its text") from None


def _checked(found: Any, path: str) -> dict[str, str]:
    if not isinstance(found, dict) or not all(
        isinstance(part, str) for pair in found.items() for part in pair
    ):
        raise UsageError(f"{path} does not map keys to texts", "see languages/en.yaml")
    named = {_RENAMED.get(str(key), str(key)): str(text) for key, text in found.items()}
    for key, text in named.items():
        if key == "language" or key in _RETIRED:
            continue
        if key not in english():
            raise UsageError(f"{path}: unknown phrase {key}", "languages/en.yaml lists all phrases")
        lacks = set(_NAME.findall(text)) - set(_NAME.findall(english()[key]))
        if lacks:
            raise UsageError(
                f"{path}: {key} has no value {{{min(lacks)}}}",
                f"use only the values of: {english()[key]}",
            )
    return named


def _filled(text: str, values: Mapping[str, Any]) -> str:
    return _NAME.sub(lambda found: _plain(values[found[1]]), text)


def _plain(value: Any) -> str:
    if isinstance(value, Code | Strong):
        return value.text
    if isinstance(value, tuple):
        return "".join(map(_plain, value))
    return _format_number(value)


def _inlines(value: Any) -> Line:
    if isinstance(value, Code | Strong):
        return (value,)
    if isinstance(value, tuple):
        return value
    return (_format_number(value),)


def _format_number(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def when(seconds: float | None) -> str:
    """Return a time as `YYYY-MM-DD HH:MM:SS UTC`; empty for None."""
    return (stamp(seconds) or "").replace("T", " ").replace("Z", " UTC")
