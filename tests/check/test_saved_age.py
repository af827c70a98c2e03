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
        assert "is truncated" in ran.out
        assert cli("plan-downgrade", "--lowest", str(path)).code == 3


def test_an_older_version(cli: Cli, tables: list[str], tmp_path: Path) -> None:
    saved = str(tmp_path / "saved.json")
    words = ("inspect", tables[0], "--format", "json", "-o", saved)
    assert cli(*words, "--version", "0").code == 0
    ran = cli("check", saved, *CLIENT)
    assert (ran.code, ran.json["complete"]) == (3, False)
    assert "saved with --version" in ran.json["notices"][0]
    assert cli("check", tables[0], "--baseline", saved).code == 0
    assert cli(*words).code == 0
    ran = cli("check", saved, *CLIENT)
    assert (ran.code, "notices" in ran.json) == (0, False)


@pytest.mark.parametrize(
    ("made", "notice"),
    [
        ("2001-01-01T00:00:00Z", "days old"),
        ("2999-01-01T00:00:00Z", "in the future"),
        ("yesterday", "is unknown"),
        (None, "is unknown"),
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


def test_parts_of_different_ages(cli: Cli, save: Callable[..., str], tables: list[str]) -> None:
    path = Path(save(*tables, format_="jsonl"))
    now, *others = path.read_text().splitlines(keepends=True)
    later = [json.dumps({**json.loads(o), "generated_at": "2001-01-01T00:00:00Z"}) for o in others]
    path.write_text("".join([now, *(f"{line}\n" for line in later)]))
    (found,) = cli("check", str(path), *CLIENT).json["notices"]
    assert "days old" in found
    assert cli("check", str(path), *CLIENT, "--fail-on", "warning").code == 1
    assert cli("check", str(path), *CLIENT, "--max-age", "36500").json.get("notices") is None


def test_plans_name_the_time_of_their_source(
    cli: Cli, save: Callable[..., str], tables: list[str]
) -> None:
    path = Path(save(tables[0]))
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "generated_at": "2001-02-03T04:05:06Z"}, indent=2))
    words = ("plan-downgrade", str(path), "--lowest")
    ran = cli(*words, "--format", "json")
    made, old, *_ = ran.json["plans"][0]["warnings"]
    assert "of 2001-02-03 04:05 UTC" in made
    assert "days old" in old
    assert "days old" in ran.err
    assert "2001-02-03 04:05 UTC" in cli(*words).out
    path.write_text(json.dumps({**document, "generated_at": None}, indent=2))
    made, old, *_ = cli(*words, "--format", "json").json["plans"][0]["warnings"]
    assert ("unknown time" in made, "is unknown" in old) == (True, True)


def test_parts_of_two_files(cli: Cli, save: Callable[..., str], tables: list[str]) -> None:
    first, second = (
        Path(save(*names, format_="jsonl", name=f"{len(names)}.jsonl"))
        .read_text()
        .splitlines(keepends=True)
        for names in (tables, tables[:2])
    )
    path = Path(save(tables[0]))
    path.write_text("".join([*first, *second]))
    assert cli("check", str(path), *CLIENT).code == 0
    whole = save(tables[0], name="whole.json")
    for kept in (
        [*first, second[0]],
        [first[0], second[1]],
        [*first[:2], *second[1:]],
        [second[0], *first[1:]],
        [first[0], Path(whole).read_text(), *first[1:]],
    ):
        path.write_text("".join(kept))
        ran = cli("check", str(path), *CLIENT)
        assert (ran.code, "is truncated" in ran.out) == (3, True)


def test_lines_from_before_end_marks(cli: Cli, save: Callable[..., str], tables: list[str]) -> None:
    path = Path(save(*tables, format_="jsonl"))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["schema_version"] = "1.0"
        del line["part"]
    for kept in (lines, lines[:1]):
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        ran = cli("check", str(path), *CLIENT)
        assert (ran.code, ran.json["complete"]) == (3, False)
        assert "it may be truncated" in ran.out
        assert cli("check", tables[0], "--baseline", str(path)).code == 3
    # A document is whole by itself: what is cut is not JSON.
    path.write_text(json.dumps(lines[0], indent=2))
    assert cli("check", str(path), *CLIENT).code == 0
