"""ALTER TABLE … CLUSTER BY as people write it: columns that there may be, or not.

Source: Delta Spark 4.4's `AbstractDeltaCatalog.alterTable` and `ClusteredTableUtils`; measured
with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from deltaproto.planning.ddl.own import refused
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.schema import Atomic, Path, Type, dotted, find, resolved
from deltaproto.planning.statement import ClusterBy
from deltaproto.planning.table import Table

_MOST = 4
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_ORDERED = (*_NUMBERS, "date", "timestamp", "string", "char", "varchar")


class ClusterByPaths(NamedTuple):
    """CLUSTER BY columns."""

    paths: tuple[Path, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        for path in self.paths:
            if table.schema is not None and find(table.schema, path) is None:
                return refused(
                    table,
                    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                    f"the table has no column {dotted(path)}",
                    "DESCRIBE the table for its columns",
                )
        twice = Counter(dotted(path).casefold() for path in self.paths).most_common(1)[0]
        if twice[1] > 1:
            error = "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"
            return refused(table, error, f"{twice[0]} is named twice", "name it once")
        named = [p if table.schema is None else resolved(table.schema, p) for p in self.paths]
        outcome = ClusterBy(tuple(map(dotted, named))).outcome(table, engine)
        if outcome.refusal is None and len(self.paths) > _MOST:
            return refused(
                table,
                "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
                f"a table is clustered by {_MOST} columns at most",
                "name fewer",
            )
        for path in self.paths if outcome.refusal is None else ():
            column = None if table.schema is None else find(table.schema, path)
            if column is not None and not _has_statistics(column.type):
                return refused(
                    table,
                    "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                    f"files hold no least and greatest value of {dotted(path)}",
                    "cluster by numbers, texts, dates or timestamps",
                )
        return outcome


def _has_statistics(kind: Type) -> bool:
    if not isinstance(kind, Atomic):
        return False
    return kind.name.startswith(_ORDERED) and not kind.name.startswith("string collate")
