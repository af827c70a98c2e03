"""Decide whether a gate of a client, reader or writer, accepts a table's protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from deltaproto.clients.model import (
    ANY_UNKNOWN_FEATURE,
    Confidence,
    PathVerdict,
    ProtocolGate,
    Verdict,
)
from deltaproto.clients.requirements import TableRequirements
from deltaproto.counts import any_name
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import FeatureKind, FeatureStatus
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION


def gate_verdicts(
    gate: ProtocolGate,
    table: TableRequirements,
    side: str,
    version: int,
    listed: frozenset[str] | None,
    confidence: Confidence,
) -> Iterator[PathVerdict]:
    """Yield a verdict for each reason why this gate does not accept a table's protocol.

    Args:
        side: `reader` or `writer`.
        version: the table's minimum version of that side.
        listed: the table's features of that side; None for a version without a list.
        confidence: how reliable the facts about the gate are.
    """
    if gate.accepts_nothing:
        yield PathVerdict(Verdict.REFUSED, (), "it does not open tables of other engines")
        return
    top = READER_FEATURES_VERSION if side == "reader" else WRITER_FEATURES_VERSION
    # An odd pair such as (2,4) does not include what one of its numbers implies.
    implied = _implied_features(side, version) & table.protocol.supported
    if gate.unchecked is None:
        names = [*implied, *(listed or ())]
        yield from _unchecked_verdicts(
            [n for n in sorted(names) if not _understands_feature(gate, n)], table
        )
        yield from _mode_verdicts(gate, table)
        return
    if version > top:
        yield PathVerdict(Verdict.REFUSED, (), f"{side} version {version} is not defined")
    elif version < top:
        yield from _legacy_verdicts(gate, table, side, version, implied)
    elif gate.features is None:
        yield PathVerdict(
            _refusal_verdict(confidence),
            tuple(sorted(listed or ())),
            f"it does not support table features, so not {side} version {version}",
        )
    else:
        yield from _listed_verdicts(gate, table, listed or frozenset(), confidence)
    yield from _mode_verdicts(gate, table)


def _legacy_verdicts(
    gate: ProtocolGate, table: TableRequirements, side: str, version: int, implied: Iterable[str]
) -> Iterator[PathVerdict]:
    if version not in gate.legacy:
        lower = _accepted_below(gate, side, version)
        lacking = [name for name in sorted(implied) if name not in lower]
        yield PathVerdict(
            Verdict.REFUSED, tuple(lacking), f"it does not support {side} version {version}"
        )
        return
    conditional = (gate.unused | gate.legacy_unused) & set(implied)
    yield from _used_refusals(sorted(conditional), table)
    yield from _unchecked_verdicts(
        sorted(gate.unchecked & set(implied) if gate.unchecked else ()), table
    )


def _accepted_below(gate: ProtocolGate, side: str, version: int) -> frozenset[str]:
    """Return features supported below `version`, which do not block the client."""
    known = max((number for number in gate.legacy if number < version), default=0)
    return _implied_features(side, known) | (gate.features or frozenset())


@lru_cache(maxsize=64)
def _implied_features(side: str, version: int) -> frozenset[str]:
    """Return the features a legacy version requires of this side alone."""
    if side == "writer":
        return feature_catalog.features_implied_by(READER_FEATURES_VERSION - 1, version)
    every = feature_catalog.features_implied_by(version, WRITER_FEATURES_VERSION - 1)
    return frozenset(
        n for n in every if feature_catalog.feature_record(n).kind is FeatureKind.READER_WRITER
    )


def _listed_verdicts(
    gate: ProtocolGate,
    table: TableRequirements,
    listed: frozenset[str],
    confidence: Confidence,
) -> Iterator[PathVerdict]:
    assert gate.features is not None
    known, unrecognized = _split_unknown(listed)
    unchecked = gate.unchecked or frozenset()
    any_unrecognized = ANY_UNKNOWN_FEATURE in unchecked
    passing = (unchecked & listed) | (frozenset(unrecognized) if any_unrecognized else frozenset())
    handled = gate.features | gate.unused | passing
    groups = [
        (tuple(name for name in names if name not in handled), unknown)
        for names, unknown in ((known, False), (unrecognized, True))
    ]
    for lacking, unknown in sorted(group for group in groups if group[0]):
        yield PathVerdict(
            _refusal_verdict(confidence, unknown_feature=unknown),
            lacking,
            "it does not support {}" + (", an unknown feature" if unknown else ""),
        )
    yield from _used_refusals(sorted(gate.unused & listed), table)
    yield from _unchecked_verdicts(sorted(passing), table)


# A table may list thousands of unknown features, and every path of every client is compared with
# it.
@lru_cache(maxsize=16)
def _split_unknown(listed: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known names, sorted, and the unknown ones."""
    names = sorted(listed)
    unrecognized = frozenset(name for name in names if is_unknown_feature(name))
    return tuple(n for n in names if n not in unrecognized), tuple(
        n for n in names if n in unrecognized
    )


def _understands_feature(gate: ProtocolGate, name: str) -> bool:
    return gate.features is not None and name in gate.features


def _refusal_verdict(confidence: Confidence, *, unknown_feature: bool = False) -> Verdict:
    # A gate assembled from documentation proves nothing about unknown names.
    sure = (Confidence.MEASURED, Confidence.SOURCE)
    known = confidence in sure if unknown_feature else confidence is not Confidence.INFERRED
    return Verdict.REFUSED if known else Verdict.UNKNOWN


def _used_refusals(names: Iterable[str], table: TableRequirements) -> Iterator[PathVerdict]:
    for name in names:
        uses = table.uses(name)
        if uses:
            yield PathVerdict(Verdict.REFUSED, (name,), "it supports {} only while unused")
        elif uses is None:
            yield PathVerdict(
                Verdict.UNKNOWN,
                (name,),
                "it supports {} only while unused, and it is unknown whether it is used",
            )


def _unchecked_verdicts(names: Iterable[str], table: TableRequirements) -> Iterator[PathVerdict]:
    if used := tuple(name for name in names if table.uses(name) is not False):
        yield PathVerdict(Verdict.WRONG, used, "it accepts {} without supporting it")


def _mode_verdicts(gate: ProtocolGate, table: TableRequirements) -> Iterator[PathVerdict]:
    for feature, mode in table.modes:
        known = gate.modes.get(feature)
        if known is not None and mode != "none" and mode not in known:
            yield PathVerdict(
                Verdict.REFUSED,
                (feature,),
                f"it supports {feature} only by {any_name(sorted(known)) or 'no mode'}",
            )


def is_unknown_feature(name: str) -> bool:
    """Return True for an unknown feature name."""
    known = feature_catalog.find_feature(name)
    return known is None or known.status is FeatureStatus.UNKNOWN
