"""Plans that bring a table to a target, in either direction.

The target has requirements that the table does not meet, which the plan establishes, and others
that it meets and must continue to meet. What cannot be achieved is omitted, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.planning.additions import (
    add_statements,
    additions_by_name,
    possible_additions,
)
from deltaproto.planning.assemble import assemble_plan
from deltaproto.planning.builder import PlanBuilder, is_clustered
from deltaproto.planning.engine_support import find_engine_blockers
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.plan import Blocked, Plan
from deltaproto.planning.predict.pending import has_pending, settling_keys
from deltaproto.planning.predict.table import MIN_WRITER_VERSION, Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_table import with_possible_copies
from deltaproto.planning.search.cost import Cost, compute_cost
from deltaproto.planning.search.droppable import (
    GOAL_UNREACHABLE,
    DroppableFeatures,
    find_blockers,
    find_droppable,
)
from deltaproto.planning.search.goals import (
    AllGoals,
    ClientsSupported,
    FeaturesAbsent,
    Goal,
    VersionsAtMost,
    requirements_after,
)
from deltaproto.planning.search.lowest import is_higher
from deltaproto.planning.search.prediction import PredictedStatement
from deltaproto.planning.search.search import (
    SearchTask,
    find_nearest_goal,
    find_solutions,
    is_reachable,
)
from deltaproto.planning.statement import SetProperties, UnsetProperties
from deltaproto.planning.target import (
    Requirements,
    Target,
    each_version,
    goal_of,
    is_set,
    join_accesses,
)
from deltaproto.protocol import feature_catalog

_PROTECTIVE = frozenset({"appendOnly", "checkConstraints"})
"""features that protect rows: they are disabled only if the policy forbids them"""


class _Route(NamedTuple):
    predictions: tuple[PredictedStatement, ...]
    notes: tuple[str, ...]
    cost: Cost
    after: Table
    raises_first: bool = False
    """True if it raises the versions before the drops"""


_Reasons = Callable[[], tuple[Blocked, ...]]
"""explains why there is no route; slow, so called only where the explanation is shown"""
_Drop = Callable[[Table], "list[PredictedStatement] | _Reasons"]
"""returns the cheapest drops from a table, or why there are none"""
_KEPT_DROPS = 16


def plan_target(inputs: PlanInput, target: Target) -> Plan:
    """Return the cheapest plan that meets as much of the target as possible."""
    route, met, unmet = _find_route(inputs, target)
    blocked = tuple(find_engine_blockers(inputs)) if route.predictions else ()
    return assemble_plan(
        inputs,
        "plan",
        goal_of(met._replace(at_least=_versions_to_reach(route, met, target)), target),
        () if blocked else route.predictions,
        blocked=blocked,
        unmet=unmet,
        notes=route.notes,
    )


def _versions_to_reach(route: _Route, met: Requirements, target: Target) -> tuple[int, int]:
    """Return the required versions if the route sets versions, including those that the table
    already had.
    """
    sets_versions = any(
        isinstance(prediction.statement, SetProperties)
        and MIN_WRITER_VERSION in prediction.statement.properties
        for prediction in route.predictions
    )
    kept = target.kept.at_least if sets_versions else (1, 1)
    return each_version(max, met.at_least, kept)


def _find_route(
    inputs: PlanInput, target: Target
) -> tuple[_Route, Requirements, tuple[Blocked, ...]]:
    """Return the cheapest route, the requirements that it meets, and those that it does not."""
    whole = _cheapest(inputs, target.missing, target)
    if isinstance(whole, _Route):
        return whole, target.missing, ()
    best, met = _Route((), (), Cost(), inputs.table), Requirements()
    left = tuple(target.missing.parts())
    reasons: list[Blocked] = []
    progress = True
    while left and progress:
        pending, left, progress, reasons = left, (), False, []
        for part in pending:
            wider = met.merged_with(part)
            # No route to more is cheaper than the cheapest one to less.
            if best.predictions and not any(
                _find_broken(inputs, best.after, wider.merged_with(target.kept))
            ):
                met = wider
                continue
            found = _cheapest(inputs, wider, target)
            if isinstance(found, _Route):
                best, met = found, wider
                # The features added here may make earlier ones unnecessary.
                progress = bool(left)
            else:
                left = (*left, part)
                name = next(iter(part.absent | part.features), None)
                reasons += (each._replace(feature=each.feature or name) for each in found())
    return best, met, tuple(dict.fromkeys(reasons))


def _cheapest(inputs: PlanInput, wanted: Requirements, target: Target) -> _Route | _Reasons:
    """Return the cheapest route to all of `wanted`; without any, the first reasons."""
    # Several orders drop features from the same table.
    drop = cache_by_identity(_KEPT_DROPS)(partial(_drop, inputs, wanted, target))
    plain, *with_pairs = possible_additions(wanted, target.kept)
    routes, reasons = _try_orders(inputs, wanted, target, plain, drop)
    enabling = best = min(routes, key=_rank, default=None)
    for additions in with_pairs:
        found = _try_orders(inputs, wanted, target, additions, drop, below=best)[0]
        best = min(filter(None, (best, *found)), key=_rank, default=None)
    if best is not None and best is enabling:
        return best
    # Enabling costs more, or contradicts something. A pair may add more than is required.
    by_name = additions_by_name(inputs.table, wanted, plain)
    named = _try_orders(inputs, wanted, target, by_name, drop)[0] if by_name else []
    if best is not None:
        named = [route for route in named if _is_as_good(route, best)]
    if not named:
        return best or reasons[0]
    route = min(named, key=_rank)
    added = sorted(wanted.features - inputs.table.protocol.supported)
    note = f"Only added to the protocol, and not enabled: {', '.join(added)}."
    return route._replace(notes=(*route.notes, note))


def _is_as_good(one: _Route, other: _Route) -> bool:
    raised = is_higher(other.after.protocol.versions, one.after.protocol.versions)
    return one.cost <= other.cost and not raised


def _rank(route: _Route) -> tuple[Cost, bool]:
    # Features that cannot be dropped again come last if that costs no more.
    return route.cost, route.raises_first


def _try_orders(
    inputs: PlanInput,
    wanted: Requirements,
    target: Target,
    additions: Sequence[Requirements],
    drop: _Drop,
    *,
    below: _Route | None = None,
) -> tuple[list[_Route], list[_Reasons]]:
    """Return the routes with each addition before the drops or after them, and why others fail.

    Routes that do not rank below the route `below` may be missing.
    """
    routes: list[_Route] = []
    reasons: list[_Reasons] = []
    pending = has_pending(inputs.table, inputs.engine)
    for early in product((True, False), repeat=len(additions)):
        first = [part for part, before in zip(additions, early, strict=True) if before]
        last = [part for part, before in zip(additions, early, strict=True) if not before]
        for settled in (False, True) if pending and first else (False,):
            route = _try_order(
                inputs, wanted, target, first, last, drop, settled=settled, below=below
            )
            if isinstance(route, _Route):
                routes.append(route)
            else:
                reasons.append(route)
    return routes, reasons


def _try_order(
    inputs: PlanInput,
    wanted: Requirements,
    target: Target,
    early: Sequence[Requirements],
    late: Sequence[Requirements],
    drop: _Drop,
    *,
    settled: bool,
    below: _Route | None,
) -> _Route | _Reasons:
    """Return the route with these additions before and after the drops, or why there is none.

    Args:
        settled: first remove the protocol requests in the table's metadata.
        below: routes that do not rank below this one are not needed.
    """
    start = PlanBuilder(inputs)
    if settled:
        start.add(UnsetProperties(settling_keys(start.table)))
    # Below a ceiling, versions that are lower than the table's can replace its feature lists.
    before = add_statements(start, early, lower=wanted.at_most != (3, 7))
    if before.blocked:
        return lambda: tuple(before.blocked)
    raises_first = any(part.at_least != (1, 1) for part in early)

    def is_too_expensive(beginning: Iterable[PredictedStatement]) -> bool:
        cost = compute_cost(beginning, inputs.engine, inputs.files)
        return below is not None and (cost, raises_first) >= _rank(below)

    if is_too_expensive(before.predictions):
        return tuple
    dropped = drop(before.table if before.predictions else inputs.table)
    if not isinstance(dropped, list):
        return dropped
    if is_too_expensive((*before.predictions, *dropped)):
        return tuple
    after = PlanBuilder(inputs, dropped[-1].outcome.table if dropped else before.table)
    # The first addition may fit into the last of these statements.
    after.predictions += dropped
    add_statements(after, late)
    if after.blocked:
        return lambda: tuple(after.blocked)
    predictions = (*before.predictions, *after.predictions)
    broken = tuple(_find_broken(inputs, after.table, wanted.merged_with(target.kept)))
    if broken:
        return lambda: broken
    notes = tuple(dict.fromkeys((*before.notes, *after.notes)))
    cost = compute_cost(predictions, inputs.engine, inputs.files)
    return _Route(predictions, notes, cost, after.table, raises_first)


def _drop(
    inputs: PlanInput, wanted: Requirements, target: Target, table: Table
) -> list[PredictedStatement] | _Reasons:
    """Return the cheapest drops that reach the goals from this table, or why there are none."""
    here = inputs
    if table is not inputs.table:
        needs = requirements_after(inputs.needs, end_state_of(table, inputs.table))
        here = inputs._replace(table=table, needs=needs)
    droppable = find_droppable(table, inputs.engine)
    goals = (*_drop_goals(here, target.kept), *_drop_goals(here, wanted))
    kept = wanted.merged_with(target.kept)
    enabled = feature_catalog.features_enabled_by(kept.properties)
    protective = (_PROTECTIVE & end_state_of(table, inputs.table).on) - wanted.absent
    task = SearchTask(
        table,
        AllGoals(goals),
        inputs.engine,
        inputs.files,
        here.needs,
        target.history,
        droppable,
        kept.features & table.protocol.supported,
        (enabled & table.protocol.supported) | protective,
    )
    task = task.with_changes()
    found = find_solutions(task)
    return (
        found[0].predictions
        if found
        else lambda: _explain_unreachable(here, task, goals, droppable)
    )


def _explain_unreachable(
    inputs: PlanInput, task: SearchTask, goals: Sequence[Goal], droppable: DroppableFeatures
) -> tuple[Blocked, ...]:
    """Return why no drops reach the goals from the task's table."""
    for goal in goals:
        alone = task._replace(goal=goal)
        if not is_reachable(alone):
            if _reaches_without_kept(alone):
                return (_contradiction(f"{_kept_text(alone)}; {goal.text}"),)
            predictions = find_nearest_goal(alone)[1][0].predictions
            ending = end_state_of(
                predictions[-1].outcome.table if predictions else task.table, task.table
            )
            blocked = with_possible_copies(inputs, find_blockers(inputs, goal, ending, droppable))
            return blocked or (GOAL_UNREACHABLE,)
    return (_contradiction("; ".join(goal.text for goal in goals)),)


