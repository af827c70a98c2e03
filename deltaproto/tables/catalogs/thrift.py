"""Calls of a Thrift service by its binary protocol, without a library.

Source: Apache Thrift's "Thrift Binary protocol encoding" (strict, unframed), which Hive metastores
use by default. Structs are mappings from field numbers to values; unwanted fields are skipped.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

_VERSION, _CALL, _REPLY, _EXCEPTION = 0x80010000, 1, 2, 3
_STOP, _STRING, _STRUCT, _MAP, _SET, _LIST = 0, 11, 12, 13, 14, 15
_SIZES = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
"""bytes of booleans, bytes, doubles and integers"""
_MOST_BYTES = 256 << 20
_MOST_DEPTH = 32
Wanted = Mapping[int, "Wanted"]
"""the fields to read of a struct, or of the structs in a list; empty: the field as a whole"""


class ThriftError(Exception):
    """A response that is not of this protocol, or reports an error of the service."""


class DeclaredError(Exception):
    """An exception that the method declares.

    Args:
        field: its number in the method's result.
        message: its first member.
    """

    def __init__(self, field: int, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


class ThriftConnection:
    """One connection; for one thread.

    Raises:
        OSError: when it cannot be opened.
    """

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._socket = socket.create_connection((host, port), seconds)
        self._stream = self._socket.makefile("rb", 1 << 16)
        self._calls = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def call(self, method: str, *arguments: str | Sequence[str], wanted: Wanted) -> Any:
        """Return the result of a method.

        Args:
            arguments: strings and lists of strings, in the order of their field numbers.
            wanted: the fields to read of a result that is a struct, or a list of structs.

        Raises:
            DeclaredError: an exception of the method.
            ThriftError: a response that cannot be read, or an unknown method.
            OSError: when the connection breaks.
        """
        self._calls += 1
        head = struct.pack(">I", _VERSION | _CALL) + _text(method) + struct.pack(">i", self._calls)
        fields = b"".join(_argument(n, value) for n, value in enumerate(arguments, 1))
        self._socket.sendall(head + fields + bytes([_STOP]))
        version = self._unpack(">I", 4)
        if version & 0xFFFF0000 != _VERSION:
            raise ThriftError("it does not answer in Thrift's binary protocol")
        name, number = self._string(), self._unpack(">i", 4)
        if version & 0xFF == _EXCEPTION:
            raise ThriftError(str(self._struct({1: {}}, 0).get(1, "an error without a message")))
        if (version & 0xFF, name, number) != (_REPLY, method, self._calls):
            raise ThriftError("its response belongs to another call")
        result = self._struct({0: wanted, **{n: {1: {}} for n in range(1, 8)}}, 0)
        for field, value in result.items():
            if field:
                raise DeclaredError(field, str(value.get(1, "")))
        if 0 not in result:
            raise ThriftError("its response has no result")
        return result[0]

    def _struct(self, wanted: Wanted, depth: int) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise ThriftError("its response is nested too deeply")
        found: dict[int, Any] = {}
        while (kind := self._unpack(">B", 1)) != _STOP:
            field = self._unpack(">h", 2)
            if field in wanted:
                found[field] = self._value(kind, wanted[field], depth)
            else:
                self._value(kind, None, depth)
        return found

    def _value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        """Read a value; `wanted` is None for one that is skipped."""
        if kind == _STRING:
            return self._string() if wanted is not None else self._read(self._size())
        if kind == _STRUCT:
            return self._struct(wanted or {}, depth + 1)
        if kind == _MAP:
            keys, values = self._read(2)
            return {
                self._value(keys, wanted, depth + 1): self._value(values, wanted, depth + 1)
                for _ in range(self._size())
            }
        if kind in (_SET, _LIST):
            (inner,) = self._read(1)
            return [self._value(inner, wanted, depth + 1) for _ in range(self._size())]
        if kind not in _SIZES:
            raise ThriftError("its response has a value of an unknown type")
        return int.from_bytes(self._read(_SIZES[kind]), "big", signed=True)

    def _size(self) -> int:
        size = int(self._unpack(">i", 4))
        if not 0 <= size <= _MOST_BYTES:
            raise ThriftError("its response has an invalid length")
        return size

    def _string(self) -> str:
        return self._read(self._size()).decode("utf-8", "replace")

    def _unpack(self, form: str, size: int) -> Any:
        return struct.unpack(form, self._read(size))[0]

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if len(data) < size:
            raise ConnectionResetError("it closed the connection")
        return data


def _argument(number: int, value: str | Sequence[str]) -> bytes:
    if isinstance(value, str):
        return struct.pack(">Bh", _STRING, number) + _text(value)
    items = b"".join(map(_text, value))
    return struct.pack(">BhBi", _LIST, number, _STRING, len(value)) + items


def _text(value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    return struct.pack(">i", len(data)) + data
