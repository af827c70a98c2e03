"""Match table patterns.

A pattern with a slash is compared with the table's location: from the beginning if it is absolute,
otherwise from any folder. A pattern without a slash is compared with the catalog name, from any
part, ignoring case and back quotes; of several names of a table, any may match. For a table given
by path, it is compared with the last folder.
`?` matches one character and `*` any number within a part; `**` matches across parts.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from deltaproto.location import CATALOG_SCHEMES, name_in_catalog

EVERYTHING = ("*", "**")
SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "az": "abfss", "azure": "abfss"}
"""schemes, and the one that names the same store"""
_PART = "\0"
_LOG_FOLDER = "_delta_log"
_ESCAPE = r"%[0-9A-Fa-f]{2}"
# Alternatives, extended globs such as +(a), a variable as a folder, and regular expressions.
_ELSEWHERE = r"\||[?*+@]\(|(?<![^/])\$[A-Za-z_]\w*(?![^/])|^\^|(?<=/)\.\*+(?![^/])"


def matches_table(pattern: str, table: str, location: str | None) -> bool:
    """Return True if `pattern` matches the table, in time linear in the names' lengths."""
    return TableNames(table, location).match(pattern)


class TableNames:
    """A table's name and its locations, for pattern matching.

    Args:
        table: the name given by the user.
        location: its absolute URI or path; None if unknown.
        folders: cache of resolved folder paths; extended here.
        others: further names of the location, in catalogs and through links.
    """

    def __init__(
        self,
        table: str,
        location: str | None,
        folders: dict[str, str] | None = None,
        others: Iterable[str] = (),
    ) -> None:
        if table.partition("://")[0] in CATALOG_SCHEMES:
            table = name_in_catalog(table)
        named = table[7:-1] if table[:7].lower() == "delta.`" and table.endswith("`") else table
        where = normalize_location(
            named if location is None and _is_path(named, None) else location or ""
        )
        self._by_path = _is_path(named, where)
        others = tuple(others)
        paths = [normalize_location(other) for other in others if other.startswith("/")]
        named_so = (other for other in others if not other.startswith("/"))
        names = named_so if self._by_path else (table, *named_so)
        self._names = tuple(_join_name(_normalize_unicode(name)) for name in names)
        real = _resolve_links(where, folders)
        self._places = tuple(
            dict.fromkeys(map(_normalize_unicode, (where, real, *_owners_of_log(real), *paths)))
        )

    def match(self, pattern: str) -> bool:
        """Return True if `pattern` matches the table."""
        if pattern in EVERYTHING:
            return True
        globs = _compile_pattern(pattern)
        if globs.location is not None:
            return any(map(globs.location.matches, filter(None, self._places)))
        if self._by_path and globs.folder is not None:
            folders = (where.rpartition("/")[2] for where in self._places)
            if any(map(globs.folder.matches, folders)):
                return True
        return globs.name is not None and any(map(globs.name.matches, self._names))


def pattern_parts(pattern: str) -> list[str]:
    """Split a location pattern, without its scheme, or a catalog name into its parts."""
    if "/" not in pattern:
        return _join_name(pattern).split(_PART)
    wanted = normalize_location(pattern)
    return [part for part in wanted.rpartition("://")[2].split("/") if part]


def find_pattern_problem(pattern: str) -> str | None:
    """Explain why a pattern can never match, or return None."""
    if pattern != pattern.strip():
        return "it begins or ends with a space"
    if found := _unsupported(pattern):
        return f"{found} is not supported"
    if any(part in (".", "..") for part in pattern.split("/")) and "/" in pattern:
        return "locations are absolute and have no . or .. folders"
    if "/" not in pattern and not all(_join_name(pattern).split(_PART)):
        return "a part between its dots is empty"
    if not pattern.strip("/"):
        return "it has no folder name"
    return None


def _unsupported(pattern: str) -> str | None:
    """Return pattern syntax of other tools that would be matched literally here."""
    quoted = pattern if "/" in pattern else re.sub(r"`(?:[^`]|``)*`", "", pattern)
    if found := re.search(r"[{}\[\]\\]|^[~!]", quoted):
        return {"\\": "a backslash", "~": "~", "!": "!"}.get(found[0], found[0])
    if found := re.search(_ELSEWHERE, quoted):
        return found[0]
    if "//" in re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://+", "", quoted):
        return "//"
    if not quoted.lower().startswith("file:") and (escape := re.search(_ESCAPE, quoted)):
        return f"the escape {escape[0]} (write the character itself)"
    return None


