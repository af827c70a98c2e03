"""Goals that combine several requirements, some of which the table already meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.planning.search.goals import EndState, Goal, Reachable


class FeaturesPresent(NamedTuple):
    """These features are in the protocol."""

    features: frozenset[str]
    kind: str = "keep"

    @property
    def text(self) -> str:
        return f"with {', '.join(sorted(self.features))}"

    def reached(self, ending: EndState) -> bool:
        return self.features <= ending.protocol.supported

    def objections(self, ending: EndState) -> frozenset[str]:
        return frozenset()

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        yield FeaturesPresent(frozenset())


class VersionsAtLeast(NamedTuple):
    """Versions are at least these."""

    reader: int
    writer: int
    kind: str = "at-least"

    @property
    def text(self) -> str:
        return f"reader version {self.reader} and writer version {self.writer} at least"

    def reached(self, ending: EndState) -> bool:
        protocol = ending.protocol
        return (
            protocol.min_reader_version >= self.reader
            and protocol.min_writer_version >= self.writer
        )

    def objections(self, ending: EndState) -> frozenset[str]:
        return frozenset()

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        yield VersionsAtLeast(1, 1)


class AllGoals(NamedTuple):
    """Several goals at once."""

    goals: tuple[Goal, ...]
    kind: str = "policy"

    @property
    def text(self) -> str:
        return "; ".join(goal.text for goal in self.goals)

    def reached(self, ending: EndState) -> bool:
        return all(goal.reached(ending) for goal in self.goals)

    def objections(self, ending: EndState) -> frozenset[str]:
        return frozenset().union(*(goal.objections(ending) for goal in self.goals))

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        kept: tuple[Goal, ...] = ()
        for goal in self.goals:
            if reachable(AllGoals((*kept, goal))):
                kept = (*kept, goal)
        yield AllGoals(kept)
