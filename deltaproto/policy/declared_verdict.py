"""The verdict on a declared client."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.clients.model import Access, Confidence, Verdict
from deltaproto.clients.remedy import Remedy
from deltaproto.clients.verdicts import ClientVerdict
from deltaproto.policy.document.model import Declared


class DeclaredVerdict(NamedTuple):
    """The outcome when one client uses one table in one way."""

    declared: Declared
    """the declaration in the policy, or the client that was passed"""
    verdict: ClientVerdict
    """the verdict as a record; the attributes below are its fields"""

    @property
    def client(self) -> str:
        """The client's id, such as `trino`."""
        return self.verdict.client

    @property
    def version(self) -> str | None:
        """The client's version; None if none was declared."""
        return self.verdict.version

    @property
    def path(self) -> str | None:
        """The path within the client, such as `pyarrow`; None if it has only one."""
        return self.verdict.path

    @property
    def access(self) -> Access:
        """What the client does: read, append, dml, maintain or stream."""
        return self.verdict.access

    @property
    def outcome(self) -> Verdict:
        """What happens: ok, refused, wrong or unknown."""
        return self.verdict.verdict

    @property
    def because(self) -> tuple[str, ...]:
        """The features that cause the verdict; empty if ok, or if the cause is not a feature."""
        return self.verdict.because

    @property
    def reason(self) -> str:
        """The reason in one sentence; empty if ok."""
        return self.verdict.reason

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The remedies, cheapest first; empty if ok, or if there is none."""
        return self.verdict.remedies

    @property
    def confidence(self) -> Confidence | None:
        """How the outcome is known: measured, source, documented or inferred; None: it is not."""
        return self.verdict.confidence

    @property
    def label(self) -> str | None:
        """The client's label in the policy."""
        return self.declared.label

    def __repr__(self) -> str:
        return f"<Verdict {self.verdict.named} {self.access}: {self.outcome}>"
