"""Our Snappy against pyarrow's, on data with repeats at every distance."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.tables.log.parquet.thrift import UnsupportedParquet
from deltaproto.tables.log.parquet.values import decompress_snappy
from tests.support.examples import examples

SNAPPY = pa.Codec("snappy")


def compressed(data: bytes) -> bytes:
    return bytes(SNAPPY.compress(data, asbytes=True))


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(st.binary(min_size=1, max_size=80), st.integers(1, 9), st.integers(0, 3000)),
        max_size=6,
    )
)
def test_what_pyarrow_compresses_is_decompressed(parts: list[tuple[bytes, int, int]]) -> None:
    data = b""
    for part, times, back in parts:
        data += part * times
        data += data[max(0, len(data) - back) :][:64]
    assert decompress_snappy(compressed(data), len(data)) == data


@pytest.mark.parametrize("distance", [1, 3, 255, 256, 300, 511, 512, 2047, 2048, 40_000, 70_000])
def test_a_copy_from_any_distance(distance: int) -> None:
    unique = b"".join(number.to_bytes(3, "big") for number in range(distance // 3 + 20))
    data = b"needle" + unique[: max(0, distance - 6)] + b"needle, and needle"
    packed = compressed(data)
    assert decompress_snappy(packed, len(data)) == data
    for cut in (1, len(packed) // 2, len(packed) - 1):
        with pytest.raises((UnsupportedParquet, IndexError)):
            decompress_snappy(packed[:cut], len(data))
    for size in (len(data) - 1, len(data) + 1):
        with pytest.raises(UnsupportedParquet, match="size"):
            decompress_snappy(packed, size)


@pytest.mark.parametrize(
    ("packed", "size"),
    [
        (b"\x04\x05\x00", 4),  # a copy before anything was written
        (b"\x05\x00a\x01\x02", 5),  # a copy from before the start
        (b"\x05\x00a\x01\x00", 5),  # a copy from distance 0
        (b"\x02\x04a", 2),  # a literal longer than the page
    ],
)
def test_a_copy_or_literal_from_nowhere_is_refused(packed: bytes, size: int) -> None:
    with pytest.raises(UnsupportedParquet):
        decompress_snappy(packed, size)
