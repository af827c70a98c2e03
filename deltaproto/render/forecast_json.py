"""The JSON of `forecast`."""

from __future__ import annotations

from datetime import date
from typing import Any

from deltaproto.caches import cache_by_identity
from deltaproto.fleet.forecast.records import Forecast, TableForecast, UpgradeForecast
from deltaproto.planning.plan import ClientChange
from deltaproto.protocol.automatic_upgrades import CONDITIONS, RULES, AutomaticUpgrade
from deltaproto.render.interface import error_fields
from deltaproto.render.plan_json import client_change_fields


def forecast_fields(found: Forecast) -> dict[str, Any]:
    """Return the forecast as JSON."""
    fields = streamed_fields(found)
    return {**fields, "tables": list(fields["tables"])}


def streamed_fields(found: Forecast) -> dict[str, Any]:
    """Return the forecast as JSON, with an iterator over the tables."""
    return {
        "evidence": "documented",
        "conditions": list(CONDITIONS),
        "rules": [_rule_fields(rule) for rule in RULES],
        "all_known_clients": not found.declared,
        "tables": map(_table_fields, found.tables),
        "new_tables": [_upgrade_fields(each, of_table=False) for each in found.new_tables],
    }


def _rule_fields(rule: AutomaticUpgrade) -> dict[str, Any]:
    return {
        "id": rule.id,
        "feature": rule.feature,
        "tables": str(rule.tables),
        "runtime": rule.runtime,
        "stage": str(rule.stage),
        "start": _day(rule.start),
        "rolled_out": _day(rule.rolled_out),
        "window_days": rule.window.days,
        "document": {
            "title": rule.document.title,
            "url": rule.document.url,
            "read_on": _day(rule.document.read_on),
        },
    }


def _table_fields(table: TableForecast) -> dict[str, Any]:
    fields: dict[str, Any] = {"table": table.table, "location": table.location}
    if table.error is not None:
        return {**fields, "error": error_fields(table.error)}
    return {
        **fields,
        "affected": str(table.affected),
        "table_type": table.type,
        "complete": table.complete,
        "clients": table.clients,
        "uses_counted": table.counted,
        "idle_days": table.idle_days,
        "upgrades": [_upgrade_fields(each) for each in table.upgrades],
    }


def _upgrade_fields(upgrade: UpgradeForecast, *, of_table: bool = True) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "rule": upgrade.rule.id,
        "feature": upgrade.rule.feature,
        "blocked": _changes_fields(upgrade.blocked),
        "not_judged": list(upgrade.not_judged),
    }
    if not of_table:
        return fields
    hold, statement = upgrade.hold, upgrade.statement
    return {
        **fields,
        "approved": list(upgrade.approved),
        "delayed_until": None if hold is None else _day(hold.until),
        "delayed_by": [] if hold is None else list(hold.clients),
        "missed_by_window": list(upgrade.missed),
        "opt_out": None if statement is None else {"sql": statement, "documented": False},
    }


# Tables with equal requirements share one tuple of changes.
@cache_by_identity(4096)
def _changes_fields(changes: tuple[ClientChange, ...]) -> list[dict[str, Any]]:
    return [client_change_fields(each) for each in changes]


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
