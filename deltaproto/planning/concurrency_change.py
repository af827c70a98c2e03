"""Isolation, row-level concurrency and conflicts of a table before and after a plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from deltaproto.conflicts.matrix import (
    Compute,
    MatrixEngine,
    ResolvedByRow,
    build_cells,
    matrix_level,
    resolve_by_row,
)
from deltaproto.conflicts.operation import UNLISTED_OPERATIONS, Cell, Operation
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.plan import (
    CellOutcome,
    ChangedCell,
    ConcurrencyChange,
    ConcurrencyRules,
)
from deltaproto.planning.predict.schema import walk_columns
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.isolation import (
    ISOLATION_PROPERTY,
    IsolationLevel,
    RowLevelConcurrency,
    RowLevelSupport,
    evaluate_isolation,
    row_level_concurrency,
)
from deltaproto.protocol.layers import FeatureState

_VECTORS, _IDENTITY, _CLUSTERING = "deletionVectors", "identityColumns", "clustering"
_NONE: frozenset[Operation] = frozenset()


class _Seen(NamedTuple):
    """The facts that determine the conflicts of one table."""

    rules: ConcurrencyRules
    by_row: frozenset[Operation]
    vectors: bool | None
    identity: bool | None


def concurrency_change(inputs: PlanInput, after: Table) -> ConcurrencyChange:
    """Return isolation, row-level concurrency and conflicts before and after a plan."""
    was = _seen(inputs, inputs.table)
    will = was if after is inputs.table else _seen(inputs, after)
    changed = (cell for engine in MatrixEngine for cell in _changed(engine, was, will))
    return ConcurrencyChange(was.rules, will.rules, tuple(changed) if will != was else ())


def _seen(inputs: PlanInput, table: Table) -> _Seen:
    names = {_VECTORS, _IDENTITY, _CLUSTERING} & table.protocol.supported
    enabled = {name: _enabled(inputs, table, name) for name in names}
    states = tuple(_state(name, enabled[name]) for name in sorted(names))
    own = row_level_concurrency(states, table.partition_columns, table.clustering)
    rows = _by_row(own, inputs.engine)
    support, reason = own.databricks, own.reason
    if support is RowLevelSupport.YES and inputs.engine.name is EngineName.DATABRICKS:
        support = RowLevelSupport.YES if rows.operations else RowLevelSupport.NO
        reason = f"{reason}; {rows.reason}"
    rules = ConcurrencyRules(
        evaluate_isolation(table.configuration.get(ISOLATION_PROPERTY)), support, reason
    )
    return _Seen(
        rules, rows.operations, enabled.get(_VECTORS, False), enabled.get(_IDENTITY, False)
    )


def _enabled(inputs: PlanInput, table: Table, name: str) -> bool | None:
    """Return True if the table uses a supported feature; None if unknown."""
    seen = next((state.enabled for state in inputs.states if state.name == name), None)
    if table is inputs.table:
        return seen
    rule = feature_catalog.feature_record(name).enablement
    if isinstance(rule, PropertyIs):
        return rule.holds(table.configuration.get(rule.key_in(table.configuration)))
    if name == _IDENTITY and table.schema is not None:
        return any(column.identity for _, column in walk_columns(table.schema))
    return seen


def _state(name: str, enabled: bool | None) -> FeatureState:
    feature = feature_catalog.feature_record(name)
    return FeatureState(feature, feature.kind, False, False, enabled, None, (), "")


def _by_row(own: RowLevelConcurrency, engine: Engine) -> ResolvedByRow:
    """Return the operations compared by row on the plan's engine, or else on any newer runtime."""
    if own.databricks is not RowLevelSupport.YES:
        return ResolvedByRow(_NONE, own.reason)
    named = parse_runtime(engine.version) if engine.name is EngineName.DATABRICKS else None
    # Do not assume row-level concurrency if it depends on unknown clustering.
    return resolve_by_row(bool(own.liquid), Compute(None if named is None else named.runtime))


def _changed(engine: MatrixEngine, was: _Seen, will: _Seen) -> Iterator[ChangedCell]:
    for before, after in zip(_cells(engine, was), _cells(engine, will), strict=True):
        one, other = _outcome(before), _outcome(after)
        if one != other:
            names = str(engine), str(before.operation), str(before.against)
            yield ChangedCell(*names, one, other)


def _outcome(cell: Cell) -> CellOutcome:
    return CellOutcome(str(cell.conflict), tuple(map(str, cell.exceptions)), cell.when)


def _cells(engine: MatrixEngine, seen: _Seen) -> tuple[Cell, ...]:
    level = matrix_level(engine, seen.rules.isolation)
    if engine is not MatrixEngine.DATABRICKS:
        return matrix_cells(engine, level, _NONE, None, seen.identity)
    return matrix_cells(engine, level, seen.by_row, seen.vectors, seen.identity)


@lru_cache(maxsize=256)
def matrix_cells(
    engine: MatrixEngine,
    level: IsolationLevel,
    rows: frozenset[Operation],
    vectors: bool | None,
    identity: bool | None,
) -> tuple[Cell, ...]:
    """Return the documented pairs."""
    every = build_cells(engine, level, by_row=rows, deletion_vectors=vectors, identity=identity)
    return tuple(cell for cell in every if not {cell.operation, cell.against} & UNLISTED_OPERATIONS)
