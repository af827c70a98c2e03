"""Writers of data files whose commits are no longer in the log, from real files."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import deltaproto
from deltaproto.clients.catalog import shipped_client_ids
from deltaproto.fleet.seen.data_files import FILE_WRITERS, identify_file_writer, read_writer
from deltaproto.tables.log.parquet.thrift import UnsupportedParquet
from tests.conftest import Ran
from tests.support.contract import documents

Cli = Callable[..., Ran]
OLD = 400 * 86_400


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of deltalake and pyarrow, whose log begins after their commits."""
    table = tmp_path / "lake" / "orders"
    write_deltalake(str(table), pa.table({"id": [1]}))
    (mine,) = table.glob("*.parquet")
    other = table / "a%20b.parquet"
    pq.write_table(pa.table({"id": [2]}), table / "a b.parquet")
    log = table / "_delta_log"
    first = log / f"{0:020d}.json"
    added = next(line for line in first.read_text().splitlines() if '"add"' in line)
    first.write_text(first.read_text() + "\n" + added.replace(mine.name, other.name))
    DeltaTable(str(table)).create_checkpoint()
    write_deltalake(str(table), pa.table({"id": [3]}), mode="append")
    first.unlink()
    for file in (mine, table / "a b.parquet"):
        then = time.time() - OLD
        os.utime(file, (then, then))
    return tmp_path / "lake"


def discovered(cli: Cli, *words: str) -> dict[str, Any]:
    ran = cli("discover", *words, "--format", "json")
    assert ran.code == 0, ran.err
    (document,) = documents(ran, "discover")
    return document


def test_writers_outlive_their_commits(cli: Cli, lake: Path) -> None:
    (before,) = discovered(cli, str(lake))["clients"]
    assert (before["commits"], "data_files" in before) == (1, False)
    found = discovered(cli, str(lake), "--data-files")
    assert {(each["client"], each["commits"]) for each in found["clients"]} == {("deltalake", 1)}
    (client,) = found["clients"]
    assert (client["version"], client["data_files"]) == (deltalake.__version__, 1)
    assert client["first_seen"] < before["first_seen"]
    fields = {each["field"] for each in client["evidence"]}
    assert fields == {"commitInfo.engineInfo", "parquet.created_by"}
    (other,) = found["unidentified"]
    assert (other["mark"], other["data_files"]) == (f"parquet-cpp-arrow/{pa.__version__}", 1)
    assert other["could_be"] == ["deltalake"]
    assert found["sources"][1] == {
        **found["sources"][1],
        **{"name": "data files", "format": "parquet", "lines": 2, "matched": 1, "unparsed": 0},
    }
    assert "data files  1" in cli("discover", str(lake), "--data-files").out
    assert discovered(cli, str(lake), "--data-files", "--days", "30")["unidentified"] == []
    uses = {use.client: use for use in deltaproto.discover(lake, data_files=True).clients}
    assert uses["deltalake"].data_files == 1


def test_an_inventory_does_not_keep_them(cli: Cli, lake: Path) -> None:
    inventory = str(lake.parent / "inventory")
    assert cli("scan", str(lake), "--inventory", inventory, "-q").code == 0
    for _ in range(2):
        (client,) = discovered(cli, inventory, "--data-files")["clients"]
        assert (client["commits"], client["data_files"]) == (1, 1)
    assert discovered(cli, inventory)["unidentified"] == []


def test_a_log_with_all_commits_needs_no_files(cli: Cli, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1]}))
    DeltaTable(str(tmp_path / "t")).create_checkpoint()
    found = discovered(cli, str(tmp_path / "t"), "--data-files")
    assert found["sources"][1]["lines"] == 0


def test_a_file_that_cannot_be_read_is_counted(cli: Cli, lake: Path) -> None:
    (lake / "orders" / "a b.parquet").write_bytes(b"PAR1 and no more")
    found = discovered(cli, str(lake), "--data-files")
    assert (found["sources"][1]["lines"], found["sources"][1]["unparsed"]) == (2, 1)


def test_the_policy_declares_them_for_every_write(cli: Cli, lake: Path) -> None:
    """A data file shows its writer, and not why it was written."""
    orders = lake / "orders"
    (kept,) = (path for path in orders.glob("*.parquet") if path.stat().st_mtime > time.time() - 9)
    kept.unlink()
    (orders / "_delta_log" / f"{1:020d}.json").unlink()
    policy = lake.parent / "policy.yaml"
    assert cli("discover", str(lake), "--data-files", "--write-policy", str(policy)).code == 0
    assert "access: [append, dml, maintain]" in policy.read_text()
    assert "1 data file" in policy.read_text()


def test_every_rule_identifies_its_samples() -> None:
    for rule in FILE_WRITERS:
        for sample in rule.samples:
            client, could_be = identify_file_writer(sample)
            assert (client.id, could_be) == (rule.client, rule.could_be), sample
        assert {rule.client, *rule.could_be} - {None} <= set(shipped_client_ids())


@pytest.mark.parametrize(
    ("created", "label"),
    [
        ("delta-rs version py-1.2.1", "deltalake@1.2.1"),
        ("delta-rs version 0.29.4", "delta-rs@0.29.4"),
        ("Trino version 455", "trino@455"),
        # Starburst's versions are not Trino's.
        ("Trino version 435-e.4 (build n/a)", "Trino/435-e.4"),
        ("DuckDB version v1.4.1 (build x)", "DuckDB/1.4.1"),
        ("parquet-mr version 1.15.1 (build y)", "parquet-mr/1.15.1"),
        ("", "no mark in data files"),
        ("\x00\n", "another writer of data files"),
        ("delta-rs version py-", "delta-rs/py-"),
    ],
)
def test_other_releases_and_other_writers(created: str, label: str) -> None:
    assert identify_file_writer(created)[0].label == label


def test_delta_kernel_is_identified_by_its_key() -> None:
    file = io.BytesIO()
    table = pa.table({"id": [1]}).replace_schema_metadata(
        {"io.delta.kernel.default-parquet-writer": "Kernel-Defaults-4.0.0"}
    )
    pq.write_table(table, file)
    created, kernel = read_writer(file)
    assert kernel
    assert identify_file_writer(created, kernel=kernel)[0].label == "delta-kernel-java"


@given(st.binary(max_size=400), st.integers(0, 400))
def test_any_file_has_a_writer_or_is_unsupported(junk: bytes, cut: int) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}), file)
    data = file.getvalue()
    damaged = data[: len(data) - 8 - cut] + junk + data[-8:]
    try:
        created, _ = read_writer(io.BytesIO(damaged))
    except (UnsupportedParquet, LookupError, ValueError):
        return
    assert json.dumps(identify_file_writer(created)[0].label)
