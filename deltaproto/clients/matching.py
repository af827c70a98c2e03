"""Whether a client's gates let a table through, and because of which feature not.

Source: PROTOCOL.md, "Reader Requirements for Table Features" and "Writer Requirements"; what each
client's gate does is data (`capability`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from deltaproto.clients.capability import READING, Access, Confidence, Gate, KnownBad, Path, Range
from deltaproto.clients.needs import Needs
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Kind, Status

_READER, _WRITER = 3, 7


class Verdict(StrEnum):
    """What happens when the client tries, the worst first."""

    WRONG = "wrong"
    """it may read wrong rows, or lose data or promises"""
    UNKNOWN = "unknown"
    """not known, and so not counted on"""
    REFUSED = "refused"
    """it fails, safely"""
    OK = "ok"


class Judgement(NamedTuple):
    """The verdict on one way through a client, with the features that decide and one sentence.

    While they are collected, `{}` in a reason stands for the features.
    """

    verdict: Verdict
    because: tuple[str, ...] = ()
    reason: str = ""


_OK = Judgement(Verdict.OK)
OFFERS_NO = "it offers no "


def judge(each: Range, path: Path, table: Needs, access: Access) -> Judgement:
    """What becomes of `access` by this path of the client on a table with these needs."""
    if access not in path.access or (access not in READING and path.write is None):
        return Judgement(Verdict.REFUSED, (), f"{OFFERS_NO}{_WORDS[access]}")
    found = list(_judged(each, path, table, access))
    if not found:
        return _OK
    worst = min((judgement.verdict for judgement in found), key=_DECIDING.index)
    deciding = [judgement for judgement in found if judgement.verdict is worst]
    by_reason: dict[str, dict[str, None]] = {}
    for judgement in deciding:
        by_reason.setdefault(judgement.reason, {}).update(dict.fromkeys(judgement.because))
    because = dict.fromkeys(name for names in by_reason.values() for name in names)
    reasons = [reason.replace("{}", _and(names)) for reason, names in by_reason.items()]
    return Judgement(worst, tuple(because), "; ".join(reasons))


def _and(names: Iterable[str]) -> str:
    *others, last = [*names] or [""]
    return f"{', '.join(others)} and {last}" if others else last


# A refusal decides before everything else: who is refused reads no wrong rows.
_DECIDING = (Verdict.REFUSED, Verdict.WRONG, Verdict.UNKNOWN, Verdict.OK)
_WORDS = {
    Access.READ: "reading",
    Access.APPEND: "writing",
    Access.DML: "UPDATE, DELETE or MERGE",
    Access.MAINTAIN: "maintenance",
    Access.STREAM: "reading as a stream",
}


def _judged(each: Range, path: Path, table: Needs, access: Access) -> Iterator[Judgement]:
    if each.whole:
        yield from _requirements(each, path, table)
    if not table.by_name:
        yield from _catalog_only(each.catalog_only, table)
    protocol, confidence = table.protocol, each.confidence
    if violations := protocol.violations():
        yield Judgement(
            Verdict.UNKNOWN, (), f"the protocol breaks the spec: {violations[0].message}"
        )
    if path.read is not None:
        version, listed = protocol.min_reader_version, protocol.reader_features
        yield from _gate(path.read, table, "reader", version, listed, confidence)
    if access not in READING and path.write is not None:
        version, listed = protocol.min_writer_version, protocol.writer_features
        yield from _gate(path.write, table, "writer", version, listed, confidence)
    for bad in path.known_bad:
        yield from _known_bad(bad, table, access)


def _gate(
    gate: Gate,
    table: Needs,
    side: str,
    version: int,
    listed: frozenset[str] | None,
    confidence: Confidence,
) -> Iterator[Judgement]:
    top = _READER if side == "reader" else _WRITER
    implied = _implied(side, version)
    if gate.unchecked is None:
        names = [*implied, *(listed or ())]
        yield from _unchecked([n for n in sorted(names) if not _understood(gate, n)], table)
        yield from _modes(gate, table)
        return
    if version > top:
        yield Judgement(Verdict.REFUSED, (), f"{side} version {version} is not defined")
    elif version < top:
        yield from _legacy(gate, table, side, version, implied)
    elif gate.features is None:
        yield Judgement(
            _refusal(confidence),
            tuple(sorted(listed or ())),
            f"it knows no table features, and so not {side} version {version}",
        )
    else:
        yield from _listed(gate, table, sorted(listed or ()), confidence)
    yield from _modes(gate, table)


def _legacy(
    gate: Gate, table: Needs, side: str, version: int, implied: Iterable[str]
) -> Iterator[Judgement]:
    if version not in gate.legacy:
        lower = _carried(gate, side, version)
        lacking = [name for name in sorted(implied) if name not in lower]
        yield Judgement(
            Verdict.REFUSED, tuple(lacking), f"it does not take {side} version {version}"
        )
        return
    conditional = (gate.unused | gate.legacy_unused) & set(implied)
    yield from _only_unused(sorted(conditional), table)
    yield from _unchecked(sorted(gate.unchecked & set(implied) if gate.unchecked else ()), table)


def _carried(gate: Gate, side: str, version: int) -> frozenset[str]:
    """The features that the client takes below `version`: they are not what keeps it out."""
    known = max((number for number in gate.legacy if number < version), default=0)
    return _implied(side, known) | (gate.features or frozenset())


def _implied(side: str, version: int) -> frozenset[str]:
    """What a legacy version asks of this side, whatever the other side's version is."""
    if side == "writer":
        return catalogue.implied_by(_READER - 1, version)
    every = catalogue.implied_by(version, _WRITER - 1)
    return frozenset(n for n in every if catalogue.record(n).kind is Kind.READER_WRITER)


