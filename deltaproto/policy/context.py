"""Rule inputs: one table's facts, and the policy that applies to it."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.location import quote_for_shell
from deltaproto.policy.contents import Contents, find_contents
from deltaproto.policy.finding import Finding
from deltaproto.protocol.layers import FeatureState, feature_states
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ProtocolChange, TableState
from deltaproto.protocol.violations import Violation

if TYPE_CHECKING:
    # An inspection has no policy.
    from deltaproto.clients.requirements import TableRequirements
    from deltaproto.policy.declared_verdict import DeclaredVerdict
    from deltaproto.policy.document.model import PolicySettings


class PolicyContext(NamedTuple):
    """A table and the policy settings that apply to it."""

    facts: "TableFacts"
    settings: "PolicySettings"
    verdicts: "tuple[DeclaredVerdict, ...]"
    baseline: "TableFacts | None" = None
    """the saved state of the table; None without a baseline, or if the baseline lacks the table"""

    @property
    def table(self) -> str:
        return self.facts.table

    @property
    def shell_name(self) -> str:
        """The table name quoted for a shell command."""
        return quote_for_shell(self.facts.table)


class TableFacts(NamedTuple):
    """Facts about one table that policy rules use."""

    table: str
    """as the user named it"""
    location: str
    version: int
    needs: "TableRequirements"
    configuration: Mapping[str, str | None]
    isolation: Mapping[str, str | None]
    """engine to its effective level; None: the engine refuses the declared level"""
    findings: tuple[Finding, ...]
    """findings of the lint rules"""
    complete: bool
    changes: Callable[[], tuple[ProtocolChange, ...]] | None = None
    """commits that stored a protocol, oldest first; None if the log is not available"""
    id: str | None = None
    """table id from the metadata; None if the reader does not return it"""
    clustering: tuple[str, ...] | None = None
    """clustering columns; None if the reader cannot see them"""
    older: bool = False
    """True if an older version was requested, so the newest version is unknown"""
    catalog: str | None = None
    """scheme of the catalog that listed the table; None: not known"""
    type: str | None = None
    """type of the table in that catalog; None: not known"""
    other_names: tuple[str, ...] = ()
    """further names of its location, in catalogs and through links"""

    @property
    def protocol(self) -> Protocol:
        return self.needs.protocol


class RuleContext:
    """One table as input of lint rules."""

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
        """The normalized protocol with the same features; None if it is invalid."""
        return None if self.violations else self.protocol.lowest()

    @cached_property
    def features(self) -> tuple[FeatureState, ...]:
        state = self.state
        return feature_states(state.protocol, state.metadata, state.domains, state.traces)

    @cached_property
    def contents(self) -> Contents:
        """Parts of the schema and constraints that some clients cannot handle."""
        return find_contents(self.state.metadata)

    @cached_property
    def changes(self) -> tuple[ProtocolChange, ...]:
        """Read the protocol changes from the log; empty if not available."""
        return self.state.changes() if self.state.changes is not None else ()
