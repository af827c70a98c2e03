"""A second opinion on a table's protocol: what delta-rs reads."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.errors import DeltaprotoError
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.delta_rs import DeltaRsReader


def second_opinion(
    uri: str, storage_options: Mapping[str, str], protocol: Protocol
) -> tuple[bool, str]:
    """Whether delta-rs contradicts nothing, and what it says: `agrees`, or why it is silent."""
    try:
        seen = DeltaRsReader(storage_options).read(uri).protocol
    except DeltaprotoError as error:
        return True, f"no answer: {error.message}"
    if _comparable(seen) == _comparable(protocol):
        return True, "agrees"
    return False, f"delta-rs reads {seen.in_words}"


def _comparable(protocol: Protocol) -> tuple[object, ...]:
    # delta-rs shows an empty list and an absent one alike.
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        protocol.reader_features or frozenset(),
        protocol.writer_features or frozenset(),
    )
