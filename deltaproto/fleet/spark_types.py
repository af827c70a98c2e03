"""Arrow schemas and the inventory's tables in Spark's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaproto.fleet.schemas import Inventory
from deltaproto.tables.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa


def named(inventory: str, name: Inventory) -> str:
    """One of the inventory's tables, as Spark's statements name it."""
    return f"delta.{identifier(f'{inventory}/{name}')}"


def types(columns: pa.Schema) -> str:
    """The columns as DDL, which Spark Connect takes as well."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return ", ".join(
        f"{identifier(field.name)} {field.dataType.simpleString()}"
        for field in from_arrow_schema(columns)
    )
