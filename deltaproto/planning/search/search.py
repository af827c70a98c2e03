"""Search for the cheapest way to a goal.

A table can end in a few states: with feature lists or a legacy pair, and with or without
checkpointProtection. For each state, the search tries to keep every feature to find those that must
be dropped. Then it compares the routes by cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from deltaproto.caches import IdentityKey
from deltaproto.clients.requirements import TableRequirements
from deltaproto.planning import arithmetic
from deltaproto.planning.enable import (
    DISABLEABLE_FEATURES,
    FeatureToEnable,
    enabling_statements,
    find_disableable,
    is_kept_disabled,
)
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.before_drop import moves_absolute, purge_rewrites
from deltaproto.planning.predict.bounds import find_bound_hazards, follow_bounds
from deltaproto.planning.predict.consistency import refuse_rewrite
from deltaproto.planning.predict.contents import ContentChange, find_content_change
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.pending import has_pending
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Cost, Files, compute_cost
from deltaproto.planning.search.droppable import (
    DroppableFeatures,
    drop_rank,
    find_droppable,
    refuse_every_change,
    refuse_protection_drop,
)
from deltaproto.planning.search.goals import EndState, Goal, HistoryChoice
from deltaproto.planning.search.prediction import PredictedStatement, predict_statement
from deltaproto.planning.search.route import (
    DropMode,
    DropSelection,
    build_route,
    raise_to_pair,
    settle_first,
    settled_table,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol

_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})
_OF_CONTENTS = frozenset({"checkConstraints", "columnMapping", "deletionVectors"}) | _WIDENING


class Solution(NamedTuple):
    """One way to the goal."""

    choice: DropSelection
    drops: DropMode
    predictions: list[PredictedStatement]
    cost: Cost


NO_CHANGE = Solution(DropSelection(), DropMode.FAST, [], Cost())
"""no steps: the goal is already reached, or cannot be reached"""


class SearchTask(NamedTuple):
    """The input of a search."""

    table: Table
    goal: Goal
    engine: Engine = Engine()
    files: Files = Files()
    needs: TableRequirements | None = None
    """the table's requirements; if None, features are dropped but not disabled"""
    history: HistoryChoice | None = None
    """None: as the goal requires"""
    droppable: DroppableFeatures | None = None
    """what the engine can drop from the table, if already known"""
    kept: frozenset[str] = frozenset()
    """features that are not dropped, and neither are the features that they require"""
    enabled: frozenset[str] = frozenset()
    """features that are neither dropped nor disabled"""
    disableable: frozenset[str] | None = None
    """what the engine can disable in the table except `enabled`, if already known"""
    changed: ContentChange = ContentChange()
    """what statements before the search have changed, and the goal does not know"""

    def starting_at(self, table: Table, changed: ContentChange = ContentChange()) -> SearchTask:
        """Return the task for the table that statements before the search leave."""
        if table is self.table:
            return self
        return self._replace(table=table, droppable=None, disableable=None, changed=changed)

    def with_changes(self) -> SearchTask:
        """Return the task with what the engine can drop and disable."""
        droppable, disableable = self.droppable, self.disableable
        if droppable is None:
            droppable = find_droppable(self.table, self.engine)
        if disableable is None:
            used = frozenset() if self.needs is None else self.needs.used
            usable = DISABLEABLE_FEATURES & used & self.table.protocol.supported
            disableable = find_disableable(self.table, usable - self.enabled, self.engine)
        return self._replace(droppable=droppable, disableable=disableable)


def find_solutions(task: SearchTask) -> list[Solution]:
    """Return the solutions, cheapest first; empty if the goal cannot be reached."""
    if task.goal.reached(_end_state_now(task)):
        return [NO_CHANGE]
    found: dict[tuple[str, ...], Solution] = {}
    for each in _solutions(task):
        statements = tuple(repr(prediction.statement) for prediction in each.predictions)
        found.setdefault(statements, each)
    return sorted(found.values(), key=lambda each: each.cost)


def _solutions(task: SearchTask) -> Iterator[Solution]:
    """Yield every solution whose statements the engine does not refuse for good."""
    starts = [*_starts(task)]
    tried: set[DropSelection] = set()
    for first, start in starts:
        reached = start is not task and task.goal.reached(_end_state_now(start))
        for choice in [DropSelection()] if reached else _fewest_changes(start):
            # Files need no row ids if the selection suffices without them, or drops rowTracking.
            if choice in tried:
                continue
            modes = _allowed_drop_modes(start, choice)
            begin = starts if "rowTracking" in choice.dropped else [(first, start)]
            for drops, (before, origin) in product(modes, begin):
                route = _build_route(IdentityKey(origin.table), choice, task.engine, drops)
                refusals = (prediction.outcome.refusal for prediction in route)
                if all(refusal is None or refusal.retry for refusal in refusals):
                    tried.add(choice)
                    predictions = [*before, *route]
                    cost = compute_cost(predictions, task.engine, task.files)
                    yield Solution(choice, drops, predictions, cost)


def _end_state_now(task: SearchTask) -> EndState:
    return EndState(task.table.protocol, contents=task.changed)


