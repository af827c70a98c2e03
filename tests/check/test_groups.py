"""A check of many tables is shown in groups."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet, two_folders

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
CLIENTS = ("--client", "trino@400", "--client", "delta-spark@4.4.0")


def test_equal_tables_are_one_line_and_each_finding_is_said_once(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 30, 12, 2)
    ran = cli("check", *tables, *CLIENTS, "--no-color")
    lines = ran.out.splitlines()
    assert ran.code == 3
    assert len(lines) < 24
    assert lines[0] == "44 tables in 3 groups"
    broken, refused, fine = (
        next(line for line in lines if re.match(rf"\s+{count}\s", line)) for count in (2, 12, 30)
    )
    assert lines.index(broken) < lines.index(refused) < lines.index(fine)
    assert "corrupt-log" in broken
    assert "trino@400: read WRONG" in refused
    assert "gold/v000, gold/v001, gold/v002 and 9 more" in refused
    assert "all ok" in fine
    assert f"names are relative to {tmp_path}/lake/" in ran.out
    assert ran.out.count("DP202  trino@400 cannot") + ran.out.count("DP202  trino@400 may") <= 2
    assert "12 tables, such as gold/v000" in ran.out
    assert lines[-1].startswith("44 tables, 2 unreadable; verdicts: ")


def test_details_shows_each_table_and_few_tables_are_shown_one_by_one(
    cli: Cli, tmp_path: Path
) -> None:
    tables = two_folders(tmp_path / "lake", 4, 3, 0)
    every = cli("check", *tables, *CLIENTS, "--details").out
    assert all(f"\n{table}\n" in f"\n{every}" for table in tables)
    few = cli("check", *tables[:5], *CLIENTS).out
    assert all(f"\n{table}\n" in f"\n{few}" for table in tables[:5])
    assert "groups" in cli("check", *tables[:6], *CLIENTS).out


def test_failing_leaves_out_the_others_but_counts_them(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 30, 4, 1)
    ran = cli("check", *tables, *CLIENTS, "--failing")
    assert ran.code == 3
    assert "silver" not in ran.out
    assert ran.out.splitlines()[-1].startswith("35 tables, 1 unreadable; ")
    only = cli("check", *tables, *CLIENTS, "--failing", "--fail-on", "never")
    assert "gold/v000" not in only.out
    assert f"{tmp_path}/lake/gold/x0" in only.out


def test_a_limit_says_what_it_leaves_out(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 30, 12, 2)
    one = cli("check", *tables, *CLIENTS, "--limit", "1").out
    assert "and 42 tables in 2 more groups: --limit 0 shows all groups" in one
    assert re.search(r"and \d more findings?: --limit 0 or --details shows all", one)
    assert "more groups" not in cli("check", *tables, *CLIENTS, "--limit", "0").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--limit", "-1"), "--limit -1 is negative"),
        (("--failing", "--format", "sarif"), "--failing is for --format text and markdown"),
        (("--details", "--format", "json"), "--details is for --format text and markdown"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    ran = cli("check", str(tmp_path), *CLIENTS, *words)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("format_", ["text", "markdown"])
@pytest.mark.parametrize("seed", [7, 8])
def test_groups_state_what_json_states(
    seed: int, format_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    make_fleet(tmp_path / "lake", seed=seed, count=60)
    lake_, inventory = str(tmp_path / "lake"), str(tmp_path / "i")
    main(["scan", lake_, "--inventory", inventory, "--output", "/dev/null"])
    check = ["check", inventory, *CLIENTS, "--limit", "0"]
    json_file, text_file = str(tmp_path / "out.json"), tmp_path / "out.txt"
    code = main([*check, "--format", "json", "--output", json_file])
    assert main([*check, "--format", format_, "--output", str(text_file)]) == code
    document, text = json.loads(Path(json_file).read_text()), text_file.read_text()
    rows = text.partition("Names")[2].partition("names are relative")[0]
    counts = [int(count) for count in re.findall(r"^(?:\| *| +)(\d+) ", rows, re.MULTILINE)]
    assert sum(counts) == 60
    assert f"60 tables in {len(counts)} groups" in text
    said = Counter(finding["rule"] for finding in document["findings"])
    assert said
    assert all(rule in text for rule in said)
