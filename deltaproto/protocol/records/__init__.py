"""All records of the feature catalog, in one tuple."""

from __future__ import annotations

from deltaproto.protocol.feature import Feature
from deltaproto.protocol.records import (
    elsewhere,
    iceberg,
    legacy,
    proposed,
    reader_writer,
    types,
    variant,
    writer,
    writer_log,
)

RECORDS: tuple[Feature, ...] = (
    *legacy.RECORDS,
    *reader_writer.RECORDS,
    *types.RECORDS,
    *variant.RECORDS,
    *writer.RECORDS,
    *writer_log.RECORDS,
    *iceberg.RECORDS,
    *elsewhere.RECORDS,
    *proposed.RECORDS,
)
