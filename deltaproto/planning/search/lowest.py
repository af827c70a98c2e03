"""The `--lowest` goal: the lowest versions that keep the most clients working.

Dropping every droppable feature is not always best. A table whose features fit a legacy pair may no
longer fit one after too many drops. It then needs feature lists and writer version 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.planning.impact import compare_clients, is_better
from deltaproto.planning.plan import Blocked, ClientChange
from deltaproto.planning.predict.pending import used_features
from deltaproto.planning.predict.table import ROW_TRACKING_DOMAIN
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.droppable import DroppableFeatures
from deltaproto.planning.search.goals import (
    EndState,
    FeaturesAbsent,
    HistoryChoice,
    requirements_after,
)
from deltaproto.planning.search.route import DropSelection, settled_table
from deltaproto.planning.search.search import (
    SearchTask,
    normalized_table,
    predict_end_state,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import AlwaysWhenSupported
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

_MOST_OTHERS = 2


class ReachableProtocol(NamedTuple):
    """A protocol that drops can reach, and its effect on each client."""

    dropped: frozenset[str]
    protocol: Protocol
    changes: tuple[ClientChange, ...]

    @property
    def goal(self) -> FeaturesAbsent:
        """The goal of this protocol or a lower one."""
        return FeaturesAbsent(self.dropped, "lowest", *self.versions)

    @property
    def versions(self) -> tuple[int, int]:
        """Required reader and writer versions."""
        return self.protocol.versions

    @property
    def working(self) -> frozenset[tuple[str, str]]:
        """Working (client, access) pairs."""
        return frozenset((c.client, c.access) for c in self.changes if c.after is Verdict.OK)

    @property
    def losers(self) -> tuple[ClientChange, ...]:
        """Changes that lose access."""
        return tuple(
            c for c in self.changes if c.before is Verdict.OK and c.after is not Verdict.OK
        )

    @property
    def in_words(self) -> str:
        """Describe versions, gains and losses in one line."""
        gains = _join_names(f"{c.client} {c.access}" for c in self.changes if is_better(c))
        losses = _join_names(f"{c.client} {c.access}" for c in self.losers)
        return f"{self.protocol}: {gains or 'no client'} gained, {losses or 'no client'} lost"


class LowestGoal(NamedTuple):
    """The `--lowest` goal for one table."""

    best: ReachableProtocol
    others: tuple[ReachableProtocol, ...]
    """results that are lower for other clients, or that block some clients"""
    kept: tuple[Blocked, ...]
    """the features that stay, with the reason"""


def find_lowest_goal(
    inputs: PlanInput,
    droppable: DroppableFeatures,
    *,
    include_enabled: bool,
    history: HistoryChoice | None,
    needed: DropSelection | None = None,
) -> LowestGoal:
    """Find the lowest protocol with which every working client keeps working.

    Args:
        needed: features to drop or disable for the clients of the goal, if any.
    """
    needed = needed or DropSelection()
    settled = _settled(inputs)
    left = states_without(needed.dropped, settled.states, inputs.table.domains)
    every = {state.name: state for state in left}
    allowed = set(droppable.names)
    if not include_enabled:
        allowed &= find_unused(every.values())
    allowed |= (needed.dropped | needed.off) & set(droppable.names)
    task = SearchTask(
        settled.table,
        FeaturesAbsent(frozenset()),
        inputs.engine,
        history=history,
        droppable=droppable,
    )
    # The clients of the goal may need a drop that raises the versions. Without it, nothing changes
    # but the form of the protocol.
    as_it_is = normalized_table(inputs.table, inputs.engine)
    start = task if needed.dropped | needed.off else task._replace(table=as_it_is)
    before = _evaluate_drops(inputs, start, needed)
    found = {
        result.protocol: result
        for dropped in dict.fromkeys(
            _drop_sets(settled.table.protocol, frozenset(allowed), history)
        )
        if needed.dropped - {CHECKPOINT_PROTECTION} <= dropped
        for result in (_evaluate_drops(inputs, task, DropSelection(dropped, needed.off - dropped)),)
        if not is_higher(before.versions, result.versions)
    }
    found.setdefault(before.protocol, before)
    harmless = [each for each in found.values() if not each.losers] or [*found.values()]
    best = min(harmless, key=_rank)
    others = [each for each in found.values() if each is not best and _is_alternative(each, best)]
    others = [each for each in others if not any(_dominates(other, each) for other in others)]
    kept = []
    for state in every.values():
        if state.name not in best.dropped:
            more = DropSelection(best.dropped | {state.name}, needed.off - {state.name})
            kept.append(
                _why_kept(state, droppable)
                or _explain_kept(state.name, best, _evaluate_drops(inputs, task, more))
            )
    return LowestGoal(best, tuple(sorted(others, key=_rank)[:_MOST_OTHERS]), tuple(kept))


def _settled(inputs: PlanInput) -> PlanInput:
    """Return the table as drops find it: with the features that its metadata still requests."""
    table = settled_table(inputs.table, inputs.engine)
    if table is inputs.table:
        return inputs
    protocol = table.protocol
    used = used_features(table, inputs.engine)
    states = [
        state._replace(required_by=feature_catalog.find_dependents(state.name, protocol.supported))
        for state in inputs.states
        if state.name in protocol.supported
    ]
    for name in sorted(protocol.supported - inputs.table.protocol.supported):
        # No file or metadata can have used a feature that the protocol did not have.
        present = name in used
        states.append(
            FeatureState(
                feature=feature_catalog.feature_record(name),
                kind=protocol.kind_of(name),
                listed=name in protocol.listed,
                implied=name in protocol.implied,
                enabled=present,
                present=present,
                required_by=feature_catalog.find_dependents(name, protocol.supported),
                evidence="",
            )
        )
    return inputs._replace(table=table, states=tuple(states))


def states_without(
    dropped: frozenset[str], states: Iterable[FeatureState], domains: Collection[str] | None
) -> Iterator[FeatureState]:
    """Yield the states of the remaining features after these features are dropped.

    Args:
        domains: the names of the table's metadata domains; None if unknown.
    """
    last = "rowTracking" in dropped and domains is not None and {*domains} <= {ROW_TRACKING_DOMAIN}
    for state in states:
        left = tuple(name for name in state.required_by if name not in dropped)
        if last and state.name == "domainMetadata":
            state = state._replace(present=False, evidence="")
        yield state._replace(required_by=left)


def find_unused(states: Iterable[FeatureState]) -> set[str]:
    """Return features that are certainly unused and required only by unused ones."""
    idle = {
        state.name: state
        for state in states
        if state.present is False
        and (state.enabled is False or isinstance(state.feature.enablement, AlwaysWhenSupported))
    }
    while pinned := [n for n, s in idle.items() if not set(s.required_by) <= idle.keys()]:
        for name in pinned:
            del idle[name]
    return set(idle)


def _drop_sets(
    protocol: Protocol, allowed: frozenset[str], history: HistoryChoice | None
) -> Iterator[frozenset[str]]:
    """Yield the sets of drops that can lead to the lowest protocol.

    With feature lists, a client that works with more features also works with fewer, so only two
    kinds of sets matter: dropping everything, and what fits each legacy pair.
    """
    residue = (
        frozenset[str]() if history is HistoryChoice.KEEP else frozenset({CHECKPOINT_PROTECTION})
    )
    supported = protocol.supported
    sets = [
        allowed,
        *(
            supported - feature_catalog.features_implied_by(*pair)
            for pair in feature_catalog.LEGACY_PAIRS
        ),
    ]
    sets += [allowed - feature_catalog.with_required_features({name}) for name in sorted(allowed)]
    sets.append(
        frozenset(n for n in allowed if not feature_catalog.feature_record(n).drop.protects_history)
    )
    for each in sets:
        dropped = each - {CHECKPOINT_PROTECTION}
        if dropped <= allowed and not _leaves_dependents(dropped, supported):
            yield dropped | residue


def _leaves_dependents(dropped: frozenset[str], supported: frozenset[str]) -> bool:
    return any(set(feature_catalog.find_dependents(name, supported)) - dropped for name in dropped)


def _evaluate_drops(
    inputs: PlanInput, task: SearchTask, choice: DropSelection
) -> ReachableProtocol:
    left = CHECKPOINT_PROTECTION not in choice.dropped
    end: EndState = predict_end_state(task, choice, left=left)
    unchanged = end.protocol == inputs.table.protocol and not end.off
    after = inputs.needs if unchanged else requirements_after(inputs.needs, end)
    return ReachableProtocol(
        choice.dropped, end.protocol, compare_clients(inputs.clients, inputs.needs, after)
    )


def is_higher(before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Return True if one of the versions is higher afterwards."""
    return after[0] > before[0] or after[1] > before[1]


