"""Plans that drop features from a table's protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.planning.assemble import assemble_plan
from deltaproto.planning.engine_support import find_engine_blockers
from deltaproto.planning.impact import (
    end_state_of,
)
from deltaproto.planning.plan import Alternative, Blocked, Plan
from deltaproto.planning.request import PlanInput, goal_text
from deltaproto.planning.search.copy_table import plan_copy, with_possible_copies
from deltaproto.planning.search.droppable import (
    GOAL_UNREACHABLE,
    find_blockers,
    find_droppable,
    find_unknown_features,
)
from deltaproto.planning.search.goals import (
    BothGoals,
    ClientsSupported,
    FeaturesAbsent,
    Goal,
    HistoryChoice,
    TableClient,
    VersionsAtMost,
)
from deltaproto.planning.search.lowest import (
    ReachableProtocol,
    find_lowest_goal,
    is_higher,
)
from deltaproto.planning.search.route import DropMode, settled_table
from deltaproto.planning.search.search import (
    NO_CHANGE,
    SearchTask,
    Solution,
    find_nearest_goal,
    find_solutions,
)
from deltaproto.planning.steps import build_steps
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol


class DowngradeRequest(NamedTuple):
    """The request: one of four kinds of goal, or the lowest protocol for clients."""

    lowest: bool = False
    include_enabled: bool = False
    drop: tuple[str, ...] = ()
    to: tuple[int, int] | None = None
    clients: tuple[TableClient, ...] = ()
    """clients that must have the access listed with them"""
    history: HistoryChoice | None = None
    rewrite: bool = False
    """copy into a new table if drops do not reach the goal"""


def plan_downgrade(inputs: PlanInput, request: DowngradeRequest) -> Plan:
    """Return the cheapest plan with alternatives, or a plan with blockers."""
    droppable = find_droppable(settled_table(inputs.table, inputs.engine), inputs.engine)
    task = SearchTask(
        inputs.table,
        _build_goal(inputs, request),
        inputs.engine,
        inputs.files,
        inputs.needs,
        request.history,
        droppable,
        _kept_features(inputs, request),
    )
    kept: tuple[Blocked, ...] = ()
    others: tuple[ReachableProtocol, ...] = ()
    if request.lowest:
        needed = find_solutions(task) if request.clients else [NO_CHANGE]
        if not needed:
            # The clients stay blocked whatever else is dropped.
            plan = plan_downgrade(inputs, request._replace(lowest=False))
            return plan._replace(
                goal=_goal_fields(request),
                goal_text=goal_text(_goal_fields(request), plan.protocol_before),
            )
        chosen, others, kept = find_lowest_goal(
            inputs,
            droppable,
            include_enabled=request.include_enabled,
            history=request.history,
            needed=needed[0].choice,
        )
        task = task._replace(
            goal=BothGoals(chosen.goal, task.goal) if request.clients else chosen.goal
        )
    goal = task.goal
    found = find_solutions(task)
    refused = tuple(find_unknown_features(inputs, request.drop))
    if not found or found[0].predictions:
        refused += tuple(find_engine_blockers(inputs))
    if refused:
        return _build_plan(inputs, request, NO_CHANGE, (), refused, kept)
    blocked: tuple[Blocked, ...] = ()
    alternatives: list[Alternative] = []
    if found:
        best, *rest = found
        if best.predictions:
            alternatives += _find_alternatives(inputs, best, rest)
        alternatives += _find_incomparable(task, inputs, best, others)
    else:
        reached, weaker = find_nearest_goal(task)
        best = NO_CHANGE._replace(choice=weaker[0].choice)
        predictions = weaker[0].predictions
        ending = end_state_of(
            predictions[-1].outcome.table if predictions else inputs.table, inputs.table
        )
        blocked = tuple(find_blockers(inputs, goal, ending, droppable)) or (GOAL_UNREACHABLE,)
        if weaker[0].predictions:
            alternatives.append(
                _build_alternative(inputs, weaker[0], "nearest", reached.text, False)
            )
        copy = plan_copy(inputs, goal)
        if copy is not None and request.rewrite:
            return assemble_plan(
                inputs,
                "plan-downgrade",
                _goal_fields(request),
                (),
                alternatives=tuple(alternatives),
                copy=copy,
            )
        if copy is not None:
            alternatives.append(copy)
    return _build_plan(inputs, request, best, tuple(alternatives), blocked, kept)


def _build_goal(inputs: PlanInput, request: DowngradeRequest) -> Goal:
    """Build the requested goal, except for the lowest protocol."""
    if request.drop:
        return FeaturesAbsent(frozenset(request.drop) & inputs.table.protocol.supported)
    if request.to is not None:
        return VersionsAtMost(*request.to)
    return ClientsSupported(request.clients, inputs.needs)


def _kept_features(inputs: PlanInput, request: DowngradeRequest) -> frozenset[str]:
    """Return the features that the plan may not drop: without a named feature, none."""
    if not request.drop:
        return frozenset()
    supported = inputs.table.protocol.supported
    named = feature_catalog.with_dependents(request.drop, supported)
    return supported - named - {CHECKPOINT_PROTECTION}


def _build_plan(
    inputs: PlanInput,
    request: DowngradeRequest,
    best: Solution,
    alternatives: tuple[Alternative, ...],
    blocked: tuple[Blocked, ...],
    kept: tuple[Blocked, ...],
) -> Plan:
    return assemble_plan(
        inputs,
        "plan-downgrade",
        _goal_fields(request),
        best.predictions,
        blocked=with_possible_copies(inputs, blocked),
        alternatives=alternatives,
        kept=with_possible_copies(inputs, kept),
    )


def _goal_fields(request: DowngradeRequest) -> Mapping[str, Any]:
    named = [
        {"client": str(use.candidate.reference), "access": [str(a) for a in use.access]}
        for use in request.clients
    ]
    if request.lowest:
        goal: dict[str, Any] = {"kind": "lowest", "include_enabled": request.include_enabled}
        if named:
            goal["clients"] = named
    elif request.drop:
        goal = {"kind": "drop", "features": list(request.drop)}
    elif request.to is not None:
        goal = {"kind": "to", "reader": request.to[0], "writer": request.to[1]}
    else:
        goal = {"kind": "for-client", "clients": named}
    return {
        **goal,
        "history": None if request.history is None else str(request.history),
        "rewrite": request.rewrite,
    }


def _find_alternatives(
    inputs: PlanInput, best: Solution, others: Iterable[Solution]
) -> Iterator[Alternative]:
    """Yield the cheapest solution of every other kind that has some advantage."""
    seen = {_alternative_kind(best)}
    every = list(others)
    ends = [
        _end_protocol(e).min_writer_version
        for e in (best, *every)
        if _alternative_kind(e) != "fill-gaps"
    ]
    lowest = min(ends, default=8)
    for other in every:
        kind = _alternative_kind(other)
        idle = kind == "fill-gaps" and _end_protocol(other).min_writer_version >= lowest
        if kind not in seen and not idle:
            seen.add(kind)
            yield _build_alternative(inputs, other, kind, _ALTERNATIVE_TEXTS[kind], True)


def _find_incomparable(
    task: SearchTask, inputs: PlanInput, best: Solution, others: Iterable[ReachableProtocol]
) -> Iterator[Alternative]:
    """Yield other results, none of which is lower for all clients than the plan's."""
    chosen = _end_protocol(best) if best.predictions else inputs.table.protocol
    for result in others:
        found = find_solutions(task._replace(goal=result.goal))
        if found and found[0].predictions and (end := _end_protocol(found[0])) != chosen:
            lower = is_higher(end.versions, chosen.versions)
            name = "lower-versions" if lower else "other-clients"
            yield _build_alternative(inputs, found[0], name, result.in_words, not result.losers)


