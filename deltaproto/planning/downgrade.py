"""Plans that drop features from a table's protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.planning.advice import find_warnings
from deltaproto.planning.concurrency import concurrency_change
from deltaproto.planning.engine_support import find_engine_blockers
from deltaproto.planning.goal_text import goal_text
from deltaproto.planning.impact import client_changes
from deltaproto.planning.plan import Alternative, Blocked, Plan
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_table import plan_copy
from deltaproto.planning.search.droppable import (
    GOAL_UNREACHABLE,
    find_blockers,
    find_droppable,
    find_unknown_features,
)
from deltaproto.planning.search.goals import (
    BothGoals,
    ClientAccess,
    ClientsSupported,
    EndState,
    FeaturesAbsent,
    Goal,
    VersionsAtMost,
    requirements_after,
)
from deltaproto.planning.search.lowest import (
    ReachableProtocol,
    find_lowest_goal,
    is_higher,
    protocol_versions,
)
from deltaproto.planning.search.route import DropMode
from deltaproto.planning.search.search import (
    NO_CHANGE,
    HistoryChoice,
    SearchTask,
    Solution,
    find_nearest_goal,
    find_solutions,
)
from deltaproto.planning.steps import block_secrets, build_steps
from deltaproto.planning.usage import end_state_of
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol

_COPY = (
    "A copy is a different table: rehearse it, compare the rows before the swap, and keep the old "
    "table until everyone has moved."
)


class DowngradeRequest(NamedTuple):
    """The request: one of four kinds of goal, or the lowest protocol for clients."""

    lowest: bool = False
    include_enabled: bool = False
    drop: tuple[str, ...] = ()
    to: tuple[int, int] | None = None
    clients: tuple[ClientAccess, ...] = ()
    """clients that must have the access listed with them"""
    history: HistoryChoice | None = None
    rewrite: bool = False
    """copy into a new table if drops do not reach the goal"""


def plan_downgrade(given: PlanInput, asked: DowngradeRequest) -> Plan:
    """Return the cheapest plan with alternatives, or a plan with blockers."""
    can = find_droppable(given.table, given.engine)
    task = SearchTask(
        given.table,
        _build_goal(given, asked),
        given.engine,
        given.files,
        given.needs,
        asked.history,
        can,
    )
    kept: tuple[Blocked, ...] = ()
    others: tuple[ReachableProtocol, ...] = ()
    if asked.lowest:
        needed = find_solutions(task) if asked.clients else [NO_CHANGE]
        if not needed:
            # The clients stay blocked whatever else is dropped.
            plan = plan_downgrade(given, asked._replace(lowest=False))
            return plan._replace(
                goal=_goal_fields(asked),
                goal_text=goal_text(_goal_fields(asked), plan.protocol_before),
            )
        chosen, others, kept = find_lowest_goal(
            given,
            can,
            include_enabled=asked.include_enabled,
            history=asked.history,
            needed=needed[0].choice,
        )
        task = task._replace(
            goal=BothGoals(chosen.goal, task.goal) if asked.clients else chosen.goal
        )
    goal = task.goal
    found = find_solutions(task)
    unable = tuple(find_unknown_features(given, asked.drop))
    if not found or found[0].moves:
        unable += tuple(find_engine_blockers(given))
    if unable:
        return _build_plan(given, asked, goal, NO_CHANGE, (), unable, kept)
    blocked: tuple[Blocked, ...] = ()
    alternatives: list[Alternative] = []
    if found:
        best, *rest = found
        if best.moves:
            alternatives += _find_alternatives(given, best, rest)
        alternatives += _find_incomparable(task, given, best, others)
    else:
        reached, weaker = find_nearest_goal(task)
        best = NO_CHANGE._replace(choice=weaker[0].choice)
        moves = weaker[0].moves
        ending = end_state_of(moves[-1].outcome.table if moves else given.table)
        blocked = tuple(find_blockers(given, goal, ending, can)) or (GOAL_UNREACHABLE,)
        if weaker[0].moves:
            alternatives.append(
                _build_alternative(given, weaker[0], "nearest", reached.text, False)
            )
        copy = plan_copy(given, goal)
        if copy is not None and asked.rewrite:
            return _build_copy_plan(given, asked, goal, copy, tuple(alternatives))
        if copy is not None:
            alternatives.append(copy)
    return _build_plan(given, asked, goal, best, tuple(alternatives), blocked, kept)


def _build_goal(given: PlanInput, asked: DowngradeRequest) -> Goal:
    """Build the requested goal, except for the lowest protocol."""
    if asked.drop:
        return FeaturesAbsent(frozenset(asked.drop) & given.table.protocol.supported)
    if asked.to is not None:
        return VersionsAtMost(*asked.to)
    return ClientsSupported(asked.clients, given.needs)


def _build_plan(
    given: PlanInput,
    asked: DowngradeRequest,
    goal: Goal,
    best: Solution,
    alternatives: tuple[Alternative, ...],
    blocked: tuple[Blocked, ...],
    kept: tuple[Blocked, ...],
) -> Plan:
    made = build_steps(best.moves, given.engine, given.files, given.sql, given.writers)
    after = made[-1].protocol_after if made else given.table.protocol
    left = best.moves[-1].outcome.table if made else given.table
    ending = end_state_of(left) if made else EndState(after)
    plan = Plan(
        command="plan-downgrade",
        table=given.name,
        location=given.location,
        sql_name=given.sql,
        goal=_goal_fields(asked),
        goal_text=goal_text(_goal_fields(asked), given.table.protocol),
        engine=given.engine,
        fingerprint=given.fingerprint,
        protocol_before=given.table.protocol,
        protocol_after=after,
        steps=made,
        cost=best.cost,
        blocked=blocked,
        alternatives=alternatives,
        kept=kept,
        warnings=(*given.warnings, *find_warnings(given, made, after)),
        clients=client_changes(
            given, requirements_after(given.needs, ending) if made else given.needs
        ),
        complete=given.complete,
        concurrency=concurrency_change(given, left),
    )
    return block_secrets(plan)


def _build_copy_plan(
    given: PlanInput,
    asked: DowngradeRequest,
    goal: Goal,
    copy: Alternative,
    alternatives: tuple[Alternative, ...],
) -> Plan:
    """Return the plan to copy the table."""
    plan = _build_plan(given, asked, goal, NO_CHANGE, alternatives, (), ())
    after = requirements_after(given.needs, EndState(copy.protocol_after))
    plan = plan._replace(
        protocol_after=copy.protocol_after,
        steps=copy.steps,
        cost=copy.cost,
        clients=client_changes(given, after),
        warnings=(*given.warnings, _COPY),
        concurrency=concurrency_change(given, given.table._replace(protocol=copy.protocol_after)),
    )
    return block_secrets(plan)


def _goal_fields(asked: DowngradeRequest) -> Mapping[str, Any]:
    named = [
        {"client": str(use.candidate.reference), "access": [str(a) for a in use.access]}
        for use in asked.clients
    ]
    if asked.lowest:
        goal: dict[str, Any] = {"kind": "lowest", "include_enabled": asked.include_enabled}
        if named:
            goal["clients"] = named
    elif asked.drop:
        goal = {"kind": "drop", "features": list(asked.drop)}
    elif asked.to is not None:
        goal = {"kind": "to", "reader": asked.to[0], "writer": asked.to[1]}
    else:
        goal = {"kind": "for-client", "clients": named}
    return {
        **goal,
        "history": None if asked.history is None else str(asked.history),
        "rewrite": asked.rewrite,
    }


def _find_alternatives(
    given: PlanInput, best: Solution, others: Iterable[Solution]
) -> Iterator[Alternative]:
    """Yield the cheapest solution of each other kind that is better in some way."""
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
            yield _build_alternative(given, other, kind, _ALTERNATIVE_TEXTS[kind], True)


def _find_incomparable(
    task: SearchTask, given: PlanInput, best: Solution, others: Iterable[ReachableProtocol]
) -> Iterator[Alternative]:
    """Yield other results, none of which is lower for all clients than the plan's."""
    chosen = _end_protocol(best) if best.moves else given.table.protocol
    for result in others:
        found = find_solutions(task._replace(goal=result.goal))
        if found and found[0].moves and (end := _end_protocol(found[0])) != chosen:
            lower = is_higher(protocol_versions(end), protocol_versions(chosen))
            name = "lower-versions" if lower else "other-clients"
            yield _build_alternative(given, found[0], name, result.in_words, not result.losers)