def _rank(result: ReachableProtocol) -> tuple[int, int, tuple[int, int], int]:
    """Sort key of results: working clients, then versions, then features."""
    return (
        len(result.losers),
        -len(result.working),
        result.versions,
        len(result.protocol.supported),
    )


def _is_alternative(one: ReachableProtocol, best: ReachableProtocol) -> bool:
    """Return True if a result is lower than the best, or unblocks a client that the best blocks."""
    return is_higher(one.versions, best.versions) or bool(one.working - best.working)


def _dominates(one: ReachableProtocol, other: ReachableProtocol) -> bool:
    """Return True if one result is at least as good as another, and better in some way."""
    as_good = not is_higher(other.versions, one.versions) and one.working >= other.working
    return as_good and (one.versions, one.working) != (other.versions, other.working)


def _why_kept(state: FeatureState, droppable: DroppableFeatures) -> Blocked | None:
    """Return why a feature stays, if not because of versions and clients."""
    name = state.name
    stuck = droppable.undroppable.get(name)
    # Such a feature has no switch, so counting as enabled does not show that it is used.
    switched_on = state.enabled and not isinstance(state.feature.enablement, AlwaysWhenSupported)
    in_use = switched_on or state.present
    if stuck is not None:
        use = f"in use ({state.evidence}); " if in_use and state.evidence else ""
        return Blocked(name, f"{use}{stuck.reason}", stuck.remedy, stuck.error)
    if name == CHECKPOINT_PROTECTION:
        return Blocked(
            name,
            "it protects history, which you want to keep",
            "use --history truncate, or omit --history",
        )
    if in_use:
        return Blocked(
            name, f"in use{f' ({state.evidence})' if state.evidence else ''}", "--include-enabled"
        )
    if state.required_by:
        return Blocked(name, f"{', '.join(state.required_by)} requires it", "--include-enabled")
    if state.present is not False:
        return Blocked(
            name, "it is unknown whether anything uses it", f"--include-enabled, or --drop {name}"
        )
    return None


def _explain_kept(name: str, best: ReachableProtocol, result: ReachableProtocol) -> Blocked:
    """Return why a droppable feature stays: the result of dropping it."""
    losers = _join_names(f"{change.client} {change.access}" for change in result.losers)
    why = f", and {losers} would no longer work" if losers else ""
    if is_higher(best.versions, result.versions):
        return Blocked(
            name, f"without it, the versions are {result.protocol}{why}", f"--drop {name}"
        )
    return Blocked(name, f"dropping it has no benefit{why}", f"--drop {name}")


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))
