"""Compare the clients that a policy declares with the clients that `discover` counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import READ_ACCESSES, Access
from deltaproto.clients.version_scheme import Version, parse_version
from deltaproto.counts import counted
from deltaproto.fleet.seen.stored_uses import StoredUses, require_stored
from deltaproto.fleet.seen.times import Rhythm, Times
from deltaproto.fleet.seen.user_agents import RULES
from deltaproto.fleet.seen.uses import Client, SeenClient, SeenTable
from deltaproto.inspection.age import age_warning
from deltaproto.plan_inputs.client_scope import SeenUse
from deltaproto.policy.document import Policy, Position, normalize_location
from deltaproto.policy.document.model import Declared
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.finding import Finding
from deltaproto.policy.rules import (
    declared_not_seen,
    rarely_seen,
    seen_not_declared,
    seen_older_version,
)
from deltaproto.policy.table_check import TableCheck
from deltaproto.protocol.writers import MARKS

MOST_DAYS = 36_500
DEFAULT_DAYS = 90
"""how long after its last use a client counts as a user of a table"""
_DAY = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FEW_USES = 2
"""number of uses that are too few for a rhythm"""
_NAMED = 3
"""principals in a finding"""
_SIGNING = frozenset(mark.client for mark in MARKS)
"""ids of clients that sign their commits"""
_REQUESTING = frozenset(
    each for rule in RULES for each in (rule.client, *rule.could_be) if each is not None
)
"""ids of clients that leave a mark in access logs"""


class SeenOnTable(NamedTuple):
    """One client on one table."""

    client: Client
    seen: SeenClient
    """the client on all tables"""
    usage: SeenTable
    times: Times
    """of commits and requests together"""
    rhythm: Rhythm | None

    @property
    def ids(self) -> tuple[str, ...]:
        """The id; the ids of all clients that leave the mark of an unidentified program."""
        return self.seen.could_be if self.client.id is None else (self.client.id,)


class RecentUses:
    """The clients of each table in the last days.

    Args:
        stored: what earlier runs counted.
        days: how long before the newest run; a client with a longer rhythm counts until two
            expected uses were missed.
    """

    def __init__(self, stored: StoredUses, days: int = DEFAULT_DAYS) -> None:
        self._stored, self.days = stored, days
        until = int(stored.last_run.timestamp() * 1000)
        self.since = until - days * _DAY
        """milliseconds since the epoch"""
        self._tables: dict[str, list[SeenOnTable]] = defaultdict(list)
        self._first_commit: dict[str, int] = {}
        self._first_request: dict[str, int] = {}
        for client, seen in stored.uses.clients.items():
            for location, usage in seen.tables.items():
                _keep_first(self._first_commit, location, usage.commits.first)
                _keep_first(self._first_request, location, usage.requests.first)
                times = usage.all
                last, rhythm = times.last, times.rhythm
                missed = 0 if rhythm is None else rhythm.next + rhythm.days * _DAY
                # A request without a time may be recent.
                if last is None or last >= self.since or missed >= until:
                    self._tables[location].append(SeenOnTable(client, seen, usage, times, rhythm))

    def of_table(self, location: str) -> list[SeenOnTable]:
        """Return the clients of a table, by name."""
        return sorted(self._tables.get(location, ()), key=lambda each: each.client.label)

    def was_counted(self, location: str) -> bool:
        """Return True if the commits of a table were counted at all."""
        return location in self._stored.counted

    def covers(self, location: str, access: Access) -> bool:
        """Return True if this use of a table would have been counted in the whole period."""
        if access not in READ_ACCESSES and location in self._stored.gaps:
            return False
        first = self._first_request if access in READ_ACCESSES else self._first_commit
        return first.get(location, self.since + 1) <= self.since


def load_recent_uses(
    name: str, storage_options: Mapping[str, str], days: int, max_age: int
) -> tuple[RecentUses, str | None]:
    """Return the clients that `discover` counted in an inventory, and a notice if that is old.

    Args:
        days: counted back from the newest run of `discover`.
        max_age: age in days from which the newest run counts as old.

    Raises:
        UsageError: when there is no inventory, or `discover` never counted in it.
        TableError: corrupt-log, when the inventory is damaged.
    """
    stored = require_stored(name, storage_options)
    old = age_warning(stored.last_run, datetime.now(UTC), max_age)
    notice = None if old is None else f"{name}: the newest run of discover {old}; run it again"
    return RecentUses(stored, days), notice


def _keep_first(times: dict[str, int], location: str, first: int | None) -> None:
    if first is not None:
        times[location] = min(first, times.get(location, first))


class SeenChecks:
    """Add the findings about clients seen to the checks of tables.

    Args:
        checker: it applies the policy's severities and waivers.
    """

    def __init__(
        self, seen: RecentUses, policy: Policy, catalog: ClientCatalog, checker: Checker
    ) -> None:
        self._seen, self._catalog, self._checker = seen, catalog, checker
        self._policy = policy
        self.uncounted: list[str] = []
        """tables whose commits no run counted"""
        self._uncountable: set[Position] = set()
        self._used: set[Position] = set()
        self._tables: Counter[Declared] = Counter()

    def checked(self, tables: Iterable[TableCheck]) -> Iterator[TableCheck]:
        """Yield each check with more findings; then add those about the policy to the checker."""
        for checked in tables:
            if checked.error is not None or checked.of_policy:
                yield checked
                continue
            location = normalize_location(checked.location or checked.table)
            found = self._seen.of_table(location)
            if not self._seen.was_counted(location):
                self.uncounted.append(checked.table)
            self._record_use(checked, location, found)
            findings = list(self._findings(checked, found))
            yield self._checker.with_findings(checked, findings) if findings else checked
        for finding in self._unseen():
            self._checker.use.add_finding(finding)

    def _findings(self, checked: TableCheck, found: list[SeenOnTable]) -> Iterator[Finding]:
        declared: dict[str, set[Access]] = defaultdict(set)
        versions: dict[str, list[Version]] = defaultdict(list)
        for judged in checked.verdicts:
            declared[judged.client].add(judged.access)
            if (version := self._version(judged.client, judged.version)) is not None:
                versions[judged.client].append(version)
        for each in found:
            yield from _not_declared(checked.table, each, declared)
            if (id_ := each.client.id) is not None and (oldest := versions.get(id_)):
                version = self._version(id_, each.client.version)
                if version is not None and version < min(oldest):
                    yield _older(checked.table, each)
            yield from _rare(checked.table, each)

    def _version(self, id_: str, text: str | None) -> Version | None:
        return None if text is None else parse_version(self._catalog.get(id_).versions, text)

    def _record_use(self, checked: TableCheck, location: str, found: list[SeenOnTable]) -> None:
        used = {id_ for each in found for id_ in each.ids}
        for judged in checked.verdicts:
            position = judged.declared.position
            marks = _REQUESTING if judged.access in READ_ACCESSES else _SIGNING
            if judged.client in used:
                self._used.add(position)
            if judged.client not in marks or not self._seen.covers(location, judged.access):
                self._uncountable.add(position)
        for declared in {judged.declared for judged in checked.verdicts}:
            self._tables[declared] += 1

    def _unseen(self) -> Iterator[Finding]:
        source = self._policy.source
        mine = set(self._policy.declared())
        for declared, tables in self._tables.items():
            position = declared.position
            if declared not in mine or position in self._used | self._uncountable:
                continue
            yield declared_not_seen.RULE.finding(
                source,
                f"{source}:{position.line}:{position.column}: {declared.text} is declared for "
                f"{counted(tables, 'table')} and was not seen to use "
                f"{'it' if tables == 1 else 'any of them'} in {self._seen.days} days",
                "ask its owner, and remove it if it is no longer needed",
                client=declared.text,
                detail=f"{declared.text} {position.line}",
            )


def _not_declared(
    table: str, each: SeenOnTable, declared: dict[str, set[Access]]
) -> Iterator[Finding]:
    known = [id_ for id_ in each.ids if id_ in declared]
    allowed = {access for id_ in known for access in declared[id_]}
    used = [access for access in Access if access in each.usage.access]
    missing = [access for access in used if access not in allowed]
    if known and not missing:
        return
    what = ", ".join(missing or used) or "an unknown operation"
    if known:
        message = f"{_name(each)} is not declared for {what}, but was seen to do it"
    else:
        message = f"{_name(each)} is not declared, but was seen to use the table ({what})"
    yield seen_not_declared.RULE.finding(
        table,
        message,
        "declare it with this access (discover --write-policy does), or waive the finding",
        client=each.client.label if each.client.id is not None else None,
        evidence=_evidence(each),
        detail=f"{each.client.label} {what}",
    )


def _older(table: str, each: SeenOnTable) -> Finding:
    return seen_older_version.RULE.finding(
        table,
        f"{_name(each)} is older than every declared version of {each.client.id}",
        f"upgrade it, or declare {each.client.label} as well",
        client=each.client.label,
        evidence=_evidence(each),
    )


def _rare(table: str, each: SeenOnTable) -> Iterator[Finding]:
    rhythm = each.rhythm
    if rhythm is None:
        return
    how = (
        f"used the table twice, {counted(rhythm.days, 'day')} apart; perhaps again about"
        if rhythm.uses == _FEW_USES
        else f"uses the table about every {counted(rhythm.days, 'day')}; next about"
    )
    yield rarely_seen.RULE.finding(
        table,
        f"{_name(each)} {how} {show_day(rhythm.next)}",
        "notify its owner before a change, and test it after the change",
        client=each.client.label if each.client.id is not None else None,
        evidence=_evidence(each),
        detail=each.client.label,
    )


def _name(each: SeenOnTable) -> str:
    if each.client.id is not None:
        return each.client.label
    could = f"; could be {', '.join(each.seen.could_be)}" if each.seen.could_be else ""
    return f"An unidentified program ({each.client.label}{could})"


def _evidence(each: SeenOnTable) -> str:
    """Return when, how often and for whom the client used the table."""
    counts = [
        counted(times.count, what)
        for times, what in ((each.usage.commits, "commit"), (each.usage.requests, "request"))
        if times.count
    ]
    return ", ".join((" and ".join(counts), describe_principals(each)))


def describe_principals(each: SeenOnTable) -> str:
    """Return when a client last used a table, and for whom, most active first."""
    last = each.times.last
    when = "at an unknown time" if last is None else f"last {show_day(last)}"
    counts = {
        name: usage.commits.count + usage.requests.count
        for name, usage in each.usage.principals.items()
    }
    names = sorted(counts, key=lambda name: (-counts[name], name.text))
    shown = [f"{name.kind} {name.text}" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        shown.append(f"and {len(names) - _NAMED:,} more")
    return f"{when}; {', '.join(shown)}" if shown else when


def uses_for_plans(recent: RecentUses) -> Callable[[str], tuple[SeenUse, ...] | None]:
    """Return a function for planners: the uses of the table at a location; None: not counted."""

    # A planner needs the clients of a table both before and after planning.
    @lru_cache(maxsize=64)
    def uses(location: str) -> tuple[SeenUse, ...] | None:
        place = normalize_location(location)
        found = tuple(_for_plan(each) for each in recent.of_table(place))
        return found if found or recent.was_counted(place) else None

    return uses


def _for_plan(each: SeenOnTable) -> SeenUse:
    access = tuple(access for access in Access if access in each.usage.access)
    who = describe_principals(each)
    if each.rhythm is not None:
        who += f"; next about {show_day(each.rhythm.next)}"
    return SeenUse(each.client.id, each.client.version, _name(each), access, who)


def show_day(milliseconds: int) -> str:
    """Return the day of a time in UTC."""
    try:
        return f"{_EPOCH + timedelta(milliseconds=milliseconds):%Y-%m-%d}"
    except OverflowError:
        return "after the year 9999"
