"""Resolve a client reference to what is known about that version.

Measurements of exactly that version take precedence over its range.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients import version_scheme
from deltaproto.clients.model import (
    READ_ACCESSES,
    Access,
    Client,
    Handling,
    Path,
    Range,
    Verdict,
    VersionedHazards,
    concerns_path,
)
from deltaproto.errors import UsageError, quote_short


class ClientReference(NamedTuple):
    """A reference to a client: `trino@476`, `deltalake/pyarrow@1.6.3`, `bigquery`."""

    id: str
    path: str | None
    version: str | None

    def __str__(self) -> str:
        path = f"/{self.path}" if self.path else ""
        version = f"@{self.version}" if self.version else ""
        return f"{self.id}{path}{version}"


class ClientAtVersion(NamedTuple):
    """A client at a version, with what is known about it."""

    reference: ClientReference
    client: Client
    range: Range | None
    """None: this version is unknown"""
    paths: tuple[Path, ...]
    """the referenced paths: all of the range's, unless one is named"""
    unknown: str = ""
    """why the version is unknown"""
    documented: Range | None = None
    """the version's range, if a measurement takes precedence over it"""


def parse_reference(text: str) -> ClientReference:
    """Split a client reference into its parts.

    Raises:
        UsageError: if the form is invalid.
    """
    client, at, version = (part.strip() for part in text.partition("@"))
    name, slash, path = (part.strip() for part in client.partition("/"))
    if not name or (slash and not path) or "/" in path or (at and not version):
        hint = "use ID@VERSION, for example trino@476"
        raise UsageError(f"{quote_short(text)} is not a client", hint)
    return ClientReference(name, path or None, version or None)


def resolve_reference(
    reference: ClientReference, client: Client, *, near: Range | None = None
) -> ClientAtVersion:
    """Return the candidate for a client at the referenced version.

    Args:
        near: the range to try first.

    Raises:
        UsageError: for an unknown path, or an invalid or missing version.
    """
    reference = reference._replace(id=client.id)
    if client.versions == "none":
        if reference.version is not None:
            raise UsageError(
                f"{client.id} has no versions: {reference}", f"write {client.id} without a version"
            )
        return _combine_measured(
            reference, client, next(iter(client.ranges), None), client.measured
        )
    if reference.version is None:
        example = _example(client)
        raise UsageError(f"{client.id} requires a version", f"for example {client.id}@{example}")
    version = version_scheme.parse_version(client.versions, reference.version)
    if version is None:
        raise UsageError(
            f"{reference.version} is not a version of {client.id}",
            f"for example {client.id}@{_example(client)}",
        )
    tried = client.ranges if near is None else (near, *client.ranges)
    ranges = (each for each in tried if _contains_version(each, client.versions, version))
    measured = [
        one
        for one in client.measured
        if version_scheme.parse_version(client.versions, one.start or "") == version
    ]
    each = next(ranges, None)
    if each is None and not measured:
        return ClientAtVersion(
            reference, client, None, (), _unknown_version_reason(client, reference, version)
        )
    here = None if each is None else _with_hazards_of(each, client, version)
    found = _combine_measured(reference, client, here, measured)
    return found._replace(documented=each) if measured else found._replace(range=each)


def _with_hazards_of(each: Range, client: Client, version: version_scheme.Version) -> Range:
    """Replace the hazards of the range's first version with those of this version."""
    first = version_scheme.parse_version(client.versions, each.start or "")
    if first == version:
        return each
    paths = []
    for path in each.paths:
        at_first, now = (
            hazards_at(client.hazards, path.name, known, client.versions)
            for known in (first, version)
        )
        if at_first == now:
            paths.append(path)
            continue
        own = {key: value for key, value in path.hazards.items() if at_first.get(key) != value}
        paths.append(path._replace(hazards={**now, **own}))
    return each._replace(paths=tuple(paths))


@cache_by_identity(1024)
def first_version_of(each: Range, client: Client) -> ClientAtVersion:
    """Return the first version of a range, with measurements of that release."""
    reference = ClientReference(client.id, None, each.start)
    if each.start is None and client.versions != "none":
        return ClientAtVersion(reference, client, each, each.paths)
    return resolve_reference(reference, client, near=each)


@cache_by_identity(1024)
def newest_version_of(each: Range, client: Client) -> ClientAtVersion:
    """Return the newest known version of a range, with measurements of it."""
    version = latest_version(each, client)
    if version is None:
        return first_version_of(each, client)
    return resolve_reference(ClientReference(client.id, None, version), client, near=each)


def latest_version(each: Range, client: Client) -> str | None:
    """Return the newest known (released or measured) version of a range, or None."""
    inside = [
        one.start
        for one in client.measured
        if one.start is not None
        and (version := version_scheme.parse_version(client.versions, one.start)) is not None
        and _contains_version(each, client.versions, version)
    ]
    known = [text for text in (*inside, each.newest, each.start) if text is not None]
    return max(known, key=lambda text: version_sort_key(client, text), default=None)


def _example(client: Client) -> str:
    return latest_version(client.newest, client) or version_scheme.VERSION_EXAMPLES[client.versions]


def version_sort_key(client: Client, text: str) -> version_scheme.Version:
    """Convert a catalog version to a sortable value."""
    parsed = version_scheme.parse_version(client.versions, text)
    assert parsed is not None
    return parsed


