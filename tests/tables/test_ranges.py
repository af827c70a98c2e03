from __future__ import annotations

import os
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.storage.objects import RangeFile

MEGABYTE = 1024 * 1024
DATA = os.urandom(3 * MEGABYTE + 17)


class Fetched:
    def __init__(self, data: bytes) -> None:
        self.data, self.asked = data, 0

    def __call__(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= len(self.data)
        self.asked += 1
        return self.data[start:end]


@given(
    size=st.integers(0, len(DATA)),
    moves=st.lists(
        st.tuples(
            st.sampled_from((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END)),
            st.integers(-len(DATA), len(DATA)),
            st.one_of(st.integers(-1, 64), st.integers(0, len(DATA))),
        ),
        max_size=12,
    ),
)
def test_it_reads_what_a_file_in_memory_reads(size: int, moves: list[tuple[int, int, int]]) -> None:
    data = DATA[:size]
    ours, theirs = RangeFile(size, Fetched(data)), BytesIO(data)
    for whence, offset, length in moves:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: theirs.tell(), os.SEEK_END: size}[whence]
        if base + offset < 0:
            with pytest.raises(ValueError, match="before the first byte"):
                ours.seek(offset, whence)
            continue
        assert ours.seek(offset, whence) == theirs.seek(offset, whence)
        assert ours.read(length) == theirs.read(length)
        assert ours.tell() == theirs.tell()


def test_a_small_parquet_file_is_one_request() -> None:
    file = BytesIO()
    pq.write_table(pa.table({"n": range(10_000)}), file)
    fetched = Fetched(file.getvalue())
    read = pq.read_table(RangeFile(len(fetched.data), fetched))
    assert (read.num_rows, fetched.asked) == (10_000, 1)


def test_what_the_store_raises_goes_through_pyarrow() -> None:
    file = BytesIO()
    pq.write_table(pa.table({"n": [os.urandom(64) for _ in range(80_000)]}), file)
    whole = Fetched(file.getvalue())
    refused = TableError(ErrorCode.STORAGE, "503", "again")

    def fetch(start: int, end: int) -> bytes:
        if whole.asked:
            raise refused
        return whole(start, end)

    with pytest.raises(TableError) as told:
        pq.read_table(RangeFile(len(whole.data), fetch))
    assert told.value is refused
