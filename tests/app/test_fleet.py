"""Scans and inventories from Python: the same answers as the commands."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import deltaproto
from deltaproto import EngineError, Inventory, ResultError, TableError, UsageError, scan
from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "lake" / name)
    return tmp_path / "lake"


@pytest.fixture
def inventory(lake: Path) -> Inventory:
    found = scan(lake, inventory=lake.parent / "inventory").inventory
    assert found is not None
    return found


class TestScan:
    def test_its_counts_are_those_of_the_command(self, cli: Cli, lake: Path) -> None:
        seen: list[int] = []
        done = scan([lake], on_progress=seen.append)
        assert (done.tables, done.errors, done.inventory) == (3, 0, None)
        assert (done.features["deletionVectors"], done.protocols[3, 7]) == (1, 1)
        assert seen[-1] == 3
        said = cli("scan", str(lake), "--format", "json").json
        varies = {"scan_id", "seconds"}
        mine = json.loads(json.dumps(done.to_dict()))
        assert {k: v for k, v in mine.items() if k not in varies} == {
            key: said[key] for key in mine if key not in varies
        }

    def test_what_cannot_be_read_is_counted_and_never_ok(self, lake: Path) -> None:
        (lake / "broken" / "_delta_log").mkdir(parents=True)
        (lake / "broken" / "_delta_log" / f"{0:020}.json").write_text("{")
        done = scan(lake, inventory=lake.parent / "inventory")
        assert (done.tables, done.errors, done.ok) == (3, 1, False)
        with pytest.raises(
            ResultError, match=r"1 table or place could not be read; .*broken"
        ) as raised:
            done.raise_for_status()
        assert int(raised.value.exit_code) == 3
        assert done.inventory is not None
        (row,) = done.inventory.errors()
        assert row["code"] == "corrupt-log"

    def test_links_out_of_the_roots_are_logged(
        self, lake: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        other = Log(tmp_path / "elsewhere" / "t")
        other.commit(0, commit_info(), protocol(1, 2), metadata())
        (lake / "linked").symlink_to(tmp_path / "elsewhere")
        caplog.set_level(logging.INFO, "deltaproto")
        done = scan(lake)
        assert [record.getMessage() for record in caplog.records][:-1] == list(done.scan.notes)

    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ({}, "nothing to scan"),
            ({"roots": "x", "resume": True}, "resume needs inventory"),
            ({"roots": "x", "include": "a"}, "include is a single string"),
            ({"roots": "x", "engine": "presto"}, 'engine: unknown "presto"'),
        ],
    )
    def test_what_makes_no_sense(self, named: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            scan(**named)


class TestRows:
    def test_conditions_choose_rows(self, inventory: Inventory) -> None:
        assert len(inventory.tables()) == 3
        (row,) = inventory.tables("min_reader_version = 3 AND partition_columns IS NOT NULL")
        assert row["table"].endswith("orders")
        assert [each["feature"] for each in inventory.features("feature = 'deletionVectors'")] == [
            "deletionVectors"
        ]
        with pytest.raises(UsageError, match="is not complete"):
            inventory.tables("a) OR (b")
        with pytest.raises(UsageError, match="query on the inventory failed"):
            inventory.tables("nosuch = 1")
        for condition, cause, hint in (
            ('"Version" = 1', "no column Version", "did you mean version?"),
            ("tables.min_reader = 3", "no column min_reader", "did you mean min_reader_version?"),
            ('location = "x/y"', "no column x/y", "text needs single quotes"),
        ):
            with pytest.raises(UsageError, match=f"failed: {cause}\\n") as caught:
                inventory.tables(condition)
            assert hint in (caught.value.hint or "")

    def test_every_dataframe_library_takes_them(self, inventory: Inventory) -> None:
        rows = inventory.tables()
        versions = sorted(row["min_reader_version"] for row in rows)
        assert sorted(pa.table(rows)["min_reader_version"].to_pylist()) == versions
        streamed = pa.RecordBatchReader.from_stream(rows).read_all()
        assert sorted(streamed["min_reader_version"].to_pylist()) == versions
        frame = rows.to_pandas()
        assert isinstance(frame, pd.DataFrame)
        assert sorted(frame.min_reader_version) == versions

    def test_nothing_is_printed(self, lake: Path, tmp_path: Path) -> None:
        """Not even a warning, for a program that has not set up logging."""
        (tmp_path / "elsewhere").mkdir()
        (lake / "linked").symlink_to(tmp_path / "elsewhere")
        script = "import deltaproto, sys; deltaproto.scan(sys.argv[1], inventory=sys.argv[2])"
        words = [sys.executable, "-c", script, str(lake), str(tmp_path / "printed")]
        ran = subprocess.run(words, capture_output=True, text=True, check=True)
        assert ran.stdout + ran.stderr == ""

    def test_pandas_that_is_missing_is_named(
        self, inventory: Inventory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(EngineError, match="pandas is not installed") as caught:
            inventory.tables().to_pandas()
        assert "pip install pandas" in str(caught.value)

    def test_they_are_a_sequence(self, inventory: Inventory) -> None:
        rows = inventory.tables()
        assert rows[0] == next(iter(rows))
        assert rows[-1] == list(rows)[-1]
        assert list(rows[1:]) == list(rows)[1:]
        with pytest.raises(IndexError):
            _ = rows[3]
        assert "min_reader_version" in rows.columns
        assert "<table>" in rows._repr_html_()

    def test_only_the_newest_state_of_each_root_counts(self, lake: Path) -> None:
        place = lake.parent / "inventory"
        scan(lake, inventory=place)
        scan(lake / "orders", inventory=place)
        inventory = Inventory(place)
        assert len(inventory.scans()) == 2
        assert len(inventory.tables()) == 3
        (only,) = inventory.tables(scan=inventory.scans()[-1].scan_id)
        assert only["table"].endswith("orders")


class TestInventory:
    def test_its_check_is_that_of_the_command(self, cli: Cli, inventory: Inventory) -> None:
        checked = inventory.check(clients=["trino@400"])
        said = cli("check", inventory.location, "--client", "trino@400", "--format", "json").json
        mine = checked.to_dict()
        for name in ("verdicts", "findings", "tables", "summary"):
            assert mine[name] == said[name]
        assert mine["notes"] == said["notes"]
        assert checked.notes == (said["notes"][-1],)
        assert f"scan {inventory.scans()[-1].scan_id}, ended " in checked.notes[0]
        upgraded = inventory.check(
            clients=["databricks-runtime@13.3"], after="databricks-runtime@17.3"
        )
        assert len(upgraded.notes) == 2
        assert upgraded.notes[1] == checked.notes[0]
        assert not checked.ok
        outcomes = {row["outcome"] for row in checked.verdicts}
        assert outcomes == {row["verdict"] for row in said["verdicts"]}
        assert len(checked.findings) == len(said["findings"])

    def test_a_lost_row_is_an_error_and_not_compliant(self, inventory: Inventory) -> None:
        import deltalake

        deltalake.DeltaTable(f"{inventory.location}/tables").delete("min_reader_version = 3")
        checked = inventory.check(clients=["trino@480"])
        assert not checked.ok
        assert len(checked.errors) == 1

    def test_drift(self, cli: Cli, lake: Path, inventory: Inventory) -> None:
        first = inventory.drift()
        assert (first.ok, first.changes, first.since) == (True, (), first.until)
        features = ["appendOnly", "deletionVectors", "invariants"]
        raised = protocol(3, 7, ["deletionVectors"], features)
        commit = lake / "customers" / "_delta_log" / f"{2:020}.json"
        commit.write_text(f"{json.dumps(commit_info())}\n{json.dumps(raised)}\n")
        scan(lake, inventory=inventory.location)
        drift = inventory.drift()
        assert not drift.ok
        said = cli("drift", inventory.location, "--format", "json").json
        assert drift.to_dict()["counts"] == said["counts"]
        assert drift.to_dict()["changes"] == said["changes"]
        assert {row["change"] for row in drift.rows()} == {e["change"] for e in said["changes"]}
        with pytest.raises(ResultError) as failed:
            drift.raise_for_status()
        assert int(failed.value.exit_code) == 1

    def test_drift_since_a_time_needs_it_as_text(self, inventory: Inventory) -> None:
        since: Any = datetime(2026, 11, 1)
        with pytest.raises(UsageError, match="since is of the type datetime"):
            inventory.drift(since=since)

    def test_drift_of_a_part_of_the_scans_is_incomplete(
        self, cli: Cli, lake: Path, inventory: Inventory
    ) -> None:
        scan(lake / "orders", inventory=inventory.location)
        drift = inventory.drift()
        assert cli("drift", inventory.location).code == 3
        assert (drift.ok, drift.complete, len(drift.not_compared)) == (False, False, 1)
        only = inventory.drift(until=drift.until.scan_id)
        assert (only.ok, only.not_compared) == (True, ())

    def test_scans_of_several_roots_and_their_age_are_logged(
        self, lake: Path, inventory: Inventory, caplog: pytest.LogCaptureFixture
    ) -> None:
        scan(lake / "orders", inventory=inventory.location)
        inventory.tables()
        assert "tables outside the roots of the newest scan come from" in caplog.text

    def test_an_empty_inventory_is_not_compliant(self, tmp_path: Path) -> None:
        (tmp_path / "lake").mkdir()
        empty = scan(tmp_path / "lake", inventory=tmp_path / "inventory", allow_empty=True)
        assert empty.inventory is not None
        checked = empty.inventory.check(clients=["trino@400"])
        assert (checked.ok, [row["code"] for row in checked.errors]) == (False, ["no-tables"])
        with pytest.raises(TableError, match="no tables found"):
            empty.inventory.drift()
        with pytest.raises(TableError, match="no tables found"):
            empty.inventory.report()

    def test_report(self, inventory: Inventory, tmp_path: Path) -> None:
        text = inventory.report(tmp_path / "report.html")
        assert (tmp_path / "report.html").read_text() == text
        assert json.loads(inventory.report(format="json"))["tables"] == 3
        assert repr(text) == f"<Report ok, {len(text):,} characters>"
        assert text._repr_html_().startswith('<iframe srcdoc="&lt;!')
        assert inventory.report(format="markdown")._repr_html_().startswith("<pre># ")
        with pytest.raises(UsageError, match='format: unknown "pdf"'):
            inventory.report(format="pdf")

    def test_old_scans_are_forgotten(self, inventory: Inventory) -> None:
        assert inventory.forget(1) == []
        assert len(inventory.scans()) == 1

    def test_a_folder_is_not_an_inventory(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not an inventory"):
            Inventory(tmp_path)


def test_a_check_of_several_tables_has_tables_of_results(lake: Path) -> None:
    checks = deltaproto.check([lake / "orders", lake / "none"], clients=["trino@400"])
    assert [row["outcome"] for row in checks.verdicts] == ["wrong", "refused"]
    assert {row["rule"] for row in checks.findings} == {"DP201", "DP202"}
    assert [row["code"] for row in checks.errors] == ["not-found"]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_gives_the_same_results(spark: Any, inventory: Inventory) -> None:
    with_spark = Inventory(inventory.location, engine="spark")
    assert list(with_spark.tables("min_reader_version = 3")) == list(
        inventory.tables("min_reader_version = 3")
    )
    assert len(with_spark.features()) == len(inventory.features())
    clients = ["trino@400"]
    assert list(with_spark.check(clients=clients).verdicts) == list(
        inventory.check(clients=clients).verdicts
    )
    assert with_spark.drift().ok
