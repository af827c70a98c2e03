"""What a table asks of its clients: its protocol, what is used of it, how it is reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

MAPPING_MODE = "delta.columnMapping.mode"


class Needs(NamedTuple):
    """Equal needs get equal verdicts, so that a fleet's tables are judged once for each."""

    protocol: Protocol
    used: frozenset[str]
    """supported features that something on the table uses"""
    unused: frozenset[str]
    """supported features that nothing uses; those in neither set cannot be told"""
    modes: tuple[tuple[str, str], ...] = ()
    """feature and mode, where it has modes"""
    by_name: bool = False
    """reached by catalog name, not by path"""
    absent: frozenset[str] = frozenset()
    """supported features of which no trace is left in files and log"""
    doubts: tuple[str, ...] = ()
    """why no client can be counted on, whatever it supports"""
    hazards: frozenset[str] = frozenset()
    """what its layout and contents show that some clients cannot handle: see `hazards`"""
    unseen: frozenset[str] = frozenset()
    """hazards that nobody looked for"""

    def holds(self, feature: str) -> bool | None:
        """Whether files or log hold traces of the feature; None when that cannot be told."""
        return False if feature in self.absent else self.uses(feature)

    def uses(self, feature: str) -> bool | None:
        """Whether something on the table uses the feature; None when that cannot be told."""
        if feature in self.used:
            return True
        return False if feature in self.unused else None


def needs(
    protocol: Protocol,
    usage: Mapping[str, bool | None],
    configuration: Mapping[str, str | None],
    *,
    by_name: bool = False,
    absent: Iterable[str] = (),
    doubts: Iterable[str] = (),
    hazards: Iterable[str] = (),
    unseen: Iterable[str] = (),
) -> Needs:
    """What a table with this protocol and usage asks.

    Args:
        usage: for each supported feature whether it is used; None when that cannot be told.
        absent: supported features that surely left no trace in files and log.
        doubts: sentences on damage and contradictions that clients take differently.
        hazards: what layout and contents show, in the words of `hazards`.
        unseen: hazards that nobody looked for.
    """
    modes: list[tuple[str, str]] = []
    if "columnMapping" in protocol.supported:
        modes.append(("columnMapping", (configuration.get(MAPPING_MODE) or "none").lower()))
    return Needs(
        protocol,
        frozenset(name for name, used in usage.items() if used is True),
        frozenset(name for name, used in usage.items() if used is False),
        tuple(modes),
        by_name,
        frozenset(absent),
        tuple(doubts),
        frozenset(hazards),
        frozenset(unseen),
    )


def usage(states: Iterable[FeatureState]) -> dict[str, bool | None]:
    """For each supported feature whether it is enabled or present; None when not to be told."""
    return {state.name: used(state.name, state.enabled, state.present) for state in states}


def used(name: str, enabled: bool | None, present: bool | None) -> bool | None:
    """A feature is used when it is enabled or present, and unused when it is surely neither.

    Files of a change feed that was switched off bind nobody: clients look at the property only.
    """
    if name == "changeDataFeed" and enabled is not None:
        return enabled
    if enabled or present:
        return True
    return False if enabled is False and present is False else None
