"""Object stores: an object of known size as a seekable file, read in ranges."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO, RawIOBase
from typing import IO, Any, cast

from deltaproto.counts import shorten
from deltaproto.errors import ErrorCode, TableError
from deltaproto.interrupts import interruptible
from deltaproto.location import quote_for_shell
from deltaproto.redaction import Redactor
from deltaproto.tables.storage.errors import DENIED, classify_connection, classify_refusal
from deltaproto.tables.storage.interface import (
    STAGED_COMMITS,
    FolderEntry,
    check_size,
    file_gone_error,
)
from deltaproto.tables.storage.opening import open_store
from deltaproto.tables.storage.read_ahead import ListedFile, SmallFiles

WINDOW_BYTES = 1024 * 1024


class RangeFile(RawIOBase):
    """A file of `size` bytes that `fetch(start, end)` returns, one megabyte window at a time.

    A Parquet reader goes from the end to the front and then forward: the window at the end is
    cached in addition to the last one, so that a small object takes one request.
    Exceptions of `fetch` are passed to the reader's caller.
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
        tail = max(0, self._size - WINDOW_BYTES)
        if start >= tail:
            self._tail = tail, self._fetch(tail, self._size)
            return self._tail[1][start - tail : end - tail]
        upto = min(max(end, start + WINDOW_BYTES), self._size)
        self._last = start, self._fetch(start, upto)
        return self._last[1][: end - start]


LOG_FOLDER = "_delta_log"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObjectLogStore:
    """The `_delta_log` folder of the table at `uri`.

    Args:
        options: storage options as in deltalake; keys in any case.
        listed: the result of `list`, if the folder was listed just now.
        read_ahead: keep small files, and fetch commits before they are read.
    """

    def __init__(
        self,
        uri: str,
        options: Mapping[str, str],
        listed: tuple[FolderEntry, ...] | None = None,
        *,
        read_ahead: bool = False,
    ) -> None:
        self._uri, self._options, self._listed = uri, options, listed
        self._small = SmallFiles(self._get) if read_ahead else None
        self._sizes = _known_sizes(listed or ())
        with translate_store_errors(uri, options):
            self._store, folder = open_store(uri, options)
        self._folder = f"{folder}/{LOG_FOLDER}/".lstrip("/")

    def list(self) -> list[FolderEntry]:
        return list(self._listed or self._entries(dated=False))

    def list_dated(self) -> tuple[FolderEntry, ...]:
        return self._entries(dated=True)

    def _entries(self, *, dated: bool) -> tuple[FolderEntry, ...]:
        import obstore

        with translate_store_errors(self._uri, self._options):
            found = self._ask(obstore.list_with_delimiter, self._folder)
        entries = [
            FolderEntry(
                meta["path"].rsplit("/", 1)[-1],
                meta["size"],
                _milliseconds(meta["last_modified"]) if dated else None,
            )
            for meta in found["objects"]
        ]
        folders = found["common_prefixes"]
        entries += [
            FolderEntry(path.rstrip("/").rsplit("/", 1)[-1] + "/", None) for path in folders
        ]
        if not entries:
            raise TableError(
                ErrorCode.NOT_A_DELTA_TABLE,
                f"{self._uri} has no {LOG_FOLDER}",
                "check the bucket and the path; to find the tables below a folder, run "
                f"deltaproto scan {quote_for_shell(self._uri)}",
            )
        self._sizes = _known_sizes(entries)
        self._keep(found["objects"])
        return tuple(entries)

    def list_staged(self) -> tuple[FolderEntry, ...]:
        import obstore

        with translate_store_errors(self._uri, self._options):
            found = self._ask(obstore.list_with_delimiter, self._folder + STAGED_COMMITS)
        entries = tuple(
            FolderEntry(
                STAGED_COMMITS + meta["path"].rsplit("/", 1)[-1],
                meta["size"],
                _milliseconds(meta["last_modified"]),
            )
            for meta in found["objects"]
        )
        self._sizes.update(_known_sizes(entries))
        return entries

    def _keep(self, objects: Iterable[Mapping[str, Any]]) -> None:
        if self._small is not None:
            self._small.listed(
                {
                    meta["path"].rsplit("/", 1)[-1]: ListedFile(meta["size"], meta["e_tag"])
                    for meta in objects
                }
            )

    def open(self, name: str) -> IO[bytes]:
        size = self._sizes.get(name)
        check_size(name, size)
        kept = None if self._small is None else self._small.read(name)
        if kept is not None:
            return BytesIO(kept)
        if not name.endswith(".parquet"):
            return BytesIO(self._get(name))
        import obstore

        with self._reading(name):
            length = self._ask(obstore.head, self._folder + name)["size"] if size is None else size
        return cast(IO[bytes], RangeFile(length, partial(self._range, name)))

    def _get(self, name: str) -> bytes:
        import obstore

        with self._reading(name):
            data = bytes(self._ask(obstore.get, self._folder + name).bytes())
        size = self._sizes.get(name)
        if size is not None and size != len(data):
            raise _cut_off_error(name, len(data), size)
        return data

    def _range(self, name: str, start: int, end: int) -> bytes:
        import obstore

        with self._reading(name):
            key = self._folder + name
            data = bytes(self._ask(obstore.get_range, key, start=start, end=end))
        if len(data) != end - start:
            raise _cut_off_error(name, start + len(data), end)
        return data

    def _ask(self, request: Callable[..., Any], key: str, **arguments: int) -> Any:
        answer = partial(request, self._store, key, **arguments)
        return answer() if self._small is None else interruptible(answer)

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            with translate_store_errors(self._uri, self._options):
                yield
        except TableError as error:
            if error.code is ErrorCode.NOT_FOUND:
                raise file_gone_error(name) from None
            raise


