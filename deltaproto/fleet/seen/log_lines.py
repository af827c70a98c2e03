"""The lines of access logs, and the requests in them.

Formats are detected line by line, so a damaged or foreign line affects no other line.
"""

from __future__ import annotations

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from io import BufferedReader, RawIOBase, TextIOWrapper
from typing import IO, TYPE_CHECKING, Any

from deltaproto.fleet.seen.log_formats import LogFormat, Request, parse_s3_line
from deltaproto.fleet.seen.log_records import parse_record
from deltaproto.fleet.seen.system_tables import find_system_table, parse_system_row
from deltaproto.protocol.decoding import decode_json

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LONGEST = 256 << 20
"""bytes of a line, or of a JSON document: one line of CloudTrail has thousands of records"""
_UTF16 = (BOM_UTF16_LE, BOM_UTF16_BE)
_MARK = "\ufeff"

Parsed = tuple[LogFormat, Request]


def as_utf8(file: BufferedReader[Any]) -> BufferedReader[Any]:
    """Return the file, whose text is read in UTF-8 if it is in UTF-16, as PowerShell writes it."""
    wide = file.peek(len(BOM_UTF16_LE)).startswith(_UTF16)
    return BufferedReader(_Utf8(file)) if wide else file


def is_independent(first: bytes) -> bool:
    """Return True if the lines of a file that begins with this one can be read separately."""
    text = first.decode("utf-8", "replace").strip("\r\n").removeprefix(_MARK)
    if first.startswith(_UTF16) or not text.strip() or _is_header(text):
        return False
    return text.lstrip()[0] not in "{[" or _decode(text.encode()) is not None


class _Utf8(RawIOBase):
    """The text of a file in UTF-16, in UTF-8."""

    def __init__(self, file: BufferedReader[Any]) -> None:
        self._file, self._rest = file, b""
        self._decoder = getincrementaldecoder("utf-16")("replace")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        last = False
        while not (self._rest or last):
            read = self._file.read(len(target))
            last = not read
            self._rest = self._decoder.decode(read, final=last).encode()
        part, self._rest = self._rest[: len(target)], self._rest[len(target) :]
        target[: len(part)] = part
        return len(part)


def read_lines(
    file: IO[bytes], *, first: bool = True, end: int | None = None
) -> Iterator[Parsed | None]:
    """Read lines that begin before `end`, a position in bytes."""
    while (end is None or file.tell() < end) and (line := file.readline(LONGEST + 1)):
        if len(line) > LONGEST:
            yield None
            while line and not line.endswith(b"\n"):
                line = file.readline(LONGEST)
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
    rest = file.read(LONGEST)
    value = _decode(first + rest)
    if value is not None:
        yield from map(_parse_record, _records(value))
        return
    yield None
    for line in rest.splitlines():
        if text := line.decode("utf-8", "replace").strip():
            yield from _parse_line(text)
    yield from read_lines(file)


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
        if "digestS3Object" in value and "logFiles" in value:
            # CloudTrail writes digests of its files beside them. They have no requests.
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
