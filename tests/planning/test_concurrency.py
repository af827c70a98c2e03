"""Item 3 of issue 27: each plan shows what it does to concurrent writers for good."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaproto.execution.plan_members import deserialize_plan
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.protocol import Protocol
from deltaproto.render.plan_json import plan_fields
from tests.conftest import Ran
from tests.planning.test_classics import given as table_of
from tests.support.contract import plan
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
ON = {"delta.enableDeletionVectors": "true"}
VECTORS = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])
Cell = tuple[str, str, str]


def made(folder: Path, stored: dict[str, Any], *meta: Any, **more: Any) -> str:
    log = Log(folder)
    log.commit(0, commit_info(), stored, metadata(*meta, **more))
    return log.commit(1, add("a.parquet")).table


def shown(cli: Cli, *words: str) -> dict[str, Any]:
    found = plan(cli(*words, "--format", "json"))["concurrency"]
    assert isinstance(found, dict)
    return found


def rows(side: dict[str, Any]) -> tuple[str, str]:
    found = side["row_level_concurrency"]
    return found["databricks"], found["reason"]


def verdicts(change: dict[str, Any]) -> dict[Cell, tuple[str, str]]:
    return {
        (cell["engine"], cell["operation"], cell["against"]): (
            cell["before"]["conflict"],
            cell["after"]["conflict"],
        )
        for cell in change["cells"]
    }


def matrix(cli: Cli, table: str, engine: str) -> dict[Cell, tuple[str, tuple[str, ...], str]]:
    cells = cli("conflicts", table, "--engine", engine, "--format", "json").json["cells"]
    return {
        (engine, cell["operation"], cell["against"]): (
            cell["conflict"],
            tuple(cell["exceptions"]),
            cell["when"],
        )
        for cell in cells
    }


def test_item_3_deletion_vectors_gain_row_level_concurrency(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", protocol(1, 4))
    change = shown(cli, "plan-upgrade", table, "--enable", "deletionVectors")
    assert rows(change["before"]) == ("no", "it requires deletion vectors, which are not enabled")
    assert rows(change["after"])[0] == "yes"
    assert "14.2" in rows(change["after"])[1]
    found = verdicts(change)
    assert found["databricks", "UPDATE", "OPTIMIZE"] == ("maybe", "no")
    assert found["databricks", "UPDATE", "DELETE"] == ("maybe", "maybe")
    text = " ".join(cli("plan-upgrade", table, "--enable", "deletionVectors").out.split())
    assert "row-level no -> yes on Databricks: deletion vectors and no partitions" in text
    assert "conflict maybe -> no: UPDATE with OPTIMIZE, REORG" in text


@pytest.mark.parametrize("partitioned", [True, False])
def test_item_3_what_rules_rows_out(cli: Cli, tmp_path: Path, partitioned: bool) -> None:
    identity = column("id", delta__identity__start=1, delta__identity__step=1)
    more = {"partition_columns": ["id"]} if partitioned else {"schema": schema_string(identity)}
    table = made(tmp_path / "t", protocol(1, 6), {}, **more)
    change = shown(cli, "plan-upgrade", table, "--enable", "deletionVectors")
    assert rows(change["before"])[0] == rows(change["after"])[0] == "no"
    assert ("partitioned" if partitioned else "identity") in rows(change["after"])[1]
    assert ("databricks", "UPDATE", "UPDATE") not in verdicts(change)


def test_item_3_one_identity_column_among_others_rules_rows_out(cli: Cli, tmp_path: Path) -> None:
    identity = column("id", delta__identity__start=1, delta__identity__step=1)
    schema = schema_string(column("a"), identity, column("b"))
    table = made(tmp_path / "t", protocol(1, 6), {}, schema=schema)
    change = shown(cli, "plan-upgrade", table, "--enable", "deletionVectors")
    assert rows(change["after"])[0] == "no"
    assert "identity" in rows(change["after"])[1]


def test_item_3_an_isolation_level(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", VECTORS, ON)
    change = shown(cli, "plan-upgrade", table, "--isolation", "Serializable")
    assert change["before"]["declared"] is None
    assert change["before"]["effective"]["databricks"] == "WriteSerializable"
    assert change["after"]["effective"]["databricks"] == "Serializable"
    assert verdicts(change)["databricks", "DELETE", "INSERT"] == ("no", "maybe")
    # The default of Delta Spark is that level already.
    assert {cell["engine"] for cell in change["cells"]} == {"databricks"}


def test_item_3_a_plan_without_steps_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", VECTORS, ON)
    for goal in (("--lowest",), ("--drop", "appendOnly")):
        change = shown(cli, "plan-downgrade", table, *goal)
        assert change["before"] == change["after"]
        assert rows(change["after"])[0] == "yes"
        assert change["cells"] == []


def test_item_3_the_runtime_of_the_plan_decides(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", protocol(1, 2))
    for engine, gained in (("databricks@14.1", "no"), ("databricks@16.4", "yes")):
        words = ("plan-upgrade", table, "--enable", "deletionVectors", "--engine", engine)
        change = shown(cli, *words)
        assert rows(change["after"])[0] == gained
        assert (("databricks", "UPDATE", "UPDATE") in verdicts(change)) is (gained == "yes")


@pytest.mark.parametrize("level", [None, "Serializable", "WriteSerializable", "SnapshotIsolation"])
def test_item_3_plans_agree_with_inspect_and_conflicts(
    cli: Cli, tmp_path: Path, level: str | None
) -> None:
    declared = {} if level is None else {"delta.isolationLevel": level}
    for number, columns in enumerate((None, ["id"])):
        before = made(tmp_path / f"b{number}", protocol(1, 2), declared, partition_columns=columns)
        after = made(
            tmp_path / f"a{number}", VECTORS, {**ON, **declared}, partition_columns=columns
        )
        change = shown(cli, "plan-upgrade", before, "--enable", "deletionVectors")
        for table, side in ((before, "before"), (after, "after")):
            inspected = cli("inspect", table, "--format", "json").table
            assert change[side] == inspected["isolation"]
        differ: dict[Cell, Any] = {}
        for engine in ("databricks", "delta-spark", "delta-rs"):
            one, other = matrix(cli, before, engine), matrix(cli, after, engine)
            differ |= {key: other[key] for key in one if one[key] != other[key]}
        told = {
            (cell["engine"], cell["operation"], cell["against"]): (
                cell["after"]["conflict"],
                tuple(cell["after"]["exceptions"]),
                cell["after"]["when"],
            )
            for cell in change["cells"]
        }
        assert told == differ


def test_item_3_a_plan_file_keeps_it() -> None:
    for pair, isolation in itertools.product(((1, 2), (2, 6)), (None, "Serializable")):
        asked = UpgradeRequest(isolation=isolation)
        made_ = plan_upgrade(table_of(Protocol(*pair)), asked)
        entry = json.loads(json.dumps(plan_fields(made_, 0)))
        assert deserialize_plan(entry, made_.command).concurrency == made_.concurrency
        del entry["concurrency"]
        assert deserialize_plan(entry, made_.command).concurrency is None
