"""Waivers: findings that a policy suppresses until a given date."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.policy.approvals import ResolvedClient, resolve_client
from deltaproto.policy.document.model import Waiver
from deltaproto.policy.finding import Finding


class ResolvedWaiver(NamedTuple):
    """A waiver with its client resolved in the catalog."""

    waiver: Waiver
    client: ResolvedClient | None

    def names(self, named: str | None) -> bool:
        """Return True if the waiver is for the named client, or for any finding."""
        return self.client is None or self.client.names(named)


def resolve_waiver(catalog: ClientCatalog, waiver: Waiver) -> ResolvedWaiver:
    """Resolve the client of a waiver.

    Raises:
        UsageError: if the client is not in the catalog.
    """
    if waiver.client is None:
        return ResolvedWaiver(waiver, None)
    return ResolvedWaiver(waiver, resolve_client(catalog, waiver.client))


def find_waiver(finding: Finding, waivers: Iterable[ResolvedWaiver]) -> Waiver | None:
    """Return the first waiver that suppresses a finding."""
    for each in waivers:
        if (
            each.waiver.rule == finding.rule
            and each.waiver.feature in (None, finding.feature)
            and each.names(finding.client)
        ):
            return each.waiver
    return None
