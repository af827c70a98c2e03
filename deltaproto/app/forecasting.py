"""Forecasts of automatic upgrades as results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaproto.app.result import Result, Rows
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError
from deltaproto.fleet.forecast.records import Forecast as FoundForecast
from deltaproto.policy.finding import FailOn, exit_code_for

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document


@dataclass(frozen=True, repr=False)
class Forecast(Result):
    """What Databricks may turn on automatically, and the clients that it would block."""

    found: FoundForecast
    """the forecast of each table, as records"""

    @property
    def complete(self) -> bool:
        """True if it is known which tables are affected, and whether every client still works."""
        return self.found.complete

    def rows(self) -> Rows:
        """Return one row for each feature that a table may get.

        `start` and `delayed_until` are days, null if not documented or not delayed. `blocked` has
        clients that are declared or were seen; without any, all known clients.
        """
        import pyarrow as pa

        text, names, day = pa.string(), pa.list_(pa.string()), pa.date32()
        columns = {
            **dict.fromkeys(("table", "location", "affected", "feature", "rule", "stage"), text),
            **dict.fromkeys(("start", "delayed_until"), day),
            **dict.fromkeys(("blocked", "not_judged"), names),
            "opt_out": text,
        }
        return Rows.of(
            (
                {
                    "table": table.table,
                    "location": table.location,
                    "affected": str(table.affected),
                    "feature": each.rule.feature,
                    "rule": each.rule.id,
                    "stage": str(each.rule.stage),
                    "start": each.rule.start,
                    "delayed_until": None if each.hold is None else each.hold.until,
                    "blocked": [f"{one.client} ({one.access})" for one in each.blocked],
                    "not_judged": list(each.not_judged),
                    "opt_out": each.statement,
                }
                for table in self.found.tables
                for each in table.upgrades
            ),
            columns,
        )

    def _failure(self) -> DeltaprotoError | None:
        if not self.complete:
            unknown = sum(not each.judged for each in self.found.tables)
            message = f"the forecast is incomplete: {counted(unknown, 'table')} could not be judged"
            return ResultError(self, ExitCode.UNREADABLE, message, "see `to_dict()`")
        if exit_code_for(self.found.severities, FailOn.ERROR) is ExitCode.OK:
            return None
        count = sum(any(each.blocked for each in table.upgrades) for table in self.found.tables)
        message = f"upgrades of {counted(count, 'table')} would block clients"
        return ResultError(self, ExitCode.FINDINGS, message, "see `rows()`")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `forecast`."""
        from deltaproto.render.forecast_json import forecast_fields

        return forecast_fields(self.found)

    def _document(self) -> Document:
        from deltaproto.render.forecast import forecast_document

        return forecast_document(self.found)

    def __repr__(self) -> str:
        return f"<Forecast of {counted(len(self.found.tables), 'table')}>"
