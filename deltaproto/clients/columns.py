"""The whole catalogue against every feature: a column for each client, version and path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.clients import scheme
from deltaproto.clients.candidate import Reference, beginning, latest_version, order, referred
from deltaproto.clients.capability import Client, Confidence, Path
from deltaproto.clients.catalogue import Catalogue
from deltaproto.clients.matrix import Answer, Row, matrix
from deltaproto.protocol import catalogue as features
from deltaproto.protocol.feature import Status


class Column(NamedTuple):
    """One way through one version of a client."""

    reference: Reference
    path: Path
    measured: bool
    """its answers were measured, and not read somewhere"""
    rows: dict[str, Row]
    """by feature"""


def newest_columns(catalogue: Catalogue) -> list[Column]:
    """Every client in the newest version that is known, by name."""
    return [
        column for client in catalogue.clients() for column in _columns(client, _newest(client))
    ]


def columns_of(client: Client) -> list[Column]:
    """One client in every version from which on something is new, and in every measured one."""
    found: dict[scheme.Version | None, str | None] = {}
    for each in (*client.ranges, *client.measured):
        start = each.start
        found.setdefault(None if start is None else scheme.parse(client.versions, start), start)
    ordered = sorted(
        found.items(), key=lambda item: (item[0] is not None, item[0] or scheme.Version((), True))
    )
    return [column for _, start in ordered for column in _columns(client, start)]


def feature_names(columns: list[Column]) -> list[str]:
    """The features that a matrix has rows for; those that were given up come last."""
    known = [feature.name for feature in features.all_features()]
    late = {f.name for f in features.all_features() if f.status in (Status.RETIRED, Status.TESTING)}
    others = sorted({name for column in columns for name in column.rows} - set(known))
    return [
        *(name for name in known if name not in late),
        *(name for name in known if name in late),
        *others,
    ]


def answer(column: Column, feature: str, *, read: bool) -> Answer | None:
    """What becomes of a table with the feature; None for a path that does not do it at all."""
    row = column.rows.get(feature)
    if row is None:
        return None
    return row.read if read else row.write


def _columns(client: Client, start: str | None) -> Iterator[Column]:
    if start is None:
        candidate = beginning((client.ranges or client.measured)[0], client)
    else:
        candidate = referred(Reference(client.id, None, start), client)
    if candidate.range is None:
        return
    measured = {path.name for each in client.measured if each.start == start for path in each.paths}
    below = candidate.documented or candidate.range
    for path in candidate.paths:
        named = Reference(client.id, path.name, start)
        known = path.name in measured or below.confidence is Confidence.MEASURED
        yield Column(named, path, known, {row.feature: row for row in matrix(path)})


def _newest(client: Client) -> str | None:
    known = [latest_version(each, client) for each in client.ranges]
    known += [each.start for each in client.measured]
    versions = [text for text in known if text is not None]
    if client.versions == "none" or not versions:
        return None
    return max(versions, key=lambda text: order(client, text))
