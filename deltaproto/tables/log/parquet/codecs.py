"""Decompression of pages whose size is known in advance.

Source: https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from deltaproto.tables.log.parquet.thrift import UnsupportedParquet

UNCOMPRESSED, SNAPPY, GZIP = 0, 1, 2


def decompress(codec: int, data: bytes, size: int) -> bytes:
    """Decompress `data` to exactly `size` bytes.

    Raises:
        UnsupportedParquet: an unsupported codec, or a different size.
    """
    if codec == UNCOMPRESSED:
        found = data
    elif codec == SNAPPY:
        found = decompress_snappy(data, size)
    elif codec == GZIP:
        found = _decompress_gzip(data, size)
    else:
        raise UnsupportedParquet("a codec that is not supported")
    if len(found) != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    return found


def _decompress_gzip(data: bytes, size: int) -> bytes:
    import zlib

    decoder = zlib.decompressobj(31)
    try:
        found = decoder.decompress(data, size + 1)
    except zlib.error:
        raise UnsupportedParquet("a corrupt page") from None
    if not decoder.eof or decoder.unused_data:
        raise UnsupportedParquet("a corrupt page")
    return found


def decompress_snappy(data: bytes, size: int) -> bytes:
    """Decompress raw snappy `data`, which must declare and contain `size` bytes.

    Raises:
        UnsupportedParquet: it does not.
        IndexError: it is truncated.
    """
    announced = shift = pos = 0
    while (byte := data[pos]) > 127:
        announced |= (byte & 127) << shift
        shift += 7
        pos += 1
        if shift > 28:
            raise UnsupportedParquet("a page whose size differs from its header")
    announced |= byte << shift
    pos += 1
    if announced != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    out = bytearray()
    end = len(data)
    while pos < end:
        tag = data[pos]
        pos += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                width = length - 60
                length = int.from_bytes(data[pos : pos + width], "little") + 1
                pos += width
            if pos + length > end:
                raise UnsupportedParquet("a corrupt page")
            out += data[pos : pos + length]
            pos += length
        else:
            if kind == 1:
                length = (tag >> 2 & 7) + 4
                offset = (tag & 0xE0) << 3 | data[pos]
                pos += 1
            else:
                width = 2 * kind - 2
                length = (tag >> 2) + 1
                offset = int.from_bytes(data[pos : pos + width], "little")
                pos += width
                if pos > end:
                    raise UnsupportedParquet("a corrupt page")
            _copy(out, offset, length)
        if len(out) > size:
            break
    if len(out) != size:
        raise UnsupportedParquet("a page whose size differs from its header")
    return bytes(out)


def _copy(out: bytearray, offset: int, length: int) -> None:
    start = len(out) - offset
    if offset == 0 or start < 0:
        raise UnsupportedParquet("a corrupt page")
    if offset >= length:
        out += out[start : start + length]
    else:
        pattern = out[start:]
        out += (pattern * (length // offset + 1))[:length]
