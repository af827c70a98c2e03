"""Draft the clients of a policy from what was seen, with the evidence as comments."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.version_scheme import parse_version
from deltaproto.counts import counted
from deltaproto.errors import UsageError
from deltaproto.fleet.seen.collect import Discovery
from deltaproto.fleet.seen.uses import Client, SeenClient, Usage
from deltaproto.policy.document import Policy, settings_for
from deltaproto.policy.document.model import Declared
from deltaproto.policy.document.patterns import find_pattern_problem, matches_table
from deltaproto.policy.local_catalog import parse_declared

_MOST_TABLES = 20
"""tables of one client in one folder that get their own patterns; more get one for the folder"""
_MOST_NAMES = 3
_EVERY_WRITE = (Access.APPEND, Access.DML, Access.MAINTAIN)
"""assumed for a writer whose operations are unknown"""


class DraftedClient(NamedTuple):
    """A client to declare."""

    text: str
    """as a policy names it"""
    access: tuple[Access, ...]
    comment: str
    """the evidence, on one line"""


class Draft(NamedTuple):
    """The declarations for a policy, based on what was seen."""

    everywhere: tuple[DraftedClient, ...]
    """clients of all tables"""
    by_pattern: Mapping[str, tuple[DraftedClient, ...]]
    """clients of some tables, by pattern"""
    remarks: tuple[str, ...]
    """clients that cannot be declared yet, on one line each"""
    uncovered: tuple[str, ...]
    """tables whose name no pattern can match"""

    @property
    def clients(self) -> int:
        """The number of different clients."""
        drafted = [*self.everywhere, *(each for some in self.by_pattern.values() for each in some)]
        return len({each.text for each in drafted})


def draft_policy(found: Discovery, catalog: ClientCatalog, policy: Policy | None) -> Draft:
    """Draft what `policy` does not declare yet; None: everything that was seen."""
    everywhere: list[DraftedClient] = []
    by_pattern: defaultdict[str, list[DraftedClient]] = defaultdict(list)
    remarks: list[str] = []
    uncovered: set[str] = set()
    folders = _folders(found.places)
    for client, seen in found.uses.identified:
        text = _policy_name(client, catalog)
        used = {
            table: usage
            for table, usage in seen.tables.items()
            if _access(usage) and not _is_declared(policy, catalog, text, table, usage, found)
        }
        if text is None:
            version = f"{client.id}@VERSION" if client.version is None else client.label
            remarks.append(f"- {version}  # {_evidence(seen, seen.tables.values())}")
        elif used and set(used) == set(found.places):
            everywhere.append(_drafted(text, seen, used.values()))
        elif used:
            for pattern, tables in _patterns(used, folders, found.places, uncovered):
                usages = [used[table] for table in tables]
                by_pattern[pattern].append(_drafted(text, seen, usages))
    remarks += (
        f"unidentified: {_quote(client.mark or '')}  # {_evidence(seen, seen.tables.values())}"
        for client, seen in found.uses.unidentified
    )
    patterns = {pattern: tuple(some) for pattern, some in sorted(by_pattern.items())}
    return Draft(tuple(everywhere), patterns, tuple(remarks), tuple(sorted(uncovered)))


def _policy_name(client: Client, catalog: ClientCatalog) -> str | None:
    """Return the client's name in a policy; None if that requires an unknown version."""
    try:
        catalog.resolve(client.label)
    except UsageError:
        return None
    return client.label


def _access(usage: Usage) -> tuple[Access, ...]:
    if not usage.access and (usage.commits.count or usage.files is not None):
        return _EVERY_WRITE
    return tuple(access for access in Access if access in usage.access)


def _is_declared(
    policy: Policy | None,
    catalog: ClientCatalog,
    text: str | None,
    table: str,
    usage: Usage,
    found: Discovery,
) -> bool:
    """Return True if the policy declares the client for this table, with this access."""
    if policy is None or text is None:
        return False
    declared = settings_for(policy, table, found.places.get(table)).clients or ()
    seen = parse_declared(text)
    same = [each for each in declared if _is_same(each, seen, catalog)]
    return {*_access(usage)} <= {access for each in same for access in each.access}


def _is_same(one: Declared, other: Declared, catalog: ClientCatalog) -> bool:
    """Return True for the same client and version, however its paths are declared."""
    try:
        client, wanted = catalog.get(one.id), catalog.get(other.id)
    except UsageError:
        return False
    if client.id != wanted.id:
        return False
    versions = [
        None if each.version is None else parse_version(client.versions, each.version)
        for each in (one, other)
    ]
    return versions[0] == versions[1]


