"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE: rows change, the protocol stays.

Measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Commit, Outcome, Refusal
from deltaproto.planning.table import Table

_EVOLVES = (
    "new columns come from the query, so that the schema afterwards is not known; a VARIANT among "
    "them adds variantType to the protocol"
)


class Rows(NamedTuple):
    """A statement that changes rows."""

    operation: str
    """as commitInfo names it"""
    adds: bool = False
    removes: bool = False
    """it takes rows away, or changes them"""
    sure: bool = False
    """it commits even when it changes nothing"""
    evolves: bool = False
    """it may add columns"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if self.removes and table.on("delta.appendOnly"):
            refusal = Refusal(
                "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                "the table takes rows, and gives none back",
                "set delta.appendOnly = false first",
            )
            return Outcome(table, refusal=refusal)
        commit = Commit(self.operation, table.protocol, sure=self.sure)
        if self.removes and (table.vectors or table.on("delta.enableDeletionVectors")):
            # It may leave some, or take the last ones away.
            table = table._replace(vectors=None)
        if self.adds and "rowTracking" in table.protocol.supported:
            table = table._replace(row_ids=table.row_ids or None)
        if self.evolves:
            return Outcome(table.with_schema(None), (commit,), warnings=(_EVOLVES,))
        return Outcome(table, (commit,))
