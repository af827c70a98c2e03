"""A table as plans see it, from what a reader saw."""

from __future__ import annotations

from deltaproto.planning.schema import from_log
from deltaproto.planning.table import Table
from deltaproto.protocol.feature import Trace
from deltaproto.tables.interface import TableState


def observe(state: TableState) -> Table:
    """The planner's view of a table; what the reader did not look at stays unknown."""
    metadata, traces = state.metadata, state.traces
    table = Table(
        protocol=state.protocol,
        configuration={k: v for k, v in metadata.configuration.items() if v is not None},
        vectors=traces.get(Trace.DELETION_VECTORS),
        v2_checkpoint=traces.get(Trace.V2_CHECKPOINT),
        row_ids=traces.get(Trace.ROW_IDS),
        clustering=state.clustering_columns,
        partition_columns=metadata.partition_columns,
        domains=None if state.domains is None else tuple(sorted(state.domains)),
    )
    return table.with_schema(None if metadata.schema is None else from_log(metadata.schema))
