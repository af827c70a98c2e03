"""The files of an access log, and the requests in them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from io import BufferedReader, BytesIO
from typing import Any, NamedTuple, cast

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.seen.log_lines import (
    LONGEST,
    Parsed,
    as_utf8,
    is_independent,
    read_lines,
)
from deltaproto.fleet.seen.system_tables import SystemTable, read_parquet
from deltaproto.input_file import open_input
from deltaproto.interrupts import interruptible
from deltaproto.location import LocationKind, locate
from deltaproto.tables.storage.objects import WINDOW_BYTES

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_NO_LOGS = (".", "_SUCCESS", "_committed_", "_started_")
"""how the names of files begin that Spark and Databricks write beside an export"""
_LONGEST_FIRST = 1 << 20
"""bytes of the first line of a file that is read in parts; at most `LONGEST`"""


class CountedFile(NamedTuple):
    """An access log file whose requests were counted."""

    name: str
    """absolute path or URI"""
    size: int | None
    """size in bytes; a file that has grown counts as another file.

    For a table: the time up to which its rows were counted, in milliseconds since the epoch
    """


class RowsQuery(NamedTuple):
    """How a session reads the rows of a system table."""

    table: SystemTable
    sql: str


class LogFile(NamedTuple):
    """One file of an access log. It can be pickled, unless it is a table."""

    name: str
    open: Callable[[], BufferedReader]
    size: int | None = None
    """size in bytes; None: unknown until the file is opened"""
    modified: float = 0.0
    """seconds since the epoch"""
    requests: Callable[[], Iterator[Parsed | None]] | None = None
    """returns the requests of a table, which is not opened as a file"""
    query: RowsQuery | None = None
    """the rows of a table that a session finds by name"""

    @property
    def key(self) -> CountedFile:
        """The file's identity in later runs: its name and size."""
        as_is = "://" in self.name or self.requests is not None
        name = self.name if as_is else os.path.abspath(self.name)
        return CountedFile(name, self.size)

    @property
    def small_object(self) -> bool:
        """Whether one request to a store returns the whole file."""
        remote = "://" in self.name and self.requests is None
        return remote and self.size is not None and self.size <= WINDOW_BYTES

    def fetched(self) -> LogFile:
        """Return the file in memory if it is a small object that can be read now, or itself."""
        if not self.small_object:
            return self
        try:
            with self.open() as file:
                content = file.read()
        except (TableError, OSError):
            return self
        return self._replace(open=lambda: BufferedReader(BytesIO(content)))


def find_files(name: str, options: Mapping[str, str]) -> Iterator[LogFile]:
    """Yield the file `name`, or every file below the folder or URI, by name.

    Files that exports have for their own use are skipped.

    Raises:
        TableError: when there is no file, or the store cannot be listed.
    """
    location = locate(name)
    if location.kind is LocationKind.URI and location.path is None:
        yield from _find_objects(location.uri, options)
        return
    path = location.path or name
    if not os.path.isdir(path):
        yield _local_file(path)
        return
    found = False
    for folder, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            found = True
            if not file.startswith(_NO_LOGS):
                yield _local_file(os.path.join(folder, file))
    if not found:
        raise TableError(ErrorCode.NOT_FOUND, f"{name} has no files", "check the path")


def _local_file(path: str) -> LogFile:
    opener = partial(_open_local, path)
    try:
        stat = os.stat(path)
    except OSError:
        return LogFile(path, opener)
    return LogFile(path, opener, stat.st_size, stat.st_mtime)


def _open_local(path: str) -> BufferedReader:
    try:
        return cast(BufferedReader, open_input(path))
    except OSError as error:
        refused = isinstance(error, PermissionError)
        code = ErrorCode.PERMISSION_DENIED if refused else ErrorCode.NOT_FOUND
        message = f"cannot read {path}: {error.strerror}"
        raise TableError(code, message, "check the path and permissions") from None


