"""What a check knows of one table, whether it was read just now or saved by `inspect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from deltaproto.clients.needs import Needs
from deltaproto.policy.finding import Finding
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.interface import ProtocolChange


class Facts(NamedTuple):
    """One table for the rules of a policy."""

    table: str
    """as the user named it"""
    location: str
    version: int
    needs: Needs
    configuration: Mapping[str, str | None]
    isolation: Mapping[str, str | None]
    """engine to the level in force; None: the engine refuses the declared one"""
    findings: tuple[Finding, ...]
    """what the lint rules said"""
    complete: bool
    changes: Callable[[], tuple[ProtocolChange, ...]] | None = None
    """the commits that stored a protocol, oldest first; None when the log is not at hand"""
    id: str | None = None
    """of the table's metadata; None when the reader cannot see it"""
    older: bool = False
    """whether an older version was asked for, so that the newest is not known"""

    @property
    def protocol(self) -> Protocol:
        return self.needs.protocol
