"""docs/incomplete-answers.md lists what is not looked at or not known; each row is made and run."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import Ran
from tests.support.situations import (
    apply,
    checks,
    discoveries,
    inputs,
    inventories,
    plans,
    policies,
    scans,
)
from tests.support.situations.world import BUILDERS, COMMANDS, World

pytestmark = pytest.mark.rotating

assert all((apply, checks, discoveries, inputs, inventories, plans, policies, scans))
PAGE = Path(__file__).parents[2] / "docs" / "incomplete-answers.md"
ROW = re.compile(
    r"\| (?P<situation>.+) \| (?:—|`(?P<message>[^`]+)`(?: \(JSON: `(?P<json>[^`]+)`\))?)"
    r" \| (?P<codes>[^|]+) \|"
)
CODES = re.compile(r"(?P<code>\d+)(?: with `(?P<option>[^`]+)`)?")
SLOW = ("Reading a table takes longer than `--timeout`",)


class Row(NamedTuple):
    """One row of the page."""

    section: str
    situation: str
    messages: dict[str, str]
    """by format; empty where nobody can read the output"""
    codes: tuple[tuple[int, tuple[str, ...]], ...]
    """exit codes, each with the option that it needs"""


def rows() -> Iterator[Row]:
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith("| Situation "):
            found = ROW.fullmatch(line)
            assert found is not None, f"not a row with a message in backquotes: {line}"
            parts = [CODES.fullmatch(part) for part in found["codes"].split("; ")]
            codes = [(int(p["code"]), tuple((p["option"] or "").split())) for p in parts if p]
            assert len(codes) == len(parts), line
            text = found["message"] or ""
            messages = {"text": text, "json": found["json"] or text}
            yield Row(section, found["situation"], messages, tuple(codes))


ROWS = list(rows())


def test_every_situation_has_one_row_and_every_row_a_situation() -> None:
    told = [(row.section, row.situation) for row in ROWS]
    assert sorted(told) == sorted(BUILDERS)
    assert {section for section, _ in told} == set(COMMANDS)


def parameter(row: Row) -> Any:
    marks = [pytest.mark.slow] if row.situation in SLOW else []
    return pytest.param(row, id=f"{row.section}: {row.situation}", marks=marks)


@pytest.mark.parametrize("row", map(parameter, ROWS))
def test_the_message_and_the_exit_code(
    row: Row, cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (code, option) in enumerate(row.codes):
        with monkeypatch.context() as patch:
            world = World(tmp_path / str(number), row.section, cli, patch)
            for line in world.lines(row.situation):
                words = [*line, *(world.names.get(word, word) for word in option)]
                ran = run(world, *words)
                assert ran.code == code, (words, ran)
                if number == 0 or "--fail-on" in option:
                    assert said(row.messages["text"], ran), (words, ran)


@pytest.mark.parametrize("row", map(parameter, ROWS))
def test_json_has_the_same_exit_code_and_the_message(
    row: Row, cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "0", row.section, cli, monkeypatch)
    for line in world.lines(row.situation):
        if "--script" in line:
            # A script is text, and refuses another format.
            continue
        ran = run(world, *line, "--format", "json")
        assert ran.code == row.codes[0][0], (line, ran)
        assert said(row.messages["json"], ran), (line, ran)


@pytest.mark.parametrize(
    ("section", "situation"),
    [
        ("check", "A saved inspection was made with `--version`"),
        ("check", "A table of the baseline was not checked"),
        ("drift", "The newest scan was stopped"),
        ("drift", "A scanned table is managed by a catalog"),
        ("drift", "The two scans searched different roots"),
    ],
)
def test_jsonl_whose_lines_cannot_hold_the_message(
    section: str,
    situation: str,
    cli: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (row,) = (each for each in ROWS if each[:2] == (section, situation))
    world = World(tmp_path / "0", section, cli, monkeypatch)
    for line in world.lines(situation):
        ran = run(world, *line, "--format", "jsonl")
        assert (ran.code, said(row.messages["text"], ran)) == (row.codes[0][0], True)


@pytest.mark.parametrize("format_", ["markdown", "html"])
def test_the_page_of_a_plan_says_that_it_is_not_complete(
    format_: str, cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = "plan-upgrade and plan-downgrade"
    world = World(tmp_path / "0", section, cli, monkeypatch)
    for line in world.lines("The table is managed by a catalog"):
        assert said("NOT COMPLETE", run(world, *line, "--format", format_))


def run(world: World, *words: str) -> Ran:
    if world.stdin is not None:
        world.patch.setattr("sys.stdin", io.StringIO(world.stdin))
    return world.cli(*words)


def said(message: str, ran: Ran) -> bool:
    """Whether one of the two streams holds the message, where `…` stands for some words."""
    parts = [re.escape(part) for part in message.strip("…").split("…")]
    pattern = re.compile(".{1,400}?".join(parts))
    return any(pattern.search(" ".join(text.split())) for text in (readable(ran.out), ran.err))


def readable(output: str) -> str:
    """The texts of a JSON document or an HTML page; other output as it is."""
    if output.startswith("<!"):
        return html.unescape(re.sub(r"<[^>]*>", "", output))
    try:
        return "\n".join(texts(json.loads(output)))
    except ValueError:
        return output


def texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value; numbers and truth values with their names."""
    if isinstance(value, dict):
        for key, member in value.items():
            if isinstance(member, str | dict | list):
                yield from texts(member)
            else:
                yield f"{key} {member}".lower()
    elif isinstance(value, list):
        for member in value:
            yield from texts(member)
    else:
        yield str(value)