def _is_path(table: str, where: str | None) -> bool:
    """Return True if the table name is a path: catalog names have dots but no slash.

    `.` and `..` are paths: a catalog name has no empty part.
    """
    if "/" in table or not all(_join_name(table).split(_PART)) or "." not in table:
        return True
    return (where or "").rpartition("/")[2] == table


def _normalize_unicode(text: str) -> str:
    """Normalize characters that Unicode can encode in several ways."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _resolve_links(where: str, folders: dict[str, str] | None) -> str:
    """Resolve symbolic links, so that a link cannot bypass a pattern."""
    if not where.startswith("/"):
        return where
    above, _, name = where.rpartition("/")
    try:
        if folders is None or name in ("", ".", "..") or os.path.islink(where):
            return os.path.realpath(where)
        if above not in folders:
            folders[above] = os.path.realpath(above)
        return f"{folders[above].rstrip('/')}/{name}"
    except (OSError, ValueError):
        return where


def _owners_of_log(real: str) -> Iterator[str]:
    """Yield the table that a log is linked from: a change of this table also changes that one."""
    log = f"{real}/{_LOG_FOLDER}"
    if real.startswith("/") and os.path.islink(log):
        yield os.path.realpath(log).removesuffix(f"/{_LOG_FOLDER}")


@lru_cache(maxsize=1024)
def normalize_location(location: str) -> str:
    """Normalize a location: local paths without file:, one scheme per kind of store."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return location.rstrip("/")
    scheme = scheme.lower()
    if scheme == "file":
        from urllib.parse import unquote

        path = rest[2:].partition("/")[2] if rest.startswith("//") else rest.lstrip("/")
        return "/" + unquote(path, errors="surrogateescape").strip("/")
    return f"{SAME_STORE.get(scheme, scheme)}:{rest.rstrip('/')}"


@lru_cache(maxsize=1024)
def _join_name(name: str) -> str:
    """Join the unquoted, lowercase parts of a catalog name with an internal separator."""
    joined, quoted = [], False
    for character in name.lower():
        if character == "`":
            quoted = not quoted
        else:
            joined.append(_PART if character == "." and not quoted else character)
    return "".join(joined)


class _Glob(NamedTuple):
    """A pattern as bit masks over its tokens; bit n is the state before token n."""

    literal: dict[str, int]
    one: int
    within: int
    across: int
    optional: int
    """`**` between separators: it and the next separator may both be absent"""
    final: int
    needed: tuple[str, ...]
    """runs of literal characters within parts: cheap to search for, and usually absent"""
    separator: str
    anchored: bool

    def matches(self, text: str) -> bool:
        for run in self.needed:
            if run not in text:
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
        # The order matters: a star may follow `**/`, but `**/` never follows a star.
        state |= (state & self.optional) << 2
        return state | (state & (self.within | self.across)) << 1


class _Globs(NamedTuple):
    """The forms of a pattern, one for each kind of text; None: it does not apply to that kind."""

    location: _Glob | None = None
    folder: _Glob | None = None
    """the last folder of a table given by path"""
    name: _Glob | None = None


# A policy may have thousands of patterns, and each table is compared with all of them.
@lru_cache(maxsize=1 << 14)
def _compile_pattern(pattern: str) -> _Globs:
    pattern = _normalize_unicode(pattern)
    if "/" in pattern:
        wanted = normalize_location(pattern)
        anchored = wanted.startswith("/") or "://" in wanted
        return _Globs(location=_compile_glob(wanted, "/", anchored=anchored))
    return _Globs(
        folder=_compile_glob(pattern, "/", anchored=True),
        name=_compile_glob(_join_name(pattern), _PART, anchored=False),
    )


def _compile_glob(pattern: str, separator: str, *, anchored: bool) -> _Glob:
    tokens = _split_pattern(pattern, separator)
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


def _split_pattern(pattern: str, separator: str) -> list[str]:
    """Split into characters and runs of stars; collapse `**/**/` to one `**/`."""
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
