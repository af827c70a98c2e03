"""Catalogue entries from plain mappings, as YAML files and policies hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.clients import members, scheme
from deltaproto.clients.capability import (
    Access,
    Client,
    Confidence,
    Evidence,
    Gate,
    KnownBad,
    Path,
    Range,
)
from deltaproto.clients.members import EntryError

_CLIENT = {"id", "name", "aliases", "versions", "ranges"}
_PATH = {"read", "write", "access", "known_bad"}
_RANGE = _PATH | {
    "from",
    "before",
    "path",
    "paths",
    "whole",
    "catalog_only",
    "confidence",
    "evidence",
    "note",
}
_GATE = {"legacy", "features", "unused", "legacy_unused", "unchecked", "modes"}
_EVIDENCE = {"kind", "reference", "date"}
_KNOWN_BAD = {"features", "access", "what", "reference", "fails"}
KINDS = ("measured", "source", "documentation", "inference")


def parse_client(plain: Mapping[str, Any], where: str) -> Client:
    """The client that `plain` declares; `where` begins the message of an error.

    Raises:
        EntryError: naming the member that is wrong.
    """
    members.known_keys(plain, _CLIENT, where)
    versions = members.text(plain, "versions", where, "none")
    if versions not in scheme.SCHEMES:
        raise EntryError(f"{where}: versions: {versions}", f"one of {', '.join(scheme.SCHEMES)}")
    name = members.text(plain, "id", where)
    ranges = [
        _range(item, versions, f"{where}: ranges[{number}]")
        for number, item in enumerate(members.items(plain, "ranges", where, []))
    ]
    if not ranges:
        raise EntryError(
            f"{where}: it has no ranges", "one range without from and before is enough"
        )
    _ordered(ranges, versions, where)
    return Client(
        id=name,
        name=members.text(plain, "name", where, name),
        aliases=members.names(plain, "aliases", where),
        versions=versions,
        ranges=tuple(ranges),
    )


def _range(plain: Any, versions: str, where: str) -> Range:
    members.known_keys(plain, _RANGE, where)
    own = _path(plain, where, members.text(plain, "path", where, "") or None)
    paths = [own]
    for number, item in enumerate(members.items(plain, "paths", where, [])):
        place = f"{where}: paths[{number}]"
        members.known_keys(item, _PATH | {"name"}, place)
        paths.append(_path(item, place, members.text(item, "name", place)))
    if len(paths) > 1 and own.name is None:
        raise EntryError(f"{where}: with several paths, the first one needs a name", "path: engine")
    return Range(
        start=_version(plain, "from", versions, where),
        end=_version(plain, "before", versions, where),
        paths=tuple(paths),
        confidence=members.choice(plain, "confidence", Confidence, where, Confidence.DOCUMENTED),
        evidence=tuple(
            _evidence(item, f"{where}: evidence[{number}]")
            for number, item in enumerate(members.items(plain, "evidence", where, []))
        ),
        note=members.text(plain, "note", where, ""),
        whole=members.flag(plain, "whole", where),
        catalog_only=frozenset(members.names(plain, "catalog_only", where)),
    )


def _path(plain: Mapping[str, Any], where: str, name: str | None) -> Path:
    read, write = (
        _gate(plain[side], f"{where}: {side}") if plain.get(side) is not None else None
        for side in ("read", "write")
    )
    if read is None and write is None:
        raise EntryError(f"{where}: neither read nor write", "give at least one gate")
    default = [Access.READ] if write is None else [Access.READ, Access.APPEND]
    given = [
        members.member(Access, text, f"{where}: access")
        for text in members.names(plain, "access", where)
    ]
    return Path(
        name=name,
        read=read,
        write=write,
        access=frozenset(given or default),
        known_bad=tuple(
            _known_bad(item, f"{where}: known_bad[{number}]")
            for number, item in enumerate(members.items(plain, "known_bad", where, []))
        ),
    )


def _gate(plain: Any, where: str) -> Gate:
    members.known_keys(plain, _GATE, where)
    legacy = members.items(plain, "legacy", where, [])
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in legacy):
        raise EntryError(f"{where}: legacy takes version numbers", "for example [1, 2]")
    unchecked = plain.get("unchecked")
    modes = plain.get("modes") or {}
    if not isinstance(modes, Mapping):
        raise EntryError(f"{where}: modes takes a mapping", "for example {columnMapping: [name]}")
    return Gate(
        legacy=frozenset(legacy),
        features=frozenset(members.names(plain, "features", where))
        if "features" in plain
        else None,
        unused=frozenset(members.names(plain, "unused", where)),
        legacy_unused=frozenset(members.names(plain, "legacy_unused", where)),
        unchecked=None
        if unchecked == "all"
        else frozenset(members.names(plain, "unchecked", where)),
        modes={
            str(feature): frozenset(members.names(modes, feature, f"{where}: modes"))
            for feature in modes
        },
    )


def _known_bad(plain: Any, where: str) -> KnownBad:
    members.known_keys(plain, _KNOWN_BAD, where)
    access = [
        members.member(Access, text, f"{where}: access")
        for text in members.names(plain, "access", where)
    ]
    return KnownBad(
        features=frozenset(members.names(plain, "features", where)),
        access=frozenset(access),
        what=members.text(plain, "what", where),
        reference=members.text(plain, "reference", where, ""),
        fails=members.flag(plain, "fails", where),
    )


def _evidence(plain: Any, where: str) -> Evidence:
    members.known_keys(plain, _EVIDENCE, where)
    kind = members.text(plain, "kind", where)
    if kind not in KINDS:
        raise EntryError(f"{where}: kind: {kind}", f"one of {', '.join(KINDS)}")
    date = plain.get("date")
    return Evidence(
        kind, members.text(plain, "reference", where), None if date is None else str(date)
    )


def _ordered(ranges: list[Range], versions: str, where: str) -> None:
    known = [_bounds(each, versions) for each in ranges]
    for number, (start, end) in enumerate(known):
        if start and end and start >= end:
            raise EntryError(f"{where}: ranges[{number}] is empty", "from is inclusive, before not")
        if number == 0:
            continue
        before = known[number - 1][1]
        if before is None or start is None or start < before:
            raise EntryError(
                f"{where}: ranges[{number}] overlaps the one before it, or is out of order",
                "the oldest versions first, each range begins where the last one ended or later",
            )


def _bounds(each: Range, versions: str) -> tuple[scheme.Version | None, scheme.Version | None]:
    start, end = (
        None if text is None else scheme.parse(versions, text) for text in (each.start, each.end)
    )
    return start, end


def _version(plain: Mapping[str, Any], key: str, versions: str, where: str) -> str | None:
    value = plain.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise EntryError(f"{where}: {key}: {value} is not in quotes", f"write {key}: '{value}'")
    if scheme.parse(versions, value) is None:
        example = scheme.EXAMPLES.get(versions, "no version at all")
        raise EntryError(f"{where}: {key}: {value} is no {versions} version", f"such as {example}")
    return value
