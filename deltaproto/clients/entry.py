"""Parse catalog entries from plain mappings, as in YAML files and policies: clients and ranges."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from deltaproto.clients import members, requirements, version_scheme
from deltaproto.clients.members import EntryError
from deltaproto.clients.model import (
    Access,
    Client,
    Confidence,
    Evidence,
    Handling,
    Range,
    Verdict,
    VersionedHazards,
)
from deltaproto.clients.path_entry import (
    parse_bound,
    parse_path,
    parse_versioned_hazards,
)
from deltaproto.clients.resolve import hazards_at, range_bounds
from deltaproto.errors import quote_short

_CLIENT = {"id", "name", "aliases", "versions", "ranges", "measured", "decodes_paths", "hazards"}
_PATH = {"read", "write", "access", "known_bad", "hazards"}
_RANGE = _PATH | {
    "from",
    "before",
    "path",
    "paths",
    "newest",
    "whole",
    "partial",
    "catalog_only",
    "confidence",
    "evidence",
    "note",
}
_MEASURED = (_RANGE - {"from", "before", "newest"}) | {"version"}
_DECODED = VersionedHazards(
    None,
    None,
    dict.fromkeys(
        [(requirements.PERCENT_IN_PATH, access) for access in Access],
        Handling(
            Verdict.UNKNOWN,
            "it treats a percent sign in a path as an escape, and looks for another table",
        ),
    ),
)
_EVIDENCE = {"kind", "reference", "date"}
EVIDENCE_KINDS = ("measured", "source", "documentation", "inference")


def parse_client(plain: Mapping[str, Any], where: str) -> Client:
    """Parse a client; `where` is the prefix of error messages.

    Raises:
        EntryError: with the invalid member.
    """
    members.require_known_keys(plain, _CLIENT, where)
    versions = members.read_text(plain, "versions", where, "none")
    if versions not in version_scheme.SCHEMES:
        raise EntryError(
            f"{where}: versions: {versions}", f"use one of {', '.join(version_scheme.SCHEMES)}"
        )
    name = _parse_name(members.read_text(plain, "id", where), f"{where}: id")
    ranges = [
        _parse_range(item, versions, f"{where}: ranges[{number}]")
        for number, item in enumerate(members.read_items(plain, "ranges", where, []))
    ]
    measured = [
        _parse_measured(item, versions, f"{where}: measured[{number}]")
        for number, item in enumerate(members.read_items(plain, "measured", where, []))
    ]
    if not ranges and not measured:
        raise EntryError(
            f"{where}: ranges are missing", "one range without from and before is enough"
        )
    _require_ordered(ranges, versions, where)
    hazards = parse_versioned_hazards(plain, versions, where)
    every = (_DECODED, *hazards) if members.read_flag(plain, "decodes_paths", where) else hazards
    ranges = [_with_hazards(each, every, versions) for each in ranges]
    measured = [_with_hazards(each, every, versions) for each in measured]
    return Client(
        id=name,
        name=members.read_text(plain, "name", where, name),
        aliases=tuple(
            _parse_name(alias, f"{where}: aliases")
            for alias in members.read_names(plain, "aliases", where)
        ),
        versions=versions,
        ranges=tuple(ranges),
        measured=tuple(measured),
        hazards=hazards,
    )


def _with_hazards(each: Range, hazards: tuple[VersionedHazards, ...], versions: str) -> Range:
    """Add a client's hazards to the paths of a range, whose own take precedence."""
    start, _ = range_bounds(each, versions)
    paths = (
        path._replace(hazards={**hazards_at(hazards, path.name, start, versions), **path.hazards})
        for path in each.paths
    )
    return each._replace(paths=tuple(paths))


