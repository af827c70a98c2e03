"""An object of known size as a seekable file, read in ranges."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import RawIOBase
from typing import Any

_WINDOW_BYTES = 1024 * 1024


class RangeFile(RawIOBase):
    """The `size` bytes that `fetch(start, end)` gives, a window of a megabyte at a time.

    A Parquet reader goes from the end to the front and then forward: the window at the end is
    kept beside the last one, so that a small object costs one request and a large one few.
    Whatever `fetch` raises goes through to the reader's caller.
    """

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size, self._fetch = size, fetch
        self._at = 0
        self._tail: tuple[int, bytes] | None = None
        self._last: tuple[int, bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"before the first byte: {base + offset}")
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        data = self._bytes(self._at, end) if self._at < end else b""
        self._at += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _bytes(self, start: int, end: int) -> bytes:
        for window in (self._tail, self._last):
            if window and window[0] <= start and end <= window[0] + len(window[1]):
                return window[1][start - window[0] : end - window[0]]
        tail = max(0, self._size - _WINDOW_BYTES)
        if start >= tail:
            self._tail = tail, self._fetch(tail, self._size)
            return self._tail[1][start - tail : end - tail]
        upto = min(max(end, start + _WINDOW_BYTES), self._size)
        self._last = start, self._fetch(start, upto)
        return self._last[1][: end - start]
