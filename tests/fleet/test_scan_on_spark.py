"""Scans as Spark jobs: the same rows as on this machine."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaproto.fleet import spark_scan
from deltaproto.fleet.discovery import DiscoverySource
from deltaproto.fleet.evaluate import PolicyTally, check_rows
from deltaproto.fleet.inventory import open_inventory_tables
from deltaproto.fleet.inventory_queries import LocalInventoryQueries
from deltaproto.fleet.old_scans import delete_old_scans_with_spark
from deltaproto.fleet.scan import ScanRequest, run_scan
from deltaproto.fleet.schemas import Inventory
from deltaproto.fleet.spark_checks import SparkChecks
from deltaproto.fleet.spark_questions import SparkInventoryQueries
from deltaproto.fleet.staging import hold_spark_lock
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
from deltaproto.protocol.table_state import SparkSettings
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
    here = scanned(cli, *roots, "--inventory", str(tmp_path / "local"))
    there = scanned(cli, *roots, "--inventory", str(tmp_path / "spark"), "--engine", "spark")
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
        scanned(cli, area, "--inventory", str(tmp_path / "i"), "--engine", engine)["scan_id"]
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
    look = spark_scan.SparkEngine.scan

    def dies(engine: Any, *words: Any) -> Any:
        for number, count in enumerate(look(engine, *words)):
            if number == jobs:
                raise KeyboardInterrupt
            yield count

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.SparkEngine.scan", dies)
        assert cli("scan", area, "--inventory", inventory, "--engine", "spark").code == 130
    assert not (tmp_path / "i" / "scans").exists()
    assert cli("scan", area, "--inventory", inventory, "--resume").code == 2
    other = (str(root / "area 0"), "--inventory", inventory, "--engine", "spark", "--resume")
    ran = cli("scan", *other)
    assert (ran.code, "the unfinished scan 2" in ran.err) == (2, True)
    assert area in ran.err, ran.err
    done = scanned(cli, area, "--inventory", inventory, "--engine", "spark", "--resume")
    assert done["resumed"] == min(150 * (jobs + 1), done["tables"] + done["errors"])
    scanned(cli, area, "--inventory", str(tmp_path / "whole"))
    for name in TABLES:
        assert rows(tmp_path / "i", name) == rows(tmp_path / "whole", name)


def test_what_could_not_be_looked_into_is_told_once_after_a_resume(
    spark: SparkSession, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 9, 3)
    words = (str(tmp_path / "lake"), str(tmp_path / "gone"), "--inventory", str(tmp_path / "i"))

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.SparkEngine.publish", dies)
        assert cli("scan", *words, "--engine", "spark").code == 130
    done = scanned(cli, *words, "--engine", "spark", "--resume")
    assert (done["tables"], done["errors"], done["resumed"]) == (3, 1, 4)


def test_the_cause_of_a_failure_on_an_executor_is_shown(
    spark: SparkSession, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 9, 1)

    def without_the_package(_: Any) -> Any:
        def read(_: Any) -> Any:
            raise ModuleNotFoundError("No module named 'deltaproto'")

        return read

    monkeypatch.setattr("deltaproto.fleet.spark_engine._reading_mapper", without_the_package)
    words = (str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"), "--engine", "spark")
    ran = cli("scan", *words)
    assert ran.code == 2
    cause = "ModuleNotFoundError: No module named 'deltaproto'"
    assert f"Spark cannot scan into {tmp_path / 'i'}: {cause}\n" in ran.err
    assert "its executors have deltaproto" in ran.err


def test_drift_is_the_same(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    lake, inventory = tmp_path / "lake", str(tmp_path / "i")
    tables = sound_fleet(lake, 7, 60)
    scanned(cli, str(lake), "--inventory", inventory, "--engine", "spark")
    move(tables, 8)
    (lake / "area 3").rename(lake / "area 4")
    scanned(cli, str(lake), "--inventory", inventory)
    here = cli("drift", inventory, "--format", "json").json
    there = cli("drift", inventory, "--format", "json", "--engine", "spark").json
    validate("drift", there)
    assert len(here["changes"]) > 40
    assert any(change["commit"] for change in here["changes"])
    assert sum(change["change"] == "table-moved" for change in here["changes"]) > 5
    for key in here.keys() - {"generated_at", "changes"}:
        assert there[key] == here[key], key
    in_order = [sorted(map(repr, told["changes"])) for told in (here, there)]
    assert in_order[0] == in_order[1]
    places = [change["location"] for change in there["changes"]]
    assert places == sorted(places)
    assert cli("drift", str(tmp_path / "none"), "--engine", "spark").code == 2


def test_a_policy_says_the_same(spark: SparkSession, cli: Cli, root: Path, tmp_path: Path) -> None:
    inventory, policy = str(tmp_path / "i"), str(POLICIES / "databricks-and-open-readers.yaml")
    scanned(cli, str(root / "area 2"), "--inventory", inventory)
    words = ("check", inventory, "--policy", policy, "--format", "json")
    here, there = cli(*words), cli(*words, "--engine", "spark")
    validate("check", there.json)
    assert here.code == there.code == 3
    for name in ("verdicts", "findings", "suppressed", "errors"):
        assert said(here, name) == said(there, name), name
    assert len(here.json["verdicts"]) > 1000
    checker = checker_of(policy)
    questions = SparkInventoryQueries(spark, inventory)
    checks = SparkChecks(questions, questions.scans()[-1], checker)
    assert checks.verdicts().count() == len(here.json["verdicts"])
    assert checks.findings().count() == len(here.json["findings"])
    expected, other = PolicyTally(), checker_of(policy)
    local = LocalInventoryQueries(open_inventory_tables(inventory, {}))
    checked = (check for _, check in check_rows(local, questions.scans()[-1], other))
    for each in other.with_policy(checked):
        expected.add(each)
    told = checks.tally()
    assert (told.tables, told.unreadable) == (expected.tables, expected.unreadable)
    assert (told.verdicts, told.rules) == (expected.verdicts, expected.rules)
    assert (told.waived, told.off) == (expected.waived, expected.off)


def test_item_17_a_report_is_the_same(
    spark: SparkSession,
    cli: Cli,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake, inventory = tmp_path / "lake", str(tmp_path / "i")
    tables = sound_fleet(lake, 7, 60)
    scanned(cli, str(lake), "--inventory", inventory)
    move(tables, 8)
    # The newest state has tables of two scans, and tables that could not be read.
    for each in (lake, root / "area 2"):
        scanned(cli, str(each), "--inventory", inventory)
    policy = str(POLICIES / "databricks-and-open-readers.yaml")

    def compare(*words: str) -> None:
        command = ("report", inventory, "--format", "json", *words)
        here, there = cli(*command), cli(*command, "--engine", "spark")
        assert (there.code, there.err) == (here.code, here.err)
        assert without_time(there.out) == without_time(here.out)
        assert "deletionVectors" in here.out

    compare()
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        compare("--policy", policy)
        compare("--format", "markdown")
        compare("--scan", scanned_ids(inventory)[0])
    finally:
        monkeypatch.undo()
        time.tzset()


def scanned_ids(inventory: str) -> list[str]:
    scans = LocalInventoryQueries(open_inventory_tables(inventory, {})).scans()
    return [scan.scan_id for scan in scans]


def without_time(text: str) -> list[str]:
    return [line for line in text.splitlines() if '"generated_at"' not in line]


def said(ran: Ran, name: str) -> list[str]:
    return sorted(repr(sorted(entry.items())) for entry in ran.json[name])


def checker_of(policy: str) -> Checker:
    loaded = load_local_policy(policy)
    return Checker(loaded, load_local_catalog((), loaded))


def test_scans_at_the_same_time_keep_the_inventory_whole(
    spark: SparkSession, cli: Cli, tmp_path: Path
) -> None:
    where = str(tmp_path / "i")
    for name in "abc":
        sound_fleet(tmp_path / name, 3, 12)
    requests = {
        name: ScanRequest(
            DiscoverySource((str(tmp_path / name),)), {}, open_inventory_tables(where, {})
        )
        for name in "abc"
    }

    def nothing(*_: object) -> None:
        """Show no progress."""

    with ThreadPoolExecutor(3) as pool:
        running = [
            pool.submit(spark_scan.scan_with_spark, requests["a"], SparkSettings(), nothing),
            pool.submit(spark_scan.scan_with_spark, requests["b"], SparkSettings(), nothing),
            pool.submit(run_scan, requests["c"], nothing),
        ]
        done = [each.result() for each in running]
    questions = LocalInventoryQueries(open_inventory_tables(where, {}))
    scans = questions.scans()
    assert {each.scan_id for each in scans} == {each.scan_id for each in done}
    for each in scans:
        assert each.tables == 12
        questions.require_whole(each)
        SparkInventoryQueries(spark, where).require_whole(each)
    assert len(cli("check", where, "--client", "trino@476", "--format", "json").json["errors"]) == 0


def test_old_scans_are_deleted_twice_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "i")
    sound_fleet(tmp_path / "a", 3, 4)
    source = DiscoverySource((str(tmp_path / "a"),))

    def scan() -> str:
        request = ScanRequest(source, {}, open_inventory_tables(where, {}))
        return run_scan(request, lambda *_: None).scan_id

    ids = [scan() for _ in range(5)]
    scans = [
        scan._replace(ended_at=scan.ended_at - timedelta(days=3))
        for scan in LocalInventoryQueries(open_inventory_tables(where, {})).scans()
    ]
    begin = Barrier(2)

    def delete() -> None:
        begin.wait()
        delete_old_scans_with_spark(spark, where, scans, 1)

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(delete), pool.submit(delete)]:
            each.result()
    newest = scan()
    assert scanned_ids(where) == [ids[-1], newest]
    for name in TABLES:
        assert open_inventory_tables(where, {}).scan_ids(Inventory(name)) <= {ids[-1], newest}


def test_a_running_scan_is_not_resumed(
    spark: SparkSession, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 9, 3)
    where = str(tmp_path / "i")
    words = ("scan", str(tmp_path / "lake"), "--inventory", where, "--engine", "spark")

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.SparkEngine.publish", dies)
        assert cli(*words).code == 130
    staging = tmp_path / "i" / "_staging_spark"
    (stopped,) = (each.name for each in staging.iterdir() if each.is_dir())
    with hold_spark_lock(where, stopped):
        ran = cli(*words, "--resume")
        assert (ran.code, "no unfinished scan" in ran.err) == (2, True)
    assert scanned(cli, *words[1:], "--resume")["tables"] == 3


def test_a_scan_that_dies_before_its_first_job_is_resumed(
    spark: SparkSession, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound_fleet(tmp_path / "lake", 9, 3)
    where = str(tmp_path / "i")
    words = ("scan", str(tmp_path / "lake"), "--inventory", where, "--engine", "spark")
    assert scanned(cli, *words[1:])["tables"] == 3

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut:
        cut.setattr("deltaproto.fleet.spark_scan.discover_tables", dies)
        assert cli(*words).code == 130
    check = ("check", where, "--client", "trino@476")
    ran = cli(*check, "--fail-on", "never")
    assert (ran.code, "--resume" in ran.out + ran.err) == (3, True)
    assert scanned(cli, *words[1:], "--resume")["tables"] == 3
    assert cli(*check, "--fail-on", "never").code == 0
    ran = cli(*words, "--resume")
    assert (ran.code, "no unfinished scan" in ran.err) == (2, True)


def test_a_damaged_inventory(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    lake, whole = tmp_path / "lake", tmp_path / "whole"
    sound_fleet(lake, 5, 6)
    for _ in range(2):
        scanned(cli, str(lake), "--inventory", str(whole))
    newest = LocalInventoryQueries(open_inventory_tables(str(whole), {})).scans()[-1].scan_id

    def damaged(name: str) -> Path:
        return Path(shutil.copytree(whole, tmp_path / name))

    def rows_of(where: Path, name: str) -> pa.Table:
        found = DeltaTable(where / name).to_pyarrow_table()
        return found.filter(pc.equal(found["scan_id"], newest))

    lost, doubled, featureless, text = map(damaged, ("lost", "doubled", "featureless", "text"))
    table = rows_of(lost, "tables")["location"][0].as_py()
    DeltaTable(lost / "tables").delete(f"scan_id = '{newest}' and location = '{table}'")
    write_deltalake(doubled / "findings", rows_of(doubled, "findings").slice(0, 1), mode="append")
    DeltaTable(featureless / "features").delete(
        f"scan_id = '{newest}' and location = '{table}' and feature = 'appendOnly'"
    )
    columns = DeltaTable(text / "tables").to_pyarrow_table()
    index = columns.schema.get_field_index("min_reader_version")
    columns = columns.set_column(
        index, "min_reader_version", pc.cast(columns["min_reader_version"], pa.string())
    )
    shutil.rmtree(text / "tables")
    write_deltalake(text / "tables", columns, partition_by=["scan_id"])
    for where, said in (
        (lost, "rows are missing"),
        (doubled, f"1 finding of scan {newest} twice"),
        (featureless, "lacks the table's features appendOnly"),
        (text, "column min_reader_version of the inventory's table tables has the type string"),
    ):
        for command in (("check", "--client", "trino@476"), ("drift",)):
            ran = cli(*command, str(where), "--engine", "spark", "--format", "json")
            assert (ran.code, said in ran.out + ran.err) == (3, True), (where.name, command)


def test_a_scan_shows_the_findings_on_the_policy(
    spark: SparkSession, cli: Cli, tmp_path: Path
) -> None:
    sound_fleet(tmp_path / "lake", 5, 6)
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: [trino@400]\n"
        "waivers: [{rule: DP201, table: '**', reason: moving, expires: '2999-01-01'},\n"
        "  {rule: DP203, table: '**/gone', reason: moved, expires: '2001-01-01'}]\n"
        "tables: {'**/nothing': {max_reader_version: 1}}\n"
    )
    words = (str(tmp_path / "lake"), "--policy", str(policy))
    here, there = (
        scanned(cli, *words, "--inventory", str(tmp_path / engine), "--engine", engine)["policy"]
        for engine in ("local", "spark")
    )
    assert here == there
    assert {"DP301", "DP303"} <= {each["rule"] for each in there["by_rule"]}
