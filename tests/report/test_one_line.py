"""No name or message of a log begins a line of the output, which CI systems would interpret."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
EVIL = "x\n::error title=owned::it\r\n::warning::b\x1b[31m"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def table(tmp_path: Path) -> str:
    log = Log(tmp_path / EVIL)
    named = commit_info(f"WRITE {EVIL}", engineInfo=EVIL, userName=EVIL)
    described = metadata({EVIL: EVIL, "delta.isolationLevel": EVIL}, partition_columns=[EVIL])
    log.commit(0, named, protocol(3, 7, [EVIL], [EVIL, "appendOnly"]), described)
    return log.commit(1, named, protocol(3, 7, [EVIL], [EVIL]), add()).table


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", "--activity"),
        ("history",),
        ("check", "--client", "trino@476"),
        ("plan-downgrade", "--lowest"),
        ("plan-upgrade", "--enable", "deletionVectors"),
        ("conflicts",),
    ],
    ids=" ".join,
)
def test_no_line_begins_with_a_command(
    cli: Cli, table: str, words: tuple[str, ...], format_: str
) -> None:
    for name in (table, f"{table}-missing"):
        ran = cli(*words, name, "--format", format_)
        for text in (ran.out, ran.err):
            assert not re.search(r"^\s*::", text, re.MULTILINE)
            assert not CONTROL.search(text)


def test_a_script_has_no_control_characters(cli: Cli, tmp_path: Path) -> None:
    for name in ("a\x1b[31mred", "b\n::error::c"):
        log = Log(tmp_path / name).commit(0, commit_info(), protocol(1, 2), metadata())
        words = ("plan-upgrade", log.table, "--enable", "deletionVectors", "--script", "sql")
        ran = cli(*words)
        assert "left out: the statement holds control characters" in ran.out
        assert ran.code == 1
        assert not CONTROL.search(ran.out)
        assert "ALTER TABLE" not in ran.out
        assert not re.search(r"^::", ran.out, re.MULTILINE)
