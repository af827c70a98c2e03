"""Reads the entries of a long JSON document one by one, in the memory of one entry.

`inspect --output` writes all tables into one document. Parsing it at once takes many times its
size; here the array `tables` of the outermost object is read entry by entry.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO, Any, TypeVar

from deltaproto.errors import UsageError

_CHUNK = 1 << 18
_SPACE = " \t\r\n"
# `1`, `1.`, `1e` and `1e+` all parse as 1 until the next character is read.
_UNDECIDED = 2
_T = TypeVar("_T")
_KINDS: dict[type, str] = {
    bool: "true or false",
    dict: "an object",
    int: "a whole number",
    list: "a list",
    str: "a string",
}


class WrongTypeError(TypeError):
    """A member of an entry has the wrong type; the message uses JSON's terms."""


def require_type(wanted: type[_T], value: Any) -> _T:
    """Require a value of this type, and return it.

    Raises:
        WrongTypeError: for a value of another type.
    """
    # The exact type: True is an int, too.
    if type(value) is not wanted:
        raise WrongTypeError(f"{json.dumps(value, default=repr):.40} is not {_KINDS[wanted]}")
    return value


def require_string(value: Any) -> str:
    """Require a string. Raises like `require_type`."""
    return require_type(str, value)


def optional_string(value: Any) -> str | None:
    """Require a string or null. Raises like `require_type`."""
    return None if value is None else require_string(value)


class JsonFile:
    """A JSON object, or JSON lines of objects, in a binary file.

    Args:
        name: the file's name for errors.
        array: the member of the object whose entries are yielded one by one; None: every array.
    """

    def __init__(self, file: IO[bytes], name: str, array: str | None) -> None:
        self._file, self._name, self._array = file, name, array
        self._text, self._place, self._done = "", 0, False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self.members: dict[str, Any] = {}
        """the other members of the object read so far"""
        self.listed = False
        """whether that object has the array"""
        self.current = ""
        """the member whose entries are being yielded"""
        self.arrays: set[str] = set()
        """the members of that object read so far whose entries were yielded"""
        self.one_line = True
        """whether the members of that object are on one line"""

    def objects(self) -> Iterator[Iterator[Any]]:
        """Yield the entries of the array for each object; consume them before the next object.

        Raises:
            UsageError: when the file is not such a document.
        """
        while self._peek():
            yield self._entries()

    def _entries(self) -> Iterator[Any]:
        self.members, self.listed, self.arrays = {}, False, set()
        self._expect("{")
        self.one_line = True
        if self._peek() == "}":
            self._place += 1
            return
        while True:
            key = self._value()
            if not isinstance(key, str):
                raise self._wrong("a member's name")
            self._expect(":")
            if self._array in (key, None) and self._peek() == "[":
                self.listed, self.current = True, key
                self.arrays.add(key)
                yield from self._items()
            else:
                self.members[key] = self._value()
            if self._next("}") == "}":
                return

    def _items(self) -> Iterator[Any]:
        self._place += 1
        if self._peek() == "]":
            self._place += 1
            return
        while True:
            yield self._value()
            if self._next("]") == "]":
                return

    def _next(self, closing: str) -> str:
        found = self._peek()
        if found not in (",", closing) or not found:
            raise self._wrong(f"a comma or {closing}")
        self._place += 1
        return found

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._wrong(character)
        self._place += 1

    def _peek(self) -> str:
        """Return the next non-whitespace character; empty at the end."""
        while True:
            while self._place < len(self._text):
                if self._text[self._place] not in _SPACE:
                    return self._text[self._place]
                self.one_line = self.one_line and self._text[self._place] != "\n"
                self._place += 1
            if not self._more():
                return ""

    def _value(self) -> Any:
        wanted = 0
        self._peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._place)
            except (ValueError, RecursionError):
                end = -1
            if end >= 0 and (end + _UNDECIDED < len(self._text) or self._done):
                self._place = end
                return value
            wanted = max(wanted * 2, _CHUNK)
            if not self._more(wanted) and end < 0:
                raise self._wrong("a JSON value")

    def _more(self, wanted: int = _CHUNK) -> bool:
        if self._done:
            return False
        try:
            data = self._file.read(wanted)
            text = self._decode.decode(data, final=not data)
        except UnicodeDecodeError:
            raise UsageError(
                f"{self._name} is not UTF-8", "pass the JSON that `inspect` or `check` wrote"
            ) from None
        self._done = not data
        self._text = self._text[self._place :] + text
        self._place = 0
        return bool(data)

    def _wrong(self, wanted: str) -> UsageError:
        return UsageError(
            f"{self._name} is not the output of `inspect --format json`: {wanted} was expected",
            "save an inspection with `deltaproto inspect … --format json --output FILE`",
        )
