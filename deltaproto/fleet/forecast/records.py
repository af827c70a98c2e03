"""The forecast of automatic upgrades, as records."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import NamedTuple

from deltaproto.errors import TableError
from deltaproto.planning.plan import ClientChange
from deltaproto.policy.finding import Severity
from deltaproto.protocol.automatic_upgrades import AutomaticUpgrade, Stage, TableAge


class Affected(StrEnum):
    """Whether automatic upgrades apply to a table."""

    YES = "yes"
    """a managed table of Unity Catalog"""
    NO = "no"
    UNKNOWN = "unknown"
    """the scan did not find it through Unity Catalog, or its type is not known"""


class Hold(NamedTuple):
    """Accesses that delay an upgrade, as far as Unity Catalog has seen them."""

    until: date
    """the last access, and a whole observation window"""
    clients: tuple[str, ...]
    """who made accesses that delay it until after today"""


class UpgradeForecast(NamedTuple):
    """One feature that may be turned on."""

    rule: AutomaticUpgrade
    blocked: tuple[ClientChange, ...]
    """declared clients and clients seen that work now, but would fail or do wrong"""
    approved: tuple[str, ...] = ()
    """sentences on further losses, which the policy approves"""
    not_judged: tuple[str, ...] = ()
    """clients for which it is not known whether they would still work"""
    hold: Hold | None = None
    missed: tuple[str, ...] = ()
    """clients seen that return less often than the observation window"""
    statement: str | None = None
    """SQL that sets the property that turns the feature off"""


class TableForecast(NamedTuple):
    """The forecast of one table."""

    table: str
    location: str | None
    affected: Affected
    type: str | None
    """its type in the catalog; None: not known"""
    upgrades: tuple[UpgradeForecast, ...] = ()
    """on an affected table, or one that may be affected; features that it has are left out"""
    idle_days: int | None = None
    """days since the last known access, if automatic upgrades skip the table for it"""
    clients: int = 0
    """number of declared clients and clients seen"""
    counted: bool = True
    """False: `discover` did not count who uses the table"""
    complete: bool = True
    """False: there may be newer commits"""
    error: TableError | None = None
    """why nothing is known about the table"""

    @property
    def judged(self) -> bool:
        """True if it is known whether the table is affected, and what happens to its clients."""
        known = self.error is None and self.complete and self.affected is not Affected.UNKNOWN
        return known and not any(each.not_judged for each in self.upgrades)


class Forecast(NamedTuple):
    """The forecast of all tables of an inventory."""

    tables: tuple[TableForecast, ...]
    new_tables: tuple[UpgradeForecast, ...]
    """what new managed tables get, for the clients of the existing ones"""
    declared: bool
    """True: the clients that are declared or were seen; False: all known clients"""

    @property
    def complete(self) -> bool:
        """True if everything about every table is known."""
        return all(each.judged for each in self.tables) and not any(
            each.not_judged for each in self.new_tables
        )

    @property
    def severities(self) -> frozenset[Severity]:
        """The severities of what was found about declared clients, and about those seen."""
        if not self.declared:
            return frozenset()
        upgrades = (each for table in self.tables for each in table.upgrades)
        found = {severity_of(each.rule) for each in (*upgrades, *self.new_tables) if each.blocked}
        # Same as `check` with a policy that requires nothing.
        return frozenset(found | {Severity.WARNING for each in self.tables if has_no_client(each)})


def severity_of(rule: AutomaticUpgrade) -> Severity:
    """Return the severity of a client that an upgrade would block.

    Upgrades in preview only affect existing schemas of enrolled accounts, and new tables have no
    clients yet.
    """
    certain = rule.stage is Stage.GENERAL and rule.tables is TableAge.EXISTING
    return Severity.ERROR if certain else Severity.WARNING


def has_no_client(table: TableForecast) -> bool:
    """Return True if nothing could be judged because no client of the table is known."""
    return table.affected is not Affected.NO and not table.clients and table.error is None
