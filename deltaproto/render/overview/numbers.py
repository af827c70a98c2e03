"""The numbers in the fleet report. Pure."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.clients.requirements import UNREAD_BOOLEAN_BOUNDS
from deltaproto.fleet.overview import ClientAccessVerdict, Overview, TableRow
from deltaproto.policy.finding import Severity
from deltaproto.policy.rules.client_unknown import RULE as CLIENT_UNKNOWN
from deltaproto.protocol import feature_catalog
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.terminal import largest_first

_MOST_GROUPS = 24
_OTHERS = "(others)"
_FIRST = 25
_VERDICT_WEIGHTS = {Verdict.WRONG: 8, Verdict.REFUSED: 3, Verdict.UNKNOWN: 1, Verdict.OK: 0}
_SEVERITY_WEIGHTS = {Severity.ERROR: 5, Severity.WARNING: 1, Severity.INFO: 0}
_VERDICT_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


class VerdictCounts(NamedTuple):
    """The number of tables for each verdict of a client."""

    wrong: int = 0
    unknown: int = 0
    refused: int = 0
    ok: int = 0

    @property
    def total(self) -> int:
        """The number of all tables."""
        return sum(self)

    @property
    def bad(self) -> int:
        """The number of tables that the client cannot use."""
        return self.total - self.ok

    def plus(self, verdict: Verdict, tables: int) -> VerdictCounts:
        """Return the counts with more tables."""
        name = str(verdict)
        return self._replace(**{name: getattr(self, name) + tables})


class Fix(NamedTuple):
    """A group of tables with the same blocked clients and findings."""

    place: int
    """position of the first table in the overview"""
    row: TableRow
    """the first table of the group"""
    tables: int
    score: int
    """sum over the tables of the group"""
    hindered: tuple[str, ...]
    """clients that cannot use the tables"""
    because: tuple[str, ...]
    """features that block the clients, the most frequent first"""
    rules: tuple[str, ...]
    """rules with findings that are errors or warnings"""
    errors: int
    """number of findings that are errors, over the whole group"""

    @property
    def kind(self) -> tuple[tuple[str, ...], ...]:
        """The grouping key; the page's script uses the same key."""
        return self.hindered, tuple(sorted(self.because)), self.rules


class FleetSummary(NamedTuple):
    """The aggregated numbers of a fleet."""

    protocols: Counter[tuple[int, int]]
    features: Counter[str]
    enabled: Counter[str]
    present: Counter[str]
    present_unknown: Counter[str]
    """number of tables for which it is unknown whether the feature is present"""
    isolation: Counter[str]
    rules: Counter[tuple[str, str]]
    """number of findings by rule and severity"""
    clients: dict[tuple[str, str], VerdictCounts]
    """verdicts by client and access"""
    blocking: Counter[tuple[str, str]]
    """number of tables that a client cannot use because of a feature, by client and feature"""
    groups: tuple[str, ...]
    """the group of each table"""
    by_group: dict[tuple[str, str], VerdictCounts]
    """verdicts by client and group, using the worst verdict over all accesses"""
    fixes: tuple[Fix, ...]
    compliant: int
    """number of tables that every client can use, without an error"""


def numbers(overview: Overview) -> FleetSummary:
    """Aggregate the overview."""
    rows = overview.tables
    groups = grouped([row.location for row in rows])
    found_on = [each for row in rows for each in row.findings]
    found_on += (each for row in overview.unread for each in row.findings)
    found = FleetSummary(
        Counter(row.protocol for row in rows),
        Counter(name for row in rows for name, _, _ in row.features),
        Counter(name for row in rows for name, enabled, _ in row.features if enabled),
        Counter(name for row in rows for name, _, present in row.features if present),
        Counter(name for row in rows for name, _, present in row.features if present is None),
        Counter(row.isolation or "not set" for row in rows),
        Counter((finding.rule, str(finding.severity)) for finding in found_on),
        {},
        Counter(),
        groups,
        {},
        (),
        0,
    )
    fixes: dict[tuple[tuple[str, ...], ...], Fix] = {}
    compliant = 0
    # Tables with equal requirements share one tuple of verdicts.
    shared = {id(row.verdicts): row.verdicts for row in rows}
    alike = Counter((id(row.verdicts), group) for row, group in zip(rows, groups, strict=True))
    for (verdicts, group), tables in alike.items():
        _count(shared[verdicts], group, tables, found)
    for place, row in enumerate(rows):
        fix = _fix(place, row)
        if fix.score:
            known = fixes.get(fix.kind)
            fixes[fix.kind] = fix if known is None else _together(known, fix)
        compliant += not (fix.hindered or fix.errors) and row.complete
    first = sorted(fixes.values(), key=lambda fix: (-fix.score, fix.row.table))[:_FIRST]
    return found._replace(fixes=tuple(first), compliant=compliant)


