"""The report in each format."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import IO, Any, Generic, TypeVar

from deltaproto.caches import cache_by_identity
from deltaproto.fleet.overview import ClientAccessVerdict, Overview, TableRow
from deltaproto.render.discover import client_summary
from deltaproto.render.document.html import document_html
from deltaproto.render.document.markdown import document_markdown
from deltaproto.render.document.page import PageTexts
from deltaproto.render.document.render import write_document
from deltaproto.render.drift import unsearched_fields
from deltaproto.render.inspection_json import finding_fields
from deltaproto.render.interface import dump_json, envelope, escape_control_chars
from deltaproto.render.overview.chapters import document
from deltaproto.render.overview.chart import EXPLORER
from deltaproto.render.overview.metrics import open_metrics, table_csv
from deltaproto.render.overview.numbers import FleetSummary, command, numbers
from deltaproto.render.terminal import largest_first


class ReportFormat(StrEnum):
    """Values of `--format` of `report`."""

    TEXT = "text"
    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"
    OPENMETRICS = "openmetrics"
    CSV = "csv"


def write_report(
    overview: Overview,
    policy: str | None,
    format: ReportFormat,
    most: int,
    now: datetime,
    file: IO[str],
    *,
    color: bool,
) -> None:
    """Write the report; as text, with the width and, with `color`, the colors of `file`."""
    if format is not ReportFormat.TEXT:
        file.write(render_report(overview, policy, format, most, now))
        return
    made = document(overview, numbers(overview), policy, now)
    write_document(made, format, file, color=color)


def render_report(
    overview: Overview, policy: str | None, format: ReportFormat, most: int, now: datetime
) -> str:
    """Return the report as text; the page lists `most` tables, scan ages are relative to `now`."""
    if format is ReportFormat.TEXT:
        text = io.StringIO()
        write_report(overview, policy, format, most, now, text, color=False)
        return text.getvalue()
    counted = numbers(overview)
    if format is ReportFormat.JSON:
        complete = not overview.unread and all(row.complete for row in overview.tables)
        fields = _fields(overview, counted, policy, now)
        return dump_json(envelope("report", fields, complete=complete)) + "\n"
    if format is ReportFormat.OPENMETRICS:
        return open_metrics(overview, counted, now)
    if format is ReportFormat.CSV:
        return table_csv(overview)
    listed = most if format is ReportFormat.HTML else None
    made = document(overview, counted, policy, now, listed)
    if format is ReportFormat.MARKDOWN:
        return document_markdown(made)
    return document_html(
        made,
        PageTexts(),
        more=EXPLORER,
        contents=(("tables", "All tables"),),
        data=page_data(overview, counted, most),
        scripts=("tables.js",),
        styles=("tables.css",),
    )


def _fields(
    overview: Overview, counted: FleetSummary, policy: str | None, now: datetime
) -> dict[str, Any]:
    scan = overview.scan
    return {
        "scan_id": scan.scan_id,
        "ended_at": f"{scan.ended_at:%Y-%m-%dT%H:%M:%SZ}",
        "sources": [
            {
                "scan_id": each.scan_id,
                "ended_at": f"{each.ended_at:%Y-%m-%dT%H:%M:%SZ}",
                "age_days": (now - each.ended_at).days,
                "roots": list(each.roots),
                "not_searched": unsearched_fields(each),
            }
            for each in overview.sources
        ],
        "policy": policy,
        "unknown_writers": None if overview.last_writers is None else overview.last_writers.unknown,
        "clients_seen": (
            None if overview.clients_seen is None else client_summary(overview.clients_seen)
        ),
        "tables": len(overview.tables),
        "errors": len(overview.unread),
        "compliant": counted.compliant,
        "protocols": _protocols(counted.protocols),
        "isolation": dict(counted.isolation),
        "features": _features(counted),
        "clients": [
            {"client": client, "access": access, **cell._asdict()}
            for (client, access), cell in sorted(counted.clients.items())
        ],
        "blocking": [
            {"client": client, "feature": feature, "tables": count}
            for (client, feature), count in largest_first(counted.blocking)
        ],
        "findings": [
            {"rule": rule, "severity": severity, "count": count}
            for (rule, severity), count in largest_first(counted.rules)
        ],
        "waived": overview.waived,
        "off": overview.off,
        "policy_findings": [finding_fields(finding) for finding in overview.of_policy],
        "fix_first": [
            {
                "table": fix.row.table,
                "location": fix.row.location,
                "tables": fix.tables,
                "clients": list(fix.hindered),
                "because": list(fix.because),
                "rules": list(fix.rules),
                "errors": fix.errors,
                "command": command(fix, policy),
            }
            for fix in counted.fixes
        ],
        "scans": [
            {
                "scan_id": each.scan.scan_id,
                "ended_at": f"{each.scan.ended_at:%Y-%m-%dT%H:%M:%SZ}",
                "tables": sum(each.protocols.values()),
                "protocols": _protocols(each.protocols),
            }
            for each in overview.past
        ],
        "changes": len(overview.changes),
    }


def _features(counted: FleetSummary) -> list[dict[str, Any]]:
    return [
        {
            "feature": name,
            "supported": count,
            "enabled": counted.enabled[name],
            "present": counted.present[name],
            "present_unknown": counted.present_unknown[name],
        }
        for name, count in largest_first(counted.features)
    ]


def _protocols(counts: Mapping[tuple[int, int], int]) -> list[dict[str, int]]:
    return [
        {"minReaderVersion": reader, "minWriterVersion": writer, "tables": count}
        for (reader, writer), count in sorted(counts.items())
    ]


_Key = TypeVar("_Key")
_LETTERS = {"wrong": "w", "unknown": "u", "refused": "r", "ok": "o"}


class _Numbered(Generic[_Key]):
    """Items numbered in order of arrival."""

    def __init__(self) -> None:
        self.known: dict[_Key, int] = {}

    def __call__(self, key: _Key) -> int:
        return self.known.setdefault(key, len(self.known))


def page_data(overview: Overview, numbers: FleetSummary, most: int) -> str:
    """Return the JSON document for the script.

    Args:
        most: maximum number of tables; the script shows how many more were omitted.
    """
    accesses: _Numbered[tuple[str, str]] = _Numbered()
    features: _Numbered[str] = _Numbered()
    engines: _Numbered[str] = _Numbered()
    groups: _Numbered[str] = _Numbered()
    findings: _Numbered[tuple[str, str, str]] = _Numbered()
    kinds: _Numbered[tuple[Any, ...]] = _Numbered()

    # Tables with equal requirements share one tuple of verdicts.
    @cache_by_identity(len(overview.tables) + 1)
    def failing(verdicts: tuple[ClientAccessVerdict, ...]) -> tuple[Any, ...]:
        return tuple(
            (
                accesses((escape_control_chars(verdict.client), str(verdict.access))),
                _LETTERS[str(verdict.verdict)],
                tuple(features(escape_control_chars(name)) for name in verdict.because),
            )
            for verdict in verdicts
            if str(verdict.verdict) != "ok"
        )

    @cache
    def used(row_features: tuple[tuple[str, bool | None, bool | None], ...]) -> tuple[Any, ...]:
        return tuple(
            (features(escape_control_chars(name)), (2 if present else 0) + (1 if enabled else 0))
            for name, enabled, present in row_features
        )

    @cache
    def shown(rule: str, severity: str, message: str) -> int:
        return findings((rule, severity, escape_control_chars(message)))

    def kind(row: TableRow) -> int:
        isolation = None if row.isolation is None else escape_control_chars(row.isolation)
        return kinds((row.protocol, used(row.features), failing(row.verdicts), isolation))

    rows = []
    for row, group in zip(overview.tables[:most], numbers.groups, strict=False):
        moment = row.last_commit
        rows.append(
            [
                escape_control_chars(row.table),
                0 if row.location == row.table else escape_control_chars(row.location),
                kind(row),
                row.version,
                "" if moment is None else f"{moment:%Y-%m-%dT%H:%MZ}",
                engines(escape_control_chars(row.last_engine or "")),
                groups(escape_control_chars(group)),
                [shown(f.rule, str(f.severity), f.message) for f in row.findings],
            ]
        )
    document = {
        "accesses": [list(key) for key in accesses.known],
        "features": list(features.known),
        "engines": list(engines.known),
        "groups": list(groups.known),
        "findings": [list(key) for key in findings.known],
        "kinds": [
            {"p": f"({p[0]},{p[1]})", "f": f, "v": v, "i": isolation}
            for p, f, v, isolation in kinds.known
        ],
        "tables": rows,
        "left": len(overview.tables) - len(rows),
    }
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
