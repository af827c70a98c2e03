"""The plans of many tables are shown in groups."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.fleet.fleets import make_fleet, two_folders

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
GOAL = ("--enable", "deletionVectors", "--client", "trino@400")


def test_equal_plans_are_one_entry(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 30, 9, 2)
    ran = cli("plan-upgrade", *tables, *GOAL, "--no-color")
    assert ran.code == 3
    assert ran.out.startswith("41 tables in 3 groups\n")
    assert len(ran.out.splitlines()) < 30
    unread, planned, done = (ran.out.index(f"tables {count}\n") for count in (2, 30, 9))
    assert unread < planned < done
    assert "corrupt-log: 00000000000000000000.json line 1: malformed JSON" in ran.out
    assert "(1,2) -> (3,7)" in ran.out
    assert "add deletionVectors to the protocol" in ran.out
    assert re.search(r"lose access +trino@400 append, trino@400 read", ran.out)
    assert "silver/p000, silver/p001, silver/p002 and 27 more" in ran.out
    assert f"names are relative to {tmp_path}/lake/" in " ".join(ran.out.split())
    assert "41 tables: 30 with steps, 9 with nothing to do, 0 blocked, 2 unreadable" in ran.out


def test_unreadable_tables_are_one_entry_for_each_code(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 4, 2, 5)
    for number in range(3):
        log = tmp_path / f"lake/silver/p{number:03}/_delta_log"
        (log / f"{1:020}.json").write_text("{}\n" * number + "[]\n")
    out = " ".join(cli("plan-upgrade", *tables, *GOAL, "--no-color").out.split())
    assert "8 unreadable" in out
    assert out.count("corrupt-log: ") == 1
    assert "tables 8 plan corrupt-log: 00000000000000000000.json line 1: malformed JSON" in out
    assert "; 3 with other messages names" in out


def test_groups_say_that_they_are_planned_from_saved_states(cli: Cli, tmp_path: Path) -> None:
    two_folders(tmp_path / "lake", 6, 2)
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", inventory).code == 0
    note = "8 planned from saved states, without schemas and files: plan again from the tables"
    assert note in " ".join(cli("plan-upgrade", inventory, *GOAL).out.split())
    assert note in cli("plan-upgrade", inventory, *GOAL, "--format", "markdown").out
    assert "saved states" not in cli("plan-upgrade", inventory, *GOAL, "--fresh").out


def test_few_plans_and_details_are_shown_one_by_one(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 4, 3)
    every = cli("plan-upgrade", *tables, *GOAL, "--details").out
    assert all(f"\n{table}\n" in f"\n{every}" for table in tables)
    few = cli("plan-upgrade", *tables[:5], *GOAL).out
    assert all(f"\n{table}\n" in f"\n{few}" for table in tables[:5])
    assert "groups" not in few
    assert cli("plan-upgrade", *tables[:6], *GOAL).out.startswith("6 tables in 2 groups\n")


def test_a_limit_says_what_it_leaves_out(cli: Cli, tmp_path: Path) -> None:
    tables = two_folders(tmp_path / "lake", 10, 3)
    one = cli("plan-upgrade", *tables, *GOAL, "--limit", "1").out
    assert "and 3 tables in 1 more group: --limit 0 shows all groups" in one
    assert "more groups" not in cli("plan-upgrade", *tables, *GOAL, "--limit", "0").out
    ran = cli("plan-upgrade", *tables, *GOAL, "--limit", "-2")
    assert (ran.code, "--limit -2 is negative" in ran.err) == (2, True)


@pytest.mark.parametrize("seed", [17, 18])
def test_groups_add_up_to_the_plans_of_the_json(cli: Cli, tmp_path: Path, seed: int) -> None:
    make_fleet(tmp_path / "lake", seed=seed, count=60)
    inventory = str(tmp_path / "i")
    cli("scan", str(tmp_path / "lake"), "--inventory", inventory)
    words = ("plan-downgrade", inventory, "--lowest", "--include-enabled")
    text, document = cli(*words, "--limit", "0"), cli(*words, "--format", "json").json
    counts = [int(n) for n in re.findall(r"^  tables (\d+)$", text.out, re.MULTILINE)]
    assert text.out.startswith(f"60 tables in {len(counts)} groups\n")
    assert sum(counts) == len(document["plans"]) == 60
    protocols = {
        f"({plan['protocol_after']['minReaderVersion']},{plan['protocol_after']['minWriterVersion']})"
        for plan in document["plans"]
        if plan.get("steps")
    }
    assert protocols
    assert all(f"-> {each}" in text.out or f" {each}\n" in text.out for each in protocols)
