"""Why a protocol is what it is, in plain words: which feature forces which version."""

from __future__ import annotations

from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import Kind
from deltaproto.protocol.protocol import Protocol


def reasons(protocol: Protocol) -> tuple[str, ...]:
    """One sentence on the reader version, one on the writer version."""
    if protocol.violations():
        return ("the versions and the feature lists contradict each other",)
    return (_reader(protocol), _writer(protocol))


def _reader(protocol: Protocol) -> str:
    version = protocol.min_reader_version
    if version == 1:
        return "reader 1: every client may read it"
    known = (n for n in sorted(protocol.supported) if protocol.kind_of(n) is Kind.READER_WRITER)
    forcing = [name for name in known if _min_reader(protocol, name) == version]
    if not forcing:
        return f"reader {version}: no feature needs it"
    return f"reader {version}: readers must understand {_listed(forcing)}"


def _writer(protocol: Protocol) -> str:
    version = protocol.min_writer_version
    if not protocol.uses_table_features:
        count = len(protocol.implied)
        if not count:
            return f"writer {version}: implies no feature"
        # Never one: 2 implies two, and every later version more.
        return f"writer {version}: the number implies {count} features, used or not"
    native = [n for n in sorted(protocol.supported) if not catalogue.record(n).legacy]
    if native:
        return f"writer 7: only a feature list can carry {_listed(native)}"
    if not protocol.supported:
        return "writer 7: an empty feature list; no feature needs it"
    if protocol.lowest() != protocol:
        return f"writer 7: the listed features are exactly those of {protocol.lowest()}"
    return f"writer 7: no lower version implies exactly {_listed(sorted(protocol.supported))}"


def _min_reader(protocol: Protocol, name: str) -> int:
    in_reader_list = name in (protocol.reader_features or ())
    return catalogue.record(name, in_reader_list=in_reader_list).min_reader


def _listed(names: list[str], limit: int = 4) -> str:
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"