def _listed(
    gate: Gate, table: Needs, names: list[str], confidence: Confidence
) -> Iterator[Judgement]:
    assert gate.features is not None
    unchecked = gate.unchecked or frozenset()
    lacking = [n for n in names if not _understood(gate, n) and n not in unchecked | gate.unused]
    for name in lacking:
        strange = catalogue.record(name).status is Status.UNKNOWN
        reason = "it does not know {}" + (", nor do we" if strange else "")
        yield Judgement(_refusal(confidence, strange=strange), (name,), reason)
    yield from _only_unused([n for n in names if n in gate.unused], table)
    yield from _unchecked([n for n in names if n in unchecked], table)


def _understood(gate: Gate, name: str) -> bool:
    return gate.features is not None and name in gate.features


def _refusal(confidence: Confidence, *, strange: bool = False) -> Verdict:
    # A list that was put together from documents says nothing of a name that nobody knows.
    sure = (Confidence.MEASURED, Confidence.SOURCE)
    known = confidence in sure if strange else confidence is not Confidence.INFERRED
    return Verdict.REFUSED if known else Verdict.UNKNOWN


def _only_unused(names: Iterable[str], table: Needs) -> Iterator[Judgement]:
    for name in names:
        uses = table.uses(name)
        if uses:
            yield Judgement(Verdict.REFUSED, (name,), "it takes {} only while nothing uses it")
        elif uses is None:
            yield Judgement(
                Verdict.UNKNOWN,
                (name,),
                "it takes {} only while nothing uses it, and that cannot be told",
            )


def _unchecked(names: Iterable[str], table: Needs) -> Iterator[Judgement]:
    for name in names:
        if table.uses(name) is not False:
            yield Judgement(Verdict.WRONG, (name,), "it lets {} through without understanding it")


def _modes(gate: Gate, table: Needs) -> Iterator[Judgement]:
    for feature, mode in table.modes:
        known = gate.modes.get(feature)
        if known is not None and mode != "none" and mode not in known:
            yield Judgement(
                Verdict.REFUSED, (feature,), f"it knows {feature} only by {' or '.join(known)}"
            )


def _requirements(each: Range, path: Path, table: Needs) -> Iterator[Judgement]:
    supported = table.protocol.supported
    for name in sorted(table.protocol.listed):
        if not any(_understood(gate, name) for gate in (path.read, path.write) if gate):
            continue
        missing = [
            other for other in catalogue.record(name).required_features if other not in supported
        ]
        if missing:
            yield Judgement(
                Verdict.REFUSED,
                (name,),
                f"{name} is listed without {' and '.join(missing)}, and it refuses such a "
                "protocol, even for reading",
            )


def _catalog_only(names: frozenset[str], table: Needs) -> Iterator[Judgement]:
    for name in sorted(names & table.protocol.supported):
        yield Judgement(Verdict.REFUSED, (name,), "a {} table is reached by its catalog name only")


def _known_bad(bad: KnownBad, table: Needs, access: Access) -> Iterator[Judgement]:
    for name in sorted(bad.features & table.protocol.supported):
        if access in bad.access and table.uses(name) is not False:
            verdict = Verdict.REFUSED if bad.fails else Verdict.WRONG
            yield Judgement(verdict, (name,), _phrase(bad.what))


def _phrase(sentence: str) -> str:
    """A sentence as a part of another one."""
    return sentence.rstrip(".")
