"""Decide whether an access by a client to a table works, and which feature decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.clients.model import (
    ANY_TABLE,
    ANY_UNKNOWN_FEATURE,
    READ_ACCESSES,
    Access,
    AppliesTo,
    Confidence,
    Handling,
    KnownBad,
    Path,
    PathVerdict,
    ProtocolGate,
    Range,
    Verdict,
    is_measured,
)
from deltaproto.clients.protocol_gate import gate_verdicts, is_unknown_feature
from deltaproto.clients.requirements import (
    APPEND_ONLY,
    EXPRESSION_PREFIX,
    HARMLESS_UNLESS_KNOWN,
    HAZARDS_BY_FEATURE,
    SWITCHES_CASE,
    UNNAMED_ROW_IDS,
    UNSTAMPED,
    UNTRACKED_FILES,
    TableRequirements,
    describe_hazard,
)
from deltaproto.counts import all_names
from deltaproto.protocol import feature_catalog

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
            sign = ";" if is_measured(handling.reference) else ":"
            reason = f"{describe_hazard(hazard)}{sign} {_to_phrase(handling)}".rstrip(": ")
            yield PathVerdict(handling.verdict, _causing_features(hazard, table), reason)
    # If the log is in doubt, no earlier verdict was ok.
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
    if hazard in (UNNAMED_ROW_IDS, UNSTAMPED):
        return _WRITING
    if hazard == UNTRACKED_FILES:
        return _REWRITING
    if hazard == SWITCHES_CASE:
        return _CHANGING_ROWS
    return _CHECKING if hazard.startswith(EXPRESSION_PREFIX) else _EVERY_ACCESS


_NO_ACCESS: frozenset[Access] = frozenset()
_EVERY_ACCESS = frozenset(Access)
_WRITING = _EVERY_ACCESS - READ_ACCESSES
_CHANGING_ROWS = frozenset({Access.DML})
_REWRITING = frozenset({Access.DML, Access.MAINTAIN})
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
                f"{name} is listed without {all_names(missing)}; it refuses such a "
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
        yield PathVerdict(verdict, (), _to_phrase(bad))
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
            yield PathVerdict(Verdict.UNKNOWN, (name,), _to_phrase(bad))
        elif not bad.fails:
            yield PathVerdict(Verdict.WRONG, (name,), _to_phrase(bad))
        elif uses:
            yield PathVerdict(Verdict.REFUSED, (name,), _to_phrase(bad))
        else:
            unsure = f"{_to_phrase(bad)}, and it is unknown whether {{}} is used"
            yield PathVerdict(Verdict.UNKNOWN, (name,), unsure)


def _applies(where: AppliesTo, table: TableRequirements, name: str) -> bool | None:
    match where:
        case AppliesTo.SUPPORTED:
            return True
        case AppliesTo.PRESENT:
            return table.holds(name)
        case AppliesTo.USED:
            return table.uses(name)


def _to_phrase(evidence: KnownBad | Handling) -> str:
    """Return what goes wrong, as a phrase; what was measured quotes the names of another table."""
    phrase = evidence.what.rstrip(".")
    return f"measured on another table: {phrase}" if is_measured(evidence.reference) else phrase
