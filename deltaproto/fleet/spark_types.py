"""Arrow schemas in Spark's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaproto.tables.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa


def types(columns: pa.Schema) -> str:
    """The columns as DDL, which Spark Connect takes as well."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return ", ".join(
        f"{identifier(field.name)} {field.dataType.simpleString()}"
        for field in from_arrow_schema(columns)
    )
