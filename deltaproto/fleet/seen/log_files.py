"""The files of an access log, and the requests in their lines.

Formats are detected line by line, so a damaged or foreign line affects no other line.
"""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from io import BufferedReader, BytesIO, TextIOWrapper
from typing import IO, Any, NamedTuple, cast

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.seen.log_formats import LogFormat, Request, parse_s3_line
from deltaproto.fleet.seen.log_records import parse_record
from deltaproto.fleet.seen.system_tables import (
    SystemTable,
    find_system_table,
    parse_system_row,
    read_parquet,
)
from deltaproto.input_file import open_input
from deltaproto.interrupts import interruptible
from deltaproto.location import LocationKind, locate
from deltaproto.protocol.decoding import decode_json
from deltaproto.tables.storage.objects import WINDOW_BYTES

_LONGEST = 256 << 20
"""bytes of a line, or of a JSON document: one line of CloudTrail has thousands of records"""
_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"
_MARK = "\ufeff"
_LONGEST_FIRST = 1 << 20
"""bytes of the first line of a file that is read in parts; at most `_LONGEST`"""

Parsed = tuple[LogFormat, Request]


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
    text = line.decode("utf-8", "replace").strip("\r\n").removeprefix(_MARK)
    packed = line.startswith((_GZIP, _PARQUET))
    if packed or not line.endswith(b"\n") or not text.strip() or _is_header(text):
        return False
    return text.lstrip()[0] not in "{[" or _decode(text.encode()) is not None


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
            yield from _read_lines(cast(IO[bytes], gzip.GzipFile(fileobj=file)) if zipped else file)
    except (OSError, EOFError, zlib.error) as error:
        message = f"{log.name} cannot be read to its end: {error}"
        raise TableError(ErrorCode.STORAGE, message, "the file is damaged; copy it again") from None


def _read_span(file: BufferedReader, span: Span) -> Iterator[Parsed | None]:
    if span.start:
        # A line belongs to the span in which it begins, so skip the rest of the previous one.
        file.seek(span.start - 1)
        while (line := file.readline(_LONGEST)) and not line.endswith(b"\n"):
            pass
    yield from _read_lines(file, first=not span.start, end=span.end)


def _read_lines(
    file: IO[bytes], *, first: bool = True, end: int | None = None
) -> Iterator[Parsed | None]:
    """Read lines that begin before `end`, a position in bytes."""
    while (end is None or file.tell() < end) and (line := file.readline(_LONGEST + 1)):
        if len(line) > _LONGEST:
            yield None
            while line and not line.endswith(b"\n"):
                line = file.readline(_LONGEST)
            continue
        text = line.decode("utf-8", "replace").strip("\r\n")
        if first:
            text = text.removeprefix(_MARK)
            if _is_header(text):
                yield from _read_table(text, file)
                return
        if not text.strip():
            continue
        if first and text.lstrip()[0] in "{[":
            value = _decode(text.encode())
            if value is None:
                yield from _read_document(line, file)
                return
            yield from map(_parse_record, _records(value))
        else:
            yield from _parse_line(text)
        first = False


def _parse_line(text: str) -> Iterator[Parsed | None]:
    if text.lstrip()[0] not in "{[":
        request = parse_s3_line(text)
        yield None if request is None else (LogFormat.S3, request)
        return
    value = _decode(text.encode())
    if value is None:
        yield None
    else:
        yield from map(_parse_record, _records(value))


def _read_document(first: bytes, file: IO[bytes]) -> Iterator[Parsed | None]:
    """Read a JSON document of many lines, or lines that begin with a damaged one."""
    rest = file.read(_LONGEST)
    value = _decode(first + rest)
    if value is not None:
        yield from map(_parse_record, _records(value))
        return
    yield None
    for line in rest.splitlines():
        if text := line.decode("utf-8", "replace").strip():
            yield from _parse_line(text)
    yield from _read_lines(file)


def _decode(text: bytes) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return None


def _records(value: Any) -> Iterator[Any]:
    """Yield the records of a document of CloudTrail, Azure or Google, or of one line."""
    if isinstance(value, list):
        yield from value
        return
    if isinstance(value, dict):
        for name in ("Records", "records"):
            if isinstance(value.get(name), list):
                yield from value[name]
                return
        if isinstance(value.get("tables"), list):
            for table in value["tables"]:
                yield from _rows(table)
            return
    yield value


def _rows(table: Any) -> Iterator[Any]:
    """Yield the rows of a result of Log Analytics."""
    try:
        names = [column["name"] for column in table["columns"]]
        rows = list(table["rows"])
    except (LookupError, TypeError):
        yield None
        return
    for row in rows:
        whole = isinstance(row, list) and len(row) == len(names)
        yield dict(zip(names, row, strict=True)) if whole else None


def _parse_record(record: Any) -> Parsed | None:
    return parse_record(record) or parse_system_row(record)


def _is_header(text: str) -> bool:
    """Return True for the first line of a CSV export of StorageBlobLogs or of a system table."""
    names = [name.strip('" ').partition(" ")[0].lower() for name in text.split(",")]
    azure = "operationname" in names and ("uri" in names or "objectkey" in names)
    return azure or find_system_table(names) is not None


def _read_table(header: str, file: IO[bytes]) -> Iterator[Parsed | None]:
    names = next(csv.reader([header]))
    rows = csv.reader(TextIOWrapper(file, "utf-8", "replace", newline=""))
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        if not row:
            continue
        if len(row) != len(names):
            yield None
        else:
            yield _parse_record(dict(zip(names, row, strict=True)))
