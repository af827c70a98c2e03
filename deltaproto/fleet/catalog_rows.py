"""Adds to the staged rows of a scan what is known only when all catalogs are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.discovered import PlaceKind, SkippedPlaces
from deltaproto.fleet.rows_builder import arrow_array
from deltaproto.fleet.schemas import OTHER_NAMES

if TYPE_CHECKING:
    import pyarrow as pa


def note_other_names(entries: CatalogEntries, passed: SkippedPlaces) -> None:
    """Count the names of tables beside the one that outputs show."""
    for _, names in entries.renamed():
        for name in names[1:]:
            passed.add(PlaceKind.RENAMED, name)


def with_all_names(batch: pa.RecordBatch, entries: CatalogEntries) -> pa.RecordBatch:
    """Return staged rows with the preferred name of each table, and its other names."""
    import pyarrow as pa

    if not entries:
        return batch
    several = [
        names if len(names := entries.names(location)) > 1 else ()
        for location in batch.column("location").to_pylist()
    ]
    if not any(several):
        return batch
    tables = [
        names[0] if names else table
        for names, table in zip(several, batch.column("table").to_pylist(), strict=True)
    ]
    columns: dict[str, list[Any]] = {
        "table": tables,
        OTHER_NAMES: [[*names[1:]] or None for names in several],
    }
    return pa.RecordBatch.from_arrays(
        [
            arrow_array(columns[field.name], field.type) if field.name in columns else column
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ],
        schema=batch.schema,
    )
