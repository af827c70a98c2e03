"""What a rule of a policy looks at: one table's facts, what the policy asks of it, the verdicts."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.clients.verdicts import ClientVerdict
from deltaproto.policy.document.model import Declared, Settings
from deltaproto.policy.facts import Facts


class Judged(NamedTuple):
    """A verdict, and the declaration that asked for it."""

    declared: Declared
    verdict: ClientVerdict


class Case(NamedTuple):
    """One table before its policy."""

    facts: Facts
    settings: Settings
    verdicts: tuple[Judged, ...]
    baseline: Facts | None = None
    """the same table as it was saved; None without a baseline, or when it was not there"""

    @property
    def table(self) -> str:
        return self.facts.table

    @property
    def word(self) -> str:
        """The table as one word of a shell command."""
        import shlex

        return shlex.quote(self.facts.table)
