"""A client version against every feature: the answers without a table."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from deltaproto.clients.capability import EVERY, Access, Gate, Path, Where
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Feature, Kind


class Answer(StrEnum):
    """What becomes of a table that lists the feature; of several answers the later one decides."""

    YES = "yes"
    UNKNOWN = "unknown"
    """two sources disagree"""
    UNCHECKED = "not checked"
    WRONG = "wrong"
    """it is let through, and what is known of the client says that it goes wrong"""
    UNUSED = "only unused"
    NO = "no"


class Row(NamedTuple):
    """One feature. `write` is None for a path that does not write."""

    feature: str
    kind: Kind
    read: Answer | None
    write: Answer | None


def matrix(path: Path) -> tuple[Row, ...]:
    """Every feature of the catalogue, and those that only this client knows, by name.

    Reading a writer feature is a yes: readers need not know it. To write, both gates are asked.
    """
    return tuple(
        Row(
            name,
            feature.kind,
            _with_known(path, name, Access.READ, _read(path, feature)),
            _with_known(path, name, Access.APPEND, _write(path, feature)),
        )
        for name, feature in sorted(_features(path))
    )


def _with_known(path: Path, name: str, access: Access, answer: Answer | None) -> Answer | None:
    """The gate's answer, or what the client is known to make of it."""
    if answer is None:
        return None
    found = [answer]
    for bad in path.known_bad:
        if bad.features & {name, EVERY} and access in bad.access:
            if bad.disputed:
                found.append(Answer.UNKNOWN)
                continue
            if bad.ungated and not bad.fails:
                return Answer.WRONG
            if not bad.fails:
                found.append(Answer.WRONG)
            else:
                found.append(Answer.NO if bad.where is Where.SUPPORTED else Answer.UNUSED)
    return max(found, key=list(Answer).index)


def _features(path: Path) -> Iterator[tuple[str, Feature]]:
    known = {feature.name for feature in catalogue.all_features()}
    for gate in (path.read, path.write):
        if gate is not None:
            known |= (gate.features or frozenset()) | gate.unused | (gate.unchecked or frozenset())
    reader = (path.read.features or frozenset()) if path.read else frozenset()
    for name in known:
        yield name, catalogue.record(name, in_reader_list=name in reader)


def _read(path: Path, feature: Feature) -> Answer | None:
    if path.read is None:
        return None
    if feature.kind is Kind.WRITER:
        return Answer.YES
    return _answer(path.read, feature.name)


def _write(path: Path, feature: Feature) -> Answer | None:
    if path.write is None:
        return None
    write = _answer(path.write, feature.name)
    read = _read(path, feature) or Answer.YES
    return max(read, write, key=list(Answer).index)


def _answer(gate: Gate, name: str) -> Answer:
    understood = gate.features is not None and name in gate.features
    if gate.unchecked is None:
        return Answer.YES if understood else Answer.UNCHECKED
    if gate.features is None:
        return Answer.NO
    if name in gate.unused:
        return Answer.UNUSED
    if name in gate.unchecked:
        return Answer.UNCHECKED
    return Answer.YES if understood else Answer.NO
