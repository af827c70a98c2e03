"""A check as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from deltaproto.clients.matching import Verdict
from deltaproto.policy.evaluate import Checked
from deltaproto.policy.finding import Finding
from deltaproto.render.check_words import Counts, settings_line, suppressed_lines, verdict_rows
from deltaproto.render.interface import NOTICES
from deltaproto.render.markdown import escape, table
from deltaproto.render.usability import rows as usability_rows

_MARKS = {
    Verdict.OK: "ok",
    Verdict.REFUSED: "**refused**",
    Verdict.UNKNOWN: "**unknown**",
    Verdict.WRONG: "**WRONG**",
}


def write_markdown(
    tables: Iterable[Checked],
    file: IO[str],
    notes: Iterable[str],
    *,
    show_suppressed: bool,
    every_version: bool = False,
) -> None:
    """A section for each table, the summary at the end."""
    counts = Counts()
    for checked in tables:
        counts.add(checked)
        file.write(_section(checked, show_suppressed, every_version) + "\n")
    notices = (f"- **Warning**: {escape(notice)}" for notice in NOTICES)
    told = (f"- {escape(note)}" for note in notes)
    file.write("\n".join([*notices, *told, "", f"**{counts.line()}**\n"]))


def _section(checked: Checked, show_suppressed: bool, every_version: bool) -> str:
    parts = [f"## {escape(checked.table)}", ""]
    if checked.error is not None:
        error = checked.error
        parts += [f"**{error.code}**: {escape(error.message)} {escape(error.hint)}", ""]
    elif not checked.complete:
        parts += ["**Not complete**: the answer may miss something, see the findings.", ""]
    rows = [
        "| " + escape(client) + " | " + ", ".join(f"{a} {_MARKS[v]}" for a, v in answers) + " |"
        for client, answers in verdict_rows(checked)
    ]
    if rows:
        parts += ["| Client | Verdicts |", "| --- | --- |", *rows, ""]
    if checked.usability:
        headings, found_rows = usability_rows(checked.usability, every_version=every_version)
        parts += [table(headings, found_rows), ""]
    if settings := settings_line(checked):
        parts += [f"Policy: {escape(settings)}", ""]
    if checked.findings:
        found = [
            (_severity(finding), finding.rule, _message(finding), finding.hint)
            for finding in checked.findings
        ]
        parts += [table(("Severity", "Rule", "Finding", "What to do"), found), ""]
    if show_suppressed:
        parts += [f"- waived: {escape(line)}" for line in suppressed_lines(checked)]
    return "\n".join(parts)


def _severity(finding: Finding) -> str:
    return f"{finding.severity} (known)" if finding.known else str(finding.severity)


def _message(finding: Finding) -> str:
    return finding.message + (f" [{finding.evidence}]" if finding.evidence else "")
