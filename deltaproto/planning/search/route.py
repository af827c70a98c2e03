"""Order the statements for a selection of feature changes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from deltaproto.caches import IdentityKey
from deltaproto.planning.enable import disabling_statements, sort_for_disabling
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.before_drop import needs_unclustering
from deltaproto.planning.predict.drop_feature import HISTORY_ERROR
from deltaproto.planning.predict.pending import has_pending, settling_keys
from deltaproto.planning.predict.properties import (
    LOG_RETENTION,
    TRUNCATION_RETENTION,
    effective_value,
    retention_hours,
)
from deltaproto.planning.predict.table import (
    MAPPING_MODE,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    Table,
)
from deltaproto.planning.search.cost import Files, compute_cost
from deltaproto.planning.search.droppable import drop_rank
from deltaproto.planning.search.prediction import PredictedStatement, predict_statement
from deltaproto.planning.statement import (
    ClusterBy,
    DropFeature,
    Purge,
    SetProperties,
    Statement,
    UnsetProperties,
    Wait,
    drop_constraints,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION


class DropMode(StrEnum):
    """How history-protected features are dropped."""

    FAST = "fast"
    """without TRUNCATE HISTORY: since Delta 4.0 immediate, and adds checkpointProtection"""
    TRUNCATING = "truncating"
    """with TRUNCATE HISTORY: after the history that shows them is old enough"""


class DropSelection(NamedTuple):
    """The planned changes to a table's features."""

    dropped: frozenset[str] = frozenset()
    """features to drop; includes checkpointProtection if it must not be left"""
    off: frozenset[str] = frozenset()
    """features to disable, which stay in the protocol"""
    pair: tuple[int, int] | None = None
    """the legacy pair whose missing features are added to remove the feature lists"""


def build_route(
    table: Table, choice: DropSelection, engine: Engine, drops: DropMode
) -> list[PredictedStatement]:
    """Return the ordered statements for a selection, each with its outcome.

    After fast drops, an unwanted checkpointProtection is dropped once for all of them. A truncating
    drop takes two calls if the first has work to do or must end the log's newest run with a
    checkpoint. Otherwise it takes one call, after the history is old enough.

    A checkpoint that other drops write may already be the classic one that dropping v2Checkpoint
    would have to write and wait for: then v2Checkpoint is better dropped last, after their wait.
    """
    route = _build_in_order(table, choice, engine, drops)
    fast = drops is DropMode.FAST and engine.fast_drop
    if fast or "v2Checkpoint" not in choice.dropped:
        return route
    other = _build_in_order(table, choice, engine, drops, v2_last=True)
    if choice.dropped & other[-1].outcome.table.protocol.supported:
        return route
    return min(route, other, key=lambda predictions: compute_cost(predictions, engine, Files()))


@lru_cache(maxsize=64)
def _settle_first(table: IdentityKey[Table], engine: Engine) -> tuple[PredictedStatement, ...]:
    statement = UnsetProperties(settling_keys(table.value))
    outcome = predict_statement(statement, table.value, engine)
    return () if outcome.refusal else (PredictedStatement(statement, table.value, outcome),)


def settle_first(table: Table, engine: Engine) -> tuple[PredictedStatement, ...]:
    """Return the statement that applies or removes the protocol requests in a table's metadata.

    Drops then start from the protocol that any statement would leave. Empty if nothing is pending,
    or if the engine refuses it.
    """
    return _settle_first(IdentityKey(table), engine) if has_pending(table, engine) else ()


def settled_table(table: Table, engine: Engine) -> Table:
    """Return the table after the statement of `settle_first`; the table itself if there is none."""
    first = settle_first(table, engine)
    return first[-1].outcome.table if first else table


