"""The error of the small Parquet reader, and its limits."""

from __future__ import annotations


class UnsupportedParquet(Exception):
    """The error of a file that is corrupt or that only a full Parquet reader can read."""


_FREE_ROWS = 2_000_000
_ROWS_PER_BYTE = 4
_MOST_ROWS = 500_000_000
_FREE_BYTES = 1 << 30
_BYTES_PER_BYTE = 64
MAX_STATE_BYTES = 256 << 20
"""bytes of protocol, metaData and domainMetadata actions after decompression"""
MAX_ACTIONS = 200_000
"""protocol, metaData and domainMetadata actions in one checkpoint"""


def max_rows(size: int) -> int:
    """Return the largest number of rows of a checkpoint file of `size` bytes."""
    return min(_MOST_ROWS, _FREE_ROWS + _ROWS_PER_BYTE * size)


def max_decompressed_bytes(size: int) -> int:
    """Return the largest number of decompressed bytes in a checkpoint file of `size` bytes."""
    return _FREE_BYTES + _BYTES_PER_BYTE * size
