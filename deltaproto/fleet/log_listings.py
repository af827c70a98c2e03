"""Lists the logs of many folders of S3 with few requests.

A listing of everything below a folder has the logs of its subfolders in order of their names, and
one response has a thousand files: the logs of all small tables in it. The data files of a table are
skipped by requesting the keys that sort after its folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from deltaproto.tables.storage.interface import Deadline, FolderEntry
from deltaproto.tables.storage.objects import LOG_FOLDER, translate_store_errors
from deltaproto.tables.storage.opening import open_store

_PAGE = 1000
"""number of files in a response of S3"""
_WORTHWHILE = 5
"""number of logs for which a response of this size takes no longer than a listing of each"""
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]+")
"""names that the client sends unchanged when it requests the keys that sort after them"""
_CHECKPOINT_HINT = "_last_checkpoint"


def lists_in_order(uri: str) -> bool:
    """Return True if the store lists files in order of their keys, from any key on.

    Of S3's buckets, directory buckets do not. Other stores may, but their client would list
    everything before that key as well.
    """
    scheme, _, rest = uri.partition("://")
    return scheme.lower() in ("s3", "s3a") and not rest.partition("/")[0].endswith("--x-s3")


def list_logs(
    uri: str, names: Collection[str], options: Mapping[str, str], deadline: Deadline
) -> dict[str, tuple[FolderEntry, ...]]:
    """Return the listings of the logs in some of the folders `names` directly below `uri`.

    A missing folder may still be a table: listings end early when they show few logs, so absence
    from a listing proves nothing.

    Raises:
        TableError: as from a log store's `list`.
    """
    import obstore

    with translate_store_errors(uri, options):
        store, key = open_store(uri, options)
        prefix = f"{key}/" if key else ""
        listings = _Listings(prefix, [name for name in names if _PLAIN.fullmatch(prefix + name)])
        while listings.offset is not None and deadline.left > 0:
            pages = obstore.list(store, key or None, offset=listings.offset, chunk_size=_PAGE)
            listings.add(next(iter(pages), ()))
    return listings.found


class _Listings:
    """The logs that were found, and where to continue.

    A listing is trusted only if one response has all of it, with something after it.
    """

    def __init__(self, prefix: str, names: Sequence[str]) -> None:
        self._prefix = prefix
        self._left = sorted(names, key=lambda name: f"{name}/".encode(), reverse=True)
        self.found: dict[str, tuple[FolderEntry, ...]] = {}
        self.offset: str | None = None
        """the next request lists the keys that sort after this one; None: no further request"""
        self._go_on()

    def add(self, page: Sequence[Mapping[str, Any]]) -> None:
        """Add the files of one response, in its order."""
        before = len(self.found)
        logs: dict[str, list[FolderEntry | None]] = {}
        last = f"{self.offset}".encode()
        for file in page:
            key = str(file["path"])
            if key.encode() <= last:
                # This store lists in another order, so the keys seen so far prove nothing.
                self.found.clear()
                self.offset = None
                return
            last = key.encode()
            name, _, inner = key[len(self._prefix) :].partition("/")
            log, _, path = inner.partition("/")
            if log == LOG_FOLDER:
                logs.setdefault(name, []).append(_entry(path, file["size"]))
        ended = len(page) < _PAGE
        while self._left and (ended or last > self._end_of_log(self._left[-1])):
            name = self._left.pop()
            entries = tuple(dict.fromkeys(logs.get(name, ())))
            if entries and None not in entries:
                self.found[name] = tuple(each for each in entries if each is not None)
        if ended or len(self.found) - before < _WORTHWHILE:
            self.offset = None
        else:
            self._go_on()

    def _end_of_log(self, name: str) -> bytes:
        # The character after the slash.
        return f"{self._prefix}{name}/{LOG_FOLDER}0".encode()

    def _go_on(self) -> None:
        self.offset = f"{self._prefix}{self._left[-1]}" if self._left else None


def _entry(path: str, size: int) -> FolderEntry | None:
    """Return the listing entry of a file in a log; None for a possible folder marker."""
    name, slash, _ = path.partition("/")
    if slash:
        return FolderEntry(f"{name}/", None)
    return FolderEntry(name, size) if "." in name or name == _CHECKPOINT_HINT else None
