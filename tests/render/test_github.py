"""Annotations: one line each, which no name and no message breaks out of."""

from __future__ import annotations

import io
import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.policy.finding import Severity
from deltaproto.render.ci_reports import write_github
from deltaproto.render.findings import Report
from tests.render.strategies import CLEAN, MISSING, ORDERS, PARTIAL, finding, reports


class Command(NamedTuple):
    """A command as the runner reads it (actions/runner, ActionCommand.TryParseV2)."""

    name: str
    properties: dict[str, str]
    message: str


def printed(*tables: Report) -> str:
    file = io.StringIO()
    write_github(iter(tables), file)
    return file.getvalue()


def read(line: str) -> Command:
    assert line.startswith("::")
    head, separator, message = line[2:].partition("::")
    assert separator
    name, _, rest = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in rest.split(","))
    escapes = (("%3A", ":"), ("%2C", ","))
    return Command(
        name, {key: _plain(value, *escapes) for key, value in properties.items()}, _plain(message)
    )


def _plain(text: str, *more: tuple[str, str]) -> str:
    for escape, character in (("%0D", "\r"), ("%0A", "\n"), *more, ("%25", "%")):
        text = text.replace(escape, character)
    return text


class TestAnnotations:
    def test_each_finding_is_a_line_and_a_suppressed_one_is_none(self) -> None:
        assert printed(ORDERS, CLEAN) == (
            "::notice title=DP107 orders::the protocol could be lower%0AHint: lower it\n"
            "::error title=DP103 orders::it is needed%0AHint: add it\n"
        )

    def test_a_table_without_a_whole_answer_is_an_error(self) -> None:
        assert printed(MISSING, PARTIAL).splitlines() == [
            "::error title=not-found gone::there is no table%0AHint: look elsewhere",
            "::error title=incomplete partly::the result may be incomplete"
            "%0AHint: see the table's findings",
        ]

    @pytest.mark.parametrize(
        ("severity", "command"),
        [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "notice")],
    )
    def test_each_severity_has_a_command(self, severity: Severity, command: str) -> None:
        (line,) = printed(CLEAN._replace(findings=(finding(severity=severity),))).splitlines()
        assert read(line).name == command

    def test_colons_commas_and_line_ends_are_escaped(self) -> None:
        found = finding(message="50%\r\n::error::a:b,c\x1b[0m", hint="")
        table = Report("s3://a,b\n::stop-commands::x 😀", None, (found,))
        assert printed(table) == (
            "::notice title=DP107 s3%3A//a%2Cb%0A%3A%3Astop-commands%3A%3Ax 😀"
            "::50%25%0D%0A::error::a:b,c\\x1b[0m\n"
        )


class TestAnyText:
    @given(st.lists(reports, max_size=3))
    def test_no_text_breaks_out_of_its_line(self, tables: list[Report]) -> None:
        out = printed(*tables)
        out.encode()
        *lines, rest = out.split("\n")
        assert rest == ""
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", out)
        told = sum(
            len(table.findings) + (table.error is not None or not table.complete)
            for table in tables
        )
        assert len(lines) == told
        for line in lines:
            command = read(line)
            assert command.name in {"error", "warning", "notice"}
            assert list(command.properties) in (["title"], ["file", "line", "col", "title"])

    @given(st.text(st.characters(exclude_categories=("Cs", "Cc"))), st.text("%0AaDd25:,"))
    def test_what_is_escaped_is_read_back(self, table: str, message: str) -> None:
        found = finding(message=message, hint="")
        (line,) = printed(Report(table, None, (found,))).split("\n")[:-1]
        command = read(line)
        assert command.message == message
        assert command.properties["title"] == f"DP107 {table}"
