"""What a rule looks at: one table's state, worked out once for all rules."""

from __future__ import annotations

from functools import cached_property

from deltaproto.policy.contents import Contents, contents
from deltaproto.protocol.layers import FeatureState, feature_states
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.violations import Violation
from deltaproto.tables.interface import ProtocolChange, TableState


class Subject:
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
