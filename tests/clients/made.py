"""Hand-made clients, tables and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaproto.clients.candidate import Candidate
from deltaproto.clients.capability import Access, Client, Confidence, Gate, Path, Range
from deltaproto.clients.catalogue import Catalogue
from deltaproto.clients.entry import parse_client
from deltaproto.clients.matching import Judgement, judge
from deltaproto.clients.needs import Needs, needs
from deltaproto.protocol.protocol import Protocol

ALL = frozenset(Access)
READS = frozenset({Access.READ, Access.STREAM})
ANY_READER = Gate(frozenset({1, 2}))
ANY_WRITER = Gate(frozenset(range(1, 7)))
PROOF = [{"kind": "inference", "reference": "made for a test"}]


def protocol(
    reader: int,
    writer: int,
    reader_features: Iterable[str] | None = None,
    writer_features: Iterable[str] | None = None,
) -> Protocol:
    """A protocol as it would be stored, valid or not."""
    return Protocol.stored(
        {
            "minReaderVersion": reader,
            "minWriterVersion": writer,
            "readerFeatures": None if reader_features is None else list(reader_features),
            "writerFeatures": None if writer_features is None else list(writer_features),
        }
    )


def table(
    protocol: Protocol,
    *,
    used: Iterable[str] = (),
    unknown: Iterable[str] = (),
    mode: str | None = None,
    by_name: bool = False,
) -> Needs:
    """A table that uses `used`; of `unknown` it cannot be told; the rest is unused."""
    usage: dict[str, bool | None] = dict.fromkeys(protocol.supported, False)
    usage |= dict.fromkeys(used, True)
    usage |= dict.fromkeys(unknown, None)
    configuration = {} if mode is None else {"delta.columnMapping.mode": mode}
    return needs(protocol, usage, configuration, by_name=by_name)


def range_of(
    path: Path,
    *,
    confidence: Confidence = Confidence.SOURCE,
    whole: bool = False,
    catalog_only: Iterable[str] = (),
) -> Range:
    return Range(
        "1.0", None, (path,), confidence, (), whole=whole, catalog_only=frozenset(catalog_only)
    )


def judged(
    needs: Needs,
    access: Access,
    *,
    read: Gate | None = ANY_READER,
    write: Gate | None = None,
    offers: frozenset[Access] = ALL,
    confidence: Confidence = Confidence.SOURCE,
    **more: Any,
) -> Judgement:
    """The judgement on a client with these two gates."""
    known_bad = more.pop("known_bad", ())
    path = Path(None, read, write, offers, known_bad)
    return judge(range_of(path, confidence=confidence, **more), path, needs, access)


def client(ranges: list[Mapping[str, Any]], versions: str = "dotted", **more: Any) -> Client:
    """A client called `made`, from an entry."""
    plain = {"id": "made", "versions": versions, "ranges": ranges, **more}
    return parse_client(plain, "made")


def candidate(made: Client, version: str) -> Candidate:
    return Catalogue([made]).resolve(f"{made.id}{version}")
