"""Support matrix of client versions and features, independent of tables."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import (
    ANY_TABLE,
    Access,
    AppliesTo,
    Client,
    Confidence,
    Path,
    ProtocolGate,
)
from deltaproto.clients.resolve import (
    ClientReference,
    first_version_of,
    latest_version,
    resolve_reference,
    version_sort_key,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol import feature_catalog as features
from deltaproto.protocol.feature import Feature, FeatureKind, FeatureStatus


class MatrixColumn(NamedTuple):
    """One path of one version of a client."""

    reference: ClientReference
    path: Path
    measured: bool
    """True if the results were measured, not read from a source"""
    rows: dict[str, FeatureRow]
    """row by feature"""


def newest_columns(catalog: ClientCatalog) -> list[MatrixColumn]:
    """Return the newest known version of every client, sorted by name."""
    return [
        column
        for client in catalog.clients()
        for column in _version_columns(client, _newest_version(client))
    ]


def client_columns(client: Client) -> list[MatrixColumn]:
    """Return the columns of every version that changes a client's support or was measured."""
    found: dict[version_scheme.Version | None, str | None] = {}
    for each in (*client.ranges, *client.measured):
        start = each.start
        found.setdefault(
            None if start is None else version_scheme.parse_version(client.versions, start), start
        )
    ordered = sorted(
        found.items(),
        key=lambda item: (item[0] is not None, item[0] or version_scheme.Version((), True)),
    )
    return [column for _, start in ordered for column in _version_columns(client, start)]


def feature_names(columns: list[MatrixColumn]) -> list[str]:
    """Return the features of the matrix rows; abandoned features come last."""
    known = [feature.name for feature in features.all_features()]
    unknown = {
        f.name
        for f in features.all_features()
        if f.status in (FeatureStatus.RETIRED, FeatureStatus.TESTING)
    }
    others = sorted({name for column in columns for name in column.rows} - set(known))
    return [
        *(name for name in known if name not in unknown),
        *(name for name in known if name in unknown),
        *others,
    ]


def feature_answer(column: MatrixColumn, feature: str, *, read: bool) -> FeatureAnswer | None:
    """Return the support of a feature; None if the path lacks this access."""
    row = column.rows.get(feature)
    if row is None:
        return None
    return row.read if read else row.write


def _version_columns(client: Client, start: str | None) -> Iterator[MatrixColumn]:
    if start is None:
        candidate = first_version_of((client.ranges or client.measured)[0], client)
    else:
        candidate = resolve_reference(ClientReference(client.id, None, start), client)
    if candidate.range is None:
        return
    measured = {path.name for each in client.measured if each.start == start for path in each.paths}
    below = candidate.documented or candidate.range
    for path in candidate.paths:
        named = ClientReference(client.id, path.name, start)
        known = path.name in measured or below.confidence is Confidence.MEASURED
        yield MatrixColumn(named, path, known, {row.feature: row for row in feature_rows(path)})


def _newest_version(client: Client) -> str | None:
    known = [latest_version(each, client) for each in client.ranges]
    known += [each.start for each in client.measured]
    versions = [text for text in known if text is not None]
    if client.versions == "none" or not versions:
        return None
    return max(versions, key=lambda text: version_sort_key(client, text))


class FeatureAnswer(StrEnum):
    """Support for a table that lists the feature; the most severe result decides."""

    YES = "yes"
    UNKNOWN = "unknown"
    """two sources disagree"""
    UNCHECKED = "not checked"
    WRONG = "wrong"
    """accepted, but known to be handled incorrectly"""
    UNUSED = "only unused"
    NO = "no"


class FeatureRow(NamedTuple):
    """Support of one feature. `write` is None for a read-only path."""

    feature: str
    kind: FeatureKind
    read: FeatureAnswer | None
    write: FeatureAnswer | None


def feature_rows(path: Path) -> tuple[FeatureRow, ...]:
    """Return a row for every catalog feature and those known only to this client.

    Reading a table with a writer feature is a yes: readers can ignore it. Writing needs both gates.
    """
    return tuple(
        FeatureRow(
            name,
            feature.kind,
            _apply_known_bad(path, name, Access.READ, _read_answer(path, feature)),
            _apply_known_bad(path, name, Access.APPEND, _write_answer(path, feature)),
        )
        for name, feature in sorted(_path_features(path))
    )


def _apply_known_bad(
    path: Path, name: str, access: Access, answer: FeatureAnswer | None
) -> FeatureAnswer | None:
    """Return the gate's result, adjusted by known defects."""
    if answer is None:
        return None
    found = [answer]
    for bad in path.known_bad:
        if bad.features & {name, ANY_TABLE} and access in bad.access and not bad.pairs:
            if bad.disputed:
                found.append(FeatureAnswer.UNKNOWN)
                continue
            if bad.ungated and not bad.fails:
                return FeatureAnswer.WRONG
            if not bad.fails:
                found.append(FeatureAnswer.WRONG)
            else:
                found.append(
                    FeatureAnswer.NO if bad.where is AppliesTo.SUPPORTED else FeatureAnswer.UNUSED
                )
    return max(found, key=list(FeatureAnswer).index)


def _path_features(path: Path) -> Iterator[tuple[str, Feature]]:
    known = {feature.name for feature in feature_catalog.all_features()}
    for gate in (path.read, path.write):
        if gate is not None:
            known |= (gate.features or frozenset()) | gate.unused | (gate.unchecked or frozenset())
    reader = (path.read.features or frozenset()) if path.read else frozenset()
    for name in known:
        yield name, feature_catalog.feature_record(name, in_reader_list=name in reader)


def _read_answer(path: Path, feature: Feature) -> FeatureAnswer | None:
    if path.read is None:
        return None
    if feature.kind is FeatureKind.WRITER:
        return FeatureAnswer.YES
    return _gate_answer(path.read, feature.name)


def _write_answer(path: Path, feature: Feature) -> FeatureAnswer | None:
    if path.write is None:
        return None
    write = _gate_answer(path.write, feature.name)
    read = _read_answer(path, feature) or FeatureAnswer.YES
    return max(read, write, key=list(FeatureAnswer).index)


def _gate_answer(gate: ProtocolGate, name: str) -> FeatureAnswer:
    understood = gate.features is not None and name in gate.features
    if gate.unchecked is None:
        return FeatureAnswer.YES if understood else FeatureAnswer.UNCHECKED
    if gate.features is None:
        return FeatureAnswer.NO
    if name in gate.unused:
        return FeatureAnswer.UNUSED
    if name in gate.unchecked:
        return FeatureAnswer.UNCHECKED
    return FeatureAnswer.YES if understood else FeatureAnswer.NO
