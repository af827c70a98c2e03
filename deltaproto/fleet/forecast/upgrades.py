"""The effect of an automatic upgrade on one table, and when it may happen. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from deltaproto.clients.requirements import TableRequirements, table_requirements
from deltaproto.fleet.forecast.records import Hold
from deltaproto.fleet.seen.seen_findings import SeenOnTable
from deltaproto.planning.search.goals import EndState, requirements_after
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.automatic_upgrades import ACTIVE_DAYS, AutomaticUpgrade
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.feature import RequirementKind
from deltaproto.protocol.protocol import Protocol

RUNTIME = "databricks-runtime"
"""id of the client whose accesses can be verified"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown_name(use: SeenOnTable) -> str:
    """Return the name of a client seen, as messages show it."""
    return use.client.label or "an unidentified program"


def has_feature(table: TableRequirements, feature: str) -> bool:
    """Return True if the table supports and uses the feature: nothing is left to turn on."""
    return feature in table.protocol.supported and table.uses(feature) is True


@lru_cache(maxsize=4096)
def requirements_with(table: TableRequirements, feature: str) -> TableRequirements:
    """Return the requirements of a table with a valid protocol after a feature is turned on.

    What the feature requires is turned on as well; column mapping is by name.
    """
    protocol = table.protocol
    if feature not in protocol.supported:
        protocol = protocol.with_feature(feature)
    mode = "name" if feature == "columnMapping" else None
    return requirements_after(table, EndState(protocol, on=_enabled_with(feature), mode=mode))


def _enabled_with(feature: str) -> frozenset[str]:
    """Return the feature, and those that must be enabled for it."""
    found: set[str] = set()
    left = [feature]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += (
                each.feature
                for each in feature_catalog.feature_record(name).requires
                if each.need is RequirementKind.ENABLED
            )
    return frozenset(found)


def new_table() -> TableRequirements:
    """Return the requirements of a table that was just created without any setting."""
    features = ("appendOnly", "invariants")
    return table_requirements(
        Protocol.carrying(features), dict.fromkeys(features, False), {}, by_name=True
    )


def is_verified(client: str | None, version: str | None, rule: AutomaticUpgrade) -> bool | None:
    """Return whether accesses of a client count as verified; None: its version is unknown.

    Every access counts against an upgrade, except those of Databricks compute on a runtime that
    knows the feature.
    """
    if client != RUNTIME:
        return False
    known, least = parse_runtime(version or ""), parse_runtime(rule.runtime)
    if known is None:
        return None
    assert least is not None
    return known.runtime >= least.runtime


def find_hold(uses: Iterable[SeenOnTable], rule: AutomaticUpgrade, today: date) -> Hold | None:
    """Return which accesses delay an upgrade beyond today; None if no counted access does."""
    until: dict[str, date] = {}
    for use in uses:
        last = use.times.last
        if last is None or is_verified(use.client.id, use.client.version, rule) is not False:
            continue
        end = (day := day_of(last)) and _later(day, rule.window)
        if end is not None and end > today:
            name = shown_name(use)
            until[name] = max(end, until.get(name, end))
    return Hold(max(until.values()), tuple(sorted(until))) if until else None


def _later(day: date, window: timedelta) -> date | None:
    try:
        return day + window
    except OverflowError:
        return None


def misses_window(use: SeenOnTable, rule: AutomaticUpgrade) -> bool:
    """Return True if an unverified client returns less often than the observation window."""
    if use.rhythm is None or use.rhythm.days <= rule.window.days:
        return False
    return is_verified(use.client.id, use.client.version, rule) is not True


def idle_days(last: Iterable[date | None], today: date) -> int | None:
    """Return the days since the last known access, if a table is skipped for it; None if not.

    Without any known access, the table counts as active.
    """
    known = [day for day in last if day is not None]
    days = (today - max(known)).days if known else 0
    return days if days > ACTIVE_DAYS else None


def day_of(milliseconds: int | None) -> date | None:
    """Return the day of a time in UTC; None for None, and for times that no date can express."""
    if milliseconds is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).date()
    except OverflowError:
        return None
