"""The cheapest way to a goal by trying every sequence of statements."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from deltaproto.planning.enable import DISABLEABLE_FEATURES, disabling_statements
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.predict.table import ROW_TRACKING, Table
from deltaproto.planning.search.cost import Cost, compute_cost
from deltaproto.planning.search.goals import EndState, HistoryChoice
from deltaproto.planning.search.prediction import PredictedStatement, predict_statement
from deltaproto.planning.search.route import raise_to_pair
from deltaproto.planning.search.search import SearchTask
from deltaproto.planning.statement import (
    DropConstraint,
    DropFeature,
    SetProperties,
    Statement,
    Wait,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION


class _Move(NamedTuple):
    """One statement that Delta does not refuse for good."""

    feature: str | None
    """what it tries to drop"""
    cost: Cost
    to: int
    """the number of the table afterwards"""


class _Limits(NamedTuple):
    """What a sequence may do, and how it has to end."""

    drops: frozenset[str]
    pair: tuple[int, int] | None
    """the legacy pair to which it may raise the table"""
    protected: bool
    """whether checkpointProtection is there in the end"""


class _Tables:
    """The tables that statements make of one, numbered as they are found; the first is 0."""

    def __init__(self, task: SearchTask, more: More, met: Met) -> None:
        self._task, self._more, self._met = task, more, met
        self._found = [task.table]
        self._numbers = {_state(task.table): 0}
        self._moves: dict[tuple[int, tuple[int, int] | None], list[_Move]] = {}

    def moves(self, number: int, limits: _Limits) -> Iterator[_Move]:
        for pair in dict.fromkeys((None, limits.pair)):
            if (number, pair) not in self._moves:
                table = self._found[number]
                statements = (
                    [*_statements(self._task, table), *self._more(table)]
                    if pair is None
                    else [raise_to_pair(pair)]
                )
                self._moves[number, pair] = [*self._moves_of(table, statements)]
            for move in self._moves[number, pair]:
                if move.feature is None or move.feature in limits.drops:
                    yield move

    def reached(self, number: int, limits: _Limits) -> bool:
        table = self._found[number]
        protected = CHECKPOINT_PROTECTION in table.protocol.supported
        reached = protected is limits.protected and _reached(self._task, table)
        return reached and self._met(table)

    def _moves_of(self, table: Table, statements: Iterable[Statement]) -> Iterator[_Move]:
        task = self._task
        for statement in statements:
            outcome = predict_statement(statement, table, task.engine)
            if outcome.refusal is not None and not outcome.refusal.retry:
                continue
            number = self._numbers.setdefault(_state(outcome.table), len(self._found))
            if number == len(self._found):
                self._found.append(outcome.table)
            cost = compute_cost(
                [PredictedStatement(statement, table, outcome)], task.engine, task.files
            )
            feature = statement.feature if isinstance(statement, DropFeature) else None
            yield _Move(feature, cost, number)


More = Callable[[Table], Iterable[Statement]]
Met = Callable[[Table], bool]


def cheapest(
    task: SearchTask,
    more: More = lambda _: (),
    met: Met = lambda _: True,
    pairs: Iterable[tuple[int, int]] = feature_catalog.LEGACY_PAIRS,
) -> Cost | None:
    """Return the least cost of any sequence that reaches the goal, or None if no sequence does.

    `more` gives further statements that may follow, and `met` is what the table must also be.
    `pairs` are the legacy protocols to one of which a sequence may raise the table.

    A sequence may not drop what can stay, not even to be refused: Delta then leaves a checkpoint,
    which can spare a wait, but nobody asked for that drop.
    """
    tables = _Tables(task, more, met)
    every = frozenset(
        name
        for name in task.table.protocol.supported
        if task.engine.drops(feature_catalog.feature_record(name))
    ) | {CHECKPOINT_PROTECTION}
    best: Cost | None = None
    for protected, pair in itertools.product((False, True), (None, *pairs)):
        limits = _Limits(every, pair, protected)
        for least in _least(tables, limits, set()) if _reachable(tables, limits) else ():
            found = _cheapest_within(tables, least)
            best = found if best is None or (found is not None and found < best) else best
    return best


def _least(tables: _Tables, limits: _Limits, seen: set[frozenset[str]]) -> Iterator[_Limits]:
    """The limits within these, which suffice, that suffice and of which no drop can be spared."""
    if limits.drops in seen:
        return
    seen.add(limits.drops)
    fewer = [limits._replace(drops=limits.drops - {name}) for name in sorted(limits.drops)]
    enough = [each for each in fewer if each.drops in seen or _reachable(tables, each)]
    for each in enough:
        yield from _least(tables, each, seen)
    if not enough:
        yield limits


def _reachable(tables: _Tables, limits: _Limits) -> bool:
    waiting, expanded = [0], {0}
    while waiting:
        number = waiting.pop()
        if tables.reached(number, limits):
            return True
        more = {move.to for move in tables.moves(number, limits)} - expanded
        expanded |= more
        waiting += more
    return False


def _cheapest_within(tables: _Tables, limits: _Limits) -> Cost | None:
    waiting = [(Cost(), 0)]
    expanded: defaultdict[int, list[Cost]] = defaultdict(list)
    while waiting:
        spent, number = heapq.heappop(waiting)
        before = expanded[number]
        if any(_never_worse(earlier, spent) for earlier in before):
            continue
        before.append(spent)
        if tables.reached(number, limits):
            return spent
        for move in tables.moves(number, limits):
            total = Cost(
                spent.irreversible + move.cost.irreversible,
                max(spent.history, move.cost.history),
                spent.bytes + move.cost.bytes,
                spent.waits + move.cost.waits,
                spent.commits + move.cost.commits,
            )
            heapq.heappush(waiting, (total, move.to))
    return None


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
    return task.goal.reached(EndState(table.protocol, end_state_of(table, table).off))


def _statements(task: SearchTask, table: Table) -> Iterator[Statement]:
    kept = task.history is HistoryChoice.KEEP
    for name in sorted(table.protocol.supported):
        yield DropFeature(name)
        if not kept:
            yield DropFeature(name, truncate=True)
    for name in table.constraints:
        yield DropConstraint(name)
    if task.needs is not None:
        for name in task.needs.used & DISABLEABLE_FEATURES & table.protocol.supported:
            yield from disabling_statements(name, table, task.engine)
    if task.engine.normalizes and table.protocol != table.protocol.lowest():
        yield raise_to_pair((1, 1))
    if table.untracked:
        yield SetProperties({ROW_TRACKING: "true"})
    if table.traced:
        yield Wait(24, "")


_MAPPED = ("configuration", "hours_left", "earlier")
_UNMAPPED = itemgetter(*(at for at, name in enumerate(Table._fields) if name not in _MAPPED))


def _state(table: Table) -> Hashable:
    return _UNMAPPED(table), *map(
        frozenset, (table.configuration.items(), table.hours_left.items())
    )
