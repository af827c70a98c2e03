"""Clients as JSON that loads without being parsed and checked: `parsed/`, which `make docs` writes.

Records are lists of their members, in order. Most paths of a client handle most hazards alike, so
that hazards are stored once, and paths refer to them by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deltaproto.clients.model import (
    Access,
    AppliesTo,
    Client,
    Confidence,
    Evidence,
    Handling,
    KnownBad,
    Path,
    ProtocolGate,
    Range,
    Verdict,
    VersionedHazards,
)

Hazards = Mapping[tuple[str, Access], Handling]


def encode_client(client: Client) -> dict[str, Any]:
    """Return plain lists, texts and numbers, which `decode_client` turns into an equal client.

    `client` has its members; `hazards` has the members of each handling, with the hazards and
    accesses it is for.
    """
    shared: dict[str, Any] = {}

    def positions(hazards: Hazards) -> tuple[int, ...]:
        rows = {str(row): row for row in _encode_hazards(hazards)}
        shared.update(rows)
        return tuple([*shared].index(key) for key in rows)

    def plain(value: Any) -> Any:
        if isinstance(value, Path | VersionedHazards):
            members = {**value._asdict(), "hazards": positions(value.hazards)}
            return [*map(plain, members.values())]
        if isinstance(value, frozenset):
            return sorted(value)
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in sorted(value.items())}
        return [*map(plain, value)] if isinstance(value, tuple) else value

    return {"client": plain(client), "hazards": [*shared.values()]}


def _encode_hazards(hazards: Hazards) -> Iterator[list[Any]]:
    accesses: dict[tuple[Handling, str], list[str]] = {}
    for (hazard, access), handling in sorted(hazards.items()):
        accesses.setdefault((handling, hazard), []).append(access)
    words: dict[tuple[Handling, tuple[str, ...]], list[str]] = {}
    for (handling, hazard), found in accesses.items():
        words.setdefault((handling, tuple(found)), []).append(hazard)
    for (handling, alike), hazard_words in words.items():
        yield [*handling, hazard_words, [*alike]]


def decode_client(stored: Mapping[str, Any]) -> Client:
    """Return the client that was encoded."""
    shared = [*map(_hazards, stored["hazards"])]
    id_, name, aliases, versions, ranges, measured, hazards = stored["client"]
    return Client(
        id_,
        name,
        tuple(aliases),
        versions,
        tuple(_range(each, shared) for each in ranges),
        tuple(_range(each, shared) for each in measured),
        tuple(
            VersionedHazards(start, end, _merge(positions, shared), path)
            for start, end, positions, path in hazards
        ),
    )


def _hazards(row: list[Any]) -> Hazards:
    verdict, what, reference, words, accesses = row
    handling = Handling(Verdict(verdict), what, reference)
    return {(word, access): handling for access in map(Access, accesses) for word in words}


def _merge(positions: list[int], shared: list[Hazards]) -> Hazards:
    found: dict[tuple[str, Access], Handling] = {}
    for position in positions:
        found |= shared[position]
    return found


def _range(row: list[Any], shared: list[Hazards]) -> Range:
    start, end, paths, confidence, evidence, note, whole, catalog_only, *rest = row
    return Range(
        start,
        end,
        tuple(_path(each, shared) for each in paths),
        Confidence(confidence),
        tuple(Evidence(*each) for each in evidence),
        note,
        whole,
        frozenset(catalog_only),
        *rest,
    )


def _path(row: list[Any], shared: list[Hazards]) -> Path:
    name, read, write, access, known_bad, hazards = row
    return Path(
        name,
        _gate(read),
        _gate(write),
        frozenset(map(Access, access)),
        tuple(map(_known_bad, known_bad)),
        _merge(hazards, shared),
    )


def _gate(row: list[Any] | None) -> ProtocolGate | None:
    if row is None:
        return None
    legacy, features, unused, legacy_unused, unchecked, modes, *of_reader = row
    return ProtocolGate(
        frozenset(legacy),
        _optional_set(features),
        frozenset(unused),
        frozenset(legacy_unused),
        _optional_set(unchecked),
        {feature: frozenset(names) for feature, names in modes.items()},
        *map(_optional_set, of_reader),
    )


def _optional_set(names: list[Any] | None) -> frozenset[Any] | None:
    return None if names is None else frozenset(names)


def _known_bad(row: list[Any]) -> KnownBad:
    features, access, what, reference, fails, where, pairs, *rest = row
    return KnownBad(
        frozenset(features),
        frozenset(map(Access, access)),
        what,
        reference,
        fails,
        AppliesTo(where),
        frozenset(map(tuple, pairs)),
        *rest,
    )
