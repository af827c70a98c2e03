"""The automatic upgrades of tables, and the clients that they would block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any

from deltaproto.caches import BoundedCache, IdentityKey, cache_by_identity
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.counts import counted
from deltaproto.errors import TableError
from deltaproto.fleet.forecast.records import (
    Affected,
    Forecast,
    TableForecast,
    UpgradeForecast,
)
from deltaproto.fleet.forecast.upgrades import (
    day_of,
    find_hold,
    has_feature,
    idle_days,
    misses_window,
    new_table,
    requirements_with,
    shown_name,
)
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.inventory_reader import InventoryReader
from deltaproto.fleet.newest_state import NewestState
from deltaproto.fleet.seen.seen_findings import RecentUses, SeenOnTable, uses_for_plans
from deltaproto.fleet.seen.stored_uses import read_stored
from deltaproto.plan_inputs.client_scope import ClientScope
from deltaproto.plan_inputs.from_log import refuse_invalid_protocol
from deltaproto.planning.impact import compare_clients
from deltaproto.planning.plan import ClientChange
from deltaproto.planning.search.goals import TableClient
from deltaproto.planning.statement import SetProperties
from deltaproto.policy.approvals import AccessLoss
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import Policy, normalize_location
from deltaproto.protocol.automatic_upgrades import (
    MANAGED_TYPES,
    RULES,
    UNAFFECTED_TYPES,
    UNITY_CATALOG,
    WINDOW_DAYS,
    AutomaticUpgrade,
    TableAge,
)
from deltaproto.sql.quoting import address_in_statements, sql_table_name
from deltaproto.tables.engine_errors import contain_table_errors

_FAILS = (Verdict.REFUSED, Verdict.WRONG)
_CACHE_SIZE = 8192
_Clients = tuple[TableClient, ...]
_ClientsKey = tuple[tuple[IdentityKey[ClientAtVersion], tuple[Access, ...], str | None], ...]


def affected_by(facts: TableFacts) -> Affected:
    """Return whether automatic upgrades apply to a table."""
    if facts.catalog is None or facts.type is None:
        return Affected.UNKNOWN
    if facts.catalog != UNITY_CATALOG or facts.type in UNAFFECTED_TYPES:
        return Affected.NO
    return Affected.YES if facts.type in MANAGED_TYPES else Affected.UNKNOWN


class Forecaster:
    """Forecasts tables, one at a time.

    Args:
        scope: the clients of each table.
        seen: the clients that used the tables; None: they were not counted.
    """

    def __init__(self, scope: ClientScope, seen: RecentUses | None, today: date) -> None:
        self._scope, self._seen, self._today = scope, seen, today
        self._everywhere: dict[tuple[str, tuple[str, ...]], TableClient] = {}
        self._known = BoundedCache[_ClientsKey, IdentityKey[_Clients]](_CACHE_SIZE)
        self._newest: IdentityKey[_Clients] | None = None

    def forecast(self, facts: TableFacts, last_commit: date | None) -> TableForecast:
        """Return the forecast of one table.

        Args:
            last_commit: the day of its newest commit; None: not known.

        Raises:
            TableError: when the table's protocol is invalid.
        """
        found = affected_by(facts)
        table = TableForecast(facts.table, facts.location, found, facts.type)
        if found is Affected.NO:
            return table
        refuse_invalid_protocol(facts.needs.protocol)
        place = normalize_location(facts.location)
        uses = [] if self._seen is None else self._seen.of_table(place)
        clients = self._clients(facts)
        upgrades = tuple(
            self._upgrade(rule, facts, clients, uses)
            for rule in RULES
            if rule.tables is TableAge.EXISTING and not has_feature(facts.needs, rule.feature)
        )
        last = [last_commit, *(day_of(use.times.last) for use in uses)]
        return table._replace(
            upgrades=upgrades,
            idle_days=idle_days(last, self._today),
            clients=len(clients.value) if self._scope.any else 0,
            counted=self._seen is not None and self._seen.was_counted(place),
            complete=facts.complete,
        )

    def new_tables(self) -> tuple[UpgradeForecast, ...]:
        """Return what new tables get, for the clients of all tables forecast so far."""
        plain = new_table()
        clients = tuple(self._everywhere.values())
        found = []
        for rule in RULES if clients else ():
            if rule.tables is TableAge.NEW:
                changes = _changes(plain, rule.feature, IdentityKey(clients))
                found.append(
                    UpgradeForecast(rule, find_blocked(changes), not_judged=self._unknown(changes))
                )
        return tuple(found)

    @property
    def declared(self) -> bool:
        """True if `blocked` has declared or seen clients; False if it has all known ones."""
        return self._scope.any

    def _clients(self, facts: TableFacts) -> IdentityKey[_Clients]:
        """Return the clients of a table, with a key that is equal for equal clients."""
        scope, newest = self._scope, self._newest
        of = facts.table, facts.location, facts.other_names
        clients = scope.of(*of) if scope.any else scope.all_clients()
        if newest is not None and newest.value is clients:
            return newest
        key = tuple((IdentityKey(each.candidate), each.access, each.label) for each in clients)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = IdentityKey(clients)
            for each in clients:
                name = str(each.candidate.reference), tuple(each.access)
                self._everywhere.setdefault(name, each._replace(label=None))
        self._newest = found
        return found

    def _upgrade(
        self,
        rule: AutomaticUpgrade,
        facts: TableFacts,
        clients: IdentityKey[_Clients],
        uses: Sequence[SeenOnTable],
    ) -> UpgradeForecast:
        changes = _changes(facts.needs, rule.feature, clients)
        blocked, approved = self._ruled(facts, rule, _blocked(changes))
        unknown = (*self._unknown(changes), *_unresolved(uses, clients.value))
        return UpgradeForecast(
            rule,
            blocked,
            approved,
            tuple(dict.fromkeys(unknown)),
            find_hold(uses, rule, self._today),
            tuple(
                f"{shown_name(use)} (about every {counted(use.rhythm.days, 'day')})"
                for use in uses
                if use.rhythm is not None and misses_window(use, rule)
            ),
            _statement(rule, facts),
        )

    def _ruled(
        self, facts: TableFacts, rule: AutomaticUpgrade, blocked: tuple[ClientChange, ...]
    ) -> tuple[tuple[ClientChange, ...], tuple[str, ...]]:
        """Return the losses that the policy does not approve, and sentences about the approved
        ones.
        """
        checker = self._scope.checker
        if checker is None or not checker.approvals or not blocked:
            return blocked, ()
        goal = f"enable {rule.feature}"
        losses = [AccessLoss(each.client, each.access, each.because, goal) for each in blocked]
        rulings = checker.rule_on_losses(facts.table, facts.location, losses, facts.other_names)
        left = (c for c, ruling in zip(blocked, rulings, strict=True) if not ruling.approved)
        return tuple(left), tuple(ruling.text for ruling in rulings if ruling.approved)

    def _unknown(self, changes: Iterable[ClientChange]) -> tuple[str, ...]:
        """Return the clients with an unknown verdict; none if all known clients are evaluated."""
        if not self._scope.any:
            return ()
        return tuple(
            dict.fromkeys(
                f"{each.client} ({each.access})"
                for each in changes
                if each.after is Verdict.UNKNOWN and each.before in (Verdict.OK, Verdict.UNKNOWN)
            )
        )


@lru_cache(maxsize=_CACHE_SIZE)
def _changes(
    table: TableRequirements, feature: str, clients: IdentityKey[_Clients]
) -> tuple[ClientChange, ...]:
    """Return the effect on the clients when the feature is turned on."""
    return compare_clients(clients.value, table, requirements_with(table, feature))


def find_blocked(changes: Iterable[ClientChange]) -> tuple[ClientChange, ...]:
    """Return the clients that work now, but will fail or do wrong."""
    return tuple(
        each
        for each in changes
        if each.after in _FAILS and each.before not in (each.after, Verdict.WRONG)
    )


# Tables with equal requirements share one tuple of changes.
_blocked = cache_by_identity(_CACHE_SIZE)(find_blocked)


def _unresolved(uses: Iterable[SeenOnTable], clients: Iterable[TableClient]) -> Iterator[str]:
    """Yield the programs seen that match no client of the catalog."""
    known = [each.candidate.reference for each in clients]
    for use in uses:
        client = use.client
        if client.id is None or not any(
            one.id == client.id and client.version in (None, one.version) for one in known
        ):
            yield shown_name(use)


def _statement(rule: AutomaticUpgrade, facts: TableFacts) -> str | None:
    if rule.setting is None:
        return None
    name = sql_table_name(address_in_statements(facts.table, facts.location))
    return SetProperties(dict([rule.setting])).sql(name)


_LAST_COMMIT = "last_commit_at"


def load_forecaster(
    inventory: str,
    storage_options: Mapping[str, str],
    policy: Policy | None,
    clients: Iterable[str],
    client_files: Iterable[str],
    today: date,
) -> Forecaster:
    """Return a forecaster for the policy's clients, `clients`, and those that `discover` counted.

    Args:
        clients: `ID@VERSION`; they count as clients of every table, with default access.

    Raises:
        UsageError: for an unknown client, or an unreadable inventory.
        TableError: corrupt-log, when the inventory's clients are damaged.
    """
    stored = read_stored(open_inventory_tables(inventory, storage_options))
    seen = None if stored is None else RecentUses(stored, max(WINDOW_DAYS.values()))
    scope = ClientScope(
        policy,
        client_files,
        clients,
        seen=None if seen is None else uses_for_plans(seen),
    )
    return Forecaster(scope, seen, today)


def run_forecast(
    inventory: InventoryReader, state: NewestState, forecaster: Forecaster
) -> Forecast:
    """Return the forecast of every table in the newest state.

    Raises:
        TableError: when the inventory cannot be read.
    """
    tables = tuple(
        _forecast(row, facts, forecaster)
        for scan in state.contributing
        for row, facts in inventory.facts(scan, (_LAST_COMMIT,))
        if state.is_newest(scan, row["location"])
    )
    affected = any(each.affected is not Affected.NO for each in tables)
    new = forecaster.new_tables() if affected else ()
    return Forecast(tables, new, forecaster.declared)


def _forecast(
    row: Mapping[str, Any], facts: TableFacts | TableError, forecaster: Forecaster
) -> TableForecast:
    last = row.get(_LAST_COMMIT)
    try:
        if isinstance(facts, TableError):
            raise facts
        with contain_table_errors():
            return forecaster.forecast(facts, None if last is None else last.date())
    except TableError as error:
        return TableForecast(row["table"], row["location"], Affected.UNKNOWN, None, error=error)
