"""Hand-made clients, tables and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.entry import parse_client
from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import (
    Access,
    Client,
    Confidence,
    Path,
    PathVerdict,
    ProtocolGate,
    Range,
)
from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.protocol.protocol import Protocol

ALL = frozenset(Access)
READS = frozenset({Access.READ, Access.STREAM})
ANY_READER = ProtocolGate(frozenset({1, 2}))
ANY_WRITER = ProtocolGate(frozenset(range(1, 7)))
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
) -> TableRequirements:
    """A table that uses `used`; of `unknown` it cannot be told; the rest is unused."""
    usage: dict[str, bool | None] = dict.fromkeys(protocol.supported, False)
    usage |= dict.fromkeys(used, True)
    usage |= dict.fromkeys(unknown, None)
    configuration = {} if mode is None else {"delta.columnMapping.mode": mode}
    return table_requirements(protocol, usage, configuration, by_name=by_name)


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
    needs: TableRequirements,
    access: Access,
    *,
    read: ProtocolGate | None = ANY_READER,
    write: ProtocolGate | None = None,
    offers: frozenset[Access] = ALL,
    confidence: Confidence = Confidence.SOURCE,
    **more: Any,
) -> PathVerdict:
    """The judgement on a client with these two gates."""
    known_bad = more.pop("known_bad", ())
    path = Path(None, read, write, offers, known_bad)
    return judge_access(range_of(path, confidence=confidence, **more), path, needs, access)


def client(ranges: list[Mapping[str, Any]], versions: str = "dotted", **more: Any) -> Client:
    """A client called `made`, from an entry."""
    plain = {"id": "made", "versions": versions, "ranges": ranges, **more}
    return parse_client(plain, "made")


def candidate(made: Client, version: str) -> ClientAtVersion:
    return ClientCatalog([made]).resolve(f"{made.id}{version}")
