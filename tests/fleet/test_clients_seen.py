"""What runs of discover store in an inventory, and what check and plans make of it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import deltaproto
from deltaproto import ResultError, UsageError
from deltaproto.clients.model import Access
from deltaproto.fleet.inventory import InventoryTables, open_inventory_tables
from deltaproto.fleet.schemas import Inventory
from deltaproto.fleet.seen import run_discovery, seen_findings, stored_uses
from deltaproto.fleet.seen.collect import add_access_logs
from deltaproto.fleet.seen.seen_findings import RecentUses
from deltaproto.fleet.seen.times import Times
from tests.conftest import Ran
from tests.fleet.test_access_logs import s3_line
from tests.support.contract import documents
from tests.support.lakes import Lake, s3_lake
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
DAY = 86_400_000
RUNTIME = {
    "engineInfo": "Databricks-Runtime/10.4.x-scala2.12",
    "userName": "ada@example.com",
    "job": {"jobName": "quarterly close", "jobId": "7"},
}
OLD_SPARK = {"engineInfo": "Apache-Spark/3.3.1 Delta-Lake/2.2.0", "userName": "bob"}
SPARK = {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0", "userName": "bob"}
APPEND = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}


def made(folder: Path, *commits: tuple[int, dict[str, Any]]) -> Log:
    """A table with these commits, so many days ago."""
    now = int(time.time() * 1000)
    log = Log(folder)
    for version, (days, info) in enumerate(commits):
        more = [protocol(1, 2), metadata()] if version == 0 else []
        timed = {**APPEND, **info, "timestamp": now - days * DAY}
        log.commit(version, commit_info(**timed), *more)
    return log


@pytest.fixture
def inventory(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Scan the tables in `lake`, and return the inventory."""

    def scanned(code: int = 0) -> str:
        name = str(tmp_path / "inventory")
        ran = cli("scan", str(tmp_path / "lake"), "--inventory", name, "-q")
        assert ran.code == code, ran.err
        return name

    return scanned


def discovered(cli: Cli, *words: str, code: int = 0) -> dict[str, Any]:
    ran = cli("discover", *words, "--format", "json")
    assert ran.code == code, ran.err
    (document,) = documents(ran, "discover")
    return document


def commits(found: dict[str, Any]) -> dict[str, int]:
    return {f"{each['client']}@{each['version']}": each["commits"] for each in found["clients"]}