def _folders(places: Mapping[str, str]) -> Mapping[str, set[str]]:
    """Return the tables of each folder or schema."""
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for table, place in places.items():
        folders[_parent(place)].add(table)
    return folders


def _parent(place: str) -> str:
    return place.rpartition("/" if "/" in place else ".")[0]


def _patterns(
    used: Mapping[str, Usage],
    folders: Mapping[str, set[str]],
    places: Mapping[str, str],
    uncovered: set[str],
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield patterns, each with the used tables that it covers."""
    parents: defaultdict[str, list[str]] = defaultdict(list)
    for table in used:
        if table in places:
            parents[_parent(places[table])].append(table)
    for parent, tables in sorted(parents.items()):
        whole = f"{parent}{'/' if '/' in places[tables[0]] else '.'}*"
        every = set(tables) == folders[parent] and len(tables) > 1
        if (every or len(tables) > _MOST_TABLES) and _is_pattern(whole):
            yield whole, sorted(tables)
            continue
        for table in sorted(tables):
            place = places[table]
            if _is_pattern(place) and matches_table(place, table, place):
                yield place, [table]
            else:
                uncovered.add(table)


def _is_pattern(text: str) -> bool:
    """Return True for a valid pattern that a policy file can contain."""
    return text.isprintable() and find_pattern_problem(text) is None


def _drafted(text: str, seen: SeenClient, usages: Collection[Usage]) -> DraftedClient:
    access = {each for usage in usages for each in _access(usage)}
    comment = _evidence(seen, usages)
    return DraftedClient(text, tuple(each for each in Access if each in access), comment)


def _evidence(seen: SeenClient, usages: Collection[Usage]) -> str:
    """Return period, numbers, principals and mark on one line of ASCII."""
    total = Usage()
    for usage in usages:
        total.include(usage)
    both, parts = total.all, []
    if both.first is not None and both.last is not None:
        parts.append(f"seen {_day(both.first)} to {_day(both.last)}")
    numbers = [(total.commits.count, "commit"), (total.requests.count, "request")]
    if total.files is not None:
        numbers.append((total.files.count, "data file"))
    parts += [counted(count, what) for count, what in numbers if count]
    parts.append(counted(len(usages), "table"))
    names = sorted(seen.principals.items(), key=lambda each: -each[1].all.count)
    parts += [f"{name.kind} {_quote(name.text)}" for name, _ in names[:_MOST_NAMES]]
    mark = max(seen.evidence.items(), key=lambda each: each[1], default=None)
    if mark is not None:
        parts.append(f"{mark[0].field} {_quote(mark[0].text)}")
    parts.append(str(seen.confidence))
    return ", ".join(parts)


def _quote(text: str) -> str:
    """Quote any text as ASCII on one line."""
    return json.dumps(text)


def _day(milliseconds: int) -> str:
    # A writer's clock may show a time that a date cannot express.
    seconds = min(max(milliseconds // 1000, 0), 253_402_300_799)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def new_policy(draft: Draft, found: Discovery, today: datetime) -> str:
    """Return the text of a new policy."""
    logs = [source for source in found.sources if source.is_access_log]
    what = f"the logs of {counted(found.tables, 'table')}"
    if logs:
        what += f" and {counted(len(logs), 'access log')}"
    lines = [
        f"# Drafted by deltaproto discover on {today:%Y-%m-%d} from {what}.",
        "# Review it: it declares the clients that were seen, with the access that was seen.",
    ]
    if not logs:
        lines.append(
            "# The tables' logs show writers, but never clients that only read: add the readers."
        )
    if found.failed:
        unread = counted(len(found.failed), "table or log", "tables or logs")
        lines.append(f"# Incomplete: {unread} could not be read.")
    lines += ["policy_version: 1", "clients:" if draft.everywhere else "clients: []"]
    lines += client_lines(draft.everywhere, "  ")
    lines += [f"  # {remark}" for remark in draft.remarks]
    if draft.by_pattern:
        lines += ["", "tables:"]
        for pattern, clients in draft.by_pattern.items():
            lines += [f"  {json.dumps(pattern, ensure_ascii=False)}:", "    clients:"]
            lines += client_lines(clients, "      ")
    return "\n".join([*lines, ""])


def client_lines(clients: Iterable[DraftedClient], indent: str) -> list[str]:
    """Return the lines that declare clients, with the evidence above each."""
    return [
        line
        for each in clients
        for line in (
            f"{indent}# {each.comment}",
            f"{indent}- client: {each.text}",
            f"{indent}  access: [{', '.join(each.access)}]",
        )
    ]
