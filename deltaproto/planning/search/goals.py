"""Goals of a downgrade: the required end state, and its obstacles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.caches import IdentityKey
from deltaproto.clients import requirements
from deltaproto.clients.model import Access, PathVerdict, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.counts import all_names
from deltaproto.planning.predict.bounds import OF_BOUNDS, BoundHazards
from deltaproto.planning.predict.contents import ContentChange
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol


class HistoryChoice(StrEnum):
    """`--history`: whether the history that shows dropped features may be deleted."""

    KEEP = "keep"
    """keep it, which also keeps checkpointProtection"""
    TRUNCATE = "truncate"
    """delete it to remove checkpointProtection"""


class EndState(NamedTuple):
    """A possible end state of a table: its protocol and the features in use."""

    protocol: Protocol
    off: frozenset[str] = frozenset()
    """features that were disabled and stay in the protocol"""
    on: frozenset[str] = frozenset()
    """features that are enabled"""
    mode: str | None = None
    """mode of column mapping; None: unchanged"""
    absolute_rewritten: bool = False
    """every file that had an absolute path was rewritten"""
    rewritten: bool = False
    """every file was rewritten"""
    bounds: BoundHazards | None = None
    """hazards of the bounds in statistics; None: as before"""
    contents: ContentChange = ContentChange()
    """hazards of columns and constraints that the plan adds or removes"""
    unpredicted: str = ""
    """why the table may have hazards that cannot be predicted; empty: it has none of these"""
    cleared: frozenset[str] = frozenset()
    """features without a switch that no longer have traces"""
    unclear: frozenset[str] = frozenset()
    """features whose first traces the plan may add, or whose last traces it may remove"""


Reachable = Callable[["Goal"], bool]


class Goal(Interface):
    """The goal of a plan."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str:
        """The goal as a phrase, features first."""
        ...

    def reached(self, ending: EndState) -> bool: ...

    def objections(self, ending: EndState) -> frozenset[str]:
        """Return the features for which this end state fails the goal."""
        ...

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        """Yield weaker goals, nearest first; the last one requires nothing.

        `reachable` decides whether a goal of the same kind can be reached.
        """
        ...


class FeaturesAbsent(NamedTuple):
    """These features are removed from the protocol, and the versions are at most these."""

    features: frozenset[str]
    kind: str = "drop"
    reader: int = 3
    writer: int = 7

    @property
    def text(self) -> str:
        return f"without {', '.join(sorted(self.features))}" if self.features else "nothing to drop"

    def reached(self, ending: EndState) -> bool:
        protocol = ending.protocol
        return (
            not self.features & protocol.supported
            and protocol.min_reader_version <= self.reader
            and protocol.min_writer_version <= self.writer
        )

    def objections(self, ending: EndState) -> frozenset[str]:
        return self.features & ending.protocol.supported

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        alone = (name for name in self.features if reachable(FeaturesAbsent(frozenset({name}))))
        yield FeaturesAbsent(frozenset(alone), self.kind)
        yield FeaturesAbsent(frozenset(), self.kind)


class VersionsAtMost(NamedTuple):
    """Versions are at most these."""

    reader: int
    writer: int
    kind: str = "to"

    @property
    def text(self) -> str:
        return f"reader version {self.reader} and writer version {self.writer} at most"

    def reached(self, ending: EndState) -> bool:
        protocol = ending.protocol
        return (
            protocol.min_reader_version <= self.reader
            and protocol.min_writer_version <= self.writer
        )

    def objections(self, ending: EndState) -> frozenset[str]:
        found = set()
        for name in ending.protocol.supported:
            record = feature_catalog.feature_record(
                name, in_reader_list=name in _listed_for_readers(ending)
            )
            if record.min_reader > self.reader or record.min_writer > self.writer:
                found.add(name)
        return frozenset(found)

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        for writer in range(self.writer, 8):
            for reader in range(self.reader, 4):
                yield VersionsAtMost(reader, writer)


class TableClient(NamedTuple):
    """A client, and its access to the table, now or after the plan."""

    candidate: ClientAtVersion
    access: tuple[Access, ...]
    label: str | None = None
    """label in the policy, and who was seen to use the client; or `plan.IN_THE_LOG`"""


class ClientsSupported(NamedTuple):
    """Every client has its needed access to the table."""

    uses: tuple[TableClient, ...]
    needs: TableRequirements
    """the table's requirements before the plan"""
    kind: str = "for-client"

    @property
    def text(self) -> str:
        named = (f"{use.candidate.reference} can {all_names(use.access)}" for use in self.uses)
        return "; ".join(named)

    def reached(self, ending: EndState) -> bool:
        return all(found.verdict is Verdict.OK for found in self._judged(ending))

    def objections(self, ending: EndState) -> frozenset[str]:
        return frozenset(name for found in self._judged(ending) for name in found.because)

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        single = [
            TableClient(use.candidate, (access,)) for use in self.uses for access in use.access
        ]
        kept: tuple[TableClient, ...] = ()
        for use in single:
            if reachable(self._replace(uses=(*kept, use))):
                kept = (*kept, use)
        yield self._replace(uses=kept)

    def _judged(self, ending: EndState) -> Iterator[PathVerdict]:
        verdicts = _verdicts_after(self.needs, ending)
        for use in self.uses:
            for access in use.access:
                yield from verdicts.of(use.candidate, access)