_ALTERNATIVE_TEXTS = {
    "fast": "fast drops: no wait, no history is deleted, and checkpointProtection stays",
    "fast-then-truncate": "fast drops, then one removal of checkpointProtection after the wait: "
    "clients regain access before it",
    "truncating": "drops with TRUNCATE HISTORY: no checkpointProtection is left",
    "fill-gaps": "add features until all fit a legacy pair, which removes the feature lists",
    "no-drops": "drop nothing",
}


def _end_protocol(found: Solution) -> Protocol:
    return found.moves[-1].outcome.table.protocol


def _alternative_kind(found: Solution) -> str:
    if any(move.statement.action == "raise-versions" for move in found.moves):
        return "fill-gaps"
    if not any(move.statement.action == "drop-feature" for move in found.moves):
        return "no-drops"
    if found.drops is DropMode.TRUNCATING:
        return "truncating"
    return "fast-then-truncate" if CHECKPOINT_PROTECTION in found.choice.gone else "fast"


def _build_alternative(
    given: PlanInput, found: Solution, name: str, text: str, reaches_goal: bool
) -> Alternative:
    made = build_steps(found.moves, given.engine, given.files, given.sql, given.writers)
    return Alternative(name, text, reaches_goal, made[-1].protocol_after, found.cost, made)
