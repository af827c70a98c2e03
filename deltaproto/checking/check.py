"""One table after the other against a policy: verdicts, findings, waivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.clients.capability import Access
from deltaproto.clients.catalogue import Candidate, Catalogue, parse_reference
from deltaproto.clients.needs import Needs
from deltaproto.clients.verdicts import client_verdicts
from deltaproto.errors import TableError, UsageError
from deltaproto.policy.case import Case, Judged
from deltaproto.policy.document import Policy, PolicyError, matches, settings_for
from deltaproto.policy.document.model import Declared, Waiver
from deltaproto.policy.facts import Facts
from deltaproto.policy.finding import Finding, Severity, Suppressed
from deltaproto.policy.rules import examine
from deltaproto.policy.rules.not_in_baseline import finding as not_in_baseline

_REMEMBERED = 4096


class Checked(NamedTuple):
    """One table's check."""

    table: str
    location: str | None
    verdicts: tuple[Judged, ...]
    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    error: TableError | None
    """why the table could not be read; the rest is then empty"""
    complete: bool


def unreadable(table: str, error: TableError) -> Checked:
    """The check of a table that could not be read."""
    return Checked(table, None, (), (), (), error, complete=False)


class Checker:
    """Checks tables against one policy.

    Args:
        asked: clients of the command line; they hold for every table.
        access: replaces the access of every declared client.
        baseline: the tables as they were saved, by location.

    Raises:
        PolicyError: when the policy declares a client that is not known, with its place.
        UsageError: when the command line does.
    """

    def __init__(
        self,
        policy: Policy,
        catalogue: Catalogue,
        *,
        asked: Iterable[Declared] = (),
        access: tuple[Access, ...] = (),
        baseline: Mapping[str, Facts] | None = None,
    ) -> None:
        self._policy, self._asked, self._access = policy, tuple(asked), access
        self._baseline = baseline
        self._candidates: dict[str, Candidate] = {}
        for declared in self._asked:
            self._candidates[declared.text] = catalogue.resolve(declared.text)
        for declared in policy.declared():
            self._candidates[declared.text] = _resolved(catalogue, policy, declared)
        self._known: dict[tuple[Needs, tuple[Declared, ...]], tuple[Judged, ...]] = {}

    def check(self, facts: Facts) -> Checked:
        """Verdicts on every declared client, and every rule's findings."""
        settings = settings_for(self._policy, facts.table, facts.location)
        verdicts = self._verdicts(facts.needs, (*self._asked, *(settings.clients or ())))
        before = None if self._baseline is None else self._baseline.get(facts.location)
        found = [*facts.findings, *examine(Case(facts, settings, verdicts, before))]
        if self._baseline is not None and before is None:
            found += not_in_baseline(facts.table)
        kept, suppressed = [], []
        for finding in _graded(found, settings.severities):
            waiver = self._waiver(finding, facts)
            if waiver is None:
                kept.append(finding)
            else:
                suppressed.append(Suppressed(finding, waiver.reason, waiver.expires.isoformat()))
        return Checked(
            facts.table,
            facts.location,
            verdicts,
            tuple(sorted(kept, key=_worst_first)),
            tuple(suppressed),
            None,
            facts.complete,
        )

    def _verdicts(self, table: Needs, declared: tuple[Declared, ...]) -> tuple[Judged, ...]:
        key = (table, declared)
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = tuple(
                Judged(each, verdict)
                for each in declared
                for verdict in client_verdicts(
                    self._candidates[each.text], self._access or each.access, table
                )
            )
        return self._known[key]

    def _waiver(self, finding: Finding, facts: Facts) -> Waiver | None:
        for waiver in self._policy.waivers:
            if (
                waiver.rule == finding.rule
                and waiver.feature in (None, finding.feature)
                and (waiver.client is None or _names(waiver.client, finding.client))
                and matches(waiver.table, facts.table, facts.location)
            ):
                return waiver
        return None


def _names(waived: str, client: str | None) -> bool:
    """A waiver of `trino` holds for every version of it, and for every path."""
    if client is None:
        return False
    wanted, here = parse_reference(waived), parse_reference(client)
    return (
        wanted.id == here.id
        and wanted.path in (None, here.path)
        and wanted.version in (None, here.version)
    )


def _graded(
    findings: Iterable[Finding], severities: Mapping[str, Severity | None] | None
) -> Iterator[Finding]:
    """With the policy's severities; None is off."""
    for finding in findings:
        if severities is None or finding.rule not in severities:
            yield finding
        elif (severity := severities[finding.rule]) is not None:
            yield finding._replace(severity=severity)


def _resolved(catalogue: Catalogue, policy: Policy, declared: Declared) -> Candidate:
    try:
        return catalogue.resolve(declared.text)
    except UsageError as error:
        raise PolicyError(policy.source, declared.position, error.message, error.hint) from None


def _worst_first(finding: Finding) -> tuple[int, str]:
    return list(Severity).index(finding.severity), finding.rule
