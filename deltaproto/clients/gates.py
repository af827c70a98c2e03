"""One side's gate against a table: what it lets through, and what not.

Source: PROTOCOL.md, "Reader Requirements for Table Features" and "Writer Requirements".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.clients.capability import STRANGE, Confidence, Gate
from deltaproto.clients.judgement import Judgement, Verdict
from deltaproto.clients.needs import Needs
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Kind, Status
from deltaproto.protocol.violations import READER_FEATURES_VERSION, WRITER_FEATURES_VERSION


def pass_gate(
    gate: Gate,
    table: Needs,
    side: str,
    version: int,
    listed: frozenset[str] | None,
    confidence: Confidence,
) -> Iterator[Judgement]:
    top = READER_FEATURES_VERSION if side == "reader" else WRITER_FEATURES_VERSION
    # An odd pair such as (2,4) does not carry what one of its numbers implies.
    implied = _implied(side, version) & table.protocol.supported
    if gate.unchecked is None:
        names = [*implied, *(listed or ())]
        yield from _unchecked([n for n in sorted(names) if not understood(gate, n)], table)
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
        return catalogue.implied_by(READER_FEATURES_VERSION - 1, version)
    every = catalogue.implied_by(version, WRITER_FEATURES_VERSION - 1)
    return frozenset(n for n in every if catalogue.record(n).kind is Kind.READER_WRITER)


def _listed(
    gate: Gate, table: Needs, names: list[str], confidence: Confidence
) -> Iterator[Judgement]:
    assert gate.features is not None
    unchecked = gate.unchecked or frozenset()
    passing = [
        name for name in names if name in unchecked or (STRANGE in unchecked and strange(name))
    ]
    for name in names:
        if understood(gate, name) or name in gate.unused or name in passing:
            continue
        reason = "it does not know {}" + (", nor do we" if strange(name) else "")
        yield Judgement(_refusal(confidence, nobody_knows=strange(name)), (name,), reason)
    yield from _only_unused([n for n in names if n in gate.unused], table)
    yield from _unchecked(passing, table)


def understood(gate: Gate, name: str) -> bool:
    return gate.features is not None and name in gate.features


def _refusal(confidence: Confidence, *, nobody_knows: bool = False) -> Verdict:
    # A list that was put together from documents says nothing of a name that nobody knows.
    sure = (Confidence.MEASURED, Confidence.SOURCE)
    known = confidence in sure if nobody_knows else confidence is not Confidence.INFERRED
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
                Verdict.REFUSED,
                (feature,),
                f"it knows {feature} only by {' or '.join(sorted(known)) or 'no mode'}",
            )


def strange(name: str) -> bool:
    """A name that nobody knows."""
    return catalogue.record(name).status is Status.UNKNOWN
