"""Findings as GitLab code quality, which GitLab shows in merge requests and on its quality page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from deltaproto.policy.finding import Severity
from deltaproto.render.findings import Report, advice, encodable, fingerprint, problem
from deltaproto.render.interface import NOTICES, dump_json, escape_control_chars

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}
_FAILED = "blocker"


def write_gitlab(
    reports: Iterable[Report], file: IO[str], *, hidden: Callable[[], str] = str
) -> None:
    """Write one JSON array with an entry for each finding and for each table without a result.

    Suppressed findings have no entry; `hidden` returns the closing line with their number. The
    severities are critical, major and info for errors, warnings and infos, info for findings in the
    baseline, and blocker for unreadable tables. Fingerprints equal those of SARIF, so they are
    stable from run to run.

    Source: docs.gitlab.com, "Code quality report format".
    """
    file.write("[")
    separator = "\n"
    for entry in _entries(reports, hidden):
        file.write(separator + dump_json(entry, indent=None))
        separator = ",\n"
    file.write("\n]\n")


def _entries(reports: Iterable[Report], hidden: Callable[[], str]) -> Iterator[dict[str, Any]]:
    for report in reports:
        for finding in report.findings:
            severity = "info" if finding.known else _SEVERITIES[finding.severity]
            identity = fingerprint(report, finding)
            yield _entry(finding.rule, advice(finding), severity, report.table, identity)
        if (found := problem(report.error, complete=report.complete)) is not None:
            yield _entry(found.code, advice(found), _FAILED, report.table)
    if said := hidden():
        yield _entry("findings-not-shown", said, "info", "deltaproto")
    for notice in NOTICES:
        yield _entry("notice", notice, "major", "deltaproto")


def _entry(
    name: str, text: str, severity: str, path: str, identity: str | None = None
) -> dict[str, Any]:
    path = encodable(escape_control_chars(path))
    if identity is None:
        identity = hashlib.sha256(
            "\0".join((name, path, text)).encode(errors="replace")
        ).hexdigest()
    return {
        "description": encodable(escape_control_chars(text)),
        "check_name": encodable(escape_control_chars(name)),
        "fingerprint": identity,
        "severity": severity,
        # A table has no lines, but GitLab requires one.
        "location": {"path": path, "lines": {"begin": 1}},
    }
