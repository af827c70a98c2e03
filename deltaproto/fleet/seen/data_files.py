"""The writers of data files whose commits the log no longer has, from the files' footers.

A Parquet file names the library that wrote it. Like the commits' marks, the rules are data; a
library that several clients use identifies none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple
from urllib.parse import unquote

from deltaproto.errors import TableError
from deltaproto.fleet.seen.log_files import find_files
from deltaproto.fleet.seen.uses import Client, Mark, SeenUses, shorten
from deltaproto.protocol.writers import Confidence
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.log.files import LogListing, build_listing, read_actions
from deltaproto.tables.log.live_files import read_live_files
from deltaproto.tables.log.parquet.footer import TailReadFile
from deltaproto.tables.log.parquet.thrift import (
    BINARY,
    LIST,
    STRUCT,
    CompactReader,
    UnsupportedParquet,
)
from deltaproto.tables.open import OpenedLog

_MOST_FILES = 100
"""data files of one table whose footers are read"""
_KEY_VALUES, _CREATED_BY = 5, 6
"""fields of FileMetaData in parquet.thrift"""
_KERNEL_KEY = "io.delta.kernel.default-parquet-writer"
_NUMBERS = r"\d+(?:\.\d+)+"
_PRODUCT = re.compile(r"([\w .+-]{1,60}?)(?: version v?([\w.+-]{1,40}).*)?", re.ASCII | re.DOTALL)


class FileWriter(NamedTuple):
    """How one library names itself in the files that it writes."""

    client: str | None
    """id in the client catalog; None: a library of several clients"""
    pattern: str
    """regular expression for the whole `created_by`; its group `version` is the version"""
    source: str
    samples: tuple[str, ...]
    could_be: tuple[str, ...] = ()


FILE_WRITERS = (
    FileWriter(
        "deltalake",
        rf"delta-rs version py-(?P<version>{_NUMBERS}\S*)",
        "delta-io/delta-rs: crates/core/src/writer",
        ("delta-rs version py-1.6.6",),
    ),
    FileWriter(
        "delta-rs",
        rf"delta-rs version (?P<version>{_NUMBERS}\S*)",
        "delta-io/delta-rs: crates/core/src/writer",
        ("delta-rs version 0.32.1",),
    ),
    FileWriter(
        "trino",
        # Starburst's versions continue with -e or -galaxy.
        r"Trino version (?P<version>\d+)(?: \(build .*\))?",
        "trinodb/trino: lib/trino-parquet (ParquetWriter)",
        ("Trino version 476 (build n/a)",),
    ),
    FileWriter(
        None,
        r"parquet-rs version .*",
        "apache/arrow-rs: parquet/src/file/properties.rs",
        ("parquet-rs version 52.0.0",),
        ("deltalake", "delta-rs", "kafka-delta-ingest"),
    ),
    FileWriter(
        None,
        r"parquet-cpp-arrow version .*",
        "apache/arrow: cpp/src/parquet/properties.h, which deltalake used before 1.0",
        ("parquet-cpp-arrow version 15.0.2",),
        ("deltalake",),
    ),
    FileWriter(
        None,
        r"parquet-mr version .*",
        "apache/parquet-java: ParquetFileWriter",
        ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)",),
        ("delta-spark", "databricks-runtime", "delta-flink", "delta-standalone"),
    ),
)
"""tried in this order; the first that matches decides"""


class FilesRead(NamedTuple):
    """The result of reading a table's data files."""

    files: int = 0
    identified: int = 0
    unreadable: int = 0


def add_data_files(
    table: str, opened: OpenedLog, options: Mapping[str, str], since: int | None, uses: SeenUses
) -> FilesRead:
    """Add the writers of live files whose commits are no longer in the log, or of some of them.

    Args:
        since: skip files before this time, in milliseconds since the epoch.

    Raises:
        TableError: when the list of files cannot be read.
    """
    with contain_table_errors():
        listing = build_listing(opened.store.list())
        if listing.newest is None or 0 in listing.commits:
            return FilesRead()
        live = read_live_files(opened.store, listing, listing.newest)
        known = set(_added_paths(opened, listing))
    paths = sorted({key.partition("\n")[0] for key in live.files} - known)
    root = opened.location.path_or_uri.rstrip("/")
    done = FilesRead()
    for path in paths[:: max(1, len(paths) // _MOST_FILES)]:
        if "://" in path or ".." in path.split("/"):
            # A shallow clone's files are another table's.
            continue
        try:
            (file,) = find_files(f"{root}/{unquote(path)}", options)
            time = int(file.modified * 1000)
            if time < (since or 0):
                continue
            with file.open() as content:
                writer = read_writer(content)
        except (TableError, OSError, ValueError, LookupError, UnsupportedParquet):
            done = done._replace(unreadable=done.unreadable + 1)
            continue
        identified = _add(table, time, *writer, uses)
        done = done._replace(files=done.files + 1, identified=done.identified + identified)
    return done


def _added_paths(opened: OpenedLog, listing: LogListing) -> Iterator[str]:
    """Yield the files that commits in the log added: their writers are known."""
    for name in listing.commits.values():
        with opened.store.open(name) as file:
            for action in read_actions(name, file, files=True):
                if isinstance(add := action.get("add"), dict):
                    yield str(add.get("path"))


def read_writer(file: IO[bytes]) -> tuple[str, bool]:
    """Return `created_by` of a Parquet file, and whether Delta Kernel for Java wrote it.

    Raises:
        UnsupportedParquet: when the footer is corrupt.
    """
    thrift = CompactReader(TailReadFile(file).footer())
    created, kernel = "", False
    for field, kind in thrift.fields():
        if (field, kind) == (_CREATED_BY, BINARY):
            created = thrift.binary().decode("utf-8", "replace")
        elif (field, kind) == (_KEY_VALUES, LIST):
            pairs = (thrift.struct({1: BINARY}) for _ in range(thrift.elements(STRUCT)))
            kernel = _KERNEL_KEY.encode() in [pair.get(1) for pair in pairs]
        else:
            thrift.skip(kind)
    return created, kernel


def identify_file_writer(created: str, *, kernel: bool = False) -> tuple[Client, tuple[str, ...]]:
    """Return the client that wrote a file; if unknown, the clients that could have written it."""
    if kernel:
        return Client("delta-kernel-java", None), ()
    for rule in FILE_WRITERS:
        found = re.fullmatch(rule.pattern, created, re.ASCII | re.DOTALL)
        if found is not None and rule.client is not None:
            return Client(rule.client, found["version"]), ()
        if found is not None:
            return Client(None, None, _name(created)), rule.could_be
    return Client(None, None, _name(created)), ()


def _name(created: str) -> str:
    found = _PRODUCT.fullmatch(created[:500])
    if not created or found is None:
        return "no mark in data files" if not created else "another writer of data files"
    return f"{found[1]}/{found[2]}" if found[2] else found[1]


def _add(table: str, time: int, created: str, kernel: bool, uses: SeenUses) -> bool:
    client, could_be = identify_file_writer(created, kernel=kernel)
    known = client.id is not None
    seen = uses.client(client, Confidence.LIKELY if known else Confidence.UNKNOWN)
    seen.could_be = could_be
    mark = Mark("parquet.key_value", _KERNEL_KEY) if kernel else None
    seen.add_file(table, time, mark or Mark("parquet.created_by", shorten(created)))
    return known
