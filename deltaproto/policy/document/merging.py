"""Merge the settings for one table: which pattern decides, and what it weakens.

Lists (clients, forbidden and required features) collect the entries of all matching patterns. A
narrow pattern never removes entries of a wide one unless it sets `clients_replace` or the like.
Other settings have one value, decided by the most specific pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from deltaproto.policy.document.contradictions import Contradiction, find_contradictions
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Policy, PolicySettings, TableEntry, Window
from deltaproto.policy.document.patterns import TableNames, pattern_parts
from deltaproto.policy.document.windows import DAYS
from deltaproto.policy.finding import Severity
from deltaproto.protocol.isolation import IsolationLevel

LISTS = ("clients", "forbid_features", "require_features")
_KEYED = ("require_properties", "severities")
_SINGLE = (
    "max_reader_version",
    "max_writer_version",
    "min_reader_version",
    "min_writer_version",
    "isolation",
    "protocol",
    "cluster_by",
    "history",
    "maintenance_windows",
)
_STRICTEST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO, None)


class Decision(NamedTuple):
    """A setting, or one entry of a list, and the pattern that sets it."""

    setting: str
    """for example `max_reader_version` or `severities.DP201`"""
    value: str
    pattern: str | None
    """None: set for all tables"""
    position: Position | None
    profile: str | None = None
    """the profile that the pattern inherits it from"""


class Notice(NamedTuple):
    """A pattern that changes the requirements of less specific patterns."""

    pattern: str
    message: str
    hint: str
    position: Position


class Merged(NamedTuple):
    """The settings of a table and their sources."""

    settings: PolicySettings
    decisions: tuple[Decision, ...]
    notices: tuple[Notice, ...]
    contradictions: tuple[Contradiction, ...] = ()
    """requirements that no table can meet together"""


def settings_for(
    policy: Policy, table: str, location: str | None, others: Iterable[str] = ()
) -> PolicySettings:
    """Return the settings of one table.

    Args:
        table: the name given by the user.
        location: its absolute URI or path; None: unknown.
        others: further names of the location, in catalogs and through links.
    """
    names = TableNames(table, location, others=others)
    return merge_settings(policy, find_matching(policy, names)).settings


def find_matching(policy: Policy, names: TableNames) -> tuple[TableEntry, ...]:
    """Return the matching entries, least specific first, ties in file order."""
    found = [entry for entry in policy.tables if names.match(entry.pattern)]
    return tuple(sorted(found, key=lambda entry: specificity(entry.pattern)))


@lru_cache(maxsize=1024)
def specificity(pattern: str) -> tuple[int, ...]:
    """Rank how narrow a pattern is by its structure; a larger tuple is narrower.

    Compared in this order: no wildcards at all; more parts without wildcards (depth); more parts
    that are only partly wildcards; fewer `**`; fewer `*`; fewer `?`; a last part without wildcards;
    an absolute location.
    """
    found = pattern_parts(pattern)
    absolute = pattern.startswith("/") or ":/" in pattern
    if found[:1] == ["**"] and len(found) > 1:
        # `**/orders` is the same as `orders`: a relative pattern may begin at any part.
        found = found[1:]
    wild = [any(character in "*?" for character in part) for part in found]
    text = "\0".join(found)
    across = text.count("**")
    return (
        int(not any(wild)),
        wild.count(False),
        sum(bool(is_wild and part.strip("*?")) for part, is_wild in zip(found, wild, strict=True)),
        -across,
        2 * across - text.count("*"),
        -text.count("?"),
        int(not wild[-1]) if wild else 0,
        int(absolute),
    )


def merge_settings(policy: Policy, entries: tuple[TableEntry, ...]) -> Merged:
    """Merge the entries that match a table, least specific first."""
    merging = _SettingsMerger()
    everywhere = PolicySettings(clients=policy.clients, severities=policy.severities)
    merging.add(TableEntry("", everywhere, Position(1, 1)), pattern=None)
    for entry in entries:
        merging.add(entry, pattern=entry.pattern)
    return merging.merged()


class _SettingsMerger:
    """Accumulates settings, least specific first."""

    def __init__(self) -> None:
        self._lists: dict[str, list[tuple[Any, Decision]]] = {}
        self._single: dict[str, tuple[Any, Decision]] = {}
        self._keyed: dict[str, dict[str, tuple[Any, Decision]]] = {name: {} for name in _KEYED}
        self._notices: list[Notice] = []

    def add(self, entry: TableEntry, *, pattern: str | None) -> None:
        """Add the settings of one more pattern; None means all tables."""
        settings = entry.settings
        for name in LISTS:
            value = getattr(settings, name)
            if value is not None:
                self._list(name, value, entry, pattern)
        for name in _SINGLE:
            value = getattr(settings, name)
            if value is not None:
                decision = Decision(
                    name, _format_value(value), pattern, entry.position, entry.profile
                )
                self._weakened(name, self._single.get(name), value, decision)
                self._single[name] = value, decision
        for name in _KEYED:
            keyed: Mapping[str, Any] = getattr(settings, name)
            for key, value in keyed.items():
                place = None if pattern is None else entry.position
                decision = Decision(
                    f"{name}.{key}", _format_value(value), pattern, place, entry.profile
                )
                self._weakened(name, self._keyed[name].get(key), value, decision)
                self._keyed[name][key] = value, decision

    def merged(self) -> Merged:
        """Return the merged settings."""
        values: dict[str, Any] = {
            name: tuple(value for value, _ in found) for name, found in self._lists.items()
        }
        values.update({name: value for name, (value, _) in self._single.items()})
        for name, keyed in self._keyed.items():
            values[name] = {key: value for key, (value, _) in keyed.items()}
        settings = PolicySettings(**values)
        return Merged(
            settings,
            tuple(self._decisions()),
            tuple(self._notices),
            tuple(find_contradictions(settings)),
        )

    def _decisions(self) -> Iterator[Decision]:
        for name in LISTS:
            yield from (decision for _, decision in self._lists.get(name, ()))
        yield from (decision for _, decision in self._single.values())
        for keyed in self._keyed.values():
            yield from (decision for _, decision in keyed.values())

    def _list(self, name: str, value: Any, entry: TableEntry, pattern: str | None) -> None:
        before = self._lists.get(name, [])
        replaces = getattr(entry.settings, f"{name}_replace")
        known = {each for each, _ in before}
        # What a pattern adds to its own profile needs no notice.
        changed = [each for each in before if replaces or each[1].pattern != pattern]
        if changed and pattern is not None:
            self._notices += _list_notices(name, changed, value, entry, replaces=replaces)
        added = [
            (
                each,
                Decision(
                    name,
                    _format_value(each),
                    pattern,
                    getattr(each, "position", entry.position),
                    entry.profile,
                ),
            )
            for each in value
            if replaces or each not in known
        ]
        self._lists[name] = added if replaces else [*before, *added]

    def _weakened(
        self, name: str, before: tuple[Any, Decision] | None, value: Any, after: Decision
    ) -> None:
        if before is None or after.pattern is None or not _is_weaker(name, before[0], value):
            return
        required = before[1]
        source = "all tables" if required.pattern is None else f'"{required.pattern}"'
        if required.profile is not None:
            source = f"{source} (profile {required.profile})"
        assert after.position is not None
        self._notices.append(
            Notice(
                after.pattern,
                f'"{after.pattern}" sets {after.setting} to {after.value}, '
                f"overriding {required.value} for {source}",
                "check that this is intended",
                after.position,
            )
        )


def _list_notices(
    name: str,
    before: list[tuple[Any, Decision]],
    value: tuple[Any, ...],
    entry: TableEntry,
    *,
    replaces: bool,
) -> Iterator[Notice]:
    removed = [each for each, _ in before if each not in value]
    if replaces:
        if removed:
            named = ", ".join(dict.fromkeys(map(_format_value, removed)))
            yield Notice(
                entry.pattern,
                f'"{entry.pattern}" replaces the {name} of less specific patterns: '
                f"{named} not required there",
                f"remove {name}_replace to keep them",
                entry.position,
            )
        return
    if removed:
        what = "adds to" if value else f"has no {name}, which does not replace"
        yield Notice(
            entry.pattern,
            f'"{entry.pattern}" {what} the {name} of less specific patterns '
            "(earlier versions replaced them)",
            f"write {name}_replace: true under the pattern to replace them",
            entry.position,
        )


def _is_weaker(name: str, before: Any, after: Any) -> bool:
    """Return True if a table that violates the earlier value may pass the later one."""
    if before == after:
        return False
    match name:
        case "max_reader_version" | "max_writer_version":
            return bool(after > before)
        case "min_reader_version" | "min_writer_version":
            return bool(after < before)
        case "isolation":
            return bool(before is IsolationLevel.SERIALIZABLE)
        case "severities":
            return _STRICTEST_FIRST.index(after) > _STRICTEST_FIRST.index(before)
        case "maintenance_windows":
            return not {each[:-1] for each in after} <= {each[:-1] for each in before}
    return True


def _format_value(value: Any) -> str:
    """Format a value as in the policy file."""
    if value is None:
        return "off"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return "; ".join(map(_format_value, value)) or "none"
    if isinstance(value, Window):
        days = "daily" if len(value.days) == len(DAYS) else ",".join(DAYS[d] for d in value.days)
        start, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in value[1:3])
        return f"{days} {start}-{end} {value.timezone}"
    return str(getattr(value, "text", value))