def _starts(task: SearchTask) -> Iterator[tuple[tuple[PredictedStatement, ...], SearchTask]]:
    """Yield the statements that precede the changes of features, and the task after them.

    The first of them settle the table. Then files without row ids can get them, and the protocol
    can get its lowest form.
    """
    first = settle_first(task.table, task.engine)
    task = task.starting_at(settled_table(task.table, task.engine))
    for steps in product((None, _add_row_ids), (None, _normalize)):
        done, table = first, task.table
        for find in filter(None, steps):
            found = find(IdentityKey(table), task.engine)
            if not found:
                break
            done, table = (*done, *found), found[-1].outcome.table
        else:
            yield done, task.starting_at(table, find_content_change(task.table, table))


@lru_cache(maxsize=64)
def _add_row_ids(table: IdentityKey[Table], engine: Engine) -> tuple[PredictedStatement, ...]:
    """Return the statements that give row ids to the files without them; empty if none can."""
    before = table.value
    if not before.untracked:
        return ()
    statements = enabling_statements(FeatureToEnable("rowTracking"), before, engine)
    predictions = []
    for statement in () if isinstance(statements, Blocked) else statements:
        outcome = predict_statement(statement, before, engine)
        if outcome.refusal is not None:
            return ()
        predictions.append(PredictedStatement(statement, before, outcome))
        before = outcome.table
    return tuple(predictions)


@lru_cache(maxsize=64)
def _build_route(
    table: IdentityKey[Table], choice: DropSelection, engine: Engine, drops: DropMode
) -> tuple[PredictedStatement, ...]:
    """Return the statements of `build_route`: goals for one table often share their routes."""
    return tuple(build_route(table.value, choice, engine, drops))


@lru_cache(maxsize=64)
def _normalize(table: IdentityKey[Table], engine: Engine) -> tuple[PredictedStatement, ...]:
    """Return the statement that stores the lowest protocol for the same features.

    Delta Spark merges the protocol with the versions that a statement sets, which normalizes it
    (`OptimisticTransaction.updateMetadataInternal`). The versions (1,1) add no feature.
    """
    before = table.value
    if not engine.normalizes or before.protocol == before.protocol.lowest():
        return ()
    statement = raise_to_pair((1, 1))
    outcome = predict_statement(statement, before, engine)
    after = outcome.table.protocol
    lowered = after != before.protocol and after.supported == before.protocol.supported
    fits = lowered and outcome.refusal is None
    return (PredictedStatement(statement, before, outcome),) if fits else ()


def normalized_table(table: Table, engine: Engine) -> Table:
    """Return the table with the lowest protocol for the same features.

    The table itself if no statement stores that one alone.
    """
    found = () if has_pending(table, engine) else _normalize(IdentityKey(table), engine)
    return found[-1].outcome.table if found else table


def is_reachable(task: SearchTask) -> bool:
    """Return True if the goal can be reached."""
    return task.goal.reached(_end_state_now(task)) or any(True for _ in _solutions(task))


def find_nearest_goal(task: SearchTask) -> tuple[Goal, list[Solution]]:
    """Return the nearest weaker goal that can be reached, and its solutions."""
    task = task.with_changes()
    for goal in task.goal.weaker(lambda each: is_reachable(task._replace(goal=each))):
        found = find_solutions(task._replace(goal=goal))
        if found:
            return goal, found
    raise AssertionError("every goal has a weaker one that requires nothing")


class _TargetPair(NamedTuple):
    left: bool
    """True if checkpointProtection may be left"""
    pair: tuple[int, int] | None


def _target_pairs(task: SearchTask, droppable: DroppableFeatures) -> Iterator[_TargetPair]:
    supported = task.table.protocol.supported
    if task.history is not HistoryChoice.TRUNCATE:
        yield _TargetPair(True, None)
    yield _TargetPair(False, None)
    refusal = refuse_rewrite(task.table) or refuse_every_change(task.table, task.engine)
    for pair in feature_catalog.LEGACY_PAIRS if refusal is None else ():
        surplus = supported - feature_catalog.features_implied_by(*pair) - {CHECKPOINT_PROTECTION}
        if surplus <= {*droppable.names}:
            yield _TargetPair(False, pair)


def _allowed_drop_modes(task: SearchTask, choice: DropSelection) -> list[DropMode]:
    """Return the allowed ways of dropping that reach the selection's end state."""
    protected = any(
        feature_catalog.feature_record(name).drop.protects_history for name in choice.dropped
    )
    residue = CHECKPOINT_PROTECTION in choice.dropped
    every = [DropMode.TRUNCATING, DropMode.FAST]
    if not protected and not residue:
        return [DropMode.FAST]
    if residue and refuse_protection_drop(task.table, task.engine) is not None:
        renewed = protected and task.engine.fast_drop and task.history is not HistoryChoice.KEEP
        late = refuse_protection_drop(task.table, task.engine, renewed=True)
        return [DropMode.FAST] if renewed and late is None else []
    if not task.engine.fast_drop:
        if residue or task.history is None:
            return every
        return [DropMode.FAST] if task.history is HistoryChoice.KEEP else [DropMode.TRUNCATING]
    if not residue:
        return [DropMode.FAST]
    return [] if task.history is HistoryChoice.KEEP else every