def _parse_range(plain: Any, versions: str, where: str) -> Range:
    members.require_known_keys(plain, _RANGE, where)
    named = members.read_text(plain, "path", where, "")
    paths = [parse_path(plain, where, _parse_name(named, f"{where}: path") if named else None)]
    for number, item in enumerate(members.read_items(plain, "paths", where, [])):
        place = f"{where}: paths[{number}]"
        members.require_known_keys(item, _PATH | {"name"}, place)
        paths.append(
            parse_path(item, place, _parse_name(members.read_text(item, "name", place), place))
        )
    known = [path.name for path in paths]
    if len(known) > 1 and known[0] is None:
        raise EntryError(
            f"{where}: with several paths, the first one needs a name",
            "add a name such as path: engine",
        )
    if len(set(known)) < len(known):
        raise EntryError(f"{where}: two paths have the same name", f"paths: {known}")
    return Range(
        start=parse_bound(plain, "from", versions, where),
        end=parse_bound(plain, "before", versions, where),
        paths=tuple(paths),
        confidence=members.read_choice(
            plain, "confidence", Confidence, where, Confidence.DOCUMENTED
        ),
        evidence=tuple(
            _parse_evidence(item, f"{where}: evidence[{number}]")
            for number, item in enumerate(members.read_items(plain, "evidence", where, []))
        ),
        note=members.read_text(plain, "note", where, ""),
        whole=members.read_flag(plain, "whole", where),
        newest=parse_bound(plain, "newest", versions, where),
        partial=members.read_flag(plain, "partial", where),
        catalog_only=frozenset(members.read_features(plain, "catalog_only", where)),
    )


def _parse_measured(plain: Any, versions: str, where: str) -> Range:
    members.require_known_keys(plain, _MEASURED, where)
    if versions == "none":
        version = None
    else:
        version = members.read_text(plain, "version", where)
        if version_scheme.parse_version(versions, version) is None:
            example = version_scheme.VERSION_EXAMPLES[versions]
            raise EntryError(
                f"{where}: {version} is not a {versions} version", f"for example {example}"
            )
    rest = {key: value for key, value in plain.items() if key != "version"}
    each = _parse_range({"confidence": Confidence.MEASURED.value, **rest}, versions, where)
    return each._replace(start=version, exact=True)


def _parse_evidence(plain: Any, where: str) -> Evidence:
    members.require_known_keys(plain, _EVIDENCE, where)
    kind = members.read_text(plain, "kind", where)
    if kind not in EVIDENCE_KINDS:
        raise EntryError(f"{where}: kind: {kind}", f"use one of {', '.join(EVIDENCE_KINDS)}")
    date = plain.get("date")
    if not isinstance(date, str | datetime.date | None):
        raise EntryError(f"{where}: date: {date}", "write YYYY-MM-DD")
    return Evidence(
        kind, members.read_text(plain, "reference", where), None if date is None else str(date)
    )


def _parse_name(text: str, where: str) -> str:
    """Check that a name can be part of ID/PATH@VERSION."""
    if not text.strip() or "@" in text or "/" in text:
        problem = f"{where}: {quote_short(text)} is not a valid name"
        raise EntryError(problem, "use a nonempty name without @ and /")
    return text.strip()


def _require_ordered(ranges: list[Range], versions: str, where: str) -> None:
    known = [range_bounds(each, versions) for each in ranges]
    for number, (start, end) in enumerate(known):
        if start and end and start >= end:
            raise EntryError(
                f"{where}: ranges[{number}] is empty", "from is inclusive, before is exclusive"
            )
        newest = version_scheme.parse_version(versions, ranges[number].newest or "")
        if newest and ((start and newest < start) or (end and newest >= end)):
            raise EntryError(
                f"{where}: ranges[{number}]: newest: {ranges[number].newest} is outside the range",
                "use the newest known release between from and before",
            )
        if number == 0:
            continue
        before = known[number - 1][1]
        if before is None or start is None or start < before:
            raise EntryError(
                f"{where}: ranges[{number}] overlaps the one before it, or is out of order",
                "put the oldest versions first; each range begins after the previous one ends",
            )