def _build_in_order(
    table: Table,
    choice: DropSelection,
    engine: Engine,
    drops: DropMode,
    *,
    v2_last: bool = False,
) -> list[PredictedStatement]:
    builder = _RouteBuilder(table, engine)
    if choice.dropped and (table.unmapped or has_pending(table, engine)):
        builder.add(UnsetProperties(settling_keys(table)))
    if drops is DropMode.TRUNCATING:
        _drop_immediately(builder, choice)
    clustering = _columns_to_uncluster(table, choice, engine)
    if clustering:
        builder.add(ClusterBy(()))
    _disable(builder, choice)
    if "checkConstraints" in choice.dropped:
        for statement in drop_constraints(table):
            builder.add(statement)
    again = () if "clustering" in choice.off else clustering
    _add_drops(builder, choice, drops, v2_last=v2_last, clustering=again)
    if choice.pair is not None:
        filled = raise_to_pair(choice.pair)
        if filled.outcome(builder.table, engine).table.protocol != builder.table.protocol:
            builder.add(filled)
    if again and not builder.table.clustering:
        builder.add(ClusterBy(again))
    return builder.predictions


class _RouteBuilder:
    def __init__(self, table: Table, engine: Engine) -> None:
        self.table, self.engine = table, engine
        self.predictions: list[PredictedStatement] = []

    def add(self, statement: Statement) -> bool:
        """Append a statement; return False if it must be repeated after a wait."""
        outcome = predict_statement(statement, self.table, self.engine)
        self.predictions.append(PredictedStatement(statement, self.table, outcome))
        self.table = outcome.table
        return outcome.refusal is None


def _disable(builder: _RouteBuilder, choice: DropSelection) -> None:
    """Disable the features that stay in the protocol.

    Disabling column mapping rewrites every file without its deletion vectors, so the purge waits
    for it, and is left out if no vector remains.
    """
    purges: list[Purge] = []
    for name in sort_for_disabling(choice.off):
        for statement in disabling_statements(name, builder.table, builder.engine):
            if isinstance(statement, Purge) and "columnMapping" in choice.off:
                purges.append(statement)
            else:
                builder.add(statement)
    for purge in purges:
        if builder.table.vectors is not False:
            builder.add(purge)


def _drop_immediately(builder: _RouteBuilder, choice: DropSelection) -> None:
    """Drop what the history allows now but not after another commit.

    Start with a drop whose first commit writes a checkpoint, because the history for the other
    drops then stays old enough. Any other commit would prevent them.
    """
    ready = builder.table.aged_in_newest_run - _dropped_after_vectors(choice, builder.table)
    outcomes = [
        (drop, predict_statement(drop, builder.table, builder.engine))
        for drop in _drop_statements(choice, truncate=True)
        if drop.truncate and drop.feature in ready
    ]
    possible = [(drop, outcome.table) for drop, outcome in outcomes if outcome.refusal is None]
    if possible:
        builder.add(max(possible, key=lambda each: len(ready & (each[1].aged or frozenset())))[0])


def _add_drops(
    builder: _RouteBuilder,
    choice: DropSelection,
    drops: DropMode,
    *,
    v2_last: bool,
    clustering: tuple[str, ...],
) -> None:
    """Append the drops, each with a second call after the wait if it needs one.

    Args:
        v2_last: v2Checkpoint is dropped once, after everything else and its wait.
        clustering: clustering columns to set again before the wait.
    """
    later: list[DropFeature] = []
    waits: list[Wait] = []
    idle: list[DropFeature] = []
    last: list[DropFeature] = []
    converted: list[DropFeature] = []
    postponed = _dropped_after_vectors(choice, builder.table)
    for drop in _drop_statements(choice, truncate=drops is DropMode.TRUNCATING):
        if drop.feature not in builder.table.protocol.supported:
            continue
        if drop.feature in postponed:
            last.append(drop)
        elif v2_last and drop.feature == "v2Checkpoint":
            converted.append(drop)
        elif _would_only_wait(drop, builder):
            idle.append(drop)
        elif not builder.add(drop):
            later.append(drop)
            waits.append(
                retention_wait(
                    builder.table, TRUNCATION_RETENTION if drop.truncate else LOG_RETENTION
                )
            )
    young = {drop.feature for drop in (*idle, *converted)} & (builder.table.traced or frozenset())
    if idle and not young <= builder.table.hours_left.keys():
        # Each call leaves a checkpoint. Without one, some history never gets old enough.
        builder.add(min(idle, key=lambda drop: drop.outcome(builder.table, builder.engine).most))
    later += idle
    waits += [_remaining_wait(drop, builder.table) for drop in idle]
    if any(drop.feature == "deletionVectors" for drop in later):
        later += last
    else:
        for drop in last:
            builder.add(drop)
    if CHECKPOINT_PROTECTION in choice.dropped & builder.table.protocol.supported:
        later.append(DropFeature(CHECKPOINT_PROTECTION, truncate=True))
        if later[-1].outcome(builder.table, builder.engine).refusal is not None:
            if builder.table.unpublished:
                builder.add(later[-1])
            left = builder.table.hours_left.get(CHECKPOINT_PROTECTION)
            waits.append(retention_wait(builder.table, TRUNCATION_RETENTION, left))
    waits += [
        _remaining_wait(drop, builder.table)
        for drop in converted
        if drop.feature in builder.table.hours_left
    ]
    if waits:
        # What rewrites files is done: the calls after the wait only find old history.
        if clustering:
            builder.add(ClusterBy(clustering))
        builder.add(max(waits, key=lambda each: each.hours))
    for drop in later + converted:
        builder.add(drop)


