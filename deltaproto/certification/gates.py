"""The gates of a catalog entry: which protocols a client accepts, regardless of use.

Derived from the tables that only list a feature, and from those about a protocol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from deltaproto.certification.fixtures.case import ReferenceTable
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.clients.model import ANY_UNKNOWN_FEATURE
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind

Passes = Callable[[str], bool]
"""whether the client accepted the table of that name, with right or wrong results"""


def read_gate(cases: Iterable[ReferenceTable], passes: Passes) -> dict[str, Any]:
    """Return what the client accepts for reading, from the tables that only list a feature."""
    names = _features(cases, passes, readers=True)
    gate = _gate(passes, _BY_READER, names, "protocol.3-7-empty", _UNKNOWN_READERS)
    modes = {m for m in ("name", "id") if passes(f"columnMapping.{m}")}
    if len(modes) == 1 and "legacy" in gate:
        gate["modes"] = {"columnMapping": sorted(modes)}
    return gate


def write_gate(cases: Iterable[ReferenceTable], passes: Passes) -> dict[str, Any]:
    """Return what the client accepts for writing."""
    names = _features(cases, passes, readers=False)
    gate = _gate(passes, _BY_WRITER, names, "protocol.1-7", _UNKNOWN_WRITERS)
    readers = _accepted_versions(passes, _BY_READER)
    if readers != [1, 2] and "legacy" in gate:
        gate["readers"] = readers
    return gate


def accepted_reader_versions(passes: Passes) -> list[int]:
    """Return the legacy reader versions of tables that the client accepted."""
    return _accepted_versions(passes, _BY_READER)


def is_for_readers(feature: str) -> bool:
    """Return True if readers must support the feature."""
    return feature_catalog.feature_record(feature).kind is FeatureKind.READER_WRITER


def _gate(
    passes: Passes,
    pairs: Mapping[int, Sequence[str]],
    names: list[str],
    empty: str,
    unknown: tuple[str, str],
) -> dict[str, Any]:
    """Return what one side checks.

    Args:
        pairs: the tables of each legacy version.
        empty: the table with empty lists.
        unknown: tables with an unknown feature and an unknown version.
    """
    accepts_unknown, accepts_future = map(passes, unknown)
    if accepts_unknown and accepts_future:
        return {"unchecked": "all", "features": names}
    gate: dict[str, Any] = {"legacy": _accepted_versions(passes, pairs)}
    if names or passes(empty):
        gate["features"] = names
    if accepts_unknown:
        gate["unchecked"] = [ANY_UNKNOWN_FEATURE]
    return gate


def _accepted_versions(passes: Passes, pairs: Mapping[int, Sequence[str]]) -> list[int]:
    return [version for version, cases in pairs.items() if any(map(passes, cases))]


_BY_READER = {r: [f"protocol.{r}-{w}" for w in range(1, 7)] for r in (1, 2)}
_BY_WRITER = {w: [f"protocol.{r}-{w}" for r in (1, 2)] for w in range(1, 7)}
_UNKNOWN_READERS = ("protocol.unknown-reader", "protocol.4-7")
_UNKNOWN_WRITERS = ("protocol.unknown-writer", "protocol.1-8")


def _features(cases: Iterable[ReferenceTable], passes: Passes, *, readers: bool) -> list[str]:
    return sorted(
        case.feature
        for case in cases
        if case.state is FeatureEvidence.LISTED
        and case.feature is not None
        and (not readers or is_for_readers(case.feature))
        and passes(case.name)
        and not _requires_drafts(case.feature)
    )


def _requires_drafts(feature: str) -> bool:
    """Return True for a feature whose draft requires others: it was only tested with them."""
    return not feature_catalog.is_registered(feature) and bool(
        feature_catalog.feature_record(feature).required_features
    )