def _fewest_changes(task: SearchTask) -> Iterator[DropSelection]:
    """Yield the fewest changes that reach the goal in each end state where any do."""
    known = task.with_changes()
    assert known.droppable is not None
    assert known.disableable is not None
    for end in _target_pairs(known, known.droppable):
        found = _fewest_changes_to(known, known.droppable, known.disableable, end)
        if found is not None:
            yield found


def _fewest_changes_to(
    task: SearchTask, droppable: DroppableFeatures, switches: frozenset[str], end: _TargetPair
) -> DropSelection | None:
    """Return the fewest changes that reach the goal in this end state, or None.

    Args:
        switches: what can be disabled.
    """
    supported = task.table.protocol.supported
    must = frozenset[str]()
    if not end.left:
        must = frozenset({CHECKPOINT_PROTECTION})
    if end.pair is not None:
        must |= supported - feature_catalog.features_implied_by(*end.pair)
    kept = feature_catalog.with_required_features(task.kept | task.enabled)
    if must & kept:
        return None
    dropped = (frozenset(droppable.names) - kept) | must
    off = switches - dropped

    def reaches(dropped: frozenset[str], off: frozenset[str]) -> bool:
        choice = DropSelection(dropped, off, end.pair)
        return task.goal.reached(predict_end_state(task, choice, left=end.left))

    if not reaches(dropped, off):
        return None
    for name in sorted(off):
        if not is_kept_disabled(name, off) and reaches(dropped, off - {name}):
            off -= {name}
    for name in droppable.names:
        fewer = dropped - feature_catalog.with_required_features({name})
        if name not in dropped or not must <= fewer | (must - supported):
            continue
        if reaches(fewer, off):
            dropped = fewer
        elif name in switches and reaches(fewer, off | {name}):
            dropped, off = fewer, off | {name}
    return DropSelection(_with_residue(task, dropped, end), off, end.pair)


def _with_residue(task: SearchTask, dropped: frozenset[str], end: _TargetPair) -> frozenset[str]:
    """Add checkpointProtection to `dropped` if it exists or would be left behind."""
    rest = dropped - {CHECKPOINT_PROTECTION}
    there = CHECKPOINT_PROTECTION in task.table.protocol.supported
    comes = task.engine.fast_drop and any(
        feature_catalog.feature_record(name).drop.protects_history for name in rest
    )
    return rest | {CHECKPOINT_PROTECTION} if not end.left and (there or comes) else rest


def predict_end_state(task: SearchTask, choice: DropSelection, *, left: bool) -> EndState:
    """Return the end state of a selection; `left`: fast drops leave checkpointProtection."""
    after = _predict_protocol(
        task.table.protocol, choice.dropped, choice.pair, task.engine, left=left
    )
    changed = choice.dropped | choice.off
    shown = _predict_contents(IdentityKey(task.table), changed & _OF_CONTENTS)
    contents = shown.contents.after(task.changed)
    return shown._replace(protocol=after, off=choice.off, contents=contents)


@lru_cache(maxsize=64)
def _predict_contents(table: IdentityKey[Table], unused: frozenset[str]) -> EndState:
    """Predict files, columns and constraints after nothing uses these features any longer."""
    before = after = table.value
    if "checkConstraints" in unused:
        after = after.without_properties(*after.constraints.values())
    if "deletionVectors" in unused:
        moved = after._replace(vectors=False, absolute_rewritten=moves_absolute(after))
        after = follow_bounds(after, moved, purge_rewrites(after))
    if unused & _WIDENING and after.widened is not False:
        after = follow_bounds(after, after, Rewrite.WIDENED)
    if "columnMapping" in unused and after.mapped:
        after = follow_bounds(after, after.without_mapping(), Rewrite.ALL)
    return EndState(
        after.protocol,
        absolute_rewritten=after.absolute_rewritten,
        bounds=find_bound_hazards(after),
        contents=find_content_change(before, after),
    )


@lru_cache(maxsize=4096)
def _predict_protocol(
    before: Protocol,
    dropped: frozenset[str],
    pair: tuple[int, int] | None,
    engine: Engine,
    *,
    left: bool,
) -> Protocol:
    """Return the protocol after the drops and the legacy pair of a selection."""
    if not engine.normalizes:
        after = before
        for name in sorted(dropped & before.supported, key=drop_rank):
            after = arithmetic.remove_feature(after, name, engine)
        if pair is not None:
            after = arithmetic.raise_versions(after, pair, engine)
        return after
    features = before.supported - dropped
    protected = any(feature_catalog.feature_record(name).drop.protects_history for name in dropped)
    if left and protected and engine.fast_drop:
        features |= {CHECKPOINT_PROTECTION}
    if pair is not None:
        features |= feature_catalog.features_implied_by(*pair)
    if pair is None and features == before.supported:
        return before
    by_list = frozenset(
        name for name in before.reader_features or () if not feature_catalog.is_registered(name)
    )
    return Protocol.carrying(features, reader_features=by_list & features)
