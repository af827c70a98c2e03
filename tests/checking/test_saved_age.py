"""A saved inspection that is cut, of an older version, or old never passes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLIENT = ("--client", "trino@476", "--format", "json")


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    return [
        Log(tmp_path / name)
        .commit(0, commit_info(), protocol(1, 2), metadata(id=name))
        .commit(1, add())
        .table
        for name in ("a", "b", "c")
    ]


def test_lines_that_are_missing(cli: Cli, save: Callable[..., str], tables: list[str]) -> None:
    path = Path(save(*tables, format_="jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    assert cli("check", str(path), *CLIENT).code == 0
    path.write_text("".join(lines * 2))
    assert cli("check", str(path), *CLIENT).code == 0
    for kept in (lines[:2], lines[:1], lines[1:], [lines[0], lines[2]], [*lines, lines[0]]):
        path.write_text("".join(kept))
        ran = cli("check", str(path), *CLIENT)
        assert ran.code == 3
        assert "is cut off" in ran.out
        assert cli("plan-downgrade", "--lowest", str(path)).code == 3


def test_an_older_version(cli: Cli, tables: list[str], tmp_path: Path) -> None:
    saved = str(tmp_path / "saved.json")
    words = ("inspect", tables[0], "--format", "json", "-o", saved)
    assert cli(*words, "--version", "0").code == 0
    ran = cli("check", saved, *CLIENT)
    assert (ran.code, ran.json["complete"]) == (3, False)
    assert "made with --version" in ran.json["notices"][0]
    assert cli("check", tables[0], "--baseline", saved).code == 0
    assert cli(*words).code == 0
    ran = cli("check", saved, *CLIENT)
    assert (ran.code, "notices" in ran.json) == (0, False)


@pytest.mark.parametrize(
    ("made", "notice"),
    [
        ("2001-01-01T00:00:00Z", "days old"),
        ("2999-01-01T00:00:00Z", "in the future"),
        ("yesterday", "is not known"),
        (None, "is not known"),
    ],
)
def test_the_age(
    cli: Cli, save: Callable[..., str], tables: list[str], made: str | None, notice: str
) -> None:
    path = Path(save(tables[0]))
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "generated_at": made}))
    (found,) = cli("check", str(path), *CLIENT).json["notices"]
    assert notice in found
    for format_ in ("text", "junit", "sarif", "github", "gitlab", "markdown", "jsonl"):
        assert notice in cli("check", str(path), *CLIENT[:2], "--format", format_).out or (
            format_ == "jsonl"
        )
