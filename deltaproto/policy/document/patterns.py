"""Which tables a pattern means, and which settings a table gets.

A pattern with a slash is compared with the table's location, from the beginning when it is
absolute, else from any folder on. Another pattern is compared with the catalog name, from any part
on and without regard to case and back quotes; of a table named by a path, with its last folder.
`?` is a character and `*` any number of them within a part; `**` goes across parts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from deltaproto.policy.document.model import Policy, Settings

EVERYTHING = ("*", "**")
_MERGED = ("require_properties", "severities")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_PART = "\0"


def settings_for(policy: Policy, table: str, location: str | None) -> Settings:
    """The settings of one table: each from the most specific pattern that sets it.

    `table` is what the user named, `location` its absolute URI or path, None when not known.
    Severities and required properties are merged key by key.
    """
    merged = Settings(clients=policy.clients, severities=policy.severities)
    matching = [entry for entry in policy.tables if matches(entry.pattern, table, location)]
    for entry in sorted(matching, key=lambda entry: specificity(entry.pattern)):
        said = {
            name: value
            for name, value in entry.settings._asdict().items()
            if value is not None and value != {}
        }
        for name in _MERGED:
            if name in said:
                said[name] = {**getattr(merged, name), **said[name]}
        merged = merged._replace(**said)
    return merged


def specificity(pattern: str) -> int:
    """How narrow a pattern is: the number of its characters that stand for themselves."""
    return sum(character not in "*?`" for character in pattern)


def matches(pattern: str, table: str, location: str | None) -> bool:
    """True when `pattern` means the table; takes time linear in the names' lengths."""
    if pattern in EVERYTHING:
        return True
    named = table[7:-1] if table[:7].lower() == "delta.`" and table.endswith("`") else table
    where = place(named if location is None and _is_path(named, None) else location or "")
    if "/" in pattern:
        wanted = place(pattern)
        absolute = wanted.startswith("/") or "://" in wanted
        return bool(where) and _glob(wanted, "/", anchored=absolute).matches(where)
    if _is_path(named, where):
        return _glob(pattern, "/", anchored=True).matches(where.rpartition("/")[2])
    return _glob(_joined(pattern), _PART, anchored=False).matches(_joined(table))


def problem(pattern: str) -> str | None:
    """Why a pattern can match nothing, or None."""
    if pattern != pattern.strip():
        return "it begins or ends with a space"
    if any(part in (".", "..") for part in pattern.split("/")) and "/" in pattern:
        return "locations are absolute and hold no . or .. folders"
    if "/" not in pattern and not all(_joined(pattern).split(_PART)):
        return "a part between its dots is empty"
    if not pattern.strip("/"):
        return "it names no folder"
    return None


def _is_path(table: str, where: str | None) -> bool:
    """True when the table was named by a path: catalog names have dots and no slash."""
    return "/" in table or "." not in table or (where or "").rpartition("/")[2] == table


@lru_cache(maxsize=1024)
def place(location: str) -> str:
    """A location for comparing: local paths without file:, one name for each kind of store."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return location.rstrip("/")
    scheme = scheme.lower()
    if scheme == "file":
        from urllib.parse import unquote

        path = rest[2:].partition("/")[2] if rest.startswith("//") else rest.lstrip("/")
        return "/" + unquote(path, errors="surrogateescape").strip("/")
    return f"{_SAME_STORE.get(scheme, scheme)}:{rest.rstrip('/')}"


@lru_cache(maxsize=1024)
def _joined(name: str) -> str:
    """The parts of a catalog name, unquoted and in lower case, around a separator of ours."""
    joined, quoted = [], False
    for character in name.lower():
        if character == "`":
            quoted = not quoted
        else:
            joined.append(_PART if character == "." and not quoted else character)
    return "".join(joined)


class _Glob(NamedTuple):
    """A pattern as bit masks over its tokens; bit n stands for the state before token n."""

    literal: dict[str, int]
    one: int
    within: int
    across: int
    optional: int
    """`**` between separators, which together with the next separator may be absent"""
    final: int
    needed: tuple[str, ...]
    """runs of literal characters within parts: quick to look for, and mostly missing"""
    separator: str
    anchored: bool

    def matches(self, text: str) -> bool:
        if not all(run in text for run in self.needed):
            return False
        loops = self.within | self.across
        state = self._reached(1)
        for character in text:
            separates = character == self.separator
            moved = state & self.literal.get(character, 0)
            stayed = state & (self.across if separates else loops)
            if not separates:
                moved |= state & self.one
            moved <<= 1
            if separates and not self.anchored:
                moved |= 1
            state = self._reached(moved) | stayed | (stayed << 1)
            if not state and self.anchored:
                return False
        return bool(state & self.final)

    def _reached(self, state: int) -> int:
        # In this order: what follows `**/` may be a star, what follows a star is never `**/`.
        state |= (state & self.optional) << 2
        return state | (state & (self.within | self.across)) << 1


@lru_cache(maxsize=1024)
def _glob(pattern: str, separator: str, *, anchored: bool) -> _Glob:
    tokens = _tokens(pattern, separator)
    literal: dict[str, int] = {}
    one = within = across = optional = 0
    for number, item in enumerate(tokens):
        bit = 1 << number
        if item == "?":
            one |= bit
        elif item == "*":
            within |= bit
        elif item == "**":
            across |= bit
            around = tokens[max(number - 1, 0) : number] + tokens[number + 1 : number + 2]
            if set(around) == {separator} and tokens[number + 1 :]:
                optional |= bit
        else:
            literal[item] = literal.get(item, 0) | bit
    return _Glob(
        literal,
        one,
        within,
        across,
        optional,
        final=1 << len(tokens),
        needed=tuple(re.findall(rf"[^*?{separator}]+", pattern)),
        separator=separator,
        anchored=anchored,
    )


def _tokens(pattern: str, separator: str) -> list[str]:
    """Characters, and runs of stars as one token; `**/**/` is one `**/`."""
    tokens: list[str] = []
    for character in pattern:
        if character == "*" and tokens and tokens[-1] in EVERYTHING:
            tokens[-1] = "**"
        else:
            tokens.append(character)
        repeated = ["**", separator, "**", separator]
        if tokens[-4:] == repeated and tokens[-5:-4] in ([], [separator]):
            del tokens[-2:]
    return tokens