def _reaches_without_kept(task: SearchTask) -> bool:
    free = task._replace(kept=frozenset(), enabled=frozenset(), disableable=None)
    return is_reachable(free)


def _kept_text(task: SearchTask) -> str:
    on = [f"{name} enabled" for name in sorted(task.enabled)]
    kept = [*sorted(task.kept - task.enabled), *on]
    return f"keep {', '.join(kept)}"


def _drop_goals(inputs: PlanInput, wanted: Requirements) -> Iterator[Goal]:
    if wanted.absent:
        yield FeaturesAbsent(wanted.absent)
    if wanted.at_most != (3, 7):
        yield VersionsAtMost(*wanted.at_most)
    if wanted.clients:
        yield ClientsSupported(join_accesses(wanted.clients), inputs.needs)


def _find_broken(inputs: PlanInput, after: Table, wanted: Requirements) -> Iterator[Blocked]:
    """Yield a blocker for each requirement that the table would not meet."""
    if lost := sorted(wanted.features - after.protocol.supported):
        yield _contradiction(f"with {', '.join(lost)}")
    if is_higher(after.protocol.versions, wanted.at_least):
        reader, writer = wanted.at_least
        yield _contradiction(f"reader version {reader} and writer version {writer} at least")
    for goal in _drop_goals(inputs, wanted):
        if not goal.reached(end_state_of(after, inputs.table)):
            yield _contradiction(goal.text)
    for key, value in wanted.properties.items():
        if not is_set(after.configuration, key, value):
            yield _contradiction(f"{key} = {value}")
    if wanted.cluster_by is not None and not is_clustered(after, wanted.cluster_by):
        yield _contradiction(f"clustering by {', '.join(wanted.cluster_by) or 'no column'}")


def _contradiction(text: str) -> Blocked:
    return Blocked(
        None,
        f"these requirements contradict each other: {text}",
        "change the policy; features that protect rows are disabled only if it forbids them",
    )
