"""Findings about the policy itself: unused, expired and overriding parts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from deltaproto.counts import counted, tables_such_as
from deltaproto.policy.document import Policy, Position
from deltaproto.policy.document.merging import Merged, Notice
from deltaproto.policy.document.model import Approval, PolicySettings, TableEntry, Waiver
from deltaproto.policy.document.patterns import TableNames
from deltaproto.policy.finding import Finding, Rule, Suppression
from deltaproto.policy.rules import (
    contradictory_requirements,
    expired_exception,
    policy_override,
    policy_requires_nothing,
    unknown_property,
    unmatched_pattern,
)
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX, feature_from_key
from deltaproto.protocol.properties import suggest_property

_NAMED = 3
_REQUESTS = {
    "delta.minreaderversion": "write min_reader_version instead",
    "delta.minwriterversion": "write min_writer_version instead",
    "delta.ignoreprotocoldefaults": "remove it",
}
"""properties that only statements have, by their names in lowercase, and what to do"""


class PolicyUse:
    """Collect which parts of a policy the tables of a run use.

    Nothing is stored per table, so the size depends only on the policy.
    """

    def __init__(
        self, policy: Policy, today: datetime.date, overridden: Sequence[str] = ()
    ) -> None:
        self._policy, self._today, self._overridden = policy, today, overridden
        self._entries: set[Position] = set()
        self._waivers: set[Position] = set()
        self._approvals: set[Position] = set()
        self._canaries: set[str] = set()
        # How many tables each notice is about, apart from those with a waiver for it.
        self._notices: dict[tuple[Rule, Notice, Waiver | None], int] = {}
        self._tables = 0
        self._uncovered: list[str] = []
        self._uncovered_count = 0
        self._others: list[Finding] = []

    def add_table(
        self,
        names: TableNames,
        entries: tuple[TableEntry, ...],
        merged: Merged | None,
        waivers: Sequence[Waiver] = (),
        *,
        is_table: bool = True,
    ) -> None:
        """Record a checked table, and the entries and waivers that match it.

        Args:
            merged: its settings; None if it could not be read.
            is_table: False if it may not be a table, so it need not match anything.
        """
        self._tables += is_table
        rollout = self._policy.rollout
        missing = () if rollout is None else {*rollout.canary} - self._canaries
        self._canaries.update(filter(names.match, missing))
        self._entries.update(entry.position for entry in entries)
        for notice in merged.notices if merged is not None else ():
            self._count(policy_override.RULE, notice, waivers)
        for found in merged.contradictions if merged is not None and entries else ():
            last = entries[-1]
            notice = Notice(last.pattern, found.problem, found.hint, last.position)
            self._count(contradictory_requirements.RULE, notice, waivers)

    def _count(self, rule: Rule, notice: Notice, waivers: Sequence[Waiver]) -> None:
        waiver = None
        for each in waivers:
            # These findings name no feature and no client.
            if each.rule == rule.id and each.feature is None and each.client is None:
                waiver = each
                self.add_waiver(each)
                break
        key = rule, notice, waiver
        self._notices[key] = self._notices.get(key, 0) + 1

    def add_waiver(self, waiver: Waiver) -> None:
        """Record a waiver that suppressed a finding."""
        self._waivers.add(waiver.position)

    def add_approval(self, approval: Approval) -> None:
        """Record an approval that matches a table and one of its clients."""
        self._approvals.add(approval.position)

    def add_uncovered_table(self, table: str) -> None:
        """Record a table to which nothing in the policy applies."""
        self._uncovered_count += 1
        if len(self._uncovered) < _NAMED:
            self._uncovered.append(table)

    def add_finding(self, finding: Finding) -> None:
        """Add a finding about the policy that tables and logs together show."""
        self._others.append(finding)

    def merge(self, other: PolicyUse) -> None:
        """Add the usage of the same policy by other tables."""
        self._entries |= other._entries
        self._waivers |= other._waivers
        self._approvals |= other._approvals
        self._canaries |= other._canaries
        for key, count in other._notices.items():
            self._notices[key] = self._notices.get(key, 0) + count
        self._tables += other._tables
        self._uncovered = (self._uncovered + other._uncovered)[:_NAMED]
        self._uncovered_count += other._uncovered_count
        self._others += other._others

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about the policy; none without a policy file."""
        if not self._policy.source:
            return
        yield from self._requirements()
        yield from self._unmatched()
        yield from self._unused_profiles()
        yield from self._properties()
        yield from self._expired()
        yield from self._others
        for client in self._overridden:
            yield policy_override.RULE.finding(
                self._policy.source,
                f"{self._policy.source}: {describe_overridden(client)}",
                "check that this is intended; without the definition, the catalog's verdicts apply",
                client=client,
                detail=f"client {client}",
            )
        yield from (finding for finding, waiver in self._findings_of_notices() if waiver is None)

    def suppressed(self) -> Iterator[Suppression]:
        """Yield the findings about the policy that it waives."""
        for finding, waiver in self._findings_of_notices():
            if waiver is not None:
                yield Suppression(finding, waiver.reason, waiver.expires.isoformat())

    def _findings_of_notices(self) -> Iterator[tuple[Finding, Waiver | None]]:
        for (rule, notice, waiver), count in self._notices.items():
            message = notice.message
            if rule == contradictory_requirements.RULE:
                message = (
                    f'"{notice.pattern}" and less specific patterns contradict each other: '
                    f"{message}"
                )
            finding = self._finding(
                rule,
                notice.position,
                f"{message} ({counted(count, 'table')})",
                notice.hint,
                detail=f"{notice.pattern} {notice.message}",
            )
            yield finding, waiver

    def _requirements(self) -> Iterator[Finding]:
        source, rule = self._policy.source, policy_requires_nothing.RULE
        if not has_requirements(self._policy):
            yield rule.finding(
                source,
                f"{source}: the policy requires nothing: it declares no clients and no settings",
                "add clients, or settings under tables",
            )
        elif self._uncovered_count:
            count, first = self._uncovered_count, self._uncovered[0]
            named = tables_such_as(count, first)
            yield rule.finding(
                source,
                f"The policy requires nothing of {named}: no pattern matches",
                "correct the patterns under tables, or declare clients for all tables",
            )

    def _unmatched(self) -> Iterator[Finding]:
        if not self._tables:
            return
        for entry in self._policy.tables:
            if entry.position not in self._entries and entry.profile is None:
                yield self._matches_nothing(
                    f'the pattern "{entry.pattern}"', entry.pattern, entry.position
                )
        for waiver in self._policy.waivers:
            if waiver.position not in self._waivers:
                about = [f'"{waiver.table}"', waiver.feature, waiver.client]
                named = ", ".join(each for each in about if each)
                yield self._matches_nothing(
                    f"the waiver of {waiver.rule} ({named})", waiver.table, waiver.position
                )

        for approval in self._policy.approvals:
            if approval.position not in self._approvals and approval.expires >= self._today:
                what = (
                    f'the approval by {approval.approver} ({approval.client} on "{approval.table}")'
                )
                yield self._matches_nothing(what, approval.table, approval.position)
        rollout = self._policy.rollout
        # One table needs no canary.
        for pattern in () if rollout is None or self._tables == 1 else rollout.canary:
            if pattern not in self._canaries:
                yield self._matches_nothing(f'the canary "{pattern}" of the rollout', pattern, None)

    def _unused_profiles(self) -> Iterator[Finding]:
        for name, position in self._policy.unused_profiles:
            yield self._finding(
                unmatched_pattern.RULE,
                position,
                f'no pattern uses the profile "{name}"',
                f"write profile: {name} under a pattern of tables, or remove the profile",
                detail=f"profile {name}",
            )

    def _matches_nothing(self, what: str, pattern: str, position: Position | None) -> Finding:
        folder = pattern.rstrip("/")
        slash = pattern.endswith("/") and folder
        return self._finding(
            unmatched_pattern.RULE,
            position,
            f"{what} matches nothing in {counted(self._tables, 'table')}"
            + (": it ends with a slash" if slash else ""),
            f'write "{folder}/**" for the tables below the folder, or "{folder}" for a table'
            if slash
            else "correct it, or remove it; ignore this if you checked only some of your tables",
            detail=what,
        )

    def _properties(self) -> Iterator[Finding]:
        for entry in self._policy.tables:
            for key in entry.settings.require_properties:
                verb, hint = "store", _suggest_instead_of(key)
                if hint is None and (near := suggest_property(key)) is not None:
                    verb, hint = "know", f'did you mean "{near}"?' if near else "check the spelling"
                if hint is not None:
                    yield self._finding(
                        unknown_property.RULE,
                        entry.position,
                        f'"{entry.pattern}" requires the property '
                        f"{key}, which Delta does not {verb}",
                        hint,
                        detail=key,
                    )

    def _expired(self) -> Iterator[Finding]:
        for waiver in self._policy.expired:
            yield self._finding(
                expired_exception.RULE,
                waiver.position,
                f"the waiver of {waiver.rule} expired on "
                f"{waiver.expires}; it no longer applies (reason: {waiver.reason})",
                "renew or remove it",
                feature=waiver.feature,
                client=waiver.client,
                detail=f"{waiver.rule} {waiver.table}",
            )

        for approval in self._policy.approvals:
            if approval.expires < self._today:
                yield self._finding(
                    expired_exception.RULE,
                    approval.position,
                    f"the approval by {approval.approver} of "
                    f"{approval.client} expired on {approval.expires}; it no longer applies",
                    "renew or remove it",
                    feature=approval.feature,
                    client=approval.client,
                    detail=f"approval {approval.table}",
                )

    def _finding(
        self, rule: Rule, position: Position | None, message: str, hint: str, **more: Any
    ) -> Finding:
        """Return a finding about a position of the policy file, or about the whole file."""
        source = self._policy.source
        place = source if position is None else f"{source}:{position.line}:{position.column}"
        found = rule.finding(source, f"{place}: {message}", hint, **more)
        return found._replace(position=position)


def _suggest_instead_of(key: str) -> str | None:
    """Return what to write instead of a property that Delta does not store; None: it is stored."""
    if key.lower().startswith(FEATURE_PREFIX):
        return f"write require_features: [{feature_from_key(key) or 'FEATURE'}] instead"
    return _REQUESTS.get(key.lower())


def describe_overridden(client: str) -> str:
    """Return the notice about a built-in client that a site redefines."""
    return (
        f"{client} is defined in the policy or a client file: its verdicts do not come from the "
        "catalog"
    )


def has_requirements(policy: Policy) -> bool:
    """Return True if the policy requires anything of any table."""
    return bool(policy.clients) or any(_has_requirement(entry.settings) for entry in policy.tables)


def _has_requirement(settings: PolicySettings) -> bool:
    # An empty list of windows is also a requirement: no change at any time.
    return settings.maintenance_windows is not None or any(settings._replace(severities={}))
