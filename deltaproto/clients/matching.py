"""Decide whether a client accepts a table, gate by gate, and which feature decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from deltaproto.clients.model import (
    ANY_TABLE,
    ANY_UNKNOWN_FEATURE,
    READ_ACCESSES,
    Access,
    AppliesTo,
    Confidence,
    KnownBad,
    Path,
    PathVerdict,
    ProtocolGate,
    Range,
    Verdict,
)
from deltaproto.clients.requirements import (
    APPEND_ONLY,
    EXPRESSION_PREFIX,
    HARMLESS_UNLESS_KNOWN,
    HAZARDS_BY_FEATURE,
    UNNAMED_ROW_IDS,
    TableRequirements,
    describe_hazard,
)
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
    if gate.accepts_nothing:
        yield PathVerdict(Verdict.REFUSED, (), "it does not open tables of other engines")
        return
    top = READER_FEATURES_VERSION if side == "reader" else WRITER_FEATURES_VERSION
    # An odd pair such as (2,4) does not include what one of its numbers implies.
    implied = _implied_features(side, version) & table.protocol.supported
    if gate.unchecked is None:
        names = [*implied, *(listed or ())]
        yield from _unchecked_verdicts(
            [n for n in sorted(names) if not understands_feature(gate, n)], table
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


# A table may list thousands of unknown features, and each path of each client is held against it.
@lru_cache(maxsize=16)
def _split_unknown(listed: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the known names, sorted, and the unknown ones."""
    names = sorted(listed)
    unrecognized = frozenset(name for name in names if is_unknown_feature(name))
    return tuple(n for n in names if n not in unrecognized), tuple(
        n for n in names if n in unrecognized
    )


def understands_feature(gate: ProtocolGate, name: str) -> bool:
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
                f"it supports {feature} only by {' or '.join(sorted(known)) or 'no mode'}",
            )


def is_unknown_feature(name: str) -> bool:
    """Return True for an unknown feature name."""
    known = feature_catalog.find_feature(name)
    return known is None or known.status is FeatureStatus.UNKNOWN


__all__ = ["NOT_OFFERED", "PathVerdict", "Verdict", "judge_access"]

_OK = PathVerdict(Verdict.OK)
_MOST_NAMES = 40
"""names in a reason; no table of a known writer has more features"""
NOT_OFFERED = "it offers no "
_APPEND_ONLY = (
    "delta.appendOnly is true: rows may be added, and an UPDATE, DELETE or MERGE that changes or "
    "removes rows fails"
)


def judge_access(each: Range, path: Path, table: TableRequirements, access: Access) -> PathVerdict:
    """Evaluate an access by this client path to a table with these requirements."""
    if not path.offers(access):
        return PathVerdict(Verdict.REFUSED, (), f"{NOT_OFFERED}{_WORDS[access]}")
    found = list(_all_verdicts(each, path, table, access))
    ungated = [
        item
        for bad in path.known_bad
        if bad.ungated
        for item in _known_bad_verdicts(bad, table, access)
    ]
    if any(judgement.verdict is Verdict.WRONG for judgement in ungated):
        found = ungated
    if not found and access is Access.DML and APPEND_ONLY in table.hazards:
        append_only = tuple({"appendOnly"} & table.protocol.supported)
        return PathVerdict(Verdict.REFUSED, append_only, _APPEND_ONLY)
    if not found:
        return _OK
    worst = min((judgement.verdict for judgement in found), key=_DECIDING.index)
    deciding = [judgement for judgement in found if judgement.verdict is worst]
    by_reason: dict[str, dict[str, None]] = {}
    for judgement in deciding:
        by_reason.setdefault(judgement.reason, {}).update(dict.fromkeys(judgement.because))
    because = dict.fromkeys(name for names in by_reason.values() for name in names)
    reasons = [reason.replace("{}", _join_and(names)) for reason, names in by_reason.items()]
    return PathVerdict(worst, tuple(because), "; ".join(reasons))


def _join_and(names: Iterable[str]) -> str:
    *others, last = [*names] or [""]
    if len(others) >= _MOST_NAMES:
        shown, more = others[:_MOST_NAMES], len(others) + 1 - _MOST_NAMES
        return f"{', '.join(shown)} and {more} more"
    return f"{', '.join(others)} and {last}" if others else last


# A refusal has priority over everything else: a refused client reads no wrong rows.
_DECIDING = (Verdict.REFUSED, Verdict.WRONG, Verdict.UNKNOWN, Verdict.OK)
_WORDS = {
    Access.READ: "reading",
    Access.APPEND: "writing",
    Access.DML: "UPDATE, DELETE or MERGE",
    Access.MAINTAIN: "maintenance",
    Access.STREAM: "reading as a stream",
}


def _all_verdicts(
    each: Range, path: Path, table: TableRequirements, access: Access
) -> Iterator[PathVerdict]:
    if each.whole:
        yield from _requirement_verdicts(path, table)
    if not table.by_name:
        yield from _catalog_only_verdicts(each.catalog_only, table)
    for doubt in table.doubts:
        yield PathVerdict(Verdict.UNKNOWN, (), doubt)
    protocol = table.protocol
    confidence = Confidence.INFERRED if each.partial else each.confidence
    if violations := protocol.violations():
        yield PathVerdict(
            Verdict.UNKNOWN, (), f"the protocol violates the spec: {violations[0].message}"
        )
    if path.read is not None:
        version, listed = protocol.min_reader_version, protocol.reader_features
        gate = path.read if access in READ_ACCESSES else _writers_read_gate(path)
        yield from gate_verdicts(gate, table, "reader", version, listed, confidence)
    if access not in READ_ACCESSES and path.write is not None:
        taken = path.write.readers
        if taken is not None and protocol.min_reader_version not in (*taken, 3):
            because = tuple(sorted({"columnMapping"} & protocol.supported))
            reason = f"its writer does not support reader version {protocol.min_reader_version}"
            yield PathVerdict(Verdict.REFUSED, because, reason)
        version, listed = protocol.min_writer_version, protocol.writer_features
        yield from gate_verdicts(path.write, table, "writer", version, listed, confidence)
    for bad in path.known_bad:
        yield from _known_bad_verdicts(bad, table, access)
    yield from _hazard_verdicts(path, table, access)


