"""A working directory that was removed: one clear message, or none where no path needs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def table(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table elsewhere; the working directory is gone."""
    log.commit(0, protocol(1, 2), metadata())
    removed = tmp_path / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)
    removed.rmdir()
    return log.table


@pytest.mark.parametrize("format_", ["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "t/x"),
        ("history", "t/x"),
        ("check", "t/x", "--client", "trino@476"),
        ("plan-downgrade", "t/x", "--lowest"),
        ("plan-upgrade", "t/x", "--enable", "deletionVectors"),
        ("conflicts", "t/x"),
        ("scan", "t/x"),
        ("scan", "{}", "--inventory", "inventory"),
        ("scan", "--config", "scan.yaml"),
        ("drift", "inventory"),
        ("report", "inventory"),
        ("inspect", "{}", "--output", "out"),
        ("check", "{}", "--policy", "p.yaml"),
        ("check", "{}", "--client", "trino@476", "--baseline", "b.json"),
        ("apply", "plan.json"),
        ("runbook", "plan.json"),
    ],
    ids=" ".join,
)
def test_a_relative_path(cli: Cli, table: str, words: tuple[str, ...], format_: str) -> None:
    more = () if words[0] in ("report", "runbook") else ("--format", format_)
    ran = cli(*(word.format(table) for word in words), *more)
    assert ran.code in (2, 3)
    assert "internal" not in ran.out + ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("words", [("inspect", "t/x"), ("scan", "{}", "--inventory", "inventory")])
def test_the_message_says_so(cli: Cli, table: str, words: tuple[str, ...]) -> None:
    ran = cli(*(word.format(table) for word in words))
    assert "the working directory was removed" in ran.out + ran.err


@pytest.mark.parametrize(
    "words", [("inspect",), ("history",), ("check", "--client", "trino@476"), ("conflicts",)]
)
def test_an_absolute_path_needs_none(cli: Cli, table: str, words: tuple[str, ...]) -> None:
    ran = cli(*words, table)
    assert ran.code in (0, 1)
    assert ran.err == ""
