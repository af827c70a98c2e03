"""The cheapest way to a goal by trying every sequence of statements."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from deltaproto.planning.enable import DISABLEABLE_FEATURES, disabling_statements
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Cost, compute_cost
from deltaproto.planning.search.goals import EndState
from deltaproto.planning.search.route import PredictedStatement, predict_statement, raise_to_pair
from deltaproto.planning.search.search import LEGACY_PAIRS, HistoryChoice, SearchTask
from deltaproto.planning.statement import DropConstraint, DropFeature, Statement, Wait
from deltaproto.planning.usage import end_state_of
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION


def cheapest(task: SearchTask) -> Cost | None:
    """Return the least cost of any sequence that reaches the goal, or None if no sequence does."""
    order = itertools.count()
    start = Cost()
    waiting = [(start, next(order), task.table)]
    expanded: defaultdict[Hashable, list[Cost]] = defaultdict(list)
    while waiting:
        spent, _, table = heapq.heappop(waiting)
        before = expanded[_state(table)]
        if any(_never_worse(earlier, spent) for earlier in before):
            continue
        before.append(spent)
        if _reached(task, table):
            return spent
        for statement in _statements(task, table):
            outcome = predict_statement(statement, table, task.engine)
            if outcome.refusal is not None and not outcome.refusal.retry:
                continue
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