def _find_objects(uri: str, options: Mapping[str, str]) -> Iterator[LogFile]:
    import obstore

    from deltaproto.tables.storage.objects import translate_store_errors

    bucket = _Bucket(uri, options)
    with translate_store_errors(uri, options):
        store, key = bucket.opened
        listed = [
            (meta["path"], meta["size"], meta["last_modified"])
            for page in obstore.list(store, key or None)
            for meta in page
        ]
        if not listed:
            meta = obstore.head(store, key)
            listed = [(key, meta["size"], meta["last_modified"])]
    root = uri[: len(uri) - len(key)] if key else f"{uri}/"
    for path, size, modified in sorted(listed):
        if path == key or not path.rpartition("/")[2].startswith(_NO_LOGS):
            file = partial(bucket.open, root, path, size)
            yield LogFile(root + path, file, size, modified.timestamp())


class _Bucket:
    """The store of some files; each process opens it separately."""

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        self._uri, self._options = uri, dict(options)

    def __getstate__(self) -> dict[str, Any]:
        return {"_uri": self._uri, "_options": self._options}

    @cached_property
    def opened(self) -> tuple[Any, str]:
        """The store, and the key of the URI in it."""
        from deltaproto.tables.storage.opening import open_store

        return open_store(self._uri, self._options)

    def open(self, root: str, path: str, size: int) -> BufferedReader:
        """Open an object, which is read in ranges."""
        from deltaproto.tables.storage.objects import RangeFile

        return BufferedReader(RangeFile(size, partial(self._fetch, root, path)))

    def _fetch(self, root: str, path: str, start: int, end: int) -> bytes:
        import obstore

        from deltaproto.tables.storage.objects import translate_store_errors

        part = partial(obstore.get_range, self.opened[0], path, start=start, end=end)
        with translate_store_errors(root + path, self._options):
            return bytes(interruptible(part))


class Span(NamedTuple):
    """A part of a file: the lines that begin in it."""

    start: int
    """bytes"""
    end: int | None
    """bytes; None: the end of the file"""


def has_plain_lines(log: LogFile) -> bool:
    """Return True if a file can be read in `Span`s, because its lines are independent.

    Raises:
        TableError: when the file cannot be opened.
    """
    if log.requests is not None:
        return False
    try:
        with log.open() as file:
            line = file.readline(_LONGEST_FIRST)
    except OSError:
        return False
    packed = line.startswith((_GZIP, _PARQUET))
    return not packed and line.endswith(b"\n") and is_independent(line)


def read_requests(log: LogFile, span: Span | None = None) -> Iterator[Parsed | None]:
    """Yield each request of a file; None for a line or record that is not understood.

    Args:
        span: read only this part of a file for which `has_plain_lines` is true.

    Raises:
        TableError: when the file cannot be read to its end.
    """
    if log.requests is not None:
        yield from log.requests()
        return
    try:
        with log.open() as file:
            if span is not None:
                yield from _read_span(file, span)
                return
            start = file.peek(len(_PARQUET))
            if start[: len(_PARQUET)] == _PARQUET:
                yield from read_parquet(log.name, file)
                return
            zipped = start[: len(_GZIP)] == _GZIP
            plain = BufferedReader(gzip.GzipFile(fileobj=file)) if zipped else file
            yield from read_lines(as_utf8(plain))
    except (OSError, EOFError, zlib.error) as error:
        message = f"{log.name} cannot be read to its end: {error}"
        raise TableError(ErrorCode.STORAGE, message, "the file is damaged; copy it again") from None


def _read_span(file: BufferedReader, span: Span) -> Iterator[Parsed | None]:
    if span.start:
        # A line belongs to the span in which it begins, so skip the rest of the previous one.
        file.seek(span.start - 1)
        while (line := file.readline(LONGEST)) and not line.endswith(b"\n"):
            pass
    yield from read_lines(file, first=not span.start, end=span.end)
