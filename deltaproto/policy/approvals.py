"""Waivers and approvals: findings and losses of access that a policy accepts until a given date."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients import version_scheme
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Client
from deltaproto.clients.resolve import ClientReference, parse_reference
from deltaproto.policy.document import Policy, PolicyErrors, Position
from deltaproto.policy.document.model import Approval, Waiver
from deltaproto.policy.document.patterns import TableNames
from deltaproto.policy.finding import Finding


class AccessLoss(NamedTuple):
    """A client that can no longer do something with a table."""

    client: str
    """as verdicts name it, for example `deltalake/pyarrow@1.6.6`"""
    access: Access
    features: tuple[str, ...]
    """the features that cause the loss; empty if no feature causes it"""
    goal: str | None = None
    """the goal of the plan that causes the loss, as text; None outside of plans"""


class LossRuling(NamedTuple):
    """Whether a loss is approved."""

    loss: AccessLoss
    approvals: tuple[Approval, ...] = ()
    """the approvals that together cover the loss; empty if it is not approved"""
    near_misses: tuple[str, ...] = ()
    """why other approvals of the same client do not apply, one sentence each"""

    @property
    def approved(self) -> bool:
        """True if the loss is accepted."""
        return bool(self.approvals)

    @property
    def text(self) -> str:
        """Describe the loss and its approvers, or why the client's approvals do not apply."""
        what = f"{self.loss.client} {self.loss.access}"
        if self.loss.features:
            what += f" ({', '.join(self.loss.features)})"
        if not self.approvals:
            return "; ".join([f"{what} is not approved", *self.near_misses])
        by = " and ".join(
            each.approver
            + (f", {each.ticket}" if each.ticket else "")
            + f", until {each.expires}: {each.reason}"
            for each in dict.fromkeys(self.approvals)
        )
        return f"{what} is approved by {by}"


class Approvals:
    """The approvals of a policy.

    Raises:
        PolicyError: if an approval names a client that is not in the catalog.
    """

    def __init__(self, policy: Policy, catalog: ClientCatalog) -> None:
        self._source = policy.source
        self._all: list[tuple[Approval, ResolvedClient]] = []
        errors = PolicyErrors(policy.source)
        for approval in policy.approvals:
            with errors.at(approval.position):
                self._all.append((approval, resolve_client(catalog, approval.client)))
        errors.check()

    def __bool__(self) -> bool:
        return bool(self._all)

    def matching_positions(self, names: TableNames) -> tuple[Position, ...]:
        """Return the positions of the approvals that match a table."""
        return tuple(each.position for each, _ in self._all if names.match(each.table))

    def matching(self, names: TableNames, clients: Iterable[str] | None) -> Iterator[Approval]:
        """Yield the approvals that match a table and one of its clients; None: any client."""
        known = None if clients is None else tuple(clients)
        for approval, client in self._all:
            if names.match(approval.table) and (known is None or any(map(client.names, known))):
                yield approval

    def rule_on(self, names: TableNames, loss: AccessLoss, today: datetime.date) -> LossRuling:
        """Decide whether a loss is approved on this day.

        Every feature that causes the loss must be approved, or the goal. A loss without such a
        feature can only be approved by its goal.
        """
        valid: list[Approval] = []
        near_misses: list[str] = []
        for approval, client in self._all:
            if client.names(loss.client):
                why = _why_inapplicable(approval, names, loss, today)
                if why:
                    near_misses.append(f"{self.describe(approval)} {why}")
                else:
                    valid.append(approval)
        by_goal = [each for each in valid if each.goal is not None]
        if by_goal:
            return LossRuling(loss, tuple(by_goal[:1]))
        by_feature = {each.feature: each for each in valid}
        missing = [name for name in loss.features if name not in by_feature]
        if loss.features and not missing:
            return LossRuling(loss, tuple(by_feature[name] for name in loss.features))
        near_misses += [
            f"{self.describe(each)} does not cover {', '.join(missing)}"
            for each in valid
            if missing
        ]
        return LossRuling(loss, (), tuple(near_misses))

    def describe(self, approval: Approval) -> str:
        """Describe an approval: the approver, the ticket and its position in the policy."""
        ticket = f", {approval.ticket}" if approval.ticket else ""
        line, column = approval.position
        return f"the approval by {approval.approver}{ticket} ({self._source}:{line}:{column})"


def _why_inapplicable(
    approval: Approval, names: TableNames, loss: AccessLoss, today: datetime.date
) -> str | None:
    """Return why an approval of the client does not cover a loss, or None if it does."""
    if approval.expires < today:
        return f"expired on {approval.expires}"
    if not names.match(approval.table):
        return f'is for tables that match "{approval.table}"'
    if loss.access not in approval.access:
        return f"covers {', '.join(approval.access)}, not {loss.access}"
    if approval.goal is not None:
        if loss.goal is None:
            return "is for a plan only: it names a goal"
        if _fold_text(approval.goal) != _fold_text(loss.goal):
            return f'is for the goal "{approval.goal}", not "{loss.goal}"'
        return None
    if approval.feature not in loss.features:
        causes = ", ".join(loss.features) or "no feature"
        return f"is for {approval.feature}, but the loss is caused by {causes}"
    return None


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())


_parsed = lru_cache(maxsize=4096)(parse_reference)


class ResolvedClient(NamedTuple):
    """A catalog client with the path and version given in its name."""

    client: Client
    reference: ClientReference

    def names(self, named: str | None) -> bool:
        """Return True if `named`, such as `deltalake/pyarrow@1.6.6`, is this client."""
        if named is None:
            return False
        _, path, version = self.reference
        here = _parsed(named)
        return (
            here.id == self.client.id
            and path in (None, here.path)
            and (version is None or self._number(version) == self._number(here.version))
        )

    def _number(self, version: str | None) -> version_scheme.Version | str | None:
        # 14.3 and 14.3 LTS are the same version.
        return version and (version_scheme.parse_version(self.client.versions, version) or version)


def resolve_client(catalog: ClientCatalog, text: str) -> ResolvedClient:
    """Return the client that `text` names.

    Raises:
        UsageError: if the client is not in the catalog.
    """
    reference = parse_reference(text)
    return ResolvedClient(catalog.get(reference.id), reference)


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