def test_a_run_counts_only_what_no_run_counted(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    orders = str(tmp_path / "lake" / "orders")
    write_deltalake(orders, pa.table({"id": [1, 2]}))
    write_deltalake(orders, pa.table({"id": [3]}), mode="append")
    made(tmp_path / "lake" / "old", (400, RUNTIME), (3, OLD_SPARK))
    name = inventory()
    first = discovered(cli, name)
    assert [source["name"] for source in first["sources"]] == ["table logs"]
    again = discovered(cli, name)
    stored, logs = again["sources"]
    assert stored["name"] == f"{name}/clients_seen"
    assert (stored["format"], stored["lines"], stored["matched"]) == ("inventory", 4, 4)
    assert logs["lines"] == 0
    # Queries aside, nothing differs.
    assert again["clients"] == first["clients"]
    DeltaTable(orders).delete("id = 1")
    third = discovered(cli, name)
    assert third["sources"][1]["lines"] == 1
    (client,) = (each for each in third["clients"] if each["client"] == "deltalake")
    assert client["commits"] == 3
    assert client["access"] == ["append", "dml"]
    assert client["evidence"][0]["count"] == 3
    # The whole history, counted at once, is the same.
    fresh = discovered(cli, name, "--no-store")
    assert fresh["clients"] == third["clients"]
    assert [source["name"] for source in fresh["sources"]] == ["table logs"]


def test_what_was_counted_outlives_the_log(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    orders = tmp_path / "lake" / "orders"
    write_deltalake(str(orders), pa.table({"id": [1]}))
    for number in range(5):
        write_deltalake(str(orders), pa.table({"id": [number]}), mode="append")
    name = inventory()
    discovered(cli, name)
    DeltaTable(str(orders)).create_checkpoint()
    for version in range(5):
        (orders / "_delta_log" / f"{version:020d}.json").unlink()
    write_deltalake(str(orders), pa.table({"id": [9]}), mode="append")
    assert set(commits(discovered(cli, name)).values()) == {7}
    assert set(commits(discovered(cli, name, "--no-store")).values()) == {2}


def test_streams_are_kept_and_other_queries_are_not(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    streamed = {"operation": "STREAMING UPDATE", "operationParameters": {"queryId": "ab-1"}}
    trino = {"clusterId": "trino-455-node", "operationParameters": {"queryId": "20240911_1"}}
    made(
        tmp_path / "lake" / "t", (9, {**SPARK, **streamed}), (8, trino), (7, {**SPARK, **streamed})
    )
    made(tmp_path / "lake" / "u", (9, OLD_SPARK))
    name = inventory()
    assert {
        (each["kind"], each["name"], each["commits"])
        for client in discovered(cli, name)["clients"]
        if client["version"] != "2.2.0"
        for each in client["principals"]
    } == {
        *(("user", "bob", 2), ("stream", "ab-1", 2)),
        *(("cluster", "trino-455-node", 1), ("query", "20240911_1", 1)),
    }
    shutil.rmtree(tmp_path / "lake" / "t")
    kept = discovered(cli, name, code=3)["clients"]
    names = {(each["kind"], each["name"]) for client in kept for each in client["principals"]}
    assert names == {("user", "bob"), ("stream", "ab-1"), ("cluster", "trino-455-node")}
    (use,) = (each for each in kept if each["version"] == "4.4.0")
    (stream,) = (each for each in use["principals"] if each["kind"] == "stream")
    assert stream["commits"] == 2


def test_another_table_at_the_same_place_is_counted_from_its_beginning(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    orders = tmp_path / "lake" / "orders"
    for _ in range(3):
        write_deltalake(str(orders), pa.table({"id": [1]}), mode="append")
    name = inventory()
    discovered(cli, name)
    shutil.rmtree(orders)
    # It is longer than the one before, so only its id shows that it is another one.
    for _ in range(4):
        write_deltalake(str(orders), pa.table({"id": [1]}), mode="append")
    found = discovered(cli, name)
    assert found["sources"][1]["lines"] == 4
    assert set(commits(found).values()) == {7}


def test_a_log_that_is_not_complete_is_counted_when_it_is(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    log = made(tmp_path / "lake" / "t", (9, SPARK), (8, SPARK), (7, SPARK))
    name = inventory()
    log.raw(1, b'{"commitInfo":{"oper')
    found = discovered(cli, name, code=3)
    assert commits(found) == {"delta-spark@4.4.0": 2}
    log.commit(1, commit_info(**APPEND, **SPARK, timestamp=int(time.time() * 1000)))
    repaired = discovered(cli, name)
    assert commits(repaired) == {"delta-spark@4.4.0": 3}
    assert commits(discovered(cli, name)) == {"delta-spark@4.4.0": 3}


def test_two_runs_at_once_count_a_commit_once(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    made(tmp_path / "lake" / "t", (9, SPARK), (8, SPARK))
    name = inventory()
    discovered(cli, name)
    rows = DeltaTable(f"{name}/clients_seen").to_pyarrow_table()
    twice = rows.set_column(0, rows.field(0), pa.array(["9" * 8] * rows.num_rows))
    open_inventory_tables(name, {}).append(Inventory.CLIENTS_SEEN, lambda: twice)
    assert commits(discovered(cli, name)) == {"delta-spark@4.4.0": 2}


def test_a_run_that_merges_and_is_overtaken_loses_and_doubles_nothing(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = made(tmp_path / "lake" / "t", (9, SPARK), (8, RUNTIME))
    name = inventory()
    monkeypatch.setattr(stored_uses, "_MOST_RUNS", 1)
    discovered(cli, name)
    log.commit(2, commit_info(**APPEND, **SPARK, timestamp=int(time.time() * 1000)))

    def overtaken(*args: Any) -> Any:
        found = add_access_logs(*args)
        monkeypatch.setattr(run_discovery, "add_access_logs", add_access_logs)
        discovered(cli, name)
        return found

    monkeypatch.setattr(run_discovery, "add_access_logs", overtaken)
    expected = {"delta-spark@4.4.0": 2, "databricks-runtime@10.4": 1}
    assert commits(discovered(cli, name)) == expected
    assert commits(discovered(cli, name)) == expected


def test_many_runs_are_merged_and_nothing_is_lost(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    log = made(tmp_path / "lake" / "t", (90, SPARK))
    made(tmp_path / "lake" / "u", (90, RUNTIME), (3, OLD_SPARK))
    name = inventory()
    now = int(time.time() * 1000)
    for version in range(1, 34):
        discovered(cli, name)
        time_ = now - (34 - version) * DAY
        log.commit(version, commit_info(**APPEND, **SPARK, timestamp=time_))
    found = discovered(cli, name)
    assert found["clients"] == discovered(cli, name, "--no-store")["clients"]
    assert discovered(cli, name)["clients"] == found["clients"]
    stored = DeltaTable(f"{name}/clients_seen")
    assert stored.to_pyarrow_table().num_rows < 34
    # Any client can read it.
    protocol_ = stored.protocol()
    assert (protocol_.min_reader_version, protocol_.min_writer_version) == (1, 2)


def test_a_period_and_several_arguments_store_nothing(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    made(tmp_path / "lake" / "t", (400, OLD_SPARK), (8, SPARK))
    name = inventory()
    ran = cli("discover", name, "--days", "30")
    assert ran.code == 0
    assert "adds nothing" in ran.err
    assert commits(discovered(cli, name, "--days", "30")) == {"delta-spark@4.4.0": 1}
    discovered(cli, name, str(tmp_path / "lake"))
    assert not os.path.exists(f"{name}/clients_seen")
    discovered(cli, name)
    assert commits(discovered(cli, name, "--days", "30")) == {"delta-spark@4.4.0": 1}


def test_hashes_replace_the_names_that_were_stored(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    log = made(tmp_path / "lake" / "t", (9, RUNTIME))
    trino = {"clusterId": "trino-476-secret", "userName": "carol"}
    log.commit(1, commit_info(**APPEND, **trino))
    name = inventory()
    clear = cli("discover", name, "--format", "json").out
    hashed = cli("discover", name, "--format", "json", "--pseudonymize").out
    for secret in ("ada@example.com", "quarterly close", "carol", "trino-476-secret"):
        assert secret in clear
        assert secret not in hashed
    # Hashes that were stored stay: they are not hashed again.
    other = str(tmp_path / "other")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", other, "-q").code == 0
    first = discovered(cli, other, "--pseudonymize")
    assert discovered(cli, other)["clients"] == first["clients"]
    assert discovered(cli, other, "--pseudonymize")["clients"] == first["clients"]


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("confidence", pa.array(["sure"]), "'sure'"),
        ("access", pa.array([["fly"]]), "'fly'"),
        ("ran_at", pa.array([None], pa.timestamp("us", "UTC")), "NoneType"),
    ],
)
def test_a_row_that_no_run_writes_is_damage(
    cli: Cli,
    tmp_path: Path,
    inventory: Callable[..., str],
    column: str,
    value: pa.Array,
    shown: str,
) -> None:
    made(tmp_path / "lake" / "t", (9, SPARK))
    name = inventory()
    discovered(cli, name)
    rows = DeltaTable(f"{name}/clients_seen").to_pyarrow_table()
    row = rows.slice(rows.column("location").to_pylist().index(None) ^ 1, 1)
    index = rows.schema.get_field_index(column)
    bad = row.set_column(index, rows.field(index), value.cast(rows.field(index).type))
    open_inventory_tables(name, {}).append(Inventory.CLIENTS_SEEN, lambda: bad)
    for words in (("discover", name), ("check", name, "--client", "trino@476", "--seen", name)):
        ran = cli(*words)
        assert ran.code == 3
        assert "clients_seen has a value that no run of discover writes" in ran.err
        assert shown in ran.err


times = st.lists(st.one_of(st.none(), st.integers(-(10**18), 10**18)), max_size=30)


@given(times, times)
def test_the_sum_of_two_times_is_that_of_all_events(
    first: list[int | None], second: list[int | None]
) -> None:
    parts = []
    for each in (first, second, [*first, *second]):
        part = Times()
        for time_ in each:
            part.add(time_)
        parts.append(part)
    merged, whole = parts[0].merged(parts[1]), parts[2]
    assert vars_of(merged) == vars_of(whole)
    stored = Times.of(whole.count, whole.first, whole.last, whole.hours)
    assert vars_of(stored) == vars_of(whole)


def vars_of(times_: Times) -> tuple[Any, ...]:
    return times_.count, times_.first, times_.last, times_.hours, times_.rhythm


def rhythm_of(*hours: int) -> tuple[int, int] | None:
    found = Times.of(len(hours), None, None, hours).rhythm
    return None if found is None else (found.days, found.uses)


def test_the_rhythm_of_rare_uses() -> None:
    day = 24
    assert rhythm_of(0, 91 * day, 182 * day, 274 * day) == (91, 4)
    # Many commits of one run make one use.
    assert rhythm_of(0, 1, 2, 30 * day, 30 * day + 5, 61 * day) == (31, 3)
    assert rhythm_of(0, 30 * day) == (30, 2)
    assert rhythm_of(0) is None
    assert rhythm_of() is None
    assert rhythm_of(*range(0, 100 * day, day)) is None
    assert rhythm_of(0, 7 * day, 14 * day, 21 * day) is None
    # A daily job with one long pause is no rare one.
    assert rhythm_of(*range(0, 90 * day, day), *range(150 * day, 240 * day, day)) is None


# Access logs: requests count once for each file.


@pytest.fixture(scope="module")
def store() -> Iterator[Lake]:
    with s3_lake() as lake:
        yield lake


def logged(path: Path, agent: str, count: int = 1, *, days: int = 0) -> None:
    """Write an access log with so many reads of a table, that old."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{s3_line('orders/part-0.parquet', agent)}\n" * count)
    when = time.time() - days * 86_400
    os.utime(path, (when, when))


def test_the_requests_of_a_file_are_counted_once(cli: Cli, tmp_path: Path, store: Lake) -> None:
    write_deltalake(str(tmp_path / "orders"), pa.table({"id": [1]}))
    where = store.upload(tmp_path / "orders", "orders")
    name, logs = str(tmp_path / "inventory"), tmp_path / "logs"
    assert cli("scan", where, "--inventory", name, "-q", *store.words()).code == 0

    def requests(*words: str) -> tuple[dict[str, int], dict[str, Any]]:
        found = discovered(cli, name, "--access-log", str(logs), *words, *store.words())
        counts = {each["version"]: each["requests"] for each in found["clients"]}
        return {key: count for key, count in counts.items() if count}, found["sources"][-1]

    trino = '"deltaproto.trino.{}"'
    logged(logs / "1", trino.format("455"), 2, days=9)
    logged(logs / "2", trino.format("476"), 3)
    counts, source = requests()
    assert counts == {"455": 2, "476": 3}
    assert (source["matched"], source["known_files"]) == (5, 0)
    counts, source = requests()
    assert counts == {"455": 2, "476": 3}
    # The old file is not read; the new one is, for the traces of readers.
    assert (source["lines"], source["matched"], source["known_files"]) == (3, 0, 2)
    logged(logs / "3", trino.format("480"))
    (logs / "1").unlink()
    assert requests()[0] == {"455": 2, "476": 3, "480": 1}
    # A file that has grown is another one.
    logged(logs / "3", trino.format("480"), 2)
    assert requests()[0] == {"455": 2, "476": 3, "480": 3}
    assert requests("--no-store")[0] == {"476": 3, "480": 2}
    # The logs are gone, what they showed is not.
    found = discovered(cli, name, *store.words())
    assert {each["version"] for each in found["clients"] if each["access"] == ["read"]} == {
        *("455", "476", "480")
    }
    ran = cli("discover", name, *store.words())
    assert "never who only reads" not in ran.out


def test_the_requests_of_a_damaged_file_count_when_it_is_repaired(
    cli: Cli, tmp_path: Path, store: Lake
) -> None:
    write_deltalake(str(tmp_path / "damaged"), pa.table({"id": [1]}))
    where = store.upload(tmp_path / "damaged", "orders")
    name, log = str(tmp_path / "inventory"), tmp_path / "logs" / "1.gz"
    assert cli("scan", where, "--inventory", name, "-q", *store.words()).code == 0
    logged(log, '"deltaproto.trino.455"', 5000)
    whole = gzip.compress(log.read_bytes(), mtime=0)
    log.write_bytes(whole[:-10])

    def requests(code: int) -> int:
        words = ("--access-log", str(log.parent), *store.words())
        found = discovered(cli, name, *words, code=code)
        return sum(each["requests"] for each in found["clients"])

    first = requests(3)
    assert 0 < first <= 5000
    # It is read in each run, and added by none.
    assert requests(3) == first
    log.write_bytes(whole)
    assert requests(0) == 5000
    assert requests(0) == 5000


def test_two_runs_at_once_count_commits_and_requests_once(
    cli: Cli, tmp_path: Path, store: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(str(tmp_path / "twice"), pa.table({"id": [1]}))
    where = store.upload(tmp_path / "twice", "orders")
    name, logs = str(tmp_path / "inventory"), tmp_path / "logs"
    assert cli("scan", where, "--inventory", name, "-q", *store.words()).code == 0
    words = ("--access-log", str(logs), *store.words())
    logged(logs / "1", '"deltaproto.trino.455"', 2, days=9)
    logged(logs / "2", '"deltaproto.trino.476"', 3)
    discovered(cli, name, *store.words())

    def overtaken(*args: Any) -> Any:
        found = add_access_logs(*args)
        monkeypatch.undo()
        # Another run, which does not see the third file yet.
        discovered(cli, name, *words)
        logged(logs / "3", '"deltaproto.trino.480"')
        return found

    monkeypatch.setattr(run_discovery, "add_access_logs", overtaken)
    found = discovered(cli, name, *words)
    expected = {"455": 2, "476": 3, "480": 1}
    for each in (found, discovered(cli, name, *words)):
        counts = {one["version"]: one["requests"] for one in each["clients"]}
        assert {key: count for key, count in counts.items() if count} == expected
        (writer,) = (one for one in each["clients"] if one["client"] == "deltalake")
        assert writer["commits"] == 1
    runs = DeltaTable(f"{name}/clients_seen").to_pyarrow_table()["run_id"].unique()
    assert len(runs) == 4


def test_a_run_that_others_overtake_each_time_is_an_error(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "lake" / "t", (9, SPARK))
    name = inventory()
    monkeypatch.setattr(InventoryTables, "append_if_unchanged", lambda *_: False)
    ran = cli("discover", name)
    assert ran.code == 2
    assert "run one `discover` of this inventory at a time" in ran.err


def test_a_clock_that_is_behind_loses_no_run(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    log = made(tmp_path / "lake" / "t", (9, SPARK), (8, SPARK))
    name = inventory()
    discovered(cli, name)
    rows = DeltaTable(f"{name}/clients_seen").to_pyarrow_table()
    later = pa.array(["99991231T000000Z-00000000"] * rows.num_rows)
    write_deltalake(
        f"{name}/clients_seen", rows.set_column(0, rows.field(0), later), mode="overwrite"
    )
    log.commit(2, commit_info(**APPEND, **SPARK, timestamp=int(time.time() * 1000)))
    assert commits(discovered(cli, name)) == {"delta-spark@4.4.0": 3}
    assert commits(discovered(cli, name)) == {"delta-spark@4.4.0": 3}


# What check makes of it.


def policy(tmp_path: Path, text: str) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(f"policy_version: 1\n{text}")
    return str(path)


def findings(cli: Cli, *words: str, code: int = 0) -> dict[str, list[dict[str, Any]]]:
    ran = cli("check", *words, "--format", "json")
    assert ran.code == code, ran.err + ran.out
    (document,) = documents(ran, "check")
    found: dict[str, list[dict[str, Any]]] = {}
    for each in document["findings"]:
        found.setdefault(each["rule"], []).append(each)
    return found


@pytest.fixture
def lake(cli: Cli, tmp_path: Path, inventory: Callable[..., str]) -> str:
    made(
        tmp_path / "lake" / "ledger",
        *((300, RUNTIME), (295, OLD_SPARK), (209, RUNTIME), (118, RUNTIME), (28, RUNTIME)),
        *((3, SPARK), (2, OLD_SPARK), (1, {"engineInfo": "loader 7"})),
    )
    made(tmp_path / "lake" / "quiet", (300, OLD_SPARK), (200, SPARK))
    name = inventory()
    discovered(cli, name)
    return name


def test_who_uses_a_table_and_is_not_declared(cli: Cli, tmp_path: Path, lake: str) -> None:
    text = "clients:\n  - client: delta-spark@4.4.0\n    access: [append]\n"
    found = findings(cli, lake, "--policy", policy(tmp_path, text), "--seen", lake)
    assert {each.get("client") for each in found["DP403"]} == {"databricks-runtime@10.4", None}
    runtime, program = sorted(found["DP403"], key=lambda each: "client" not in each)
    assert runtime["severity"] == "warning"
    assert "quarterly close" in runtime["evidence"]
    assert "ada@example.com" in runtime["evidence"]
    assert "loader 7" in program["message"]
    # Only the ledger: nobody used the quiet table in 90 days.
    (older,) = found["DP405"]
    assert older["client"] == "delta-spark@2.2.0"
    rare = {each["client"]: each["message"] for each in found["DP406"]}
    assert "about every 91 days" in rare["databricks-runtime@10.4"]
    assert "twice, 293 days apart" in rare["delta-spark@2.2.0"]
    # A longer period has more.
    found = findings(
        cli, lake, "--policy", policy(tmp_path, text), "--seen", lake, "--seen-days", "400"
    )
    assert len(found["DP405"]) == 2


def test_a_mark_of_several_clients_is_declared_by_any_of_them(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    made(tmp_path / "lake" / "t", (300, SPARK), (9, {"clientVersion": "delta-rs.0.20.1"}))
    name = inventory()
    found = discovered(cli, name)
    assert commits(found) == {"delta-spark@4.4.0": 1}
    (other,) = found["unidentified"]
    assert (other["mark"], other["could_be"]) == ("delta-rs.0.20.1", ["deltalake", "delta-rs"])
    for client, undeclared in (("deltalake@0.20.2", 0), ("trino@476", 1)):
        text = f"clients:\n  - client: {client}\n    access: [append]\n"
        rules = findings(cli, name, "--policy", policy(tmp_path, text), "--seen", name)
        seen = [each for each in rules.get("DP403", []) if "delta-rs.0.20.1" in each["message"]]
        assert len(seen) == undeclared


def test_a_use_that_is_not_declared(cli: Cli, tmp_path: Path, lake: str) -> None:
    words = ("--client", "databricks-runtime@10.4", "--access", "read", "--seen", lake)
    found = findings(cli, str(tmp_path / "lake" / "ledger"), *words)
    (runtime,) = (
        each for each in found["DP403"] if each.get("client") == "databricks-runtime@10.4"
    )
    assert "not declared for append" in runtime["message"]


def test_severities_and_waivers_apply(cli: Cli, tmp_path: Path, lake: str) -> None:
    text = (
        "severities:\n  DP403: error\n  DP406: off\n"
        "clients:\n  - client: delta-spark@4.4.0\n    access: [append]\n"
        "waivers:\n"
        '  - rule: DP405\n    table: "**"\n    reason: known\n    expires: 2999-01-01\n'
    )
    where = policy(tmp_path, text)
    found = findings(cli, lake, "--policy", where, "--seen", lake, code=1)
    assert set(found) == {"DP403"}
    assert {each["severity"] for each in found["DP403"]} == {"error"}


def test_a_declared_client_that_does_not_come(cli: Cli, tmp_path: Path, lake: str) -> None:
    declared = "clients:\n  - client: {}\n    access: [{}]\n"
    for client, access, days, unseen in (
        ("trino@476", "append", 90, True),
        # It would be longer than the log.
        ("trino@476", "append", 301, False),
        # No access log shows readers.
        ("trino@476", "read", 90, False),
        ("trino@476", "read, append", 90, False),
        # It does not sign its commits.
        ("snowflake-delta-direct@2026.3.2", "append", 90, False),
        ("delta-spark@4.4.0", "append", 90, False),
        ("databricks-runtime@15.4", "append", 90, False),
        ("deltalake@1.6.6", "append", 90, True),
    ):
        where = policy(tmp_path, declared.format(client, access))
        words = ("--policy", where, "--seen", lake, "--seen-days", str(days))
        found = findings(cli, lake, *words, "--fail-on", "never")
        assert [each["client"] for each in found.get("DP404", ())] == [client] * unseen, (
            client,
            access,
            days,
        )


def test_what_discover_did_not_count_is_not_said_to_be_unseen(
    cli: Cli, tmp_path: Path, lake: str
) -> None:
    made(tmp_path / "lake" / "later", (300, SPARK))
    declared = "clients:\n  - client: trino@476\n    access: [append]\n"
    words = ("--policy", policy(tmp_path, declared), "--seen", lake)
    ledger, later = (str(tmp_path / "lake" / each) for each in ("ledger", "later"))
    assert "DP404" in findings(cli, ledger, *words)
    assert "DP404" not in findings(cli, ledger, later, *words)
    notice = f"discover has not counted {later}"
    ran = cli("check", ledger, later, *words)
    assert (ran.code, notice in ran.out + ran.err) == (0, True)
    assert cli("check", later, *words, "--fail-on", "warning").code == 1
    ran = cli("plan-upgrade", later, "--enable", "deletionVectors", "--seen", lake)
    assert "has not counted the commits of this table" in " ".join(ran.out.split())


def test_commits_that_were_deleted_before_a_run_are_a_gap(
    cli: Cli, tmp_path: Path, inventory: Callable[..., str]
) -> None:
    """Who wrote in the gap is unknown, so nobody is said to be unseen."""
    orders = tmp_path / "lake" / "orders"
    for number in range(8):
        write_deltalake(str(orders), pa.table({"id": [number]}), mode="append")
    name = inventory()
    log = orders / "_delta_log"
    for file in log.glob("*.json"):
        # As if it were old.
        text = file.read_text()
        stamp = json.loads(text.splitlines()[0])["commitInfo"]["timestamp"]
        file.write_text(text.replace(str(stamp), str(stamp - 400 * DAY)))
    discovered(cli, name)
    declared = "clients:\n  - client: trino@476\n    access: [append]\n"
    words = (name, "--policy", policy(tmp_path, declared), "--seen", name)
    assert "DP404" in findings(cli, *words)
    for number in range(4):
        write_deltalake(str(orders), pa.table({"id": [number]}), mode="append")
    DeltaTable(str(orders)).create_checkpoint()
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    discovered(cli, name)
    assert "DP404" not in findings(cli, *words)
    # Merging keeps the gap.
    for _ in range(32):
        discovered(cli, name)
    assert "DP404" not in findings(cli, *words)


def test_an_unreadable_table_has_no_such_findings(cli: Cli, tmp_path: Path, lake: str) -> None:
    ledger = tmp_path / "lake" / "ledger"
    (ledger / "_delta_log" / f"{7:020d}.json").write_bytes(b"{")
    found = findings(cli, str(ledger), "--client", "trino@476", "--seen", lake, code=3)
    assert found == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--client", "trino@476", "--seen", "LAKE"), "is not an inventory"),
        (("--client", "trino@476", "--seen", "NEW"), "has no clients_seen"),
        (("--seen", "NEW"), "compares with declared clients"),
        (("--client", "trino@476", "--seen", "NEW", "--seen-days", "0"), "out of range"),
    ],
)
def test_nothing_to_compare_with_is_an_error(
    cli: Cli,
    tmp_path: Path,
    inventory: Callable[..., str],
    words: tuple[str, ...],
    message: str,
) -> None:
    made(tmp_path / "lake" / "t", (9, SPARK))
    places = {"LAKE": str(tmp_path / "lake"), "NEW": inventory()}
    ran = cli("check", places["NEW"], *(places.get(word, word) for word in words))
    assert ran.code == 2
    assert message in ran.err


def test_an_old_count_is_a_warning(cli: Cli, tmp_path: Path, lake: str) -> None:
    ledger = str(tmp_path / "lake" / "ledger")
    words = ("check", ledger, "--client", "trino@476", "--seen", lake, "--max-age", "0")
    ran = cli(*words)
    assert ran.code == 0
    assert "the newest run of discover is less than an hour old; run it again" in ran.out + ran.err
    assert cli(*words, "--fail-on", "warning").code == 1


# What plans make of it.


def planned(cli: Cli, *words: str, code: int) -> dict[str, Any]:
    ran = cli(*words, "--format", "json")
    assert ran.code == code, ran.err + ran.out
    found: dict[str, Any] = json.loads(ran.out)
    return found["plans"][0] if "plans" in found else found


def test_a_plan_that_locks_out_somebody_unknown_is_exit_1(
    cli: Cli, tmp_path: Path, lake: str
) -> None:
    ledger = str(tmp_path / "lake" / "ledger")
    goal = ("plan-upgrade", ledger, "--enable", "deletionVectors")
    text = "clients:\n  - client: delta-spark@4.4.0\n    as: nightly\n    access: [append]\n"
    where = policy(tmp_path, text)
    planned(cli, *goal, "--policy", where, code=0)
    plan = planned(cli, *goal, "--policy", where, "--seen", lake, code=1)
    clients = {each["client"]: each for each in plan["clients"]}
    assert set(clients) == {"delta-spark@4.4.0", "delta-spark@2.2.0", "databricks-runtime@10.4"}
    runtime = clients["databricks-runtime@10.4"]
    assert (runtime["before"], runtime["after"]) == ("ok", "refused")
    assert "quarterly close" in runtime["label"]
    assert "next about" in runtime["label"]
    assert clients["delta-spark@4.4.0"]["label"].startswith("nightly; last ")
    warnings = "\n".join(plan["warnings"])
    assert "databricks-runtime@10.4 uses this table and is not declared" in warnings
    assert "(loader 7) uses this table and is not declared" in warnings
    assert "the effect on it is unknown" in warnings
    # Whoever is declared is not reported as if not.
    assert "delta-spark@4.4.0 uses" not in warnings
    # A use that is not declared counts as well.
    reads = policy(
        tmp_path,
        text.replace("append", "read") + "  - client: delta-spark@2.2.0\n    access: [read]\n",
    )
    plan = planned(cli, *goal, "--policy", reads, "--seen", lake, code=1)
    lost = {(each["client"], each["access"]) for each in plan["clients"] if each["after"] != "ok"}
    assert ("delta-spark@2.2.0", "append") in lost
    assert "delta-spark@2.2.0 uses this table and is not declared for append" in "".join(
        plan["warnings"]
    )
    # Without a policy, the clients are those that were seen.
    plan = planned(cli, *goal, "--seen", lake, code=1)
    assert {each["client"] for each in plan["clients"]} == set(clients)
    # What locks out nobody is fine.
    mild = ("plan-upgrade", ledger, "--set", "delta.appendOnly=true")
    planned(cli, *mild, "--policy", where, "--seen", lake, code=0)


def test_plans_from_python_are_those_of_the_command(
    cli: Cli, tmp_path: Path, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = str(tmp_path / "lake" / "ledger")
    counts: list[str] = []
    on = RecentUses.of_table

    def counting(self: RecentUses, place: str) -> Any:
        counts.append(place)
        return on(self, place)

    monkeypatch.setattr(RecentUses, "of_table", counting)
    for method, goal, words in (
        ("plan_upgrade", {"enable": ["deletionVectors"]}, ("--enable", "deletionVectors")),
        ("plan_downgrade", {"to": (1, 1)}, ("--to", "1,1")),
    ):
        command = (method.replace("_", "-"), ledger, *words, "--seen", lake)
        said = planned(cli, *command, code=1)
        counts.clear()
        plan = getattr(deltaproto, method)(ledger, seen=lake, **goal)
        # Once for each table, not for each question about it.
        assert len(counts) == 1
        mine = json.loads(json.dumps(plan.to_dict()))
        assert mine["clients"] == said["clients"]
        assert mine["warnings"] == said["warnings"]
        assert not plan.ok
        again = getattr(deltaproto.Table(ledger), method)(seen=Path(lake), seen_days=90, **goal)
        assert again.clients == plan.clients
    plan = deltaproto.plan_upgrade(ledger, enable=["deletionVectors"], seen=lake)
    lost = {str(each.client) for each in plan.losses}
    assert "databricks-runtime@10.4" in lost
    with pytest.raises(ResultError, match=r"loses access: databricks-runtime@10\.4") as raised:
        plan.raise_for_status()
    assert int(raised.value.exit_code) == 1
    quiet = deltaproto.Table(tmp_path / "lake" / "quiet")
    for days, count in ((250, 1), (400, 2)):
        few = quiet.plan_upgrade(enable=["deletionVectors"], seen=lake, seen_days=days)
        assert len({each.client for each in few.clients}) == count
    assert deltaproto.plan_upgrade(ledger, set={"delta.appendOnly": "true"}, seen=lake).ok
    for wrong, message in (({"seen_days": 0}, "seen_days is 0"), ({"seen": ledger}, "not an inv")):
        named = {"seen": lake, "enable": ["deletionVectors"], **wrong}
        with pytest.raises(UsageError, match=message):
            deltaproto.plan_upgrade(ledger, **named)
    now = datetime.now(UTC) + timedelta(days=9)
    monkeypatch.setattr(seen_findings, "datetime", type("Later", (), {"now": lambda _: now}))
    old = deltaproto.plan_upgrade(ledger, enable=["deletionVectors"], seen=lake)
    assert f"{lake}: the newest run of discover is 9 days old; run it again." in old.warnings


def test_the_runbook_names_who_to_notify(cli: Cli, tmp_path: Path, lake: str) -> None:
    ledger, file = str(tmp_path / "lake" / "ledger"), str(tmp_path / "plan.json")
    goal = ("plan-upgrade", ledger, "--enable", "deletionVectors", "--seen", lake)
    assert cli(*goal, "--format", "json", "--output", file).code == 1
    ran = cli("runbook", file)
    assert "seen, not declared; last" in ran.out
    assert "job quarterly close; next about" in ran.out


def test_the_report_has_a_chapter_about_them(cli: Cli, tmp_path: Path, lake: str) -> None:
    (document,) = documents(cli("report", lake, "--format", "json"), "report")
    rows = {(each["client"], each["mark"]): each for each in document["clients_seen"]}
    assert set(rows) == {
        ("databricks-runtime", None),
        ("delta-spark", None),
        (None, "loader 7"),
    }
    assert rows["databricks-runtime", None]["commits"] == 4
    assert rows["databricks-runtime", None]["access"] == ["append"]
    for format_ in ("markdown", "html"):
        shown = cli("report", lake, "--format", format_).out
        for fact in ("Clients seen", "databricks-runtime@10.4", "91 days", "loader 7"):
            assert fact in shown
    other = str(tmp_path / "other")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", other, "-q").code == 0
    (document,) = documents(cli("report", other, "--format", "json"), "report")
    assert document["clients_seen"] is None
    assert "Clients seen" not in cli("report", other, "--format", "markdown").out


def test_a_seen_client_is_no_goal(cli: Cli, tmp_path: Path) -> None:
    """A plan for a client does not also have to let everybody in who came by."""
    where = tmp_path / "lake" / "t"
    log = made(where, (30, SPARK))
    vectors = {"delta.enableDeletionVectors": "true"}
    features = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    log.commit(1, commit_info(**APPEND, **SPARK), features, metadata(vectors))
    log.commit(2, commit_info(**APPEND, **OLD_SPARK))
    name = str(tmp_path / "inventory")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", name, "-q").code == 0
    discovered(cli, name)
    words = ("plan-downgrade", str(where), "--for-client", "delta-spark@3.1.0")
    alone = planned(cli, *words, code=0)
    seen = planned(cli, *words, "--seen", name, code=0)
    assert [each["sql"] for each in seen["steps"]] == [each["sql"] for each in alone["steps"]]
    assert {each["client"] for each in seen["clients"]} > {
        each["client"] for each in alone["clients"]
    }


def test_access_has_the_words_of_the_contract() -> None:
    """Stored rows and JSON use the same words."""
    assert [str(each) for each in Access] == ["read", "append", "dml", "maintain", "stream"]
