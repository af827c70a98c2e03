"""ALTER TABLE … CLUSTER BY as people write it, in any case."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.schema import Path, resolved, written
from deltaproto.planning.statement import ClusterBy
from deltaproto.planning.table import Table


class ClusterByPaths(NamedTuple):
    """CLUSTER BY columns."""

    paths: tuple[Path, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        schema = table.schema
        named = self.paths if schema is None else [resolved(schema, path) for path in self.paths]
        return ClusterBy(tuple(map(written, named))).outcome(table, engine)