def _combine_measured(
    reference: ClientReference, client: Client, each: Range | None, measured: Sequence[Range]
) -> ClientAtVersion:
    """Return a known version; measurements take precedence over its range."""
    found = each
    for one in measured:
        found = one if found is None else _merge_paths(one, found)
    assert found is not None
    candidate = _select_path(reference, client, found)
    return candidate._replace(documented=each) if measured else candidate


def _merge_paths(measured: Range, below: Range) -> Range:
    """Return the paths of `measured`, and the unmeasured ones of `below`."""
    found = {path.name: path for path in measured.paths}
    # Split the unnamed path if measurements distinguish several.
    paths = [
        _merge_path(found.pop(path.name), path) if path.name in found else path
        for path in below.paths
        if path.name is not None or None in found
    ]
    return measured._replace(
        start=below.start,
        end=below.end,
        exact=below.exact,
        paths=(*paths, *found.values()),
        whole=below.whole,
        newest=below.newest,
        catalog_only=below.catalog_only,
        evidence=(*measured.evidence, *below.evidence),
        note=measured.note or below.note,
    )


def _merge_path(measured: Path, below: Path) -> Path:
    """Combine a measured path with the documented side that was not measured.

    A statement that worked when it was measured does not refute that another one fails.
    """
    sides = {Access.READ: measured.read, Access.APPEND: measured.write}
    missing = {side for side, gate in sides.items() if gate is None}
    unmeasured = frozenset(
        access
        for access in below.access
        if (Access.READ if access in READ_ACCESSES else Access.APPEND) in missing
    )
    kept = tuple(
        bad._replace(access=bad.access & unmeasured)
        for bad in below.known_bad
        if bad.access & unmeasured
    )
    failing = {
        key: handling
        for key, handling in below.hazards.items()
        if handling.verdict in (Verdict.REFUSED, Verdict.WRONG)
        and key in measured.hazards
        and measured.hazards[key].verdict is Verdict.OK
    }
    return measured._replace(
        read=measured.read or below.read,
        write=measured.write or below.write,
        access=measured.access | below.access,
        known_bad=(*measured.known_bad, *kept),
        hazards={**below.hazards, **measured.hazards, **failing},
    )


def _select_path(reference: ClientReference, client: Client, each: Range) -> ClientAtVersion:
    if reference.path is None:
        return ClientAtVersion(reference, client, each, each.paths)
    named = {path.name: path for path in each.paths if path.name is not None}
    if reference.path not in named:
        known = ", ".join(named) or "this version has only one; omit the path"
        raise UsageError(f"{client.id} has no path {reference.path}", f"paths: {known}")
    return ClientAtVersion(reference, client, each, (named[reference.path],))


def _contains_version(each: Range, versions: str, version: version_scheme.Version) -> bool:
    start, end = range_bounds(each, versions)
    if versions == "runtime" and not version.released:
        # A Beta gains features gradually: none of its updates was checked.
        return False
    # A pre-release of the next range's first version belongs to no range.
    early = end is not None and version.numbers == end.numbers
    return (start is None or start <= version) and (end is None or version < end) and not early


def _unknown_version_reason(
    client: Client, reference: ClientReference, version: version_scheme.Version
) -> str:
    # Adjacent ranges are merged; gaps are unknown.
    spans: list[tuple[str | None, str | None]] = []
    for each in client.ranges:
        end = spans[-1][1] if spans else None
        if end and each.start and _is_same_version(client.versions, end, each.start):
            spans[-1] = (spans[-1][0], each.end)
        else:
            spans.append((each.start, each.end))
    if not spans:
        versions = ", ".join(each.start or "" for each in client.measured)
        return f"{reference.version} of {client.id} was not measured; measured: {versions}"
    known = ", ".join(
        " ".join(part for part in (a and f"from {a}", b and f"up to before {b}") if part)
        for a, b in spans
    )
    about = f"{reference.version} is not a known version of {client.id} (known: {known})"
    return about if version.released else f"{about}: it is a pre-release"


def _is_same_version(versions: str, one: str, other: str) -> bool:
    return version_scheme.parse_version(versions, one) == version_scheme.parse_version(
        versions, other
    )


def hazards_at(
    hazards: Iterable[VersionedHazards],
    path: str | None,
    version: version_scheme.Version | None,
    versions: str,
) -> dict[tuple[str, Access], Handling]:
    """Return a client's hazards that concern a path in this version.

    Args:
        version: None: the first of all versions.
        versions: the client's scheme.
    """
    found: dict[tuple[str, Access], Handling] = {}
    for group in hazards:
        first, end = _parse_bound(group.start, versions), _parse_bound(group.end, versions)
        if version is None:
            applies = first is None
        else:
            applies = (first is None or first <= version) and (end is None or version < end)
        if applies and concerns_path(group.path, path):
            found |= group.hazards
    return found


def range_bounds(
    each: Range, versions: str
) -> tuple[version_scheme.Version | None, version_scheme.Version | None]:
    """Return the first version of a range and the first after it; None if open."""
    return _parse_bound(each.start, versions), _parse_bound(each.end, versions)


@cache
def _parse_bound(text: str | None, versions: str) -> version_scheme.Version | None:
    return None if text is None else version_scheme.parse_version(versions, text)
