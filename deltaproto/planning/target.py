"""The target of a plan for a policy: what the table must become, and what must stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from deltaproto.planning.search.goals import HistoryChoice, TableClient


class Requirements(NamedTuple):
    """What a table must be."""

    features: frozenset[str] = frozenset()
    """in the protocol"""
    absent: frozenset[str] = frozenset()
    """not in the protocol"""
    properties: Mapping[str, str] = MappingProxyType({})
    cluster_by: tuple[str, ...] | None = None
    """the clustering columns; empty: none; None: any"""
    at_least: tuple[int, int] = (1, 1)
    """reader and writer version"""
    at_most: tuple[int, int] = (3, 7)
    clients: tuple[TableClient, ...] = ()

    def parts(self) -> Iterator[Requirements]:
        """Yield each requirement separately; those that add something come last."""
        for name in sorted(self.absent):
            yield Requirements(absent=frozenset({name}))
        if self.at_most != (3, 7):
            yield Requirements(at_most=self.at_most)
        for use in self.clients:
            for access in use.access:
                yield Requirements(clients=(use._replace(access=(access,)),))
        for name in sorted(self.features):
            yield Requirements(features=frozenset({name}))
        for key, value in sorted(self.properties.items()):
            yield Requirements(properties={key: value})
        if self.at_least != (1, 1):
            yield Requirements(at_least=self.at_least)
        if self.cluster_by is not None:
            yield Requirements(cluster_by=self.cluster_by)

    def merged_with(self, other: Requirements) -> Requirements:
        """Return both; they must not contradict each other."""
        return Requirements(
            self.features | other.features,
            self.absent | other.absent,
            {**self.properties, **other.properties},
            self.cluster_by if other.cluster_by is None else other.cluster_by,
            each_version(max, self.at_least, other.at_least),
            each_version(min, self.at_most, other.at_most),
            (*self.clients, *other.clients),
        )


class Target(NamedTuple):
    """What one table must become."""

    missing: Requirements
    """the requirements that the plan should meet, as far as possible"""
    kept: Requirements = Requirements()
    """the requirements that the table already meets, and must still meet afterwards"""
    history: HistoryChoice | None = None


def goal_of(met: Requirements, target: Target) -> Mapping[str, Any]:
    """Return the goal as stored in plan files: the requirements that the plan meets."""
    goal: dict[str, Any] = {"kind": "policy"}
    if met.features:
        goal["enable"] = sorted(met.features)
    if met.properties:
        goal["set"] = dict(met.properties)
    if met.cluster_by is not None:
        goal["cluster_by"] = list(met.cluster_by)
    if met.at_least != (1, 1):
        goal["to"] = {"reader": met.at_least[0], "writer": met.at_least[1]}
    if met.absent:
        goal["features"] = sorted(met.absent)
    if met.at_most != (3, 7):
        goal["at_most"] = {"reader": met.at_most[0], "writer": met.at_most[1]}
    if met.clients:
        goal["clients"] = [
            {"client": str(use.candidate.reference), "access": [str(a) for a in use.access]}
            for use in join_accesses(met.clients)
        ]
    if target.history is not None:
        goal["history"] = str(target.history)
    return goal


def is_set(configuration: Mapping[str, str], key: str, value: str) -> bool:
    """Return True if a property has this value, ignoring case and blanks around it."""
    return configuration.get(key, "\0").strip().casefold() == value.strip().casefold()


def join_accesses(uses: Iterable[TableClient]) -> tuple[TableClient, ...]:
    """Join the accesses of each client."""
    found: dict[str, TableClient] = {}
    for use in uses:
        name = str(use.candidate.reference)
        before = found[name].access if name in found else ()
        found[name] = use._replace(access=tuple(dict.fromkeys((*before, *use.access))))
    return tuple(found.values())


def each_version(choose: Any, one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return choose(one[0], other[0]), choose(one[1], other[1])
