"""Parse one path of a catalog entry: its gates, known failures and hazards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.clients import members, requirements, version_scheme
from deltaproto.clients.members import EntryError
from deltaproto.clients.model import (
    ANY_TABLE,
    READ_ACCESSES,
    Access,
    AppliesTo,
    Handling,
    KnownBad,
    Path,
    ProtocolGate,
    Verdict,
    VersionedHazards,
)

_WRITERS_READING = ("readers", "reader_features")
"""the reader's side of a writer that uses a different library than its reader"""
_GATE = {
    "legacy",
    "features",
    "unused",
    "legacy_unused",
    "unchecked",
    "modes",
    *_WRITERS_READING,
}
_HAZARD = {"hazards", "access", "verdict", "what", "reference"}
_OF_CLIENT = {"from", "before", "path"}
"""members of a client's hazards, in addition to the members of a path's hazards"""
_KNOWN_BAD = {
    "features",
    "access",
    "what",
    "reference",
    "fails",
    "where",
    "ungated",
    "pairs",
    "disputed",
}
_MODES = {"columnMapping": ("none", "name", "id")}
"""Source: the protocol specification, delta.columnMapping.mode."""
_LEGACY = {"read": 2, "write": 6}
"""the highest version of each side without feature lists"""

Hazards = Mapping[tuple[str, Access], Handling]


def parse_path(plain: Mapping[str, Any], where: str, name: str | None) -> Path:
    """Parse a path; `where` is the prefix of error messages.

    Raises:
        EntryError: with the invalid member.
    """
    read, write = (
        _parse_gate(plain[side], side, f"{where}: {side}") if plain.get(side) is not None else None
        for side in ("read", "write")
    )
    if read is None and write is None:
        raise EntryError(f"{where}: neither read nor write", "add at least one of them")
    offered = ((read, Access.READ), (write, Access.APPEND))
    default = [access for gate, access in offered if gate is not None]
    listed = [
        members.parse_member(Access, text, f"{where}: access")
        for text in members.read_names(plain, "access", where)
    ]
    for access in listed:
        if (read if access in READ_ACCESSES else write) is None:
            side = "read" if access in READ_ACCESSES else "write"
            raise EntryError(f"{where}: access: {access} without {side}", f"add {side}")
    return Path(
        name=name,
        read=read,
        write=write,
        access=frozenset(listed or default),
        known_bad=tuple(
            _parse_known_bad(item, f"{where}: known_bad[{number}]")
            for number, item in enumerate(members.read_items(plain, "known_bad", where, []))
        ),
        hazards=_parse_hazards(plain, where),
    )


def _parse_gate(plain: Any, side: str, where: str) -> ProtocolGate:
    members.require_known_keys(plain, _GATE, where)
    for key in _WRITERS_READING:
        if side == "read" and key in plain:
            raise EntryError(
                f"{where}: {key} is not allowed under read",
                "move it under write: it describes what writers accept",
            )
    unchecked = plain.get("unchecked")
    return ProtocolGate(
        legacy=_parse_versions(plain, "legacy", side, where),
        features=frozenset(members.read_features(plain, "features", where))
        if "features" in plain
        else None,
        unused=frozenset(members.read_features(plain, "unused", where)),
        legacy_unused=frozenset(members.read_features(plain, "legacy_unused", where)),
        unchecked=None
        if unchecked == "all"
        else frozenset(members.read_features(plain, "unchecked", where)),
        modes=_parse_modes(plain, f"{where}: modes"),
        readers=_parse_versions(plain, "readers", "read", where) if "readers" in plain else None,
        reader_features=frozenset(members.read_features(plain, "reader_features", where))
        if "reader_features" in plain
        else None,
    )


def _parse_modes(plain: Mapping[str, Any], where: str) -> dict[str, frozenset[str]]:
    modes = plain.get("modes")
    if modes is None:
        return {}
    if not isinstance(modes, Mapping):
        raise EntryError(f"{where} must be a mapping", "for example {columnMapping: [name]}")
    members.refuse_misspelled(map(str, modes), where)
    found = {}
    for feature in modes:
        if feature not in _MODES:
            raise EntryError(
                f"{where}: {feature} has no modes", f"features with modes: {', '.join(_MODES)}"
            )
        names = members.read_names(modes, feature, where)
        for name in names:
            if name not in _MODES[feature]:
                known = ", ".join(_MODES[feature])
                raise EntryError(
                    f"{where}: {name} is not a mode of {feature}", f"known modes: {known}"
                )
        found[str(feature)] = frozenset(names)
    return found


