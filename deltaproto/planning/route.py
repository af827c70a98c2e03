"""From what is to become of each feature to statements in an order that works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from deltaproto.planning.candidates import rank
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    SetProperties,
    Statement,
    Wait,
)
from deltaproto.planning.switches import switched_off
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION

RETENTION = "delta.dropFeatureTruncateHistory.retentionDuration"
LOG_RETENTION = "delta.logRetentionDuration"
_DEFAULT = {RETENTION: "interval 24 hours", LOG_RETENTION: "interval 30 days"}
_HOURS = {"week": 168.0, "day": 24.0, "hour": 1.0, "minute": 1 / 60, "second": 1 / 3600}


class Drops(StrEnum):
    """How protected features are dropped."""

    FAST = "fast"
    """without TRUNCATE HISTORY: since Delta 4.0 at once, and checkpointProtection joins"""
    TRUNCATING = "truncating"
    """with TRUNCATE HISTORY: once the history that shows them is old enough"""


class Choice(NamedTuple):
    """What is to become of a table."""

    gone: frozenset[str] = frozenset()
    """features to drop; checkpointProtection, when it must not be left either"""
    off: frozenset[str] = frozenset()
    """features to switch off, which stay in the protocol"""
    pair: tuple[int, int] | None = None
    """the legacy pair whose missing features join, so that the lists vanish"""


class Move(NamedTuple):
    """A statement, the table before it, and what it does."""

    statement: Statement
    before: Table
    outcome: Outcome


def route(table: Table, choice: Choice, engine: Engine, drops: Drops) -> list[Move]:
    """The statements for a choice, in order, each with its outcome.

    After fast drops a checkpointProtection that must go is dropped once for all. A truncating drop
    takes two calls where the history is too young.
    """
    walk = _Walk(table, engine)
    clustering = _unclustered(table, choice)
    if clustering:
        walk.go(ClusterBy(()))
    for name in sorted(choice.off):
        for statement in switched_off(name, walk.table):
            walk.go(statement)
    if "checkConstraints" in choice.gone:
        for name in table.constraints:
            walk.go(DropConstraint(name))
    every = _drops(choice, truncate=drops is Drops.TRUNCATING)
    again = [drop for drop in every if not walk.go(drop)]
    protection = CHECKPOINT_PROTECTION in choice.gone and (
        CHECKPOINT_PROTECTION in walk.table.protocol.supported
    )
    waits = protection and walk.table.shows(CHECKPOINT_PROTECTION) is not False
    if again or waits:
        walk.go(retention(table, LOG_RETENTION if again and not again[0].truncate else RETENTION))
    for drop in again:
        walk.go(drop)
    if protection:
        walk.go(DropFeature(CHECKPOINT_PROTECTION, truncate=True))
    if choice.pair is not None:
        filled = versions(choice.pair)
        if filled.outcome(walk.table, engine).table.protocol != walk.table.protocol:
            walk.go(filled)
    if clustering:
        walk.go(ClusterBy(clustering))
    return walk.moves


class _Walk:
    def __init__(self, table: Table, engine: Engine) -> None:
        self.table, self._engine = table, engine
        self.moves: list[Move] = []

    def go(self, statement: Statement) -> bool:
        """Append a statement; False when it has to be repeated after a wait."""
        outcome = statement.outcome(self.table, self._engine)
        self.moves.append(Move(statement, self.table, outcome))
        self.table = outcome.table
        return outcome.refusal is None


def _drops(choice: Choice, *, truncate: bool) -> Iterator[DropFeature]:
    for name in sorted(choice.gone - {CHECKPOINT_PROTECTION}, key=rank):
        protected = catalogue.record(name).drop.protects_history
        yield DropFeature(name, truncate=truncate and protected)


def _unclustered(table: Table, choice: Choice) -> tuple[str, ...]:
    """The clustering columns that must be taken away while column mapping is dropped.

    Delta Spark 4.4 leaves their physical names behind, and the table is broken from then on.
    """
    mapped = table.configuration.get(MODE, "none").lower() != "none"
    if mapped and "columnMapping" in choice.gone | choice.off:
        return table.clustering or ()
    return ()


def versions(pair: tuple[int, int]) -> SetProperties:
    """The statement that raises the listed features to what a legacy pair implies."""
    reader, writer = pair
    return SetProperties(
        {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(writer)}
    )


def retention(table: Table, key: str) -> Wait:
    """The wait that a table's retention property asks for."""
    value = table.configuration.get(key) or _DEFAULT[key]
    return Wait(hours(value), f"{key} = {value}")


def hours(interval: str) -> float:
    """A Delta interval (`interval 1 day 12 hours`) in hours; 24 for one that cannot be read."""
    found = re.findall(r"(\d+)\s*([a-z]+?)s?\b", interval.lower().removeprefix("interval"))
    known = [int(number) * _HOURS[unit] for number, unit in found if unit in _HOURS]
    return sum(known) if known and len(known) == len(found) else 24.0
