"""`check`'s output in each format."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, NamedTuple, assert_never

from deltaproto.errors import ExitCode
from deltaproto.policy.finding import FailOn
from deltaproto.policy.table_check import TableCheck, table_exit_code
from deltaproto.render.interface import DEFAULT_LIMIT, NOTICES, dump_json, envelope
from deltaproto.render.named_tables import GROUPED_FROM

if TYPE_CHECKING:
    from deltaproto.render.check_json import Counts
    from deltaproto.render.document.blocks import Section
    from deltaproto.render.document.render import BlockWriter
    from deltaproto.render.findings import Report


class CheckFormat(StrEnum):
    """Values of `check --format`."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    GITLAB = "gitlab"


class Style(NamedTuple):
    """Display options of a check."""

    format: CheckFormat = CheckFormat.TEXT
    color: bool = False
    fail_on: FailOn = FailOn.ERROR
    show_suppressed: bool = False
    summary: bool = True
    compared: bool = False
    """whether the results are compared with a saved check (the baseline)"""
    every_version: bool = False
    """for undeclared clients: show every version, not only the newest"""
    details: bool = False
    """a section for each table, however many they are"""
    failing: bool = False
    """only tables that fail, or could not be read"""
    limit: int = DEFAULT_LIMIT
    """number of groups and findings shown; 0: all"""


def write_check(
    tables: Iterable[TableCheck], file: IO[str], style: Style, notes: Iterable[str]
) -> None:
    """Write each table as it arrives; only counts are kept until the end."""
    from deltaproto.render.check_json import Counts

    counts = Counts()
    match style.format:
        case CheckFormat.JSON:
            from deltaproto.render.check_json import CheckDocument

            document = CheckDocument(file)
            for checked in tables:
                document.add(checked)
            document.close(notes)
        case CheckFormat.JSONL:
            from deltaproto.render.check_json import checked_fields

            for checked in tables:
                fields = {**checked_fields(checked), "notes": list(notes)}
                line = envelope("check", fields, complete=checked.complete)
                file.write(dump_json(line, indent=None) + "\n")
        case CheckFormat.TEXT | CheckFormat.MARKDOWN:
            _write_sections(tables, file, style, notes, counts)
        case CheckFormat.SARIF:
            from deltaproto.policy.rules import rule_pages
            from deltaproto.render.sarif import write_sarif

            started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            write_sarif(
                _reports(tables, counts),
                file,
                rules=rule_pages(),
                started_at=started,
                summary=counts.fields,
                compared=style.compared,
            )
        case CheckFormat.JUNIT:
            from deltaproto.policy.rules import all_rules
            from deltaproto.render.ci_reports import write_junit

            write_junit(
                _reports(tables, counts),
                file,
                rules=all_rules(),
                fail_on=style.fail_on,
                hidden=counts.turned_off,
            )
        case CheckFormat.GITHUB:
            from deltaproto.render.ci_reports import write_github

            write_github(_reports(tables, counts), file, hidden=counts.hidden)
        case CheckFormat.GITLAB:
            from deltaproto.render.ci_reports import write_gitlab

            write_gitlab(_reports(tables, counts), file, hidden=counts.hidden)
        case _:
            assert_never(style.format)


def _write_sections(
    tables: Iterable[TableCheck], file: IO[str], style: Style, notes: Iterable[str], counts: Counts
) -> None:
    """Write few tables as sections and many as groups, then the notes, and the summary last."""
    from deltaproto.render.document.blocks import Bullets, Callout, Paragraph, Strong, Tone
    from deltaproto.render.document.render import UNFOLDED, BlockWriter

    writer = BlockWriter(style.format, file, color=style.color, piped_width=UNFOLDED)
    shown = _shown(tables, style, counts)
    first = [] if style.details else list(islice(shown, GROUPED_FROM))
    if style.details or len(first) < GROUPED_FROM or any(each.usability for each in first):
        for checked in chain(first, shown):
            writer.write(_section(checked, style))
    else:
        _write_groups(chain(first, shown), writer, style)
    for notice in NOTICES:
        writer.write(Callout(Tone.WARNING, (notice,)))
    remarks = list(notes) if style.summary else []
    if remarks:
        writer.write(Bullets([(note,) for note in remarks]))
    if style.summary:
        writer.write(Paragraph((Strong(counts.line()),)))


def _write_groups(tables: Iterable[TableCheck], writer: BlockWriter, style: Style) -> None:
    """Write tables in groups, and findings about the policy in their own section."""
    from deltaproto.render.check_groups import CheckGroups

    groups = CheckGroups(show_suppressed=style.show_suppressed, limit=style.limit)
    of_policy = []
    for checked in tables:
        if checked.of_policy:
            of_policy.append(checked)
        else:
            groups.add(checked)
    for section in groups.sections():
        writer.write(section)
    for checked in of_policy:
        writer.write(_section(checked, style))


def _section(checked: TableCheck, style: Style) -> Section:
    from deltaproto.render.check_section import check_section

    return check_section(
        checked, show_suppressed=style.show_suppressed, every_version=style.every_version
    )


def _shown(tables: Iterable[TableCheck], style: Style, counts: Counts) -> Iterator[TableCheck]:
    for checked in tables:
        counts.add(checked)
        if checked.of_policy and not checked.findings and not style.show_suppressed:
            # All of them are waived or turned off, which the summary counts.
            continue
        if not style.failing or table_exit_code(checked, style.fail_on) is not ExitCode.OK:
            yield checked


def _reports(tables: Iterable[TableCheck], counts: Counts) -> Iterator[Report]:
    from deltaproto.render.findings import Report

    for checked in tables:
        counts.add(checked)
        yield Report(
            checked.table,
            checked.location,
            checked.findings,
            checked.suppressed,
            checked.error,
            checked.complete,
        )
