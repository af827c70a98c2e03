"""The goal `--lowest`: everything goes that can, as far as nothing uses it."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.candidates import Candidates
from deltaproto.planning.goal import Absent
from deltaproto.planning.plan import Blocked
from deltaproto.planning.search import History
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION
from deltaproto.protocol.feature import AlwaysWhenSupported
from deltaproto.protocol.layers import FeatureState


def lowest(
    states: Iterable[FeatureState],
    can: Candidates,
    *,
    include_enabled: bool,
    history: History | None,
) -> tuple[Absent, tuple[Blocked, ...]]:
    """The goal, and the features that stay, each with the reason.

    Dropping checkpointProtection truncates the history, so it stays when that is to be kept.
    """
    every = {state.name: state for state in states}
    goes = set(can.goes) if include_enabled else unused(every.values()) & {*can.goes}
    if history is not History.KEEP and CHECKPOINT_PROTECTION in every:
        goes.add(CHECKPOINT_PROTECTION)
    kept = tuple(_kept(state, can) for name, state in every.items() if name not in goes)
    residue = set() if history is History.KEEP else {CHECKPOINT_PROTECTION}
    return Absent(frozenset(goes | residue), kind="lowest"), kept


def unused(states: Iterable[FeatureState]) -> set[str]:
    """Features that surely nothing uses, and that only such features require."""
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


def _kept(state: FeatureState, can: Candidates) -> Blocked:
    name = state.name
    stuck = can.stuck.get(name)
    in_use = state.enabled or state.present
    if stuck is not None:
        use = f"in use ({state.evidence}); " if in_use and state.evidence else ""
        return Blocked(name, f"{use}{stuck.reason}", stuck.remedy, stuck.error)
    if name == CHECKPOINT_PROTECTION:
        return Blocked(
            name,
            "it protects history, which is to be kept",
            "give --history truncate, or leave --history out",
        )
    if in_use:
        return Blocked(
            name, f"in use{f' ({state.evidence})' if state.evidence else ''}", "--include-enabled"
        )
    if state.required_by:
        return Blocked(name, f"{', '.join(state.required_by)} requires it", "--include-enabled")
    return Blocked(
        name, "whether anything uses it cannot be told", f"--include-enabled, or --drop {name}"
    )
