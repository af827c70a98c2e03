"""The runbook of a rollout: when each wave runs, who is told before it, and how to roll it back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.execution.rollout_file import load_rollout
from tests.conftest import Ran
from tests.execution.scripted import ON, VECTORS
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
POLICY = """
policy_version: 1
clients: [duckdb@1.5.5]
tables:
  "*": {{forbid_features: [deletionVectors], history: truncate{windows}}}
  plain:
    clients: [delta-spark@3.2.0]
    require_properties: {{delta.logRetentionDuration: interval 40 days}}
rollout: {{canary: ["dev_*"], waves: [2], soak: 6h, parallel: 3}}
"""
NIGHTLY = ", maintenance_windows: [{days: daily, from: '01:00', to: '05:00', timezone: Asia/Tokyo}]"
START = ("--start", "2027-03-01T10:00Z")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(cli: Cli, windows: str = "") -> None:
    """A canary, two other tables that wait for 24 h, and one with a client of its own."""
    for name in ("b", "c", "dev_a"):
        Log(Path("lake") / name).commit(0, commit_info("CREATE TABLE"), VECTORS, ON)
    Log(Path("lake") / "plain").commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    Path("policy.yaml").write_text(POLICY.format(windows=windows))
    tables = [f"lake/{name}" for name in ("b", "c", "dev_a", "plain")]
    words = ("--policy", "policy.yaml", "--out", "plans", "--quiet")
    assert cli("plan", *tables, *words).code in (0, 1)


def runbook(cli: Cli) -> str:
    ran = cli("runbook", "plans", "--policy", "policy.yaml", *START)
    assert ran.err == ""
    return ran.out


def chapter(book: str, title: str) -> str:
    """From a heading to the next one of the same level."""
    found = re.search(rf"(?ms)^(#+) {title}.*?\n(.*?)(?=^\1 |^## |\Z)", book)
    assert found is not None, title
    return found[2]


def calendar(book: str) -> list[list[str]]:
    rows = re.findall(r"(?m)^\| ((?:canary|wave).*) \|$", chapter(book, "The rollout"))
    return [row.split(" | ") for row in rows]


def waves() -> list[set[str]]:
    return [{Path(each.table).name for each in wave.tables} for wave in load_rollout("plans").waves]


def test_waits_and_soak_times_add_up(cli: Cli) -> None:
    planned(cli)
    assert waves() == [{"dev_a"}, {"plain", "b"}, {"c"}]
    assert calendar(runbook(cli)) == [
        ["canary", "1"]
        + [f"2027-03-{day} UTC" for day in ("01 10:00:00", "02 10:00:00", "02 16:00:00")],
        ["wave 1", "2"]
        + [f"2027-03-{day} UTC" for day in ("02 16:00:00", "03 16:00:00", "03 22:00:00")],
        ["wave 2", "1", "2027-03-03 22:00:00 UTC", "2027-03-04 22:00:00 UTC", "—"],
    ]


def test_a_wave_waits_for_its_maintenance_windows(cli: Cli) -> None:
    planned(cli, NIGHTLY)
    book = runbook(cli)
    assert [row[2:4] for row in calendar(book)] == [
        ["2027-03-01 16:00:00 UTC", "2027-03-02 16:00:00 UTC"],
        ["2027-03-03 16:00:00 UTC", "2027-03-04 16:00:00 UTC"],
        ["2027-03-05 16:00:00 UTC", "2027-03-06 16:00:00 UTC"],
    ]
    # The gates are those at the start of the wave, which is in the window.
    assert "**window**" not in book
    assert "Wait until **2027-03-04 16:00:00 UTC**" in book


def test_the_clients_of_a_wave_are_told_before_it(cli: Cli) -> None:
    planned(cli)
    book = runbook(cli)
    told = [
        re.findall(r"`((?:duckdb|delta-spark)@.*?)`", chapter(book, f"{name}: "))
        for name in ("canary", "wave 1", "wave 2")
    ]
    assert told == [["duckdb@1.5.5"], ["delta-spark@3.2.0", "duckdb@1.5.5"], ["duckdb@1.5.5"]]


def test_a_wave_is_rolled_back_by_its_own_plans(cli: Cli) -> None:
    planned(cli)
    book = runbook(cli)
    for wave in load_rollout("plans").waves:
        (listing,) = re.findall(r"(?s)```shell\n(.*?)```", chapter(book, f"{wave.name}: "))
        tool, command, undo, *rest = shlex.split(listing.replace("\\\n", ""))
        assert (tool, command, undo) == ("deltaproto", "apply", "--undo")
        assert rest[:2] == ["--policy", "policy.yaml"]
        found = {json.loads(Path(file).read_text())["plan_id"] for file in rest[2:]}
        assert found == {table.plan_id for table in wave.tables}


def test_rehearsals_are_explained_where_the_policy_asks_for_them(cli: Cli) -> None:
    planned(cli)
    assert "shallow clone" not in chapter(runbook(cli), "The rollout")
    file = Path("policy.yaml")
    file.write_text(file.read_text().replace("soak: 6h", "soak: 6h, rehearse: true"))
    words = ("--policy", "policy.yaml", "--out", "again", "--quiet")
    assert cli("plan", "lake/b", *words).code in (0, 1)
    ran = cli("runbook", "again", "--policy", "policy.yaml", *START)
    assert "`apply` runs its statements on a shallow clone" in chapter(ran.out, "The rollout")


def test_no_other_command_names_single_plans(cli: Cli) -> None:
    planned(cli)
    # One of the four is refused, which used to make the commands name the others.
    book = runbook(cli)
    for command in re.findall(r"(?m)^deltaproto (?:apply|rehearse) .*$", book):
        assert "--undo" in command or " plans" in command, command
        assert "plans/" not in command


def test_a_plan_without_its_file_is_named(cli: Cli) -> None:
    planned(cli)
    (lost,) = load_rollout("plans").waves[2].tables
    (Path("plans") / lost.file).unlink()
    ran = cli("runbook", "plans", "--policy", "policy.yaml")
    assert ran.code == 2
    assert lost.file in ran.err
    assert "hint: " in ran.err


def test_the_page_draws_the_calendar(cli: Cli) -> None:
    planned(cli, NIGHTLY)
    page = cli("runbook", "plans", "--policy", "policy.yaml", *START, "--format", "html").out
    (picture,) = re.findall(r"(?s)<svg role='img' aria-label='Calendar'.*?</svg>", page)
    titles = re.findall(r"<title>(.*?): ", picture)
    assert [titles.count(name) for name in ("Statements and waits", "Soak time")] == [3, 2]
    assert titles.count("Maintenance window") == 6
    assert "href='#wave-2'" in page or 'href="#wave-2"' in page
