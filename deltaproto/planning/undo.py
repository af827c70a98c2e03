"""How a statement is taken back."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.change import about_protocol
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.refused import FEATURE
from deltaproto.planning.route import Move
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    SetProperties,
    Statement,
    UnsetProperties,
)
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION
from deltaproto.protocol.conflicts.tokens import is_enclosed
from deltaproto.protocol.feature import PropertyIs
from deltaproto.tables.sql import identifier


def undo(move: Move, start: Table, engine: Engine, table: str) -> str | None:
    """The SQL that brings back what a move changed, as far as any does.

    None where nothing has to be, or can be, brought back. `start` is the table before the plan.
    """
    found: list[str] = []
    reached = move.outcome.table
    for back in _undo(move, start, engine, table):
        if isinstance(back, str):
            found.append(back)
            continue
        sql, outcome = back.sql(table), back.outcome(reached, engine)
        if sql is not None and (outcome.refusal is None or outcome.refusal.retry):
            found.append(sql)
            reached = outcome.table
    return "; ".join(found) or None


def _undo(move: Move, start: Table, engine: Engine, table: str) -> Iterable[Statement | str]:
    statement, before, outcome = move
    if isinstance(statement, DropFeature):
        changed = outcome.table.configuration != before.configuration
        if (outcome.refusal is None or changed) and statement.feature != CHECKPOINT_PROTECTION:
            yield _enabled_again(statement.feature, start)
    elif isinstance(statement, DropConstraint):
        key = before.constraint_key(statement.name)
        if key is not None and is_enclosed(before.configuration[key]):
            name, expression = identifier(statement.name), before.configuration[key]
            yield f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({expression})"
    elif isinstance(statement, ClusterBy):
        yield ClusterBy(before.clustering or ())
    elif isinstance(statement, SetProperties | UnsetProperties):
        keys = statement.properties if isinstance(statement, SetProperties) else statement.keys
        yield from _properties(keys, before, outcome)
        gained = outcome.table.protocol.supported - before.protocol.supported
        for name in _droppable(gained, engine):
            yield DropFeature(name)


def _properties(keys: Iterable[str], before: Table, outcome: Outcome) -> Iterable[Statement]:
    stored = [key for key in keys if not about_protocol(key)]
    old = {k: before.configuration[k] for k in stored if k in before.configuration}
    if any(outcome.table.configuration.get(key) != value for key, value in old.items()):
        yield SetProperties(old)
    new = tuple(k for k in stored if k not in old and k in outcome.table.configuration)
    # Taking the mapping back rewrites every file, and its drop does that already.
    new = tuple(k for k in new if k != MODE)
    if new:
        yield UnsetProperties(new)


def _droppable(gained: Iterable[str], engine: Engine) -> list[str]:
    """The features that can be dropped again, dependents first."""
    can = [name for name in sorted(gained) if engine.drops(catalogue.record(name))]
    return sorted(can, key=lambda n: (any(n in catalogue.closure({o}) - {o} for o in can), n))


def _enabled_again(name: str, before: Table) -> SetProperties:
    rule = catalogue.record(name).enablement
    if isinstance(rule, PropertyIs):
        value = before.configuration.get(rule.key)
        if value is not None and rule.holds(value):
            # An existing table can get column mapping by name only.
            return SetProperties({rule.key: "name" if rule.key == MODE else value})
    return SetProperties({f"{FEATURE}{name}": "supported"})