_ALTERNATIVE_TEXTS = {
    "fast": "fast drops: no wait, no history is deleted, and checkpointProtection stays",
    "fast-then-truncate": "fast drops, then one removal of checkpointProtection after the wait: "
    "clients regain access before it",
    "truncating": "drops with TRUNCATE HISTORY: no checkpointProtection is left",
    "fill-gaps": "add features until all fit a legacy pair, which removes the feature lists",
    "no-drops": "drop nothing",
}


def _end_protocol(found: Solution) -> Protocol:
    return found.predictions[-1].outcome.table.protocol


def _alternative_kind(found: Solution) -> str:
    if found.choice.pair is not None:
        return "fill-gaps"
    if not any(prediction.statement.action == "drop-feature" for prediction in found.predictions):
        return "no-drops"
    if found.drops is DropMode.TRUNCATING:
        return "truncating"
    return "fast-then-truncate" if CHECKPOINT_PROTECTION in found.choice.dropped else "fast"


def _build_alternative(
    inputs: PlanInput, found: Solution, name: str, text: str, reaches_goal: bool
) -> Alternative:
    made = build_steps(found.predictions, inputs.engine, inputs.files, inputs.sql, inputs.writers)
    return Alternative(name, text, reaches_goal, made[-1].protocol_after, found.cost, made)
