"""Whether a client lets a table through, and because of which feature not.

What each client's gates do is data (`capability`), how a gate works is in `gates`; this adds what
lies beyond the gates: requirements, catalogs, and what a release does wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.clients.capability import (
    EVERY,
    READING,
    STRANGE,
    Access,
    Confidence,
    KnownBad,
    Path,
    Range,
    Where,
)
from deltaproto.clients.gates import pass_gate, strange, understood
from deltaproto.clients.judgement import Judgement, Verdict
from deltaproto.clients.needs import Needs
from deltaproto.protocol import catalogue

__all__ = ["OFFERS_NO", "Judgement", "Verdict", "judge"]

_OK = Judgement(Verdict.OK)
OFFERS_NO = "it offers no "


def judge(each: Range, path: Path, table: Needs, access: Access) -> Judgement:
    """What becomes of `access` by this path of the client on a table with these needs."""
    if not path.offers(access):
        return Judgement(Verdict.REFUSED, (), f"{OFFERS_NO}{_WORDS[access]}")
    found = list(_judged(each, path, table, access))
    ungated = [
        item for bad in path.known_bad if bad.ungated for item in _known_bad(bad, table, access)
    ]
    if any(judgement.verdict is Verdict.WRONG for judgement in ungated):
        found = ungated
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
        yield from _requirements(path, table)
    if not table.by_name:
        yield from _catalog_only(each.catalog_only, table)
    for doubt in table.doubts:
        yield Judgement(Verdict.UNKNOWN, (), doubt)
    protocol = table.protocol
    confidence = Confidence.INFERRED if each.partial else each.confidence
    if violations := protocol.violations():
        yield Judgement(
            Verdict.UNKNOWN, (), f"the protocol breaks the spec: {violations[0].message}"
        )
    if path.read is not None:
        version, listed = protocol.min_reader_version, protocol.reader_features
        yield from pass_gate(path.read, table, "reader", version, listed, confidence)
    if access not in READING and path.write is not None:
        taken = path.write.readers
        if taken is not None and protocol.min_reader_version not in (*taken, 3):
            because = tuple(sorted({"columnMapping"} & protocol.supported))
            reason = f"its writer does not take reader version {protocol.min_reader_version}"
            yield Judgement(Verdict.REFUSED, because, reason)
        version, listed = protocol.min_writer_version, protocol.writer_features
        yield from pass_gate(path.write, table, "writer", version, listed, confidence)
    for bad in path.known_bad:
        yield from _known_bad(bad, table, access)


def _requirements(path: Path, table: Needs) -> Iterator[Judgement]:
    supported = table.protocol.supported
    for name in sorted(table.protocol.listed):
        if not any(understood(gate, name) for gate in (path.read, path.write) if gate):
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
    if EVERY in bad.features and access in bad.access:
        verdict = Verdict.REFUSED if bad.fails else Verdict.WRONG
        yield Judgement(verdict, (), _phrase(bad.what))
        return
    names = table.protocol.supported
    if STRANGE not in bad.features:
        names &= bad.features
    for name in sorted(names):
        if name not in bad.features and not strange(name):
            continue
        uses = _happens(bad.where, table, name)
        if access not in bad.access or uses is False:
            continue
        if bad.disputed:
            yield Judgement(Verdict.UNKNOWN, (name,), _phrase(bad.what))
        elif not bad.fails:
            yield Judgement(Verdict.WRONG, (name,), _phrase(bad.what))
        elif uses:
            yield Judgement(Verdict.REFUSED, (name,), _phrase(bad.what))
        else:
            unsure = f"{_phrase(bad.what)}, and whether anything uses {{}} cannot be told"
            yield Judgement(Verdict.UNKNOWN, (name,), unsure)


def _happens(where: Where, table: Needs, name: str) -> bool | None:
    match where:
        case Where.SUPPORTED:
            return True
        case Where.PRESENT:
            return table.holds(name)
        case Where.USED:
            return table.uses(name)


def _phrase(sentence: str) -> str:
    """A sentence as a part of another one."""
    return sentence.rstrip(".")
