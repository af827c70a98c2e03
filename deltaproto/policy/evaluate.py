"""Check tables against a policy: verdicts, findings and waivers."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from deltaproto.caches import BoundedCache
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Client
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.clients.usability import Usability, find_usability
from deltaproto.clients.verdicts import evaluate_clients
from deltaproto.errors import TableError
from deltaproto.policy.approvals import (
    AccessLoss,
    Approvals,
    LossRuling,
    ResolvedWaiver,
    find_waiver,
    resolve_waiver,
)
from deltaproto.policy.baseline import Baseline
from deltaproto.policy.context import PolicyContext, TableFacts
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document import Policy, PolicyErrors, Position
from deltaproto.policy.document.merging import Merged, find_matching, merge_settings
from deltaproto.policy.document.model import Declared, PolicySettings, TableEntry
from deltaproto.policy.document.patterns import TableNames
from deltaproto.policy.finding import (
    Finding,
    Severity,
    Suppression,
    severity_sort_key,
)
from deltaproto.policy.local_catalog import DEFAULT_ACCESS
from deltaproto.policy.rules import run_policy_rules
from deltaproto.policy.rules.gone_since_baseline import finding as gone_since_baseline
from deltaproto.policy.rules.not_in_baseline import finding as not_in_baseline
from deltaproto.policy.table_check import CLIENT_RULES, TableCheck, unreadable_table
from deltaproto.policy.usage import PolicyUse

_CACHE_SIZE = 4096


class Checker:
    """Check tables against one policy.

    Args:
        named: clients from the command line; they apply to every table.
        access: overrides the access of every declared client.
        baseline: the saved tables.
        survey: undeclared clients whose every version is evaluated.
        today: the date on which approvals must be valid; default: today in UTC.

    Raises:
        PolicyError: if the policy declares or waives an unknown client, with its position.
        UsageError: if the command line names an unknown client.
    """

    def __init__(
        self,
        policy: Policy,
        catalog: ClientCatalog,
        *,
        named: Iterable[Declared] = (),
        access: tuple[Access, ...] = (),
        baseline: Baseline | None = None,
        survey: Iterable[Client] = (),
        today: datetime.date | None = None,
    ) -> None:
        self._policy, self._named_clients, self._access = policy, tuple(named), access
        self._survey = tuple(survey)
        self._surveyed = BoundedCache[TableRequirements, tuple[Usability, ...]](_CACHE_SIZE)
        self._baseline = baseline
        self._candidates: dict[str, ClientAtVersion] = {}
        for declared in self._named_clients:
            self._candidates[declared.text] = catalog.resolve(declared.text)
        errors = PolicyErrors(policy.source)
        for declared in policy.declared():
            with errors.at(declared.position):
                self._candidates[declared.text] = catalog.resolve(declared.text)
        self._waived: list[ResolvedWaiver] = []
        for waiver in policy.waivers:
            with errors.at(waiver.position):
                self._waived.append(resolve_waiver(catalog, waiver))
        errors.check()
        self._known = BoundedCache[
            tuple[TableRequirements, tuple[Declared, ...]], tuple[DeclaredVerdict, ...]
        ](_CACHE_SIZE)
        self._merged = BoundedCache[tuple[Position, ...], Merged](_CACHE_SIZE)
        self._folders: dict[str, str] = {}
        self._newest: _MatchedEntries | None = None
        self._today = today or datetime.datetime.now(datetime.UTC).date()
        used = {each.client.id: each.client for each in self._candidates.values()}
        self.overridden = tuple(sorted(id for id, each in used.items() if catalog.overrides(each)))
        """clients whose verdicts come from the site's entries instead of the built-in ones"""
        self.use = PolicyUse(policy, self._today, self.overridden)
        """which parts of the policy the checked tables used"""
        self.approvals = Approvals(policy, catalog)
        """the policy's approvals, for the checks of a plan"""

    def __getstate__(self) -> dict[str, Any]:
        # What is known about tables of this process is useless on another machine.
        use = PolicyUse(self._policy, self._today)
        return {**self.__dict__, "_folders": {}, "_newest": None, "use": use}

    @property
    def clients(self) -> frozenset[str]:
        """The ids of all declared clients, with aliases resolved."""
        return frozenset(candidate.client.id for candidate in self._candidates.values())

    def settings(
        self, table: str, location: str | None, others: tuple[str, ...] = ()
    ) -> PolicySettings:
        """Return the policy's settings for one table; `others` are further names of it."""
        names = TableNames(table, location, self._folders, others)
        return self._settings(find_matching(self._policy, names)).settings

    def applicable_key(
        self, table: str, location: str | None, others: tuple[str, ...] = ()
    ) -> Hashable:
        """Return a key for the parts of the policy that apply to one table.

        Like `check`, this leaves the match for `observe`.

        Args:
            others: further names of the table.
        """
        matched = self._newest = self._match(table, location, others)
        return (
            tuple(entry.position for entry in matched.entries),
            tuple(each.waiver.position for each in matched.waivers),
            self.approvals.matching_positions(matched.names),
        )

    def candidate(self, declared: Declared) -> ClientAtVersion:
        """Return the catalog's facts about a declared client."""
        return self._candidates[declared.text]

    def check(self, facts: TableFacts) -> TableCheck:
        """Evaluate every declared client and every rule."""
        matched = self._newest = self._match(facts.table, facts.location, facts.other_names)
        found_for = self._settings(matched.entries)
        settings = found_for.settings
        verdicts = self._verdicts(facts.needs, (*self._named_clients, *(settings.clients or ())))
        baseline = self._baseline
        before = None if baseline is None else baseline.find(facts.table, facts.location, facts.id)
        found = [
            *facts.findings,
            *run_policy_rules(PolicyContext(facts, settings, verdicts, before)),
        ]
        if self._baseline is not None and before is None:
            found += not_in_baseline(facts.table)
        checked = self._checked(facts, found, found_for, matched, verdicts)
        return checked._replace(usability=self._usability(facts.needs)) if self._survey else checked

    def check_missing(self, before: TableFacts) -> TableCheck:
        """Return the result for a baseline table that no longer exists."""
        matched = self._match(before.table, before.location, before.other_names)
        found, settings = [gone_since_baseline(before)], self._settings(matched.entries)
        return self._checked(before._replace(complete=True), found, settings, matched, ())

    def _usability(self, table: TableRequirements) -> tuple[Usability, ...]:
        found = self._surveyed.get(table)
        if found is None:
            accesses = self._access or DEFAULT_ACCESS
            each = (
                one for client in self._survey for one in find_usability(client, accesses, table)
            )
            found = self._surveyed[table] = tuple(each)
        return found

    def _match(self, table: str, location: str | None, others: tuple[str, ...]) -> _MatchedEntries:
        names = TableNames(table, location, self._folders, others)
        of = table, location, others
        waivers = tuple(each for each in self._waived if names.match(each.waiver.table))
        return _MatchedEntries(of, names, find_matching(self._policy, names), waivers)

    def _checked(
        self,
        facts: TableFacts,
        found: list[Finding],
        found_for: Merged,
        matched: _MatchedEntries,
        verdicts: tuple[DeclaredVerdict, ...],
    ) -> TableCheck:
        """Apply the policy's severities, waivers and approvals to the findings."""
        settings = found_for.settings
        kept, suppressed, off = self._sorted(found, settings, matched, verdicts)
        return TableCheck(
            facts.table,
            facts.location,
            verdicts,
            tuple(sorted(kept, key=severity_sort_key)),
            tuple(suppressed),
            None,
            facts.complete,
            self._is_uncovered(settings, matched.entries),
            found_for.decisions,
            off,
            protocol=facts.protocol,
            other_names=facts.other_names,
        )

    def with_findings(self, checked: TableCheck, findings: list[Finding]) -> TableCheck:
        """Return the check with more findings, after applying severities and waivers."""
        matched = self._match(checked.table, checked.location, checked.other_names)
        settings = self._settings(matched.entries).settings
        kept, suppressed, off = self._sorted(findings, settings, matched, checked.verdicts)
        return checked._replace(
            findings=tuple(sorted((*checked.findings, *kept), key=severity_sort_key)),
            suppressed=(*checked.suppressed, *suppressed),
            silenced=checked.silenced + off,
        )

    def check_unreadable(
        self, table: str, error: TableError, findings: Iterable[Finding] = ()
    ) -> TableCheck:
        """Return the check of an unreadable table, with the findings that are still known."""
        checked, known = unreadable_table(table, error), list(findings)
        return self.with_findings(checked, known) if known else checked

    def _sorted(
        self,
        found: list[Finding],
        settings: PolicySettings,
        matched: _MatchedEntries,
        verdicts: tuple[DeclaredVerdict, ...],
    ) -> tuple[list[Finding], list[Suppression], int]:
        """Split into remaining and suppressed findings, and count those turned off."""
        graded = list(_apply_severities(found, settings.severities))
        if not matched.waivers and not self.approvals:
            return graded, [], len(found) - len(graded)
        kept, suppressed = [], []
        for finding in graded:
            waiver = find_waiver(finding, matched.waivers)
            if waiver is not None:
                suppressed.append(Suppression(finding, waiver.reason, waiver.expires.isoformat()))
                continue
            accepted = self._approval(finding, verdicts, matched.names)
            if isinstance(accepted, Suppression):
                suppressed.append(accepted)
            else:
                kept.append(accepted)
        return kept, suppressed, len(found) - len(graded)

    def rule_on_losses(
        self,
        table: str,
        location: str | None,
        losses: Iterable[AccessLoss],
        others: tuple[str, ...] = (),
    ) -> tuple[LossRuling, ...]:
        """Decide for each loss of access whether the policy approves it.

        Args:
            others: further names of the table.
        """
        names = TableNames(table, location, others=others)
        return tuple(self.approvals.rule_on(names, loss, self._today) for loss in losses)

    def with_policy(self, tables: Iterable[TableCheck]) -> Iterator[TableCheck]:
        """Yield the tables, then the findings about the policy itself, if any."""
        for checked in tables:
            self.observe(checked)
            yield checked
        if (found := self.check_policy()) is not None:
            yield found

    def check_policy(self) -> TableCheck | None:
        """Return the findings about the policy itself. Call it after observing all tables."""
        every, severities = list(self.use.findings()), self._policy.severities
        suppressed = tuple(
            each._replace(finding=graded)
            for each in self.use.suppressed()
            for graded in _apply_severities([each.finding], severities)
        )
        found = tuple(sorted(_apply_severities(every, severities), key=severity_sort_key))
        if not every and not suppressed:
            return None
        return TableCheck(
            self._policy.source,
            None,
            (),
            found,
            suppressed,
            None,
            complete=True,
            silenced=len(every) - len(found),
            of_policy=True,
        )

    def observe(self, checked: TableCheck) -> None:
        """Record the policy parts a table uses; it may have been checked on another machine."""
        # Links may change between two checks, so a match is used only once.
        matched, self._newest = self._newest, None
        of = checked.table, checked.location, checked.other_names
        if matched is None or matched.of != of:
            matched = self._match(*of)
        names, entries = matched.names, matched.entries
        readable = checked.error is None
        waivers = [each.waiver for each in matched.waivers]
        settings = self._settings(entries) if readable else None
        self.use.add_table(names, entries, settings, waivers, is_table=checked.is_table)
        if checked.unasked:
            self.use.add_uncovered_table(checked.table)
        clients = [judged.verdict.named for judged in checked.verdicts] if readable else None
        # It is unknown which parts of the policy an unreadable table uses.
        for each in () if readable else waivers:
            self.use.add_waiver(each)
        for approval in self.approvals.matching(names, clients) if self.approvals else ():
            self.use.add_approval(approval)
        for suppressed in checked.suppressed:
            waiver = find_waiver(suppressed.finding, matched.waivers)
            if waiver is not None:
                self.use.add_waiver(waiver)

    def _approval(
        self, finding: Finding, verdicts: tuple[DeclaredVerdict, ...], names: TableNames
    ) -> Suppression | Finding:
        """Suppress an approved client finding, or add why approvals do not apply to it."""
        if not self.approvals or finding.client is None:
            return finding
        rulings = [
            self.approvals.rule_on(
                names, AccessLoss(finding.client, each.access, each.because), self._today
            )
            for each in (judged.verdict for judged in verdicts)
            if each.named == finding.client and CLIENT_RULES.get(each.verdict) == finding.rule
        ]
        if not rulings:
            return finding
        if all(each.approved for each in rulings):
            first = min((a for each in rulings for a in each.approvals), key=lambda a: a.expires)
            expires = first.expires.isoformat()
            return Suppression(finding, first.reason, expires, first.approver, first.ticket)
        near_misses = dict.fromkeys(text for each in rulings for text in each.near_misses)
        hint = "; ".join([finding.hint, *near_misses])
        return finding._replace(hint=hint)

    def _settings(self, entries: tuple[TableEntry, ...]) -> Merged:
        key = tuple(entry.position for entry in entries)
        # Another thread may clear the cache at any time.
        found = self._merged.get(key)
        if found is None:
            found = self._merged[key] = merge_settings(self._policy, entries)
        return found

    def _is_uncovered(self, settings: PolicySettings, entries: tuple[TableEntry, ...]) -> bool:
        if self._named_clients or self._baseline is not None or not self._policy.tables:
            return False
        return settings._replace(severities={}) == PolicySettings(severities={}) and not entries

    def _verdicts(
        self, table: TableRequirements, declared: tuple[Declared, ...]
    ) -> tuple[DeclaredVerdict, ...]:
        key = (table, declared)
        found = self._known.get(key)
        if found is None:
            judged = (
                DeclaredVerdict(each, verdict)
                for each in declared
                for verdict in evaluate_clients(
                    self._candidates[each.text], self._access or each.access, table
                )
            )
            # Evaluate a client only once even if it is declared twice for the same use.
            once = {(j.verdict, j.declared.label, j.declared.consumer): j for j in judged}
            found = self._known[key] = tuple(once.values())
        return found


class _MatchedEntries(NamedTuple):
    """The policy entries and waivers that match a table."""

    of: tuple[str, str | None, tuple[str, ...]]
    """the table, its location and its other names"""
    names: TableNames
    entries: tuple[TableEntry, ...]
    waivers: tuple[ResolvedWaiver, ...]


def _apply_severities(
    findings: Iterable[Finding], severities: Mapping[str, Severity | None] | None
) -> Iterator[Finding]:
    """Apply the policy's severities; None means turned off."""
    for finding in findings:
        if severities is None or finding.rule not in severities:
            yield finding
        elif (severity := severities[finding.rule]) is not None:
            yield finding._replace(severity=severity)
