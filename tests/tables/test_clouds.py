"""Tables on S3, Azure and Google's store: real endpoints, and everything that reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.conftest import Ran
from tests.support.lakes import Lake

pytestmark = [
    pytest.mark.storage,
    pytest.mark.usefixtures("no_cloud"),
    pytest.mark.timeout(1500),
    pytest.mark.rotating,
]
Cli = Callable[..., Ran]
POLICY = "policy_version: 1\nclients:\n  - client: trino@452\n    access: [read]\n"
_SECONDS = 30
"""a refusal takes no longer, the slowest machine's start included"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table on disk, to be copied: two commits and a checkpoint."""
    root = tmp_path_factory.mktemp("here") / "orders"
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(str(root), pa.table({"a": [1, 2]}), configuration=feed)
    write_deltalake(str(root), pa.table({"a": [3]}), mode="append")
    DeltaTable(str(root)).create_checkpoint()
    return root


@pytest.fixture(scope="module")
def orders(lake: Lake, table: Path) -> str:
    """The key of the table in the store."""
    lake.upload(table, "gold/orders")
    return "gold/orders"


def protocol_of(ran: Ran) -> object:
    assert ran.code == 0, ran
    return ran.table["version"], ran.table["protocol"], ran.table["configuration"]


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_inspect_with_options(cli: Cli, lake: Lake, table: Path, orders: str, reader: str) -> None:
    how = ("--reader", reader, "--format", "json")
    here = protocol_of(cli("inspect", str(table), *how))
    for root in lake.roots:
        ran = cli("inspect", f"{root}/{orders}", *how, *lake.words())
        assert protocol_of(ran) == here
        assert not [secret for secret in lake.secrets if secret in ran.out + ran.err]


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_inspect_with_the_environment(
    cli: Cli,
    lake: Lake,
    table: Path,
    orders: str,
    reader: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in lake.environment.items():
        monkeypatch.setenv(name, value)
    how = ("--reader", reader, "--format", "json")
    here = protocol_of(cli("inspect", str(table), *how))
    for root in lake.roots:
        assert protocol_of(cli("inspect", f"{root}/{orders}", *how)) == here


def test_history_check_and_plans(
    cli: Cli, lake: Lake, table: Path, orders: str, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    where = f"{lake.roots[-1]}/{orders}"
    for words in (
        ("history", "{}"),
        ("check", "{}", "--policy", str(policy)),
        ("plan-downgrade", "{}", "--lowest"),
        ("plan-upgrade", "{}", "--enable", "deletionVectors"),
    ):
        here, there = (
            cli(*(word.format(place) for word in words), "--format", "json", *more)
            for place, more in ((str(table), []), (where, lake.words()))
        )
        assert there.code == here.code in (0, 1), there
        told = [json.loads(ran.out) for ran in (here, there)]
        for key in ("events", "verdicts", "steps", "protocol_after", "complete"):
            seen = [without_places(document.get(key)) for document in told]
            assert seen[0] == seen[1], (words, key)


def without_places(value: object) -> object:
    """The same without what names the table or a time."""
    places = ("table", "sql", "undo", "not_before", "commands")
    if isinstance(value, dict):
        return {k: without_places(v) for k, v in value.items() if k not in places}
    return [without_places(each) for each in value] if isinstance(value, list) else value


def test_scan(cli: Cli, lake: Lake, orders: str, tmp_path: Path) -> None:
    root = f"{lake.roots[-1]}/{orders.partition('/')[0]}"
    inventory = str(tmp_path / "inventory")
    done = cli("scan", root, *lake.words(), "--inventory", inventory, "--format", "json")
    assert (done.code, done.json["tables"], done.json["errors"]) == (0, 1, 0), done
    (row,) = DeltaTable(f"{inventory}/tables").to_pyarrow_table().to_pylist()
    assert row["location"] == f"{lake.roots[-1]}/{orders}"
    assert row["version"] == 1


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_what_is_not_there(cli: Cli, lake: Lake, orders: str, reader: str) -> None:
    scheme, _, rest = lake.roots[0].partition("://")
    how = ("--reader", reader, "--format", "json", *lake.words())
    places = [f"{lake.roots[0]}/nothing", f"{scheme}://no-such-{rest}/{orders}"]
    if scheme == "gs":
        # fake-gcs-server fails where Google says that there is no such bucket.
        del places[1]
    for place in places:
        ran = cli("inspect", place, *how)
        assert ran.code == 3
        assert ran.table["error"]["code"] in ("not-found", "not-a-delta-table"), ran


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_who_may_not(cli: Cli, lake: Lake, orders: str, reader: str) -> None:
    if not lake.denied:
        pytest.skip("fake-gcs-server asks nobody who they are")
    began = time.monotonic()
    words = lake.words(**lake.denied)
    ran = cli(
        "inspect", f"{lake.roots[0]}/{orders}", "--reader", reader, *words, "--format", "json"
    )
    error = ran.table["error"]
    assert (ran.code, error["code"]) == (3, "permission-denied"), error
    assert "no permission to read" in error["message"]
    assert "\n" not in error["message"]
    assert error["hint"]
    assert time.monotonic() - began < _SECONDS
