"""What rules look at: one table's facts, and what the policy asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.policy.contents import Contents, contents
from deltaproto.policy.finding import Finding
from deltaproto.protocol.layers import FeatureState, feature_states
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ProtocolChange, TableState
from deltaproto.protocol.violations import Violation

if TYPE_CHECKING:
    # An inspection needs no policy.
    from deltaproto.clients.requirements import TableRequirements
    from deltaproto.clients.verdicts import ClientVerdict
    from deltaproto.policy.document.model import Declared, PolicySettings


class DeclaredVerdict(NamedTuple):
    """A verdict, and the declaration that asked for it."""

    declared: Declared
    verdict: ClientVerdict


class PolicyContext(NamedTuple):
    """One table before its policy."""

    facts: TableFacts
    settings: PolicySettings
    verdicts: tuple[DeclaredVerdict, ...]
    baseline: TableFacts | None = None
    """the same table as it was saved; None without a baseline, or when it was not there"""

    @property
    def table(self) -> str:
        return self.facts.table

    @property
    def word(self) -> str:
        """The table as one word of a shell command."""
        import shlex

        return shlex.quote(self.facts.table)


class TableFacts(NamedTuple):
    """One table for the rules of a policy."""

    table: str
    """as the user named it"""
    location: str
    version: int
    needs: TableRequirements
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


class RuleContext:
    """One table for the rules."""

    def __init__(self, state: TableState) -> None:
        self.state = state

    @property
    def table(self) -> str:
        return self.state.table

    @property
    def protocol(self) -> Protocol:
        return self.state.protocol

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        return self.protocol.violations()

    @cached_property
    def lowest(self) -> Protocol | None:
        """The normalised protocol, no feature dropped; None for a protocol the spec forbids."""
        return None if self.violations else self.protocol.lowest()

    @cached_property
    def features(self) -> tuple[FeatureState, ...]:
        state = self.state
        return feature_states(state.protocol, state.metadata, state.domains, state.traces)

    @cached_property
    def contents(self) -> Contents:
        """What schema and constraints hold that some clients cannot handle."""
        return contents(self.state.metadata)

    @cached_property
    def changes(self) -> tuple[ProtocolChange, ...]:
        """The protocol's changes in the log; reads more of it. Empty when not to be had."""
        return self.state.changes() if self.state.changes is not None else ()
