"""A policy over an inventory says what it says of the same tables, saved by `inspect`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deltaproto.cli.main import main
from deltaproto.fleet.evaluate import PolicyTally
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet, without_contradictions
from tests.fleet.moves import move, sound_fleet
from tests.support.contract import validate

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
POLICIES = Path(__file__).parents[2] / "policies"
OF_HISTORY = {"DP105", "DP106"}


class Fleet(NamedTuple):
    """A fleet that was scanned and inspected."""

    lake: Path
    inventory: str
    saved: str


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """The tests only read it; one that scans again copies the inventory."""
    folder = tmp_path_factory.mktemp("checked")
    made = Fleet(folder / "lake", str(folder / "i"), str(folder / "saved.json"))
    fleet = without_contradictions(make_fleet(made.lake, seed=51, count=160))
    tables = [str(table) for table in fleet]
    for words in (
        ("scan", str(made.lake), "--inventory", made.inventory, "--output", str(folder / "scan")),
        ("inspect", *tables, "--format", "json", "--output", made.saved),
    ):
        assert main(list(words)) == 3
    return made


def said(ran: Ran) -> dict[str, list[str]]:
    """What a check says, in no order; rules on the history are not asked of an inventory."""
    validate("check", ran.json)

    def keep(entry: dict[str, Any]) -> bool:
        return entry.get("rule") not in OF_HISTORY

    return {
        name: sorted(repr(sorted(entry.items())) for entry in ran.json[name] if keep(entry))
        for name in ("verdicts", "findings", "suppressed")
    } | {"errors": sorted(entry["table"] for entry in ran.json["errors"])}


@pytest.mark.parametrize("policy", sorted(path.stem for path in POLICIES.glob("*.yaml")))
def test_the_verdicts_are_those_of_a_saved_inspection(cli: Cli, fleet: Fleet, policy: str) -> None:
    words = ("--policy", str(POLICIES / f"{policy}.yaml"), "--format", "json")
    kept = cli("check", fleet.inventory, *words)
    saved = cli("check", fleet.saved, *words)
    assert said(kept) == said(saved)
    assert kept.code == saved.code == 3
    assert len(kept.json["verdicts"]) > 90
    assert len(kept.json["errors"]) > 10


def test_an_inventory_by_its_uri_is_the_same(cli: Cli, tmp_path: Path) -> None:
    sound_fleet(tmp_path / "lake", 5, 6)
    inventory = tmp_path / "i"
    cli("scan", str(tmp_path / "lake"), "--inventory", str(inventory))
    words = ("--client", "polars@2.1.0", "--format", "json")
    by_path, by_uri = (cli("check", each, *words) for each in (str(inventory), inventory.as_uri()))
    assert len(by_uri.json["verdicts"]) == len(by_path.json["verdicts"]) > 5
    assert by_uri.code == by_path.code
    planned = cli("plan-downgrade", inventory.as_uri(), "--lowest", "--format", "json").json
    assert planned["summary"]["tables"] == 6


def said_of(document: dict[str, Any]) -> list[str]:
    """The verdicts of a check, in no order."""
    return sorted(repr(sorted(each.items())) for each in document["verdicts"])


def test_an_older_scan(cli: Cli, fleet: Fleet, tmp_path: Path) -> None:
    inventory = str(shutil.copytree(fleet.inventory, tmp_path / "i"))
    ask = ("check", inventory, "--client", "polars@2.1.0", "--format", "json")
    first = cli(*ask).json
    cli("scan", str(fleet.lake / "area 1"), "--inventory", inventory)
    second = cli(*ask).json
    # What the newer scan did not search comes from the older one.
    assert said_of(second) == said_of(first)
    newest = second["notes"][-2].split()[2].rstrip(",")
    only = cli(*ask, "--scan", newest).json
    assert 0 < len(only["verdicts"]) < len(first["verdicts"])
    scan_id = first["notes"][-1].split()[2].rstrip(",")
    again = cli(*ask, "--scan", scan_id).json
    assert again["verdicts"] == first["verdicts"]
    assert cli(*ask, "--scan", "none").code == 2
    assert cli(*ask, "--scan", "1999-01-01").code == 2


def test_a_scan_tells_what_the_policy_says(cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", str(tmp_path / "i")
    tables = sound_fleet(lake, 9, 40)
    policy = ("--policy", str(POLICIES / "spark-oss.yaml"))
    words = ("scan", str(lake), "--inventory", inventory, *policy, "--format", "json")
    first = cli(*words)
    validate("scan", first.json)
    assert first.json["drift"] is None
    checked = cli("check", inventory, *policy, "--format", "json")
    told = Counter(
        (v["access"], v["verdict"])
        for v in checked.json["verdicts"]
        if v["client"] == "delta-spark"
    )
    counted: Counter[tuple[str, str]] = Counter()
    for each in first.json["policy"]["verdicts"]:
        if each["client"].startswith("delta-spark"):
            counted[each["access"], each["verdict"]] += each["tables"]
    assert counted == told
    assert first.code == checked.code == 1
    rules = Counter(finding["rule"] for finding in checked.json["findings"])
    assert {each["rule"]: each["findings"] for each in first.json["policy"]["by_rule"]} == rules
    move(tables, 4)
    second = cli(*words)
    drifted = cli("drift", inventory, "--format", "json").json
    assert second.json["drift"]["counts"] == drifted["counts"]
    assert second.json["drift"]["since"] == first.json["scan_id"]
    assert second.json["drift"]["changed_tables"] == drifted["changed_tables"] > 10
    shown = cli(*words[:-2])
    assert "Clients" in shown.out
    assert "nothing changed" in shown.out
    assert cli("scan", str(lake), *policy).code == 2
    assert cli("scan", str(lake), "--inventory", inventory, "--policy", "none.yaml").code == 2


def test_counts_can_be_added() -> None:
    first, second, both = PolicyTally(), PolicyTally(), PolicyTally()
    first.tables, first.verdicts["trino@470", "read", "ok"] = 2, 3
    second.tables, second.rules["DP201", "error"] = 1, 4
    second.first.append(("t", "DP201", "refused"))
    for each in (first, second):
        both.merge(each.dumped())
    assert (both.tables, both.verdicts["trino@470", "read", "ok"]) == (3, 3)
    assert both.rules == {("DP201", "error"): 4}
    assert both.first == [("t", "DP201", "refused")]
