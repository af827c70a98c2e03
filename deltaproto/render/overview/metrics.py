"""A fleet report as OpenMetrics text, for Prometheus, and as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from deltaproto.clients.model import Verdict
from deltaproto.fleet.overview import Overview, TableRow
from deltaproto.policy.finding import Severity
from deltaproto.render.findings import encodable
from deltaproto.render.interface import escape_control_chars
from deltaproto.render.overview.numbers import FleetSummary

Sample = tuple[dict[str, str], int]
_FORMULA = ("=", "+", "-", "@")
"""first characters of cells that spreadsheets execute"""
COLUMNS = (
    *("table", "location", "version", "reader_version", "writer_version", "features"),
    *("isolation_level", "last_commit_at", "last_operation", "last_engine"),
    *("errors", "warnings", "infos", "rules", "blocked_clients", "complete"),
    *("error_code", "error_message"),
    "other_names",
)
"""columns of the CSV; names are stable, and new ones are added at the end"""


def open_metrics(overview: Overview, counted: FleetSummary, now: datetime) -> str:
    """Return the numbers of a fleet as OpenMetrics 1.0 text. All metrics are gauges.

    Ages are in seconds, relative to `now`. Label values are names from tables and policies, so the
    number of time series depends on the features, rules and clients, not on the tables.
    """
    return "".join(f"{line}\n" for line in _metric_lines(overview, counted, now)) + "# EOF\n"


def table_csv(overview: Overview) -> str:
    """Return a header and one line per table, with unreadable tables at the end."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in overview.tables:
        writer.writerow({name: _cell(value) for name, value in _table_fields(row).items()})
    for unread in overview.unread:
        fields = {
            "table": unread.table,
            "location": unread.location,
            "complete": "false",
            "error_code": unread.code,
            "error_message": unread.message,
        }
        writer.writerow({name: _cell(value) for name, value in fields.items()})
    return file.getvalue()


def _metric_lines(overview: Overview, counted: FleetSummary, now: datetime) -> Iterator[str]:
    rows = overview.tables
    yield from gauge_lines(
        "deltaproto_tables",
        "Tables by protocol version.",
        (
            ({"reader_version": str(reader), "writer_version": str(writer)}, count)
            for (reader, writer), count in sorted(counted.protocols.items())
        ),
    )
    yield from gauge_lines(
        "deltaproto_feature_tables",
        "Tables by feature: supported, enabled (by a property or a column), present (in files), "
        "or present_unknown.",
        (
            ({"feature": name, "state": state}, of[name])
            for name in sorted(counted.features)
            for state, of in (
                ("supported", counted.features),
                ("enabled", counted.enabled),
                ("present", counted.present),
                ("present_unknown", counted.present_unknown),
            )
        ),
    )
    yield from gauge_lines(
        "deltaproto_isolation_tables",
        "Tables by declared isolation level.",
        (({"level": level}, count) for level, count in sorted(counted.isolation.items())),
    )
    yield from gauge_lines(
        "deltaproto_findings",
        "Findings by rule and severity, without waived ones.",
        (
            ({"rule": rule, "severity": severity}, count)
            for (rule, severity), count in sorted(_all_rules(overview, counted).items())
        ),
    )
    yield from gauge_lines(
        "deltaproto_suppressed_findings",
        "Findings that the policy waives, or whose rules it turns off.",
        (({"by": "waiver"}, overview.waived), ({"by": "severity"}, overview.off)),
    )
    yield from gauge_lines(
        "deltaproto_verdicts",
        "Tables by client, access and verdict.",
        (
            ({"client": client, "access": access, "verdict": verdict}, number)
            for (client, access), cell in sorted(counted.clients.items())
            for verdict, number in cell._asdict().items()
        ),
    )
    compliant = "Tables that every client can use, without an error."
    yield from gauge_lines("deltaproto_compliant_tables", compliant, [({}, counted.compliant)])
    incomplete = "Tables that may have newer commits, which only their catalog knows."
    number = sum(not row.complete for row in rows)
    yield from gauge_lines("deltaproto_incomplete_tables", incomplete, [({}, number)])
    codes = Counter(unread.code for unread in overview.unread)
    yield from gauge_lines(
        "deltaproto_scan_errors",
        "Tables that could not be read, by error code.",
        (({"code": code}, count) for code, count in sorted(codes.items())),
    )
    changes = "Changes since the scan before."
    yield from gauge_lines("deltaproto_changes", changes, [({}, len(overview.changes))])
    yield from gauge_lines(
        "deltaproto_scan_age_seconds",
        "Age of the newest scan of each root.",
        (
            ({"root": root}, max(0, int((now - scan.ended_at).total_seconds())))
            for scan in overview.sources
            for root in scan.roots
        ),
    )


def _all_rules(overview: Overview, counted: FleetSummary) -> Counter[tuple[str, str]]:
    return counted.rules + Counter((f.rule, str(f.severity)) for f in overview.of_policy)


def gauge_lines(name: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the lines of one gauge, without line feeds. Label values are escaped."""
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {about}"
    for labels, value in samples:
        shown = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items())
        yield f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"


def _label(text: str) -> str:
    text = escape_control_chars(encodable(text))
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _table_fields(row: TableRow) -> dict[str, object]:
    severities = Counter(finding.severity for finding in row.findings)
    blocked = dict.fromkeys(
        verdict.client for verdict in row.verdicts if verdict.verdict is not Verdict.OK
    )
    return {
        "table": row.table,
        "location": row.location,
        "version": row.version,
        "reader_version": row.protocol[0],
        "writer_version": row.protocol[1],
        "features": " ".join(name for name, _, _ in row.features),
        "isolation_level": row.isolation,
        "last_commit_at": row.last_commit and f"{row.last_commit:%Y-%m-%dT%H:%M:%SZ}",
        "last_operation": row.last_operation,
        "last_engine": row.last_engine,
        "errors": severities[Severity.ERROR],
        "warnings": severities[Severity.WARNING],
        "infos": severities[Severity.INFO],
        "rules": " ".join(dict.fromkeys(finding.rule for finding in row.findings)),
        "blocked_clients": "; ".join(blocked),
        "complete": "true" if row.complete else "false",
        "other_names": " ".join(row.other_names),
    }


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = escape_control_chars(encodable(str(value))).replace("\n", "\\n")
    return f"'{text}" if text.startswith(_FORMULA) else text