def _parse_versions(plain: Mapping[str, Any], key: str, side: str, where: str) -> frozenset[int]:
    numbers = members.read_items(plain, key, where, [])
    known = range(1, _LEGACY[side] + 1)
    if not all(type(number) is int and number in known for number in numbers):
        raise EntryError(
            f"{where}: {key} must be version numbers from 1 to {known[-1]}",
            "for example [1, 2]; higher versions list their features: use the key features",
        )
    return frozenset(numbers)


def _parse_known_bad(plain: Any, where: str) -> KnownBad:
    members.require_known_keys(plain, _KNOWN_BAD, where)
    access = [
        members.parse_member(Access, text, f"{where}: access")
        for text in members.read_names(plain, "access", where)
    ]
    all_features = plain.get("features") == "all"
    features = [ANY_TABLE] if all_features else members.read_features(plain, "features", where)
    if not features or not access:
        missing = "access" if features else "features"
        raise EntryError(f"{where}: {missing} is missing, so it never applies", f"add {missing}")
    return KnownBad(
        features=frozenset(features),
        access=frozenset(access),
        what=members.read_text(plain, "what", where),
        reference=members.read_text(plain, "reference", where, ""),
        fails=members.read_flag(plain, "fails", where),
        where=members.read_choice(plain, "where", AppliesTo, where, AppliesTo.USED),
        ungated=members.read_flag(plain, "ungated", where),
        pairs=_parse_pairs(plain, where),
        disputed=members.read_flag(plain, "disputed", where),
    )


def _parse_pairs(plain: Mapping[str, Any], where: str) -> frozenset[tuple[int, int]]:
    pairs = members.read_items(plain, "pairs", where, [])
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(type(n) is int for n in pair):
            raise EntryError(
                f"{where}: pairs must be a list of reader and writer versions",
                "for example pairs: [[1, 5]]",
            )
    return frozenset((reader, writer) for reader, writer in pairs)


def _parse_hazards(plain: Mapping[str, Any], where: str) -> Hazards:
    """Parse the hazards of a path."""
    found: dict[tuple[str, Access], Handling] = {}
    for number, item in enumerate(members.read_items(plain, "hazards", where, [])):
        place = f"{where}: hazards[{number}]"
        members.require_known_keys(item, _HAZARD, place)
        found |= _parse_hazard(item, place)
    return found


def parse_versioned_hazards(
    plain: Mapping[str, Any], versions: str, where: str
) -> tuple[VersionedHazards, ...]:
    """Parse a client's hazards with their versions."""
    found = []
    for number, item in enumerate(members.read_items(plain, "hazards", where, [])):
        place = f"{where}: hazards[{number}]"
        members.require_known_keys(item, _HAZARD | _OF_CLIENT, place)
        first, end = (parse_bound(item, key, versions, place) for key in ("from", "before"))
        path = members.read_text(item, "path", place, "") or None
        found.append(VersionedHazards(first, end, _parse_hazard(item, place), path))
    return tuple(found)


def _parse_hazard(item: Mapping[str, Any], place: str) -> Hazards:
    words = members.read_names(item, "hazards", place)
    for word in words:
        if not requirements.is_hazard(word):
            known = ", ".join(sorted(requirements.KNOWN_HAZARDS))
            raise EntryError(
                f"{place}: unknown hazard {word}",
                f"use one of {known}, type NAME, or expression NAME",
            )
    access = [
        members.parse_member(Access, text, f"{place}: access")
        for text in members.read_names(item, "access", place)
    ]
    if not words or not access:
        missing = "access" if words else "hazards"
        raise EntryError(f"{place}: {missing} is missing, so it never applies", f"add {missing}")
    verdict = members.parse_member(Verdict, members.read_text(item, "verdict", place), place)
    what = members.read_text(item, "what", place, "")
    reference = members.read_text(item, "reference", place, "")
    handling = Handling(verdict, what, reference)
    return {(word, each): handling for word in words for each in access}


def parse_bound(plain: Mapping[str, Any], key: str, versions: str, where: str) -> str | None:
    """Parse the first or the end version of a range; None if it is open."""
    value = plain.get(key)
    if value is None:
        return None
    if versions == "none":
        raise EntryError(
            f"{where}: {key}: {value}, but the client has no versions",
            "add their scheme, for example versions: dotted",
        )
    if not isinstance(value, str):
        raise EntryError(f"{where}: {key}: {value} is not in quotes", f"write {key}: '{value}'")
    if version_scheme.parse_version(versions, value) is None:
        example = version_scheme.VERSION_EXAMPLES[versions]
        raise EntryError(
            f"{where}: {key}: {value} is not a {versions} version", f"for example {example}"
        )
    return value
