"""The cheapest way to a goal by trying every sequence of statements."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.planning.enable import DISABLEABLE_FEATURES, disabling_statements
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Cost, compute_cost
from deltaproto.planning.search.goals import EndState
from deltaproto.planning.search.route import PredictedStatement, predict_statement, raise_to_pair
from deltaproto.planning.search.search import LEGACY_PAIRS, HistoryChoice, SearchTask
from deltaproto.planning.statement import (
    DropConstraint,
    DropFeature,
    Statement,
    Wait,
)
from deltaproto.planning.usage import end_state_of
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION

_Pair = tuple[int, int] | None


class _Limits(NamedTuple):
    """What a sequence may do, and how it has to end."""

    drops: frozenset[str]
    pair: _Pair
    """the legacy pair to which it may raise the table"""
    protected: bool
    """whether checkpointProtection is there in the end"""

    def allow(self, statement: Statement) -> bool:
        if isinstance(statement, DropFeature):
            return statement.feature in self.drops
        pairs = (pair for pair in LEGACY_PAIRS if statement == raise_to_pair(pair))
        return next(pairs, self.pair) == self.pair

    def reached(self, task: SearchTask, table: Table) -> bool:
        protected = CHECKPOINT_PROTECTION in table.protocol.supported
        return protected is self.protected and _reached(task, table)


def cheapest(task: SearchTask) -> Cost | None:
    """Return the least cost of any sequence that reaches the goal, or None if no sequence does.

    A sequence may not drop what can stay, not even to be refused: Delta then leaves a checkpoint,
    which can spare a wait, but nobody asked for that drop.
    """
    every = frozenset(
        name
        for name in task.table.protocol.supported | {CHECKPOINT_PROTECTION}
        if name == CHECKPOINT_PROTECTION or task.engine.drops(feature_catalog.feature_record(name))
    )
    best: Cost | None = None
    for protected, pair in itertools.product((False, True), (None, *LEGACY_PAIRS)):
        for limits in _least(task, _Limits(every, pair, protected), set()):
            found = _cheapest_within(task, limits)
            best = found if best is None or (found is not None and found < best) else best
    return best


def _least(task: SearchTask, limits: _Limits, seen: set[frozenset[str]]) -> Iterator[_Limits]:
    """The limits to reach the goal within of which no drop can be taken away."""
    if limits.drops in seen:
        return
    seen.add(limits.drops)
    fewer = [limits._replace(drops=limits.drops - {name}) for name in sorted(limits.drops)]
    enough = [each for each in fewer if each.drops in seen or _reachable(task, each)]
    for each in enough:
        yield from _least(task, each, seen)
    if not enough and _reachable(task, limits):
        yield limits


def _cheapest_within(task: SearchTask, limits: _Limits) -> Cost | None:
    order = itertools.count()
    waiting = [(Cost(), next(order), task.table)]
    expanded: defaultdict[Hashable, list[Cost]] = defaultdict(list)
    while waiting:
        spent, _, table = heapq.heappop(waiting)
        before = expanded[_state(table)]
        if any(_never_worse(earlier, spent) for earlier in before):
            continue
        before.append(spent)
        if limits.reached(task, table):
            return spent
        for statement, outcome in _outcomes(task, table, limits):
            more = compute_cost(
                [PredictedStatement(statement, table, outcome)], task.engine, task.files
            )
            total = Cost(
                spent.irreversible + more.irreversible,
                max(spent.history, more.history),
                spent.bytes + more.bytes,
                spent.waits + more.waits,
                spent.commits + more.commits,
            )
            heapq.heappush(waiting, (total, next(order), outcome.table))
    return None


def _reachable(task: SearchTask, limits: _Limits) -> bool:
    waiting, expanded = [task.table], set[Hashable]()
    while waiting:
        table = waiting.pop()
        state = _state(table)
        if state in expanded:
            continue
        expanded.add(state)
        if limits.reached(task, table):
            return True
        waiting += [outcome.table for _, outcome in _outcomes(task, table, limits)]
    return False


def _outcomes(
    task: SearchTask, table: Table, limits: _Limits
) -> Iterator[tuple[Statement, Outcome]]:
    for statement in filter(limits.allow, _statements(task, table)):
        outcome = predict_statement(statement, table, task.engine)
        if outcome.refusal is None or outcome.refusal.retry:
            yield statement, outcome


def _never_worse(earlier: Cost, later: Cost) -> bool:
    """Whether, from the same table, no continuation is cheaper after `later` than after `earlier`.

    Every member but `history` adds up, so the order of the sums is that of the costs. `history`
    stays 1 once it is 1: the cost that has not truncated yet can lose that advantage later.
    """
    if earlier.irreversible != later.irreversible:
        return earlier.irreversible < later.irreversible
    return earlier.history <= later.history and earlier[2:] <= later[2:]


def _reached(task: SearchTask, table: Table) -> bool:
    residue = CHECKPOINT_PROTECTION in table.protocol.supported
    if task.history is HistoryChoice.TRUNCATE and residue:
        return task.goal.reached(EndState(task.table.protocol)) and table == task.table
    return task.goal.reached(EndState(table.protocol, end_state_of(table).off))


def _statements(task: SearchTask, table: Table) -> Iterator[Statement]:
    kept = task.history is HistoryChoice.KEEP
    for name in sorted(table.protocol.supported):
        yield DropFeature(name)
        if not kept:
            yield DropFeature(name, truncate=True)
    for name in table.constraints:
        yield DropConstraint(name)
    for pair in LEGACY_PAIRS:
        yield raise_to_pair(pair)
    if task.needs is not None:
        for name in task.needs.used & DISABLEABLE_FEATURES & table.protocol.supported:
            yield from disabling_statements(name, table)
    if table.traced:
        yield Wait(24, "")


def _state(table: Table) -> Hashable:
    return (
        *(each for each in table if not isinstance(each, Mapping)),
        *sorted(table.configuration.items()),
        *sorted(table.left.items()),
    )
