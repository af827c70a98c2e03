"""ALTER TABLE … REPLACE COLUMNS.

Source: Delta Spark 4.4's `AlterTableReplaceColumnsDeltaCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.checks import Change, altered
from deltaproto.planning.ddl.own import refused
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.schema import Column, Struct, dotted, find, repeated
from deltaproto.planning.table import Table


class ReplaceColumns(NamedTuple):
    """REPLACE COLUMNS, which renames nothing and drops columns only under column mapping."""

    columns: tuple[Column, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        new = Struct(self.columns)
        twice = repeated(new)
        if twice is not None:
            error = "COLUMN_ALREADY_EXISTS"
            return refused(table, error, f"{dotted(twice)} is there twice", "name it otherwise")
        old = table.schema
        if old is None:
            return altered(table, Change("REPLACE COLUMNS", new, known=False), engine)
        if any(column.identity for column in old.columns):
            return refused(
                table,
                "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
                "the table has identity columns",
                "add or drop single columns",
            )
        kept = [find(old, (column.name,)) for column in new.columns]
        gone = [c.name for c in old.columns if find(new, (c.name,)) is None]
        retyped = [c.name for c, o in zip(new.columns, kept, strict=True) if o and o.type != c.type]
        why = ""
        if gone and None in kept:
            why = "it drops and adds columns at once, which could be meant as a rename"
        elif gone and not table.mapped:
            why = f"without column mapping {', '.join(gone)} cannot be dropped"
        elif retyped:
            why = f"the type of {', '.join(retyped)} would change"
        if why:
            error = "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
            return refused(table, error, why, "change single columns")
        merged = tuple(
            column if o is None else o._replace(nullable=True, default=None)
            for column, o in zip(new.columns, kept, strict=True)
        )
        return altered(table, Change("REPLACE COLUMNS", Struct(merged)), engine)
