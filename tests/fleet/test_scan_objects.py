"""Scans of a real S3 endpoint, through a proxy that counts and disturbs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import boto3
import pytest
from deltalake import DeltaTable
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from deltaproto.cli.main import main
from deltaproto.fleet import workers
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.proxy import Proxy, proxy
from tests.support.retries import retry_at_once

pytestmark = [pytest.mark.storage, pytest.mark.rotating]
Cli = Callable[..., Ran]
BUCKET = "lake"


class Store(NamedTuple):
    client: Any
    proxy: Proxy

    def upload(self, root: Path, prefix: str) -> str:
        # The server runs in this process; a request for each file would take most of the time.
        lake = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for file in root.rglob("*"):
            if file.is_file():
                lake.put_object(BUCKET, f"{prefix}/{file.relative_to(root)}", file.read_bytes())
        return f"s3://{BUCKET}/{prefix}"

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.proxy.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
        }

    @property
    def options(self) -> list[str]:
        """The same for a command line."""
        given = self.storage_options
        return [word for each in given.items() for word in ("--storage-option", "=".join(each))]


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadedMotoServer]:
    running = ThreadedMotoServer(port=0, verbose=False)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def store(server: ThreadedMotoServer) -> Iterator[Store]:
    with opened(server) as found:
        yield found


@contextmanager
def opened(server: ThreadedMotoServer) -> Iterator[Store]:
    """The store behind a proxy of its own."""
    host, port = server.get_host_and_port()
    secrets = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **secrets
    )
    client.create_bucket(Bucket=BUCKET)
    with proxy(host, port) as running:
        yield Store(client, running)


class Scanned(NamedTuple):
    """A fleet on disk and in the store, and a scan of the store that nothing disturbed."""

    fleet: Path
    root: str
    inventory: Path
    tables: int


@pytest.fixture(scope="module")
def scanned(server: ThreadedMotoServer, tmp_path_factory: pytest.TempPathFactory) -> Scanned:
    folder = tmp_path_factory.mktemp("scanned")
    make_fleet(folder / "fleet", seed=4, count=120, folders=False)
    inventory, out = folder / "remote", folder / "scan.json"
    with opened(server) as store:
        root = store.upload(folder / "fleet", "same")
        words = ["scan", root, *store.options, "--inventory", str(inventory), "--format", "json"]
        assert main([*words, "--output", str(out)]) == 3
    tables = json.loads(out.read_text())["tables"]
    return Scanned(folder / "fleet", root, inventory, tables)


def told(inventory: Path, name: str, *, without: tuple[str, ...] = ()) -> list[str]:
    leave_out = {"scan_id", *without}
    return sorted(
        json.dumps({k: str(v) for k, v in row.items() if k not in leave_out})
        for row in DeltaTable(inventory / name).to_pyarrow_table().to_pylist()
    )


def test_one_get_more_where_the_checksum_names_no_files(
    cli: Cli, store: Store, tmp_path: Path
) -> None:
    stored, described = protocol(1, 2), metadata()
    log = Log(tmp_path / "r" / "t")
    log.commit(0, commit_info(txnId="0"), stored, described, add("s3://elsewhere/part-0"))
    log.commit(1, commit_info(txnId="1"), add()).checksum(1, stored, described, txnId="1")
    root = store.upload(tmp_path / "r", "cloned")
    store.proxy.requests.clear()
    assert cli("scan", root, *store.options, "--inventory", str(tmp_path / "i")).code == 0
    found = [unquote(path)[-6:] for kind, path in store.proxy.requests if kind == "GET"]
    assert sorted(found) == ["0.json", "01.crc", "1.json"]
    (finding,) = DeltaTable(tmp_path / "i" / "findings").to_pyarrow_table().to_pylist()
    assert (finding["rule"], finding["evidence"]) == ("DP140", "absolute-paths")


def test_one_listing_and_two_gets_for_a_table_with_a_checksum(
    cli: Cli, store: Store, tmp_path: Path
) -> None:
    files = [add()["add"]]
    for name in ("a", "deep/er/b", "_hidden/c", "k=v/d"):
        log = Log(tmp_path / "r" / name)
        stored, described = protocol(1, 2), metadata()
        log.commit(0, commit_info(txnId="0"), stored, described, add())
        log.commit(1, commit_info(txnId="1"), add())
        log.checksum(1, stored, described, txnId="1", allFiles=files, numFiles=1)
        for number in range(30):
            (log.root / f"part-{number}.parquet").write_bytes(b"x")
    root = store.upload(tmp_path / "r", "counted")
    store.proxy.requests.clear()
    done = cli("scan", root, *store.options, "--format", "json")
    assert (done.code, done.json["tables"]) == (0, 3), done
    seen = Counter((kind, unquote(path)) for kind, path in store.proxy.requests)
    for name in ("a", "deep/er/b", "k=v/d"):
        log_folder = f"counted/{name}/_delta_log/"
        assert {key: n for key, n in seen.items() if f"/{name}/" in key[1]} == {
            ("LIST", log_folder): 1,
            ("GET", f"{log_folder}{1:020}.json"): 1,
            ("GET", f"{log_folder}{1:020}.crc"): 1,
        }
    # Each folder on the way is asked twice: for its log, and for its folders.
    folders = Counter(prefix for kind, prefix in store.proxy.requests if kind == "LIST")
    for folder in ("counted", "counted/deep", "counted/deep/er"):
        assert folders[f"{folder}/_delta_log/"] == folders[f"{folder}/"] == 1
    assert not any("_hidden/" in prefix for prefix in folders)


def test_a_disturbed_store_gives_the_same_inventory(
    cli: Cli, store: Store, scanned: Scanned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retry_at_once(monkeypatch)
    disturbed(cli, store, scanned, tmp_path)


@pytest.mark.slow
def test_a_disturbed_store_with_pauses_between_retries(
    cli: Cli, store: Store, scanned: Scanned, tmp_path: Path
) -> None:
    disturbed(cli, store, scanned, tmp_path)


def disturbed(cli: Cli, store: Store, scanned: Scanned, inventory: Path) -> None:
    faults = store.proxy.faults
    faults.refused, faults.cut, faults.slow = 0.05, 0.05, 0.01
    words = (
        "scan",
        scanned.root,
        *store.options,
        "--inventory",
        str(inventory),
        "--format",
        "json",
    )
    loud = cli(*words)
    assert faults.met["refused"] > 10
    assert faults.met["cut"] > 10
    for name in ("errors", "tables", "features", "findings"):
        assert told(inventory, name) == told(scanned.inventory, name)
    assert scanned.tables == loud.json["tables"] > 60


@pytest.mark.parametrize(
    "named", [pytest.param(False, id="root"), pytest.param(True, id="list", marks=pytest.mark.slow)]
)
def test_a_store_that_goes_away_ends_the_scan(
    cli: Cli,
    store: Store,
    scanned: Scanned,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    named: bool,
) -> None:
    retry_at_once(monkeypatch)
    monkeypatch.setattr(workers, "_GONE_AFTER", 3)
    listed = tmp_path / "tables.txt"
    found = cli("scan", scanned.root, *store.options, "--list-tables").out
    listed.write_text(found)
    source = ["--list", str(listed)] if named else [scanned.root]
    inventory = tmp_path / "i"
    words = ["scan", *source, *store.options, "--inventory", str(inventory), "--format", "json"]
    words += ["--parallel", "2"]
    store.proxy.requests.clear()
    monkeypatch.setattr(
        store.proxy.faults, "draw", lambda: "refused" if len(store.proxy.requests) > 120 else ""
    )
    gone = cli(*words)
    assert gone.code == 3
    assert gone.json["error"]["code"] == "storage"
    assert "no longer answers" in gone.json["error"]["message"]
    assert "--resume" in gone.json["error"]["hint"]
    assert not (inventory / "scans").exists()
    # Not each of the tables that were left was tried.
    tried = {name for _, path in store.proxy.requests for name in re.findall(r"t\d{4}", path)}
    assert 20 < len(tried) < 100

    monkeypatch.setattr(store.proxy.faults, "draw", lambda: "")
    resumed = cli(*words, "--resume")
    assert resumed.json["resumed"] > 0
    for name in ("tables", "features", "findings"):
        assert told(inventory, name) == told(scanned.inventory, name)
    (done,) = DeltaTable(inventory / "scans").to_pyarrow_table().to_pylist()
    assert (done["tables"], resumed.code) == (scanned.tables, 3)
    codes = {row["code"] for row in DeltaTable(inventory / "errors").to_pyarrow_table().to_pylist()}
    assert "storage" not in codes


def test_the_same_rows_as_on_disk(cli: Cli, scanned: Scanned, tmp_path: Path) -> None:
    cli("scan", str(scanned.fleet), "--inventory", str(tmp_path))
    place = ("location", "table", "log_digest")
    for name in ("tables", "features"):
        assert told(scanned.inventory, name, without=place) == told(tmp_path, name, without=place)


def test_an_inventory_on_an_object_store(cli: Cli, store: Store, tmp_path: Path) -> None:
    make_fleet(tmp_path / "fleet", seed=5, count=20)
    inventory = f"s3://{BUCKET}/inventory"
    done = cli(
        "scan",
        str(tmp_path / "fleet"),
        "--inventory",
        inventory,
        *store.options,
        "--format",
        "json",
    )
    assert done.json["inventory"] == inventory, done
    options = dict(word.split("=", 1) for word in store.options[1::2])
    rows = DeltaTable(f"{inventory}/tables", storage_options=options).to_pyarrow_table()
    assert rows.num_rows == done.json["tables"] > 5
    checked = cli("check", inventory, "--client", "trino@476", *store.options, "--format", "json")
    read = [table for table in checked.json["tables"] if "error" not in table]
    assert len(read) == done.json["tables"]
    words = ("plan-upgrade", inventory, "--enable", "deletionVectors", "--format", "json")
    plans = cli(*words, *store.options).json["plans"]
    assert {plan["table"] for plan in plans} >= {each["table"] for each in checked.json["tables"]}
    again = cli("drift", inventory, *store.options)
    assert "nothing to compare yet" in again.out, again


@pytest.mark.parametrize(
    "words",
    [
        ("check", "--client", "trino@476"),
        ("plan-upgrade", "--set", "a=b"),
        ("plan-downgrade", "--lowest"),
    ],
)
def test_a_table_is_not_looked_at_as_an_inventory(
    cli: Cli, store: Store, tmp_path: Path, words: tuple[str, ...]
) -> None:
    names = ("a", "b")
    for name in names:
        log = Log(tmp_path / "r" / name)
        log.commit(0, commit_info(), protocol(1, 2), metadata(id=name))
    root = store.upload(tmp_path / "r", "known")
    for tables in (names[:1], names):
        store.proxy.requests.clear()
        uris = [f"{root}/{name}" for name in tables]
        ran = cli(*words, *uris, *store.options, "--format", "json")
        assert ran.code == 0, ran
        listed = Counter(prefix for kind, prefix in store.proxy.requests if kind == "LIST")
        # A plan lists the log again for its files and its history.
        times = 1 if words[0] == "check" else 2
        assert listed == {f"known/{name}/_delta_log/": times for name in tables}


def test_an_inventory_is_recognized_among_tables(cli: Cli, store: Store, tmp_path: Path) -> None:
    Log(tmp_path / "r" / "a").commit(0, commit_info(), protocol(1, 2), metadata())
    root = store.upload(tmp_path / "r", "mixed")
    inventory = f"s3://{BUCKET}/mixed-inventory"
    assert cli("scan", f"{root}/a", "--inventory", inventory, *store.options).code == 0
    plan = ("plan-upgrade", "--set", "a=b", *store.options)
    for words in (("check", "--client", "trino@476", *store.options), plan):
        for names in ((inventory,), (f"{root}/a", inventory)):
            ran = cli(*words, *names, "--format", "json")
            assert ran.code == 0, ran
            # A table has one plan, whatever arguments contain it.
            key, times = ("plans", 1) if words is plan else ("tables", len(names))
            assert [each["table"] for each in ran.json[key]] == [f"{root}/a"] * times
    ran = cli(*plan, inventory, "--where", "min_reader_version = 9")
    assert (ran.code, "no tables found" in ran.out + ran.err) == (3, True)
    ran = cli(*plan, f"{root}/a", "--where", "min_reader_version = 9")
    assert (ran.code, "apply to inventories" in ran.err) == (2, True)
    for words in (("check", "--client", "trino@476", *store.options), plan):
        ran = cli(*words, f"{root}/nothing")
        assert (ran.code, "has no _delta_log" in ran.out + ran.err) == (3, True)
    above = cli("check", root, "--client", "trino@476", *store.options, "--format", "json")
    (error,) = (each["error"] for each in above.json["errors"])
    assert f"deltaproto scan {root}" in error["hint"]


def test_tables_inside_tables_are_not_searched_for(cli: Cli, store: Store, tmp_path: Path) -> None:
    for name in ("a", "a/b", "c"):
        Log(tmp_path / name).commit(0, commit_info(), protocol(1, 2), metadata(id=name))
    root = store.upload(tmp_path, "inside")
    ran = cli("scan", root, *store.options, "--format", "json").json
    (note,) = ran["notes"]
    assert (ran["tables"], note.partition(" folders were")[0]) == (2, "2 tables'")
    assert note.endswith(f"name one as a root to search it: first {root}/a")
    assert ran["not_searched"] == {"hidden": 0, "inside": 2, "partition": 0, "nowhere": 0}
    # An inventory keeps it, so that nobody who asks it later takes the tables for all.
    inventory = f"{root}-inventory"
    scanned = cli("scan", root, "--inventory", inventory, *store.options, "--format", "json").json
    told = [f"{inventory}: scan {scanned['scan_id']}: {note}"]
    answer = cli("check", inventory, "--client", "trino@476", *store.options, "--format", "json")
    assert (answer.code, answer.json["notices"]) == (0, told)
    ran = cli("scan", f"{root}/a", *store.options, "--format", "json").json
    assert (ran["tables"], ran["notes"]) == (
        2,
        [
            "1 table's folder was not searched completely for tables inside it; name it "
            f"as a root to search it: {root}/a/b"
        ],
    )


def test_tables_far_below_a_root_that_is_a_table_are_found_as_on_disks(
    cli: Cli, store: Store, tmp_path: Path
) -> None:
    found = ("t", "t/archive/2024/orders", "t/archive/day=1/x")
    for name in (*found, "t/region=eu/x", "t/_old/x"):
        described = metadata(id=name, partition_columns=["day"])
        Log(tmp_path / name).commit(0, commit_info(), protocol(1, 2), described)
    for folder in ("_change_data", "day=1", "day=2/hour=3"):
        (tmp_path / "t" / folder).mkdir(parents=True)
        (tmp_path / "t" / folder / "part-0.parquet").write_bytes(b"x")
    root = store.upload(tmp_path, "below")
    store.proxy.requests.clear()
    remote = cli("scan", f"{root}/t", *store.options, "--format", "json").json
    requested = [unquote(path) for _, path in store.proxy.requests]
    assert not [path for path in requested if "/t/day=" in path or "/t/region=" in path]
    local = cli("scan", str(tmp_path / "t"), "--format", "json").json
    assert (remote["tables"], local["tables"]) == (3, 3)
    notes = [note.replace(root, str(tmp_path)) for note in remote["notes"]]
    hidden, inside, partition = notes
    assert hidden.endswith(f"{tmp_path}/t/_old")
    assert partition.startswith("1 folder is named like a partition of a table that has no such")
    assert partition.endswith(f"{tmp_path}/t/region=eu")
    assert (hidden, partition) == tuple(local["notes"])
    assert inside.startswith("2 tables' folders were not searched completely")


@pytest.mark.parametrize(
    ("root", "code"),
    [(f"s3://{BUCKET}/nothing/here", "not-found"), ("s3://no-such-bucket/x", "not-found")],
)
def test_roots_that_are_none(cli: Cli, store: Store, root: str, code: str) -> None:
    done = cli("scan", root, *store.options, "--format", "json")
    assert (done.code, done.json["by_error"]) == (3, {code: 1})


def test_nobody_waits_for_credentials(cli: Cli, tmp_path: Path) -> None:
    done = cli(
        *("scan", f"s3://{BUCKET}/x", "--storage-option", "AWS_ENDPOINT_URL=http://127.0.0.1:9"),
        *("--storage-option", "AWS_ALLOW_HTTP=true", "--format", "json"),
    )
    assert done.code == 3
    assert done.json["seconds"] < 60


def test_one_store_named_by_two_schemes(cli: Cli, store: Store, tmp_path: Path) -> None:
    def log(table: str) -> Log:
        return Log(tmp_path / "r" / table).commit(0, protocol(1, 2), metadata())

    kept, _ = log("kept"), log("dropped")
    root = store.upload(tmp_path / "r", "spelled")
    inventory = str(tmp_path / "i")
    scan = ["scan", *store.options, "--inventory", inventory, "--quiet"]
    assert cli(*scan, root).code == 0
    store.client.delete_object(Bucket=BUCKET, Key=f"spelled/dropped/_delta_log/{0:020}.json")
    log("created")
    kept.commit(1, protocol(1, 4))
    for table in ("created", "kept"):
        store.upload(tmp_path / "r" / table, f"spelled/{table}")
    assert cli(*scan, root.replace("s3://", "S3A://") + "/").code == 0
    drift = cli("drift", inventory, *store.options, "--format", "json").json
    assert drift["same_roots"] is True
    changes = {(each["table"].rpartition("/")[2], each["change"]) for each in drift["changes"]}
    assert {each for each in changes if each[0] != "kept"} == {
        ("created", "table-new"),
        ("dropped", "table-gone"),
    }
    assert ("kept", "protocol-raised") in changes
    assert not {change for table, change in changes if table == "kept"} & {"table-new"}
