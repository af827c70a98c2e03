"""One table after the other against a policy: verdicts, findings, waivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from deltaproto.checking.baseline import Baseline
from deltaproto.clients import scheme
from deltaproto.clients.candidate import Candidate, Reference, parse_reference
from deltaproto.clients.capability import Access, Client
from deltaproto.clients.catalogue import Catalogue
from deltaproto.clients.needs import Needs
from deltaproto.clients.verdicts import client_verdicts
from deltaproto.errors import TableError, UsageError
from deltaproto.policy.case import Case, Judged
from deltaproto.policy.document import (
    Policy,
    PolicyError,
    Position,
    Settings,
    matches,
    settings_for,
)
from deltaproto.policy.document.model import Declared, Waiver
from deltaproto.policy.facts import Facts
from deltaproto.policy.finding import Finding, Severity, Suppressed, worst_first
from deltaproto.policy.rules import examine
from deltaproto.policy.rules.gone_since_baseline import finding as gone_since_baseline
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
    unasked: bool = False
    """no pattern of the policy means the table, and nobody else asks anything of it"""


def unreadable(table: str, error: TableError) -> Checked:
    """The check of a table that could not be read."""
    return Checked(table, None, (), (), (), error, complete=False)


class Checker:
    """Checks tables against one policy.

    Args:
        asked: clients of the command line; they hold for every table.
        access: replaces the access of every declared client.
        baseline: the tables as they were saved.

    Raises:
        PolicyError: when the policy declares or waives a client that is not known, with its place.
        UsageError: when the command line does.
    """

    def __init__(
        self,
        policy: Policy,
        catalogue: Catalogue,
        *,
        asked: Iterable[Declared] = (),
        access: tuple[Access, ...] = (),
        baseline: Baseline | None = None,
    ) -> None:
        self._policy, self._asked, self._access = policy, tuple(asked), access
        self._baseline = baseline
        self._candidates: dict[str, Candidate] = {}
        for declared in self._asked:
            self._candidates[declared.text] = catalogue.resolve(declared.text)
        for declared in policy.declared():
            with _at(policy, declared.position):
                self._candidates[declared.text] = catalogue.resolve(declared.text)
        self._waived = [_waived(catalogue, policy, waiver) for waiver in policy.waivers]
        self._known: dict[tuple[Needs, tuple[Declared, ...]], tuple[Judged, ...]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # What it learnt of tables here is of no use on another machine.
        return {**self.__dict__, "_known": {}}

    @property
    def clients(self) -> frozenset[str]:
        """The ids of all clients that are declared, no alias among them."""
        return frozenset(candidate.client.id for candidate in self._candidates.values())

    def check(self, facts: Facts) -> Checked:
        """Verdicts on every declared client, and every rule's findings."""
        settings = settings_for(self._policy, facts.table, facts.location)
        verdicts = self._verdicts(facts.needs, (*self._asked, *(settings.clients or ())))
        baseline = self._baseline
        before = None if baseline is None else baseline.find(facts.table, facts.location, facts.id)
        found = [*facts.findings, *examine(Case(facts, settings, verdicts, before))]
        if self._baseline is not None and before is None:
            found += not_in_baseline(facts.table)
        kept, suppressed = self._sorted(found, settings, facts)
        return Checked(
            facts.table,
            facts.location,
            verdicts,
            kept,
            suppressed,
            None,
            facts.complete,
            self._unasked(settings, facts),
        )

    def gone(self, before: Facts) -> Checked:
        """The check of a table of the baseline that no longer exists."""
        settings = settings_for(self._policy, before.table, before.location)
        kept, suppressed = self._sorted([gone_since_baseline(before)], settings, before)
        return Checked(before.table, before.location, (), kept, suppressed, None, complete=True)

    def _sorted(
        self, found: Iterable[Finding], settings: Settings, facts: Facts
    ) -> tuple[tuple[Finding, ...], tuple[Suppressed, ...]]:
        """The findings with the policy's severities, the worst first, and those it waives."""
        waivers = [
            each for each in self._waived if matches(each.waiver.table, facts.table, facts.location)
        ]
        kept, suppressed = [], []
        for finding in _graded(found, settings.severities):
            waiver = _waiver(finding, waivers)
            if waiver is None:
                kept.append(finding)
            else:
                suppressed.append(Suppressed(finding, waiver.reason, waiver.expires.isoformat()))
        return tuple(sorted(kept, key=worst_first)), tuple(suppressed)

    def _unasked(self, settings: Settings, facts: Facts) -> bool:
        if self._asked or self._baseline is not None or not self._policy.tables:
            return False
        return settings._replace(severities={}) == Settings(severities={}) and not any(
            matches(entry.pattern, facts.table, facts.location) for entry in self._policy.tables
        )

    def _verdicts(self, table: Needs, declared: tuple[Declared, ...]) -> tuple[Judged, ...]:
        key = (table, declared)
        if key not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            judged = (
                Judged(each, verdict)
                for each in declared
                for verdict in client_verdicts(
                    self._candidates[each.text], self._access or each.access, table
                )
            )
            # A client that is declared twice for the same use is judged once.
            once = {(j.verdict, j.declared.label, j.declared.consumer): j for j in judged}
            self._known[key] = tuple(once.values())
        return self._known[key]


def _waiver(finding: Finding, waivers: Iterable[_Waived]) -> Waiver | None:
    for each in waivers:
        if (
            each.waiver.rule == finding.rule
            and each.waiver.feature in (None, finding.feature)
            and each.names(finding.client)
        ):
            return each.waiver
    return None


class _Waived(NamedTuple):
    """A waiver, its client found in the catalogue: `trino` is all versions and paths of it."""

    waiver: Waiver
    client: Client | None
    reference: Reference

    def names(self, named: str | None) -> bool:
        if self.client is None:
            return True
        if named is None:
            return False
        _, path, version = self.reference
        here = _parsed(named)
        return (
            here.id == self.client.id
            and path in (None, here.path)
            and (version is None or self._number(version) == self._number(here.version))
        )

    def _number(self, version: str | None) -> scheme.Version | str | None:
        # 14.3 and 14.3 LTS are one version.
        assert self.client is not None
        return version and (scheme.parse(self.client.versions, version) or version)


_parsed = lru_cache(maxsize=_REMEMBERED)(parse_reference)


def _waived(catalogue: Catalogue, policy: Policy, waiver: Waiver) -> _Waived:
    if waiver.client is None:
        return _Waived(waiver, None, Reference("", None, None))
    with _at(policy, waiver.position):
        reference = parse_reference(waiver.client)
        return _Waived(waiver, catalogue.get(reference.id), reference)


def _graded(
    findings: Iterable[Finding], severities: Mapping[str, Severity | None] | None
) -> Iterator[Finding]:
    """With the policy's severities; None is off."""
    for finding in findings:
        if severities is None or finding.rule not in severities:
            yield finding
        elif (severity := severities[finding.rule]) is not None:
            yield finding._replace(severity=severity)


@contextmanager
def _at(policy: Policy, position: Position) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise PolicyError(policy.source, position, error.message, error.hint) from None