class _Verdicts:
    """The verdicts of clients on one table, as far as they were requested."""

    def __init__(self, table: TableRequirements) -> None:
        self._table = table
        self._found: dict[tuple[int, Access], tuple[ClientAtVersion, tuple[PathVerdict, ...]]] = {}

    def of(self, candidate: ClientAtVersion, access: Access) -> tuple[PathVerdict, ...]:
        """Return the verdict for each path of the client."""
        key = id(candidate), access
        found = self._found.get(key)
        if found is None:
            verdicts = tuple(each for _, each in cached_verdicts(candidate, access, self._table))
            # Keep the client as well, so that no other client gets its id.
            found = self._found[key] = candidate, verdicts
        return found[1]


@lru_cache(maxsize=1024)
def _verdicts_after(before: TableRequirements, ending: EndState) -> _Verdicts:
    return _Verdicts(requirements_after(before, ending))


class BothGoals(NamedTuple):
    """Two goals combined."""

    first: Goal
    second: Goal

    @property
    def kind(self) -> str:
        """The kind of the first goal."""
        return self.first.kind

    @property
    def text(self) -> str:
        return f"{self.first.text}; {self.second.text}"

    def reached(self, ending: EndState) -> bool:
        return self.second.reached(ending) and self.first.reached(ending)

    def objections(self, ending: EndState) -> frozenset[str]:
        return self.first.objections(ending) | self.second.objections(ending)

    def weaker(self, reachable: Reachable) -> Iterator[Goal]:
        yield from self.first.weaker(reachable)


class AllGoals(NamedTuple):
    """Any number of goals at once."""

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


def requirements_after(before: TableRequirements, ending: EndState) -> TableRequirements:
    """Return the table's requirements for clients in this end state."""
    left = ending.protocol.supported
    new = left - before.protocol.supported
    # Without a switch, a feature is enabled as soon as it is supported.
    enabled = frozenset(name for name in new if feature_catalog.feature_record(name).switchless)
    idle = (ending.off & left) | (new - enabled)
    # Features that the plan enables, and those they require, leave traces with the next write.
    written = feature_catalog.with_required_features(ending.on - before.used)
    traceless = {name for name in enabled if feature_catalog.feature_record(name).traces}
    traceless |= ending.cleared & left
    return before._replace(
        protocol=ending.protocol,
        used=((before.used & left) - ending.off - ending.unclear) | enabled | ending.on,
        unused=((before.unused & left) | idle) - ending.on - ending.unclear,
        modes=tuple(_modes(before, ending)),
        absent=((before.absent & left) | idle | traceless) - written - ending.unclear,
        doubts=before.doubts + ((ending.unpredicted,) if ending.unpredicted else ()),
        hazards=_hazards(before, ending),
        unseen=_unseen(before, ending),
    )


def _hazards(before: TableRequirements, ending: EndState) -> frozenset[str]:
    """Return remaining hazards, and those of features enabled on existing files."""
    idle = ending.off | (before.protocol.supported - ending.protocol.supported)
    new = {
        hazard
        for name, hazard in requirements.ENABLED_LATER.items()
        if name in ending.on and name not in before.used
    }
    contents = (before.hazards - ending.contents.removed) | ending.contents.added
    left = requirements.remaining_hazards(contents, idle)
    if ending.rewritten or "columnMapping" in idle & before.used:
        # Folders of timestamps are named in the time zone of the session that rewrites the files.
        kept = {requirements.HIDDEN_PARTITIONS} if requirements.ISO_TIMESTAMPS in left else set()
        left -= requirements.OF_WRITTEN_FILES - kept
    if ending.absolute_rewritten:
        left -= {requirements.ABSOLUTE_PATHS}
    if ending.bounds is not None:
        left = (left - OF_BOUNDS) | ending.bounds.present
    return left | new


def _unseen(before: TableRequirements, ending: EndState) -> frozenset[str]:
    """Return the hazards that the table may or may not have."""
    if ending.bounds is None:
        return before.unseen
    return (before.unseen - OF_BOUNDS) | ending.bounds.unseen


def _modes(before: TableRequirements, ending: EndState) -> Iterator[tuple[str, str]]:
    if "columnMapping" in ending.protocol.supported:
        mode = ending.mode or dict(before.modes).get("columnMapping", "none")
        yield "columnMapping", "none" if "columnMapping" in ending.off else mode.lower()


def _listed_for_readers(ending: EndState) -> frozenset[str]:
    return ending.protocol.reader_features or frozenset()


_CACHE_SIZE = 1 << 16


def cached_verdicts(
    candidate: ClientAtVersion, access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    """Evaluate each path of the client; the keys are path names."""
    return _compute_verdicts(IdentityKey(candidate), access, table)


@lru_cache(maxsize=_CACHE_SIZE)
def _compute_verdicts(
    same: IdentityKey[ClientAtVersion], access: Access, table: TableRequirements
) -> tuple[tuple[str | None, PathVerdict], ...]:
    return tuple(
        (None if path is None else path.name, judgement)
        for path, judgement in path_verdicts(same.value, access, table)
    )
