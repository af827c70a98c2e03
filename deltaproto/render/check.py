"""`check`'s output in each format, table by table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import IO, TYPE_CHECKING, NamedTuple, assert_never

from deltaproto.policy.evaluate import TableCheck
from deltaproto.policy.finding import FailOn

if TYPE_CHECKING:
    from deltaproto.render.check_counts import Counts
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


def write_check(
    tables: Iterable[TableCheck], file: IO[str], style: Style, notes: Iterable[str]
) -> None:
    """Write each table as it arrives; only counts are kept until the end."""
    from deltaproto.render.check_counts import Counts

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
            from deltaproto.render.interface import dump_json, envelope

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
            from deltaproto.render.junit import write_junit

            write_junit(
                _reports(tables, counts),
                file,
                rules=all_rules(),
                fail_on=style.fail_on,
                hidden=counts.turned_off,
            )
        case CheckFormat.GITHUB:
            from deltaproto.render.github import write_github

            write_github(_reports(tables, counts), file, hidden=counts.hidden)
        case CheckFormat.GITLAB:
            from deltaproto.render.gitlab import write_gitlab

            write_gitlab(_reports(tables, counts), file, hidden=counts.hidden)
        case _:
            assert_never(style.format)


def _write_sections(
    tables: Iterable[TableCheck], file: IO[str], style: Style, notes: Iterable[str], counts: Counts
) -> None:
    """Write a section for each table, then the notes, and the summary last."""
    from deltaproto.render.check_section import CheckSections
    from deltaproto.render.document.blocks import Bullets, Callout, Paragraph, Strong, Tone
    from deltaproto.render.document.render import UNFOLDED, BlockWriter
    from deltaproto.render.interface import NOTICES

    writer = BlockWriter(style.format, file, color=style.color, piped_width=UNFOLDED)
    sections = CheckSections(
        show_suppressed=style.show_suppressed, every_version=style.every_version
    )
    for checked in tables:
        counts.add(checked)
        writer.write(sections.section(checked))
    for notice in NOTICES:
        writer.write(Callout(Tone.WARNING, (notice,)))
    told = list(notes) if style.summary else []
    if told:
        writer.write(Bullets([(note,) for note in told]))
    if style.summary:
        writer.write(Paragraph((Strong(counts.line()),)))


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
