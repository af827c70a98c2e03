"""Scans as Spark jobs: the same rows as on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from deltaproto.checking.check import Checker
from deltaproto.checking.site import site_catalogue, site_policy
from deltaproto.fleet import spark_scan
from deltaproto.fleet.checks import checked
from deltaproto.fleet.inventory import inventory_at
from deltaproto.fleet.past import LocalQuestions
from deltaproto.fleet.policy_tally import PolicyTally
from deltaproto.fleet.spark_checks import SparkChecks
from deltaproto.fleet.spark_questions import SparkQuestions
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.fleet.moves import move, sound_fleet
from tests.support.contract import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Cli = Callable[..., Ran]
POLICIES = Path(__file__).parents[2] / "policies"
TABLES = ("tables", "features", "findings", "errors")


def rows(inventory: Path, name: str) -> list[str]:
    found = DeltaTable(inventory / name).to_pyarrow_table().to_pylist()
    return sorted(repr(sorted({**row, "scan_id": ""}.items())) for row in found)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    make_fleet(folder, seed=31, count=1000)
    return folder


def scanned(cli: Cli, *words: str) -> dict[str, Any]:
    ran = cli("scan", *words, "--format", "json", "--fail-on", "never")
    assert "error" not in ran.json, ran.json["error"]
    validate("scan", ran.json)
    return ran.json


def test_the_same_rows_as_on_this_machine(
    spark: SparkSession, cli: Cli, root: Path, tmp_path: Path
) -> None:
    roots = (str(root), str(tmp_path / "nothing"))
    here = scanned(cli, *roots, "--to", str(tmp_path / "local"))
    there = scanned(cli, *roots, "--to", str(tmp_path / "spark"), "--engine", "spark")
    assert here["errors"] > 50
    changing = ("scan_id", "seconds", "inventory", "generated_at", "first_errors")
    for key in here.keys() - set(changing):
        assert there[key] == here[key], key
    for name in TABLES:
        assert rows(tmp_path / "spark", name) == rows(tmp_path / "local", name)
        stored = DeltaTable(tmp_path / "spark" / name).protocol()
        assert (stored.min_reader_version, stored.min_writer_version) == (1, 2)
    assert not (tmp_path / "spark" / "_staging_spark" / there["scan_id"]).exists()


def test_both_engines_share_an_inventory(
    spark: SparkSession, cli: Cli, root: Path, tmp_path: Path
) -> None:
    area = str(root / "area 0")
    ids = [
        scanned(cli, area, "--to", str(tmp_path / "i"), "--engine", engine)["scan_id"]
        for engine in ("local", "spark", "local")
    ]
    scans = DeltaTable(tmp_path / "i" / "scans").to_pyarrow_table().to_pylist()
    assert {row["scan_id"]: row["engine"] for row in scans} == dict(
        zip(ids, ("local", "spark", "local"), strict=True)
    )
    assert len({(row["tables"], row["errors"], row["findings"]) for row in scans}) == 1


@pytest.mark.parametrize("jobs", [0, 1, 2])
def test_a_scan_that_dies_goes_on(
    spark: SparkSession,
    cli: Cli,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs: int,
) -> None:
    area, inventory = str(root / "area 1"), str(tmp_path / "i")
    monkeypatch.setattr("deltaproto.fleet.spark_engine._JOB", 150)
    look = spark_scan.SparkEngine.look

    def dies(engine: Any, *words: Any) -> Any:
        for number, count in enumerate(look(engine, *words)):
            if number == jobs:
                raise KeyboardInterrupt
            yield count

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.SparkEngine.look", dies)
        assert cli("scan", area, "--to", inventory, "--engine", "spark").code == 130
    assert not (tmp_path / "i" / "scans").exists()
    assert cli("scan", area, "--to", inventory, "--resume").code == 2
    done = scanned(cli, area, "--to", inventory, "--engine", "spark", "--resume")
    assert done["resumed"] == min(150 * (jobs + 1), done["tables"] + done["errors"])
    scanned(cli, area, "--to", str(tmp_path / "whole"))
    for name in TABLES:
        assert rows(tmp_path / "i", name) == rows(tmp_path / "whole", name)


def test_what_could_not_be_looked_into_is_told_once_after_a_resume(
    spark: SparkSession, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 9, 3)
    words = (str(tmp_path / "lake"), str(tmp_path / "gone"), "--to", str(tmp_path / "i"))

    def dies(engine: Any, scan: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.SparkEngine.publish", dies)
        assert cli("scan", *words, "--engine", "spark").code == 130
    done = scanned(cli, *words, "--engine", "spark", "--resume")
    assert (done["tables"], done["errors"], done["resumed"]) == (3, 1, 4)


def test_drift_is_the_same(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", str(tmp_path / "i")
    tables = sound_fleet(lake, 7, 60)
    scanned(cli, str(lake), "--to", inventory, "--engine", "spark")
    move(tables, 8)
    scanned(cli, str(lake), "--to", inventory)
    here = cli("drift", inventory, "--format", "json").json
    there = cli("drift", inventory, "--format", "json", "--engine", "spark").json
    validate("drift", there)
    assert len(here["changes"]) > 40
    assert any(change["commit"] for change in here["changes"])
    for key in here.keys() - {"generated_at", "changes"}:
        assert there[key] == here[key], key
    in_order = [sorted(map(repr, told["changes"])) for told in (here, there)]
    assert in_order[0] == in_order[1]
    places = [change["location"] for change in there["changes"]]
    assert places == sorted(places)
    assert cli("drift", str(tmp_path / "none"), "--engine", "spark").code == 2


def test_a_policy_says_the_same(spark: SparkSession, cli: Cli, root: Path, tmp_path: Path) -> None:
    inventory, policy = str(tmp_path / "i"), str(POLICIES / "databricks-and-open-readers.yaml")
    scanned(cli, str(root / "area 2"), "--to", inventory)
    words = ("check", inventory, "--policy", policy, "--format", "json")
    here, there = cli(*words), cli(*words, "--engine", "spark")
    validate("check", there.json)
    assert here.code == there.code == 3
    for name in ("verdicts", "findings", "suppressed", "errors"):
        assert said(here, name) == said(there, name), name
    assert len(here.json["verdicts"]) > 1000
    checker = checker_of(policy)
    questions = SparkQuestions(spark, inventory)
    checks = SparkChecks(questions, questions.scans()[-1], checker)
    assert checks.verdicts().count() == len(here.json["verdicts"])
    assert checks.findings().count() == len(here.json["findings"])
    expected = PolicyTally()
    for each in checked(
        LocalQuestions(inventory_at(inventory, {})), questions.scans()[-1], checker
    ):
        expected.add(each)
    told = checks.tally()
    assert (told.tables, told.unreadable) == (expected.tables, expected.unreadable)
    assert (told.verdicts, told.rules) == (expected.verdicts, expected.rules)


def said(ran: Ran, name: str) -> list[str]:
    return sorted(repr(sorted(entry.items())) for entry in ran.json[name])


def checker_of(policy: str) -> Checker:
    loaded = site_policy(policy)
    return Checker(loaded, site_catalogue((), loaded))
