"""Checkpoints that expand to gigabytes, and files that are not regular files."""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.delta_rs import DeltaRsReader
from deltaproto.tables.log.checkpoint import CheckpointFiles, checkpoint_actions
from deltaproto.tables.log.files import Checkpoint, build_listing, read_actions
from deltaproto.tables.log.parquet import UnsupportedParquet, pages
from deltaproto.tables.storage import interface, objects
from deltaproto.tables.storage.interface import FolderEntry, check_size
from deltaproto.tables.storage.local import (
    FileTooLarge,
    LocalLogStore,
    NotRegularFile,
    open_regular,
)
from tests.support.hostile import repeated
from tests.support.logs import Log, add, metadata, protocol

NAME = "00000000000000000007.checkpoint.parquet"
posix = pytest.mark.skipif(sys.platform == "win32", reason="has no such files")


def bomb(
    log: Log, column: str, field: str, value: object, rows: int, codec: str
) -> tuple[LocalLogStore, Checkpoint]:
    table = repeated(column, field, value, rows)
    pq.write_table(table, log.folder / NAME, store_schema=False, compression=codec)
    assert (log.folder / NAME).stat().st_size < 2_000_000
    return LocalLogStore(log.table), Checkpoint(7, (NAME,))


@pytest.mark.parametrize("codec", ["snappy", "zstd"], ids=["own-reader", "pyarrow"])
@pytest.mark.parametrize(
    ("column", "field", "value", "rows"),
    [
        ("protocol", "minReaderVersion", 1, 3_000_000),
        ("metaData", "schemaString", "x" * 50_000, 150_000),
        ("domainMetadata", "domain", "x", 300_000),
    ],
    ids=["rows", "bytes", "actions"],
)
def test_a_checkpoint_that_expands_too_far_is_corrupt(
    log: Log, column: str, field: str, value: object, rows: int, codec: str
) -> None:
    store, checkpoint = bomb(log, column, field, value, rows, codec)
    with pytest.raises(TableError, match=r"rows in|decompresses to") as caught:
        for _ in checkpoint_actions(store, checkpoint):
            pass
    assert caught.value.code is ErrorCode.CORRUPT_LOG


@pytest.mark.parametrize(
    ("value", "rows"), [("x", 3_000_000), ("x" * 40_000, 100_000)], ids=["rows", "bytes"]
)
def test_data_files_that_expand_too_far_are_corrupt(log: Log, value: str, rows: int) -> None:
    store, checkpoint = bomb(log, "add", "path", value, rows, "zstd")
    with pytest.raises(TableError, match=r"rows in|decompresses to") as caught:
        for _ in CheckpointFiles(store, checkpoint):
            pass
    assert caught.value.code is ErrorCode.CORRUPT_LOG


def test_a_page_budget_is_one_for_the_whole_file() -> None:
    budget = pages.DecompressionBudget(10)
    budget.take(6)
    with pytest.raises(UnsupportedParquet):
        budget.take(6)


def test_a_name_that_announces_thousands_of_millions_of_parts_costs_nothing() -> None:
    name = f"{1:020d}.checkpoint.{1:010d}.9999999999.parquet"
    assert build_listing([FolderEntry(name, 5)]).checkpoints == {}


def test_a_line_is_read_only_up_to_a_limit(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltaproto.tables.log.files._LONGEST_LINE", 70_000)
    line = b'{"commitInfo":{"a":"' + b"x" * 60_000 + b'"}}\n'
    log.raw(0, line * 2).raw(1, line + line.rstrip() * 2)
    store = LocalLogStore(log.table)
    with store.open(f"{0:020d}.json") as file:
        assert len(list(read_actions("0", file))) == 2
    with (
        store.open(f"{1:020d}.json") as file,
        pytest.raises(TableError, match="1 line 2: a line of"),
    ):
        list(read_actions("1", file))


@posix
@pytest.mark.parametrize("suffix", [".json", ".crc", ".checkpoint.parquet"])
def test_only_regular_files_are_read(log: Log, suffix: str) -> None:
    path = log.path(0, suffix)
    store = LocalLogStore(log.table)
    for make in (
        os.mkfifo,
        lambda at: os.symlink("/dev/zero", at),
        lambda at: os.symlink("/dev/null", at),
    ):
        make(path)
        with pytest.raises(TableError, match="is not a regular file") as caught:
            store.open(path.name)
        assert caught.value.code is ErrorCode.CORRUPT_LOG
        path.unlink()


@posix
@pytest.mark.parametrize("suffix", [".json", ".crc", ".checkpoint.parquet"])
def test_a_sparse_file_is_too_large(log: Log, suffix: str) -> None:
    path = log.path(0, suffix)
    path.touch()
    os.truncate(path, 50 << 30)
    with pytest.raises(TableError, match="has 53687091200 bytes; deltaproto reads at most"):
        LocalLogStore(log.table).open(path.name)


@posix
@pytest.mark.parametrize("name", ["_last_checkpoint", "_sidecars/x.parquet", f"{1:020d}.json"])
def test_an_engine_never_opens_what_is_not_a_regular_file(log: Log, name: str) -> None:
    log.commit(0, protocol(1, 2), metadata(), add())
    assert DeltaRsReader().read(log.table).version == 0
    path = log.folder / name
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(TableError, match=f"{path.name} is not a regular file"):
        DeltaRsReader().read(log.table)


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    for size in (0, 1, 65_535, 65_536, 65_537, 200_000):
        content = zlib.compress(os.urandom(16)).ljust(size, b"x")[:size]
        (tmp_path / "f").write_bytes(content)
        with open_regular(str(tmp_path / "f"), size) as file:
            assert (file.seek(0, 2), file.seek(0), file.read()) == (size, 0, content)
        if size:
            with pytest.raises(FileTooLarge):
                open_regular(str(tmp_path / "f"), size - 1)


@posix
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    with pytest.raises(NotRegularFile, match="not a regular file"):
        open_regular(str(tmp_path / "f"), 10)
    with pytest.raises(NotRegularFile):
        open_regular("/dev/zero", 10)


def test_an_object_too_large_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "_MOST_BYTES_ELSE", 99)
    monkeypatch.setattr(objects, "open_store", lambda *_: (None, "t"))
    name = f"{0:020d}.json"
    store = objects.ObjectLogStore("s3://b/t", {}, (FolderEntry(name, 100),))
    with pytest.raises(TableError, match="has 100 bytes; deltaproto reads at most 99") as caught:
        store.open(name)
    assert caught.value.code is ErrorCode.CORRUPT_LOG
    check_size(name, 99)
    check_size(name, None)
