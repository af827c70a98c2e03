"""Keeps the small files of one log on an object store, and fetches commits before they are read.

A store takes milliseconds to answer each request, but answers many at once. A command reads a log
commit by commit, in the order of versions or against it, and most of its files several times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from deltaproto.interrupts import READER_THREADS, defer_signals, wait_for

_SMALL_BYTES = 1 << 20
_KEPT_BYTES = 16 << 20
_REQUESTS = 32
"""requests at the same time, in the whole process"""
_MOST_AHEAD = 16
"""commits of one log that are fetched ahead"""
_COMMIT = re.compile(r"(?a)(\d{20})\.json")
_CHECKPOINT = re.compile(r"(?a)(\d{20})\.checkpoint\..+")


class ListedFile(NamedTuple):
    """A file as its store lists it."""

    size: int
    """bytes"""
    tag: str | None
    """its ETag, which is another one for other contents"""


class SmallFiles:
    """The small files of one log: those that were read, and the next commits.

    Args:
        fetch: returns the contents of a file in the folder.
    """

    def __init__(self, fetch: Callable[[str], bytes]) -> None:
        self._fetch = fetch
        self._listed: Mapping[str, ListedFile] = {}
        self._kept: dict[str, bytes] = {}
        self._coming: dict[str, Future[bytes]] = {}
        self._checkpoint = -1
        self._bytes = 0
        self._last: int | None = None
        self._ahead = 0

    def listed(self, files: Mapping[str, ListedFile]) -> None:
        """Forget files that changed since the listing before."""
        for name in [*self._kept, *self._coming]:
            if self._listed.get(name) != files.get(name):
                self._forget(name)
        self._listed = files
        self._checkpoint = max(map(int, filter(None, map(_checkpoint_version, files))), default=-1)

    def read(self, name: str) -> bytes | None:
        """Return the contents of a small file; None for one that is not kept.

        Raises:
            TableError: when it cannot be read.
        """
        if not self._is_kept(name):
            return None
        self._fetch_ahead(name)
        data = self._kept.pop(name, None)
        if data is None:
            data = self._receive(name)
            self._bytes += len(data)
        # The one that was read last is forgotten last.
        self._kept[name] = data
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._forget(next(iter(self._kept)))
        return data

    def _is_kept(self, name: str) -> bool:
        found = self._listed.get(name)
        return found is not None and found.tag is not None and found.size <= _SMALL_BYTES

    def _receive(self, name: str) -> bytes:
        future = self._coming.pop(name, None)
        return self._fetch(name) if future is None else wait_for(future)

    def _forget(self, name: str) -> None:
        self._bytes -= len(self._kept.pop(name, b""))
        if (future := self._coming.pop(name, None)) is not None:
            future.cancel()

    def _fetch_ahead(self, name: str) -> None:
        """Fetch the commits that follow if this one follows the last, more of them each time."""
        found = _COMMIT.fullmatch(name)
        if found is None:
            return
        version, last = int(found[1]), self._last
        if version == last:
            return
        self._last = version
        if last is None or abs(version - last) != 1:
            self._ahead = 0
            return
        self._ahead = min(2 * self._ahead or 2, _MOST_AHEAD)
        step = version - last
        for number in range(version + step, version + step * (self._ahead + 1), step):
            following = f"{number:020d}.json"
            # Most readers go down to the newest checkpoint, and no further.
            if number <= self._checkpoint < version or not self._is_kept(following):
                return
            if following not in self._kept and following not in self._coming:
                with defer_signals():
                    self._coming[following] = _threads().submit(self._fetch, following)


def _checkpoint_version(name: str) -> str | None:
    found = _CHECKPOINT.fullmatch(name)
    return None if found is None else found[1]


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_REQUESTS, thread_name_prefix=READER_THREADS)