def _writers_read_gate(path: Path) -> ProtocolGate:
    """Return the reader gate for writes, which may use another library than reads."""
    assert path.read is not None
    if path.write is None or path.write.reader_features is None:
        return path.read
    readers = path.write.readers
    return ProtocolGate(
        path.read.legacy if readers is None else readers, path.write.reader_features
    )


def _hazard_verdicts(path: Path, table: TableRequirements, access: Access) -> Iterator[PathVerdict]:
    for hazard in sorted(table.hazards):
        handling = path.handling(hazard, access)
        if handling is None and access not in _affected_accesses(hazard):
            continue
        if handling is None and hazard in HARMLESS_UNLESS_KNOWN:
            continue
        if handling is None:
            reason = f"{describe_hazard(hazard)}, and its handling of that was not measured"
            yield PathVerdict(Verdict.UNKNOWN, _causing_features(hazard, table), reason)
        elif handling.verdict is not Verdict.OK:
            reason = f"{describe_hazard(hazard)}: {_to_phrase(handling.what)}".rstrip(": ")
            yield PathVerdict(handling.verdict, _causing_features(hazard, table), reason)
    # With doubts about the log, no earlier verdict was ok.
    for hazard in () if table.doubts else sorted(table.unseen - table.hazards):
        handling = path.handling(hazard, access)
        if handling is not None and handling.verdict is not Verdict.OK:
            reason = f"it is unknown whether {describe_hazard(hazard)}, which it cannot handle"
            yield PathVerdict(Verdict.UNKNOWN, (), reason)


def _causing_features(hazard: str, table: TableRequirements) -> tuple[str, ...]:
    """Return the supported features that cause a hazard."""
    supported = table.protocol.supported
    return tuple(n for n, words in HAZARDS_BY_FEATURE.items() if hazard in words and n in supported)


def _affected_accesses(hazard: str) -> frozenset[Access]:
    """Return the accesses that a hazard can affect by default."""
    if hazard == APPEND_ONLY:
        return _NO_ACCESS
    if hazard == UNNAMED_ROW_IDS:
        return _WRITING
    return _CHECKING if hazard.startswith(EXPRESSION_PREFIX) else _EVERY_ACCESS


_NO_ACCESS: frozenset[Access] = frozenset()
_EVERY_ACCESS = frozenset(Access)
_WRITING = _EVERY_ACCESS - READ_ACCESSES
_CHECKING = frozenset({Access.APPEND, Access.DML})


def _requirement_verdicts(path: Path, table: TableRequirements) -> Iterator[PathVerdict]:
    supported = table.protocol.supported
    gates = [gate for gate in (path.read, path.write) if gate is not None]
    understood = frozenset[str]().union(*(gate.features or () for gate in gates))
    for name in sorted(understood & table.protocol.listed):
        missing = [
            other for other in feature_catalog.required_features(name) if other not in supported
        ]
        if missing:
            yield PathVerdict(
                Verdict.REFUSED,
                (name,),
                f"{name} is listed without {' and '.join(missing)}; it refuses such a "
                "protocol, even for reading",
            )


def _catalog_only_verdicts(
    names: frozenset[str], table: TableRequirements
) -> Iterator[PathVerdict]:
    for name in sorted(names & table.protocol.supported):
        yield PathVerdict(Verdict.REFUSED, (name,), "a {} table is accessible only by catalog name")


def _known_bad_verdicts(
    bad: KnownBad, table: TableRequirements, access: Access
) -> Iterator[PathVerdict]:
    versions = table.protocol.versions
    if bad.pairs and versions not in bad.pairs:
        return
    if ANY_TABLE in bad.features and access in bad.access:
        verdict = Verdict.REFUSED if bad.fails else Verdict.WRONG
        yield PathVerdict(verdict, (), _to_phrase(bad.what))
        return
    names = table.protocol.supported
    if ANY_UNKNOWN_FEATURE not in bad.features:
        names &= bad.features
    for name in sorted(names):
        if name not in bad.features and not is_unknown_feature(name):
            continue
        uses = _applies(bad.where, table, name)
        if access not in bad.access or uses is False:
            continue
        if bad.disputed:
            yield PathVerdict(Verdict.UNKNOWN, (name,), _to_phrase(bad.what))
        elif not bad.fails:
            yield PathVerdict(Verdict.WRONG, (name,), _to_phrase(bad.what))
        elif uses:
            yield PathVerdict(Verdict.REFUSED, (name,), _to_phrase(bad.what))
        else:
            unsure = f"{_to_phrase(bad.what)}, and it is unknown whether {{}} is used"
            yield PathVerdict(Verdict.UNKNOWN, (name,), unsure)


def _applies(where: AppliesTo, table: TableRequirements, name: str) -> bool | None:
    match where:
        case AppliesTo.SUPPORTED:
            return True
        case AppliesTo.PRESENT:
            return table.holds(name)
        case AppliesTo.USED:
            return table.uses(name)


def _to_phrase(sentence: str) -> str:
    """Turn a sentence into a phrase."""
    return sentence.rstrip(".")