def _remaining_wait(drop: DropFeature, table: Table) -> Wait:
    """Return the wait until the history that shows the feature is old enough."""
    if not drop.truncate:
        # The remaining history is only known for truncations, which wait for less.
        return retention_wait(table, LOG_RETENTION)
    return retention_wait(table, TRUNCATION_RETENTION, table.hours_left.get(drop.feature))


def _dropped_after_vectors(choice: DropSelection, table: Table) -> frozenset[str]:
    """Return features to drop after deletion vectors, whose REORG keeps their columns.

    If column mapping is dropped, it rewrites every file anyway, without these columns.
    """
    mode = table.configuration.get(MAPPING_MODE, "none")
    mapped = "columnMapping" in choice.dropped and mode != "none"
    if mapped or "deletionVectors" not in choice.dropped:
        return frozenset()
    names: frozenset[str] = frozenset()
    # REORG fails on files without row ids.
    if "rowTracking" in choice.dropped and table.names_row_ids and not table.untracked:
        names |= {"rowTracking", "domainMetadata"}
    if table.partition_columns:
        names |= {"materializePartitionColumns"} & choice.dropped
    return names


def _would_only_wait(drop: DropFeature, builder: _RouteBuilder) -> bool:
    """Return True if a call now would only find that the history is too recent."""
    refusal = drop.outcome(builder.table, builder.engine).refusal
    return refusal is not None and refusal.error == HISTORY_ERROR and refusal.sure


def _drop_statements(choice: DropSelection, *, truncate: bool) -> Iterator[DropFeature]:
    for name in sorted(choice.dropped - {CHECKPOINT_PROTECTION}, key=drop_rank):
        protected = feature_catalog.feature_record(name).drop.protects_history
        yield DropFeature(name, truncate=truncate and protected)


def _columns_to_uncluster(table: Table, choice: DropSelection, engine: Engine) -> tuple[str, ...]:
    """Return the clustering columns to remove meanwhile."""
    gone = choice.dropped | choice.off
    found = any(needs_unclustering(table, name, engine) for name in gone)
    return (table.clustering or ()) if found else ()


def raise_to_pair(pair: tuple[int, int]) -> SetProperties:
    """Return the statement that adds all features that a legacy pair implies."""
    reader, writer = pair
    return SetProperties({MIN_READER_VERSION: str(reader), MIN_WRITER_VERSION: str(writer)})


def retention_wait(table: Table, key: str, left: float | None = None) -> Wait:
    """Return the wait for a retention property, counted from a full minute; `left`: if known."""
    full = retention_hours(table.configuration, key) + table.hours_ahead
    value = f"{key} = {effective_value(table.configuration, key)}"
    return Wait(full if left is None else min(left, full + 1 / 60), value)
