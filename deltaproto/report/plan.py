"""The plans of one call in each format."""

from __future__ import annotations

from enum import StrEnum
from typing import IO, Any

from deltaproto.errors import TableError
from deltaproto.planning.plan import Plan
from deltaproto.report.interface import dumps, envelope, error_fields
from deltaproto.report.plan_json import plan_fields


class PlanFormat(StrEnum):
    """What `--format` of the planning commands takes."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class Script(StrEnum):
    """What `--script` takes."""

    SQL = "sql"


class PlanReport:
    """Plans as they come.

    One table's plan is the JSON document itself; of many, the document lists them with a summary.

    Args:
        now: seconds since the epoch, from which waits are counted.
        many: several tables may come.
    """

    def __init__(
        self,
        command: str,
        format: PlanFormat,
        file: IO[str],
        now: float,
        *,
        color: bool,
        script: Script | None,
        many: bool,
    ) -> None:
        self.many = many
        self._command, self._format, self._file, self._now = command, format, file, now
        self._script = script
        self._entries: list[dict[str, Any]] = []
        self._complete = True
        self._text = None
        if script is None and format is PlanFormat.TEXT:
            from deltaproto.report.plan_text import PlanText

            self._text = PlanText(file, now, color=color)

    def add(self, plan: Plan) -> None:
        """One plan."""
        self._complete = self._complete and plan.complete
        if self._script is not None:
            from deltaproto.report.plan_script import write_script

            write_script(plan, self._file, self._now)
        elif self._text is not None:
            self._text.add(plan)
        else:
            self._entry(plan_fields(plan, self._now), complete=plan.complete)

    def add_error(self, table: str, error: TableError) -> None:
        """A table that could not be planned."""
        self._complete = False
        if self._script is not None:
            from deltaproto.report.paint import flat

            self._file.write(f"-- {flat(table)}: {flat(error.message)}\n\n")
        elif self._text is not None:
            self._text.add_error(table, error)
        else:
            self._entry({"table": table, "error": error_fields(error)}, complete=False)

    def close(self) -> None:
        """What comes after the last table."""
        if self._text is not None:
            self._text.close()
        elif self._script is None and self._format is PlanFormat.JSON:
            payload = self._entries[0] if not self.many else self._listed()
            document = envelope(self._command, payload, complete=self._complete)
            self._file.write(dumps(document) + "\n")

    def _entry(self, fields: dict[str, Any], *, complete: bool) -> None:
        if self._format is PlanFormat.JSON:
            self._entries.append(fields)
            return
        line = envelope(self._command, fields, complete=complete)
        self._file.write(dumps(line, indent=None) + "\n")

    def _listed(self) -> dict[str, Any]:
        entries = self._entries
        return {
            "plans": entries,
            "summary": {
                "tables": len(entries),
                "with_steps": sum(bool(e.get("steps")) for e in entries),
                "nothing_to_do": sum(
                    "steps" in e and not e["steps"] and not e["blocked"] for e in entries
                ),
                "blocked": sum(bool(e.get("blocked")) for e in entries),
                "unreadable": sum("error" in e for e in entries),
                "waits": sum(e["cost"]["waits"] > 0 for e in entries if "cost" in e),
                "irreversible": sum(
                    e["point_of_no_return"] is not None for e in entries if "cost" in e
                ),
                "commits": sum(e["cost"]["commits"] for e in entries if "cost" in e),
            },
        }
