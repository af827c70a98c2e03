"""What the log says about one version, gathered newest action first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deltaproto.protocol.catalogue import CATALOG_MANAGED
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol, shown
from deltaproto.tables.interface import Note, NoteKind
from deltaproto.tables.log.actions import corrupt
from deltaproto.tables.log.layout import Layout

_NEEDS_DOMAINS = ("domainMetadata", "clustering")


class Snapshot:
    """Protocol, metadata and domains found so far; what is already set is newer and stays.

    `domains` holds each domain's configuration, None for one that a newer commit removed.
    """

    def __init__(
        self,
        protocol: Protocol | None = None,
        metadata: Metadata | None = None,
        domains: dict[str, str | None] | None = None,
        all_domains: bool = False,
    ) -> None:
        self.protocol = protocol
        self.metadata = metadata
        self.domains = domains if domains is not None else {}
        self.all_domains = all_domains
        self.commit_info: dict[str, Any] = {}
        self.notes: list[Note] = []
        self.layout = Layout()
        """what the commits that were read show of their files"""

    @property
    def complete(self) -> bool:
        """True when older actions can add nothing."""
        if self.protocol is None or self.metadata is None:
            return False
        return self.all_domains or not self.protocol.supported.intersection(_NEEDS_DOMAINS)

    @property
    def catalog_managed(self) -> bool:
        """True when a catalog, not the file system, says which version is the newest."""
        return self.protocol is not None and bool(CATALOG_MANAGED & self.protocol.supported)

    @property
    def live_domains(self) -> dict[str, str]:
        return {name: text for name, text in self.domains.items() if text is not None}

    def add_older(self, name: str, actions: Iterable[Mapping[str, Any]]) -> None:
        """Take what is still missing from `actions`, all of one file, in the file's order.

        When a file holds several protocol or metaData actions the last one counts, as in Spark.

        Raises:
            TableError: corrupt-log, when an action that is needed is malformed.
        """
        protocols: list[Protocol] = []
        metadata: Metadata | None = None
        domains: dict[str, str | None] = {}
        for action in actions:
            if "protocol" in action:
                protocols.append(stored_protocol(name, action["protocol"]))
            if "metaData" in action:
                metadata = stored_metadata(name, action["metaData"])
            if "domainMetadata" in action:
                domains.update([stored_domain(name, action["domainMetadata"])])
        if self.protocol is None and protocols:
            self.protocol = protocols[-1]
            if len(set(protocols)) > 1:
                self.notes.append(_several(name, protocols))
        if self.metadata is None:
            self.metadata = metadata
        for domain, text in domains.items():
            self.domains.setdefault(domain, text)


def stored_protocol(name: str, action: Any) -> Protocol:
    """The protocol of an action; errors name the file it is in."""
    try:
        return Protocol.stored(_mapping(action))
    except ValueError as error:
        raise corrupt(name, None, f"malformed protocol action: {error}") from None


def stored_metadata(name: str, action: Any) -> Metadata:
    """The metadata of an action; errors name the file it is in."""
    try:
        return Metadata.stored(_mapping(action))
    except ValueError as error:
        raise corrupt(name, None, f"malformed metaData action: {error}") from None


def stored_domain(name: str, action: Any) -> tuple[str, str | None]:
    """Name and configuration of a domainMetadata action; None for a removed domain."""
    try:
        fields = _mapping(action)
    except ValueError as error:
        raise corrupt(name, None, f"malformed domainMetadata action: {error}") from None
    domain, text = fields.get("domain"), fields.get("configuration")
    if not isinstance(domain, str):
        raise corrupt(name, None, "a domainMetadata action without a domain")
    return domain, None if fields.get("removed") is True else str(text or "")


def _mapping(action: Any) -> Mapping[str, Any]:
    if not isinstance(action, Mapping):
        raise ValueError(f"{shown(action)} is not an object")
    return action


def _several(name: str, protocols: list[Protocol]) -> Note:
    shown = ", ".join(str(protocol) for protocol in protocols)
    return Note(
        NoteKind.SEVERAL_PROTOCOLS,
        f"{name} stores several protocols, {shown}: Spark takes the last, delta-rs the first",
    )