def _cut_off_error(name: str, had: int, wanted: int) -> TableError:
    return TableError(
        ErrorCode.STORAGE,
        f"{name} has {had} bytes, but {wanted} when it was listed",
        "the response was truncated, or the file has changed; run again",
    )


def _known_sizes(entries: Iterable[FolderEntry]) -> dict[str, int]:
    return {entry.name: entry.size for entry in entries if entry.size is not None}


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@contextmanager
def translate_store_errors(uri: str, options: Mapping[str, str]) -> Iterator[None]:
    """Raise an object store's error as a `TableError` on `uri`, with the `options` redacted."""
    from obstore import exceptions

    try:
        yield
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise (classify_refusal(str(error)) or DENIED).as_error(uri) from None
    except (exceptions.NotFoundError, FileNotFoundError):
        raise TableError(
            ErrorCode.NOT_FOUND, f"{uri} does not exist", "check the bucket and the path"
        ) from None
    except (exceptions.BaseError, ValueError, OSError) as error:
        raise _classify_error(uri, error, options) from None


def _classify_error(uri: str, error: BaseException, options: Mapping[str, str]) -> TableError:
    # A denied listing is a generic error whose text contains the server's response and, after
    # "Debug source", the client's state.
    message, _, state = str(error).partition("Debug source")
    text = " ".join(message.split())
    timed_out = "timed out" in text or "kind: Timeout" in state
    refused = classify_refusal(text)
    if refused is None and not timed_out:
        refused = classify_connection(" ".join(f"{text} {state}".split()))
    if refused is not None:
        return refused.as_error(uri)
    return TableError(
        ErrorCode.TIMEOUT if timed_out else ErrorCode.STORAGE,
        f"cannot read {uri}: {shorten(Redactor(options)(text[:_MOST_EXAMINED]), _MOST_SHOWN)}",
        "check the endpoint, the region and the credentials",
    )


_MOST_EXAMINED, _MOST_SHOWN = 4000, 200
"""characters of a store's message"""
