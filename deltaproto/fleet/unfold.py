"""Staged rows as rows of the inventory's tables. Pure Arrow: the same on executors and here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaproto.fleet.schemas import KEYS, Inventory, schema

if TYPE_CHECKING:
    import pyarrow as pa


def unfolded(batch: pa.RecordBatch, name: Inventory) -> pa.RecordBatch:
    """What a staged batch holds for one of the tables; `scans` is none of them."""
    import pyarrow.compute as pc

    error = batch.column("error")
    match name:
        case Inventory.TABLES:
            read = batch.filter(pc.is_null(error))
            return _of(read, schema(name))
        case Inventory.ERRORS:
            failed = batch.filter(pc.is_valid(error))
            return _inner(failed.select(KEYS), failed.column("error"), schema(name))
        case _:
            nested = batch.column(str(name))
            keys = batch.select(KEYS).take(pc.list_parent_indices(nested))
            return _inner(keys, pc.list_flatten(nested), schema(name))


def _of(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([batch.column(n) for n in wanted.names], schema=wanted)


def _inner(keys: pa.RecordBatch, values: pa.StructArray, wanted: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    columns = [*keys.columns, *values.flatten()]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)
