"""What each command requests from an object store is what docs/how-to/permissions.md names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from werkzeug.serving import WSGIRequestHandler

from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from deltaproto.fleet.inventory import InventoryTables
from deltaproto.fleet.schemas import Inventory
from tests.conftest import Ran

pytestmark = [pytest.mark.storage, pytest.mark.rotating]
Cli = Callable[..., Ran]
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "permissions.md").read_text()


class Store:
    """A bucket with the example tables, and the requests that it got."""

    def __init__(self, endpoint: str) -> None:
        self.requests: list[tuple[str, str]] = []
        self.endpoint = endpoint
        self.options = {
            "aws_endpoint": endpoint,
            "aws_allow_http": "true",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
            "aws_region": "us-east-1",
        }

    @property
    def words(self) -> list[str]:
        pairs = self.options.items()
        return [word for k, v in pairs for word in ("--storage-option", f"{k}={v}")]

    def actions(self, prefix: str) -> set[tuple[str, str]]:
        """The actions on keys under a prefix, as (action, `log` or `other`)."""
        found = set()
        for method, path in self.requests:
            key, _, query = path.partition("?")
            listed = re.search(r"prefix=([^&]*)", query)
            if "list-type" in query:
                key = "/lake/" + (listed[1].replace("%2F", "/") if listed else "")
            if key.startswith(f"/lake/{prefix}"):
                action = "list" if "list-type" in query else method.lower()
                found.add((action, "log" if "/_delta_log/" in key else "other"))
        return found


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    made = Store(f"http://{host}:{port}")

    def log(self: Any, code: object = "-", size: object = "-") -> None:
        made.requests.append((self.command, self.path))

    monkeypatch.setattr(WSGIRequestHandler, "log_request", log)
    client = boto3.client(
        "s3",
        endpoint_url=made.endpoint,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="lake")
    for name, recipe in DEMO_TABLES.items():
        recipe_folder = tmp_path / name
        RECIPES[recipe](recipe_folder)
        for file in recipe_folder.rglob("*.json"):
            client.upload_file(str(file), "lake", f"gold/{file.relative_to(tmp_path)}")
    made.requests.clear()
    yield made
    server.stop()


READING = {("get", "log"), ("list", "log")}


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "s3://lake/gold/orders"),
        ("inspect", "s3://lake/gold/orders", "--look-in-files", "--activity"),
        ("check", "s3://lake/gold/orders", "--client", "trino@400"),
        ("history", "s3://lake/gold/orders"),
        ("conflicts", "s3://lake/gold/orders"),
        ("plan-downgrade", "s3://lake/gold/orders", "--drop", "deletionVectors"),
        ("plan-upgrade", "s3://lake/gold/events", "--enable", "changeDataFeed"),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_commands_on_a_table_list_and_get_its_log(
    cli: Cli, store: Store, words: tuple[str, ...]
) -> None:
    assert cli(*words, *store.words).code in (0, 1)
    found = store.actions("gold/")
    assert ("get", "log") in found
    assert found <= READING | {("list", "other")}
    assert "list `TABLE/_delta_log/`, get `TABLE/_delta_log/*`" in PAGE


def test_a_scan_lists_its_root_and_puts_only_into_the_inventory(cli: Cli, store: Store) -> None:
    inventory = "s3://lake/_inventory"
    words = ("scan", "s3://lake/gold", "--inventory", inventory, *store.words)
    assert cli(*words).code == 0
    assert cli(*words, "--keep", "1").code == 0
    assert store.actions("gold/") <= READING | {("list", "other")}
    written = {action for action, _ in store.actions("_inventory/")}
    assert written == {"get", "list", "put"}
    assert {path for method, path in store.requests if method not in ("GET", "PUT")} == set()
    assert '"s3:GetObject", "s3:PutObject"' in PAGE


def test_old_scans_are_deleted_with_their_files(cli: Cli, tmp_path: Path) -> None:
    """A store with the permissions of the page must let `--keep` delete objects."""
    lake, where = tmp_path / "lake", tmp_path / "inventory"
    RECIPES[DEMO_TABLES["orders"]](lake / "orders")
    for _ in range(2):
        assert cli("scan", str(lake), "--inventory", str(where)).code == 0
    first, second = sorted(path.name for path in where.glob("tables/scan_id=*"))
    inventory = InventoryTables(str(where), {})
    inventory.drop(Inventory.TABLES, f"scan_id = '{first.removeprefix('scan_id=')}'")
    commit = max(where.glob("tables/_delta_log/*.json"))
    commit.write_text(
        re.sub(r'"deletionTimestamp":\d+', '"deletionTimestamp":1', commit.read_text())
    )
    files = [*where.glob(f"tables/{first}/*.parquet")]
    assert len(files) == 1
    inventory.drop(Inventory.TABLES, "scan_id = 'none'")
    assert not files[0].exists()
    assert [*where.glob(f"tables/{second}/*.parquet")]
    assert "| `scan --keep` | the inventory | also delete below it |" in PAGE
    assert '"s3:DeleteObject"' in PAGE


def test_queries_of_an_inventory_put_nothing(cli: Cli, store: Store, tmp_path: Path) -> None:
    inventory = "s3://lake/_inventory"
    cli("scan", "s3://lake/gold", "--inventory", inventory, *store.words)
    store.requests.clear()
    assert cli("check", inventory, "--client", "trino@400", *store.words).code == 1
    assert cli("drift", inventory, *store.words).code == 0
    assert cli("report", inventory, "-o", str(tmp_path / "r.html"), *store.words).code == 0
    assert {action for action, _ in store.actions("_inventory/")} == {"get", "list"}
    assert store.actions("gold/") == set()


def test_discover_reads_logs_of_tables_the_inventory_and_access_logs(
    cli: Cli, store: Store
) -> None:
    inventory = "s3://lake/_inventory"
    cli("scan", "s3://lake/gold", "--inventory", inventory, *store.words)
    for words in (("s3://lake/gold/orders",), ("s3://lake/gold",), (inventory, "--no-store")):
        store.requests.clear()
        assert cli("discover", *words, *store.words).code == 0
        found = store.actions("gold/")
        assert ("get", "log") in found
        assert found <= READING | {("list", "other")}
        assert {action for action, _ in store.actions("_inventory/")} <= {"get", "list"}
        assert not any(method == "PUT" for method, _ in store.requests)
    store.requests.clear()
    logs = ("--access-log", "s3://lake/gold/orders/_delta_log/", *store.words)
    assert cli("discover", "s3://lake/gold/events", *logs).code == 3
    assert store.actions("gold/orders/") <= READING
    store.requests.clear()
    assert cli("discover", inventory, *store.words).code == 0
    assert store.actions("gold/") <= READING | {("list", "other")}
    kept = {action for action, _ in store.actions("_inventory/")}
    assert kept == {"get", "list", "put"}
    assert "also put and delete below `clients_seen`, unless `--no-store` is passed" in PAGE
    assert "| `discover --access-log` | the access logs | list and get below them |" in PAGE
