"""A canonical form for the column types of catalogs, Spark and Delta's log.

Source: Delta's PROTOCOL.md ("Schema Serialization Format"), Spark's `DataTypeAstBuilder`, Hive's
`TypeInfoUtils`. An ambiguous spelling has no form, so it is never compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

_EXACT = {
    **{name: name for name in ("boolean", "binary", "date", "string", "float", "double")},
    **{"tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint", "short": "smallint"},
    **{"int": "int", "integer": "int", "bigint": "bigint", "long": "bigint"},
    **{"timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz"},
    **{"decimal": "decimal(10,0)", "variant": "variant"},
}
# Hive has one type for both kinds of timestamps.
_HIVE = {**_EXACT, "timestamp_ntz": "timestamp"}
del _HIVE["variant"]
_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[<>(),:]|[^\s<>(),:`']+|\S")
_NAME = re.compile(r"[^<>(),:`']+")
_DEEPEST = 100


class _UnknownTypeError(Exception):
    pass


@lru_cache(maxsize=4096)
def canonical_type(text: str, *, hive: bool = False) -> str | None:
    """Return the form of a type such as `struct<a:int>`, as Hive, Glue or Spark's DDL writes it.

    Field names are in lower case and sorted. `char(3)` and `varchar(3)` are `string`, as in the
    log.

    Args:
        hive: whether the catalog has only the types of Hive.

    Returns:
        None if the type is unknown, cut off, or ambiguous.
    """
    parser = _Parser(_TOKEN.findall(text), _HIVE if hive else _EXACT)
    try:
        found = parser.type(0)
        parser.expect("")
    except _UnknownTypeError:
        return None
    return found


def canonical_json_type(type_: object, *, hive: bool = False) -> str | None:
    """Return the form of a type in Delta's and Spark's JSON; None as for `canonical_type`.

    Args:
        hive: return the form in a catalog that has only Hive's types.
    """
    try:
        return _json_form(type_, hive, 0)
    except _UnknownTypeError:
        return None


def _json_form(type_: object, hive: bool, depth: int) -> str:
    if isinstance(type_, str):
        form = canonical_type(type_, hive=hive)
        if form is None:
            raise _UnknownTypeError
        return form
    if not isinstance(type_, Mapping) or depth > _DEEPEST:
        raise _UnknownTypeError

    def inner(key: str) -> str:
        return _json_form(type_.get(key), hive, depth + 1)

    match type_.get("type"):
        case "array":
            return f"array<{inner('elementType')}>"
        case "map":
            return f"map<{inner('keyType')},{inner('valueType')}>"
        case "struct" if isinstance(fields := type_.get("fields"), list):
            if all(isinstance(each, Mapping) for each in fields):
                return _struct_form(
                    (each.get("name"), _json_form(each.get("type"), hive, depth + 1))
                    for each in fields
                )
    raise _UnknownTypeError


def _struct_form(fields: Iterable[tuple[object, str]]) -> str:
    found = []
    for name, form in fields:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _UnknownTypeError
        found.append(f"{' '.join(name.lower().split())}:{form}")
    return f"struct<{','.join(sorted(found))}>"


class _Parser:
    """Reads one type from tokens. Names of fields may contain spaces without being quoted."""

    def __init__(self, tokens: list[str], known: Mapping[str, str]) -> None:
        self._tokens, self._known = iter((*tokens, "", "")), known
        self._token = next(self._tokens)

    def expect(self, *words: str) -> None:
        for word in words:
            if not self._take(word):
                raise _UnknownTypeError

    def type(self, depth: int) -> str:
        """Read a type, and return its form."""
        word = self._next().lower()
        if depth > _DEEPEST:
            raise _UnknownTypeError
        match word:
            case "array":
                return f"array<{self._listed(depth, 1)}>"
            case "map":
                return f"map<{self._listed(depth, 2)}>"
            case "struct":
                return self._struct(depth)
            case "decimal" if self._take("("):
                precision = self._number()
                scale = self._number() if self._take(",") else 0
                self.expect(")")
                return f"decimal({precision},{scale})"
            case "char" | "varchar":
                self.expect("(")
                self._number()
                self.expect(")")
                return "string"
            case "string" if self._take("collate"):
                self._next()
            case "timestamp" if self._take("with"):
                self.expect("local", "time", "zone")
        if word not in self._known:
            raise _UnknownTypeError
        return self._known[word]

    def _listed(self, depth: int, number: int) -> str:
        self.expect("<")
        forms = [self.type(depth + 1)]
        while len(forms) < number:
            self.expect(",")
            forms.append(self.type(depth + 1))
        self.expect(">")
        return ",".join(forms)

    def _struct(self, depth: int) -> str:
        self.expect("<")
        fields: list[tuple[object, str]] = []
        while not self._take(">"):
            if fields:
                self.expect(",")
            words = [self._next()]
            while not self._take(":"):
                words.append(self._next())
            quoted = len(words) == 1 and words[0].startswith("`")
            name = words[0][1:-1].replace("``", "`") if quoted else " ".join(words)
            fields.append((name, self.type(depth + 1)))
            if self._take("not"):
                self.expect("null")
            if self._take("comment"):
                self._next()
        return _struct_form(fields)

    def _number(self) -> int:
        text = self._next()
        if not text.isascii() or not text.isdecimal():
            raise _UnknownTypeError
        return int(text)

    def _next(self) -> str:
        token, self._token = self._token, next(self._tokens, "")
        if not token:
            raise _UnknownTypeError
        return token

    def _take(self, word: str) -> bool:
        if self._token.lower() != word:
            return False
        self._token = next(self._tokens, "")
        return True
