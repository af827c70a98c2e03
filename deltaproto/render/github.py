"""Findings as workflow commands, which GitHub Actions shows as annotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO

from deltaproto.policy.finding import Severity
from deltaproto.render.findings import Report, advice, encodable, problem
from deltaproto.render.interface import NOTICES, escape_control_chars

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write_github(
    reports: Iterable[Report], file: IO[str], *, hidden: Callable[[], str] = str
) -> None:
    """Write a line for each finding, and an error for each table with an incomplete result.

    Findings in the baseline are notices. Suppressed findings have no line. All others have one,
    although GitHub shows at most ten errors, ten warnings and ten notices per step; the log
    has the rest. `hidden` returns the closing line with the number of findings that the policy
    waives or turns off.
    """
    for report in reports:
        for finding in report.findings:
            title = f"{finding.rule} {report.table}"
            name = "notice" if finding.known else _COMMANDS[finding.severity]
            file.write(_command(name, title, advice(finding)))
        if (found := problem(report.error, complete=report.complete)) is not None:
            file.write(_command("error", f"{found.code} {report.table}", advice(found)))
    if said := hidden():
        file.write(_command("notice", "findings not shown", said))

    for notice in NOTICES:
        file.write(_command("warning", "deltaproto", notice))


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_property(title)}::{_data(message)}\n"


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _data(text: str) -> str:
    # The escapes of actions/toolkit, packages/core/src/command.ts; the percent sign is first.
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return encodable(escape_control_chars(escaped))