def _together(first: Fix, other: Fix) -> Fix:
    return first._replace(
        tables=first.tables + 1,
        score=first.score + other.score,
        errors=first.errors + other.errors,
    )


def _count(
    verdicts: tuple[ClientAccessVerdict, ...], group: str, tables: int, found: FleetSummary
) -> None:
    """Count tables of one group with these verdicts."""
    worst: dict[str, Verdict] = {}
    blocked: dict[tuple[str, str], int] = {}
    for of_client in verdicts:
        key = (of_client.client, str(of_client.access))
        before = found.clients.get(key, VerdictCounts())
        found.clients[key] = before.plus(of_client.verdict, tables)
        known = worst.get(of_client.client, Verdict.OK)
        worst[of_client.client] = min(known, of_client.verdict, key=_VERDICT_RANKS.__getitem__)
        if of_client.verdict is not Verdict.OK:
            blocked.update(((of_client.client, each), tables) for each in of_client.because)
    found.blocking.update(blocked)
    for client, verdict in worst.items():
        cell = found.by_group.get((client, group), VerdictCounts())
        found.by_group[client, group] = cell.plus(verdict, tables)


def _fix(place: int, row: TableRow) -> Fix:
    score, hindered, because = _hindrance(row.verdicts)
    score += sum(_SEVERITY_WEIGHTS[finding.severity] for finding in row.findings)
    errors = sum(finding.severity is Severity.ERROR for finding in row.findings)
    rules = {f.rule for f in row.findings if f.severity is not Severity.INFO}
    return Fix(place, row, 1, score, hindered, because, tuple(sorted(rules)), errors)


@cache_by_identity(4096)
def _hindrance(
    verdicts: tuple[ClientAccessVerdict, ...],
) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
    """Return the score of the verdicts, the clients that fail, and the features that block them."""
    score = 0
    because: Counter[str] = Counter()
    hindered: dict[str, None] = {}
    for verdict in verdicts:
        score += _VERDICT_WEIGHTS[verdict.verdict]
        if verdict.verdict is not Verdict.OK:
            hindered[verdict.client] = None
            because.update(verdict.because)
    return score, tuple(hindered), tuple(name for name, _ in largest_first(because))


def grouped(locations: Sequence[str]) -> tuple[str, ...]:
    """Return each table's group: its folder, or a higher folder if there are too many groups."""
    parents = [location.rstrip("/").rpartition("/")[0] for location in locations]
    while len(set(parents)) > _MOST_GROUPS:
        longest = max(parent.count("/") for parent in parents)
        shorter = [p.rpartition("/")[0] if p.count("/") == longest else p for p in parents]
        if len(set(shorter)) < 2 or longest <= _ROOT:
            kept = {name for name, _ in Counter(parents).most_common(_MOST_GROUPS - 1)}
            return tuple(parent if parent in kept else _OTHERS for parent in parents)
        parents = shorter
    return tuple(parents)


# `scheme://host` contains two slashes.
_ROOT = 2


def plain_location(location: str) -> str:
    """Return the path of a local table or folder if it is text without control characters.

    Other locations are returned unchanged.
    """
    from urllib.parse import unquote

    if not location.startswith("file:///"):
        return location
    try:
        path = unquote(location.removeprefix("file://"), errors="strict")
    except UnicodeDecodeError:
        return location
    return path if escape_control_chars(path) == path and "\n" not in path else location


def command(fix: Fix, policy: str | None) -> str | None:
    """Return the next command for the first table; None if its location cannot be copied.

    It plans what the policy requires, or checks a table again if too little is known about it.
    """
    location = plain_location(fix.row.location)
    if escape_control_chars(location) != location or "\n" in location:
        return None
    if policy is not None:
        if fix.rules != (CLIENT_UNKNOWN.id,):
            return shlex.join(["deltaproto", "plan", location, "--policy", policy])
        unread = any(found.evidence == UNREAD_BOOLEAN_BOUNDS for found in fix.row.findings)
        more = ["--look-in-files"] if unread else []
        return shlex.join(["deltaproto", "check", location, "--policy", policy, *more])
    dropped = _droppable(fix)
    if not dropped:
        return shlex.join(["deltaproto", "inspect", location])
    drops = [word for feature in dropped for word in ("--drop", feature)]
    return shlex.join(["deltaproto", "plan-downgrade", location, *drops])


def _droppable(fix: Fix) -> list[str]:
    """Return the blocking features that Delta Spark can drop and that no other feature requires."""
    dropped = [
        name
        for name in fix.because
        if feature_catalog.feature_record(name).drop.delta_spark is not None
    ]
    names = {name for name, _, _ in fix.row.features}
    while True:
        needed = {
            each
            for name in names - set(dropped)
            for each in feature_catalog.with_required_features({name}) - {name}
        }
        left = [name for name in dropped if name not in needed]
        if left == dropped:
            return dropped
        dropped = left
