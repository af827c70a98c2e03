"""Commands on tables of Unity Catalog and AWS Glue by name, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import boto3
import pytest
from deltalake import DeltaTable

from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.progress import table_address
from deltaproto.execution.rebuild import find_mismatch
from deltaproto.planning.plan import Plan
from deltaproto.tables.catalogs.unity_api import Answer, send
from tests.conftest import Ran
from tests.support import contract
from tests.support.canaries import Watch
from tests.support.lakes import Lake, s3_lake, trust
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.unity_server import Reply, UnityServer, refused, unity_server
from tests.tables.log.test_ratified import MANAGED, stage

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
TOKEN = "unmistakable-token-of-unity"
VECTORS = ["deletionVectors"]
ALL = ["deletionVectors", "v2Checkpoint"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("UC_TOKEN_FILE", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "no-profiles"))
    monkeypatch.setattr("deltaproto.tables.catalogs.backoff._FIRST_PAUSE", 0.0)


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    """A server that wants a token, which the environment has."""
    monkeypatch.setenv("UC_TOKEN", TOKEN)
    with unity_server(page=4) as running:
        running.tokens = {TOKEN}
        yield running


def make(folder: Path) -> Path:
    """A Delta table."""
    log = Log(folder)
    log.commit(0, commit_info(), protocol(3, 7, VECTORS, VECTORS), metadata(), add())
    return folder


def fill(server: UnityServer, folder: Path, count: int = 6, schema: str = "main.sales") -> None:
    for number in range(count):
        made = make(folder / schema / f"t {number}")
        server.add(f"{schema}.t{number}", f"file://{made}".replace(" ", "%20"))


def rows(inventory: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaTable(inventory / name).to_pyarrow_table().to_pylist()
    return found


def test_a_scan_of_unity_catalog(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    fill(unity, tmp_path)
    unity.add("main.sales.again", unity.tables["main", "sales"][0]["storage_location"])
    unity.add("main.sales.seen", "", table_type="VIEW", data_source_format=None)
    unity.add("main.sales.csv", "s3://x/y", data_source_format="CSV")
    url, inventory = f"uc://{unity.authority}", tmp_path / "inventory"
    ran = cli("scan", url, "--inventory", str(inventory), "--format", "json")
    assert ran.code == 0, ran.err
    (document,) = contract.documents(ran, "scan")
    assert document["tables"] == 6
    assert document["notes"] == [
        "1 catalog name has the location of another table, and was read once: main.sales.again",
        f"{url}: 1 view and 1 table of another format skipped",
    ]
    assert {row["table"] for row in rows(inventory, "tables")} == {
        f"main.sales.t{number}" for number in range(6)
    }
    assert rows(inventory, "scans")[0]["roots"] == [f"{url}/"]
    # A folder that is a root, too, adds no table, and takes no name away.
    again = cli("scan", url, str(tmp_path / "main.sales"), "--format", "json")
    assert again.json["tables"] == 6
    checked = cli("check", str(inventory), "--client", "deltalake@0.17", "--format", "json")
    assert len(checked.json["tables"]) == 6


def test_the_list_of_tables_shows_their_entries(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    fill(unity, tmp_path, 1)
    ran = cli("scan", f"uc://{unity.authority}/main.sales", "--list-tables", "--format", "json")
    (document,) = contract.documents(ran, "scan-list")
    (entry,) = document["listed"]
    assert entry["table"] == "main.sales.t0"
    assert entry["catalog_entry"] == {
        "type": "external",
        "provider": "delta",
        "owner": "ann@example.com",
        "id": "id-of-main.sales.t0",
    }


def test_names_in_a_list(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    fill(unity, tmp_path, 3)
    lines = [f"uc://{unity.authority}/main.sales.t{n}" for n in (0, 2, 9)]
    lines.append(str(make(tmp_path / "apart")))
    file = tmp_path / "tables.txt"
    file.write_text("\n".join(lines), encoding="utf-8")
    ran = cli("scan", "--list", str(file), "--format", "json")
    assert (ran.code, ran.json["tables"], ran.json["errors"]) == (3, 3, 1)
    assert ran.json["first_errors"][0]["table"] == lines[2]


def test_one_row_for_each_failure(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    fill(unity, tmp_path)
    fill(unity, tmp_path, 2, "main.hr")
    fill(unity, tmp_path, 3, "main.ops")
    unity.add("main.sales.dropped", f"file://{tmp_path}/dropped")

    def fails(path: str, query: dict[str, str]) -> Reply | None:
        if query.get("schema_name") == "hr":
            return refused(403, "User does not have USE SCHEMA on main.hr")
        if query.get("schema_name") == "sales" and query.get("page_token") == "4":
            return refused(500, f"lost the database, {TOKEN}")
        return None

    unity.faults.append(fails)
    url, inventory = f"uc://{unity.authority}", tmp_path / "inventory"
    ran = cli("scan", url, "--inventory", str(inventory), "--format", "json")
    assert ran.code == 3
    errors = {row["table"]: row["code"] for row in rows(inventory, "errors")}
    assert errors == {f"{url}/main.hr": "permission-denied", f"{url}/main.sales": "storage"}
    assert len(rows(inventory, "tables")) == 4 + 3
    assert rows(inventory, "scans")[0]["complete"] is False
    Watch(inventory, [TOKEN]).look(ran.out, ran.err)
    unity.faults.clear()
    assert cli("scan", url, "--inventory", str(inventory)).code == 3
    errors = {row["table"]: row["code"] for row in newest(inventory, "errors")}
    assert errors == {"main.sales.dropped": "not-found"}
    (dropped,) = newest(inventory, "errors")
    assert "correct the location in the catalog" in dropped["hint"]


def test_drift_knows_nothing_of_what_a_catalog_did_not_list(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    fill(unity, tmp_path, 2)
    fill(unity, tmp_path, 2, "main.hr")
    fill(unity, tmp_path, 1, "dev.a b")
    url, inventory = f"uc://{unity.authority}", str(tmp_path / "inventory")

    def drift() -> dict[str, set[str]]:
        cli("scan", url, "--inventory", inventory)
        found: dict[str, set[str]] = {}
        for change in cli("drift", inventory, "--format", "json").json["changes"]:
            found.setdefault(change["change"], set()).add(change["table"])
        return found

    drift()
    hr, all_ = {"main.hr.t0", "main.hr.t1"}, {"main.sales.t0", "main.sales.t1", "dev.`a b`.t0"}
    unity.faults[:] = [
        lambda _, query: refused(403, "no") if query.get("schema_name") == "hr" else None
    ]
    assert drift() == {"unreadable": {*hr, f"{url}/main.hr"}}
    unity.faults[:] = [
        lambda path, _: refused(503, "closed") if path == "catalogs" else None,
    ]
    assert drift() == {"unreadable": {*all_, url}}
    unity.faults.clear()
    assert drift() == {"readable": hr | all_}
    del unity.tables["main", "hr"][0]
    assert drift() == {"table-gone": {"main.hr.t0"}}


def only_table(ran: Ran) -> dict[str, Any]:
    """The only table of a result."""
    (found,) = ran.json["tables"]
    return dict(found)


def only_plan(file: Path) -> Plan:
    """The plan of a file."""
    (found,) = read_plans(str(file))
    assert isinstance(found, LoadedPlan)
    return found.plan


def newest(inventory: Path, name: str) -> list[dict[str, Any]]:
    found = rows(inventory, name)
    last = max(row["scan_id"] for row in rows(inventory, "scans"))
    return [row for row in found if row["scan_id"] == last]


def test_a_location_with_credentials_is_refused(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    fill(unity, tmp_path, 1)
    secret = "unmistakable/secret"
    unity.add("main.sales.old", f"s3n://AKIAIOSFODNN7EXAMPLE:{secret}@lake/old")
    url, inventory = f"uc://{unity.authority}", tmp_path / "inventory"
    scanned = cli("scan", url, "--inventory", str(inventory), "--format", "json")
    assert (scanned.code, scanned.json["tables"], scanned.json["errors"]) == (3, 1, 1)
    assert scanned.json["first_errors"][0]["table"] == "main.sales.old"
    every = [scanned]
    for words in (
        ("scan", url, "--list-tables", "--format", "json"),
        ("inspect", f"{url}/main.sales.old"),
        ("plan-upgrade", f"{url}/main.sales.old", "--set", "delta.appendOnly=true"),
        ("catalogs", "test", f"{url}/main.sales.old"),
    ):
        every.append(cli(*words))
        assert every[-1].code == 3, words
    Watch(inventory, [secret, "AKIAIOSFODNN7EXAMPLE"]).look(*(e.out + e.err for e in every))


def test_a_refused_token_is_one_row(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    for schema in ("a", "b", "c"):
        fill(unity, tmp_path, 1, f"main.{schema}")
    unity.tokens = {"another"}
    url = f"uc://{unity.authority}"
    ran = cli("scan", url, "--format", "json")
    assert (ran.code, ran.json["errors"]) == (3, 1)
    assert TOKEN not in ran.out + ran.err
    assert "refuses the token" in ran.out


def test_a_table_dropped_from_its_catalog_is_gone(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    fill(unity, tmp_path)
    url, inventory = f"uc://{unity.authority}", tmp_path / "inventory"
    words = ("scan", url, "--inventory", str(inventory))
    assert cli(*words).code == 0
    check = ("check", str(inventory), "--client", "deltalake", "--format", "json")
    assert len(cli(*check).json["tables"]) == 6
    dropped = unity.tables["main", "sales"].pop()
    unity.faults.append(
        lambda path, query: refused(403, "no") if query.get("schema_name") else None
    )
    assert cli(*words).code == 3
    # A list that failed is never compliant.
    assert cli(*check).code == 3
    unity.faults.clear()
    assert cli(*words).code == 0
    assert len(cli(*check).json["tables"]) == 5
    assert dropped["name"] == "t5"


def test_every_command_takes_a_name(cli: Cli, unity: UnityServer, tmp_path: Path) -> None:
    fill(unity, tmp_path, 1)
    name = f"uc://{unity.authority}/main.sales.t0"
    inspected = only_table(cli("inspect", name, "--format", "json"))
    assert inspected["table"] == name
    assert inspected["location"].endswith("/main.sales/t%200")
    assert inspected["reader"] == "log"
    both = only_table(cli("inspect", name, "--reader", "delta-rs", "--format", "json"))
    assert (both["table"], both["protocol"]) == (name, inspected["protocol"])
    assert cli("inspect", name, "--activity", "--format", "json").code == 0
    assert cli("history", name, "--format", "json").json["table"] == name
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: []\ntables:\n  main.sales.*:\n    max_reader_version: 1\n",
        encoding="utf-8",
    )
    checked = cli("check", name, "--policy", str(policy))
    assert checked.code == 1, checked.out
    assert "max_reader_version" in checked.out
    for wrong, code in (
        (f"uc://{unity.authority}/main.sales", "not-found"),
        (f"uc://{unity.authority}/main.sales.nobody", "not-found"),
        (f"uc://{unity.authority}", "not-found"),
        ("uc://", "not-found"),
        (f"uc://name:password@{unity.authority}/a.b.c", "permission-denied"),
        (f"uc://token@{unity.authority}/a.b.c", "permission-denied"),
    ):
        ran = cli("inspect", wrong, "--format", "json")
        assert (ran.code, only_table(ran)["error"]["code"]) == (3, code), wrong
        assert "password" not in ran.out + ran.err


def test_commits_that_the_catalog_has_not_published(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    managed = {"delta.feature.catalogManaged": "supported"}
    log = Log(tmp_path / "owned")
    log.commit(0, commit_info(inCommitTimestamp=100), MANAGED, metadata({"owner": "v0"}))
    stage(log, 1, "aaaaaaaa-1111", 101, metadata({"owner": "v1"}))
    stage(log, 1, "bbbbbbbb-2222", 999, metadata({"owner": "rejected"}))
    entry = unity.add("main.sales.owned", f"file://{tmp_path}/owned", properties=managed)
    name = f"uc://{unity.authority}/main.sales.owned"
    for tracked, version, complete in (
        (None, 0, False),
        ((-1, {}), 0, True),
        ((1, {1: 101}), 1, True),
        ((2, {1: 101, 2: 102}), 1, False),
        ((1, {}), 0, False),
    ):
        if tracked is not None:
            unity.commits[entry["table_id"]] = tracked
        ran = cli("inspect", name, "--format", "json")
        found = only_table(ran)
        assert (found["version"], ran.json["complete"]) == (version, complete), tracked
        assert found["configuration"]["owner"] == f"v{version}"
        assert (ran.code == 3) is not complete
        scanned = cli("scan", f"uc://{unity.authority}", "--format", "json")
        assert scanned.json["incomplete"] == (0 if complete else 1), tracked
        assert (scanned.code == 3) is not complete
        history = cli("history", name, "--format", "json")
        assert history.json["complete"] is complete, tracked
    unity.commits[entry["table_id"]] = (1, {1: 101})
    plan = cli("plan-upgrade", name, "--set", "delta.appendOnly=true", "--format", "json")
    assert plan.json["fingerprint"]["version"] == 1
    assert plan.json["sql_name"] == "`main`.`sales`.`owned`"


def test_a_plan_uses_the_name_that_spark_knows(
    cli: Cli, unity: UnityServer, tmp_path: Path
) -> None:
    fill(unity, tmp_path, 1)
    name, file = f"uc://{unity.authority}/main.sales.t0", tmp_path / "plan.json"
    drop = ("--drop", "deletionVectors", "--format", "json", "--output", str(file))
    assert cli("plan-downgrade", name, *drop).code == 0
    plan = only_plan(file)
    assert (plan.table, plan.sql_name) == (name, "`main`.`sales`.`t0`")
    # The session that runs the statements resolves their name, and must find the same location.
    assert table_address(plan) == "main.sales.t0"
    assert find_mismatch(plan) is None
    saved = tmp_path / "inspection.json"
    assert cli("inspect", name, "--format", "json", "--output", str(saved)).code == 0
    again = cli("plan-downgrade", str(saved), "--drop", "deletionVectors", "--format", "json")
    assert [each["sql_name"] for each in again.json["plans"]] == [plan.sql_name]
    other = plan._replace(sql_name="`main`.`sales`.`t1`")
    assert find_mismatch(other) is not None


@pytest.fixture(scope="module")
def lake() -> Iterator[Lake]:
    with s3_lake() as running:
        yield running


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> Lake:
    """The store's endpoint, without any key."""
    for name, value in lake.environment.items():
        if "KEY" not in name:
            monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return lake


def vend(unity: UnityServer, lake: Lake, folder: Path) -> None:
    """Register three tables of the store, for which there are temporary credentials."""
    for number in range(3):
        uri = lake.upload(make(folder / f"t{number}"), f"{folder.name}/t{number}")
        unity.add(f"main.sales.t{number}", uri)
    keys = {
        "access_key_id": lake.environment["AWS_ACCESS_KEY_ID"],
        "secret_access_key": lake.environment["AWS_SECRET_ACCESS_KEY"],
        "session_token": "",
    }
    unity.credentials = {"aws_temp_credentials": keys, "expiration_time": 1_800_000_000_000}


@pytest.mark.storage
def test_temporary_credentials_of_unity_catalog(
    cli: Cli, unity: UnityServer, environment: Lake, tmp_path: Path
) -> None:
    lake = environment
    vend(unity, lake, tmp_path)
    url, inventory = f"uc://{unity.authority}", tmp_path / "inventory"
    ran = cli("scan", url, "--inventory", str(inventory), "--format", "json")
    assert (ran.code, ran.json["tables"]) == (0, 3), ran.out
    shown = cli("inspect", f"{url}/main.sales.t0", "--format", "json")
    assert only_table(shown)["version"] == 0
    plan = cli("plan-downgrade", f"{url}/main.sales.t0", "--drop", "deletionVectors")
    assert plan.code == 0
    watch = Watch(inventory, [TOKEN, *lake.secrets])
    watch.look(*(each.out + each.err for each in (ran, shown, plan)))
    # The user's own are used instead, and those of a user who may nothing are refused.
    refused_ = cli("scan", url, *(lake.words(**lake.denied)), "--format", "json")
    assert (refused_.code, refused_.json["errors"]) == (3, 3)
    watch.look(refused_.out, refused_.err)


@pytest.fixture
def vended(
    cli: Cli, unity: UnityServer, environment: Lake, tmp_path: Path
) -> tuple[str, str, Lake]:
    """The URL and an inventory of three tables that only the catalog's credentials can read."""
    vend(unity, environment, tmp_path)
    url, inventory = f"uc://{unity.authority}", str(tmp_path / "inventory")
    assert cli("scan", f"{url}/main", "--inventory", inventory).code == 0
    unity.requests.clear()
    return url, inventory, environment


@pytest.mark.storage
def test_a_plan_of_an_inventory_is_that_of_the_names(
    cli: Cli, vended: tuple[str, str, Lake], tmp_path: Path
) -> None:
    url, inventory, _ = vended
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\ntables:\n  'main.sales.*':\n    forbid_features: [deletionVectors]\n"
    )
    names = [f"{url}/main.sales.t{number}" for number in range(3)]
    goal = ("--policy", str(policy), "--format", "json", "--out")
    statements = {}
    for given in ([inventory], names):
        folder = tmp_path / f"plans of {len(given)}"
        ran = cli("plan", *given, *goal, str(folder))
        assert ran.code == 0, ran.out + ran.err
        plans = [only_plan(file) for file in folder.glob("t*.json")]
        assert sorted(plan.table for plan in plans) == names
        statements[len(given)] = {plan.table: plan.steps[0].sql for plan in plans}
    assert statements[1] == statements[3]
    assert "`main`.`sales`.`t0`" in (statements[1][names[0]] or "")
    fresh = cli("plan", inventory, "--fresh", *goal[:-1])
    assert fresh.code == 0, fresh.out + fresh.err
    assert sorted(each["table"] for each in fresh.json["plans"]) == names


@pytest.mark.storage
def test_the_state_of_a_rollout_needs_no_session_with_the_names(
    cli: Cli, vended: tuple[str, str, Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, inventory, _ = vended
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nrollout: {waves: [100%]}\n"
        "tables:\n  '**':\n    forbid_features: [deletionVectors]\n"
    )
    plans = str(tmp_path / "plans")
    assert cli("plan", inventory, "--policy", str(policy), "--out", plans).code == 0

    def no_session(*_: object) -> None:
        raise AssertionError("a Spark session is not needed")

    monkeypatch.setattr("deltaproto.tables.session.spark_session", no_session)
    status = cli("status", plans, "--format", "json")
    assert status.code == 0, status.out + status.err
    (wave,) = status.json["rollout"]["waves"]
    assert [each["status"] for each in wave["tables"]] == ["ready"] * 3
    book = cli("runbook", plans, "--policy", str(policy))
    assert book.code == 0, book.out + book.err
    assert f"deltaproto inspect {url}/main.sales.t0" in book.out


@pytest.mark.storage
@pytest.mark.parametrize("named", ["table", "schema", "inventory"])
def test_discover_reads_with_the_credentials_of_the_catalog(
    cli: Cli, vended: tuple[str, str, Lake], named: str
) -> None:
    url, inventory, _ = vended
    name = {"table": f"{url}/main.sales.t0", "schema": f"{url}/main.sales"}.get(named, inventory)
    ran = cli("discover", name, "--no-store", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    assert ran.json["tables"] == (1 if named == "table" else 3)


@pytest.mark.storage
@pytest.mark.parametrize("own", [False, True])
def test_logs_of_a_scanned_catalog_are_read_with_its_credentials_or_your_own(
    cli: Cli,
    vended: tuple[str, str, Lake],
    unity: UnityServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    own: bool,
) -> None:
    url, inventory, lake = vended
    more = [commit_info("SET TBLPROPERTIES"), protocol(3, 7, ALL, ALL)]
    lines = "\n".join(map(json.dumps, more)).encode()
    lake.put(f"{tmp_path.name}/t1/_delta_log/00000000000000000001.json", lines)
    assert cli("scan", f"{url}/main", "--inventory", inventory).code == 0
    if own:
        monkeypatch.delenv("UC_TOKEN")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, lake.environment[name])
    unity.requests.clear()
    (change,) = cli("drift", inventory, "--format", "json").json["changes"]
    assert (change["feature"], change["commit"]["version"]) == ("v2Checkpoint", 1)
    ran = cli("discover", inventory, "--no-store", "--format", "json")
    assert (ran.code, ran.json["tables"]) == (0, 3)
    assert (unity.requests["temporary-table-credentials"] > 0) is not own


@pytest.mark.storage
@pytest.mark.parametrize("command", ["scan", "inspect", "check", "plan-downgrade --lowest"])
def test_tables_of_a_catalog_are_read_at_the_same_time(
    cli: Cli, unity: UnityServer, environment: Lake, tmp_path: Path, command: str
) -> None:
    vend(unity, environment, tmp_path)
    together = Barrier(3)

    def wait(path: str, query: dict[str, str]) -> Reply | None:
        if path == "temporary-table-credentials":
            together.wait(60)
        return None

    unity.faults.append(wait)
    verb, *words = command.split()
    names = [f"uc://{unity.authority}/main.sales.t{number}" for number in range(3)]
    root = f"uc://{unity.authority}/main.sales"
    ran = cli(verb, *([root] if verb == "scan" else names), *words, "--format", "json")
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.storage
def test_a_scan_of_glue(
    cli: Cli, environment: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lake = environment
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, lake.environment[name])
    places = [lake.upload(make(tmp_path / f"t{n}"), f"glue/t{n}") for n in range(5)]
    # This user may use S3 only.
    trust(lake)
    glue = boto3.client("glue", region_name="us-east-1")
    glue.create_database(DatabaseInput={"Name": "sales"})
    for number, uri in enumerate(places):
        place = {"Location": f"{uri}-__PLACEHOLDER__", "SerdeInfo": {"Parameters": {"path": uri}}}
        entry = {
            "Name": f"t{number}",
            "Parameters": {"spark.sql.sources.provider": "delta"},
            "StorageDescriptor": place,
        }
        glue.create_table(DatabaseName="sales", TableInput=entry)
    inventory = tmp_path / "inventory"
    ran = cli("scan", "glue://us-east-1", "--inventory", str(inventory), "--format", "json")
    assert (ran.code, ran.json["tables"]) == (0, 5), ran.out
    assert {row["table"] for row in rows(inventory, "tables")} == {
        f"sales.t{number}" for number in range(5)
    }
    name, file = "glue://us-east-1/sales.t0", tmp_path / "plan.json"
    drop = ("--drop", "deletionVectors", "--format", "json", "--output", str(file))
    assert cli("plan-downgrade", name, *drop).code == 0
    plan = only_plan(file)
    # A session's `sales.t0` may be of another catalog.
    assert (plan.table, plan.sql_name) == (name, f"delta.`{lake.roots[0]}/glue/t0`")
    assert table_address(plan) == name
    assert find_mismatch(plan) is None
    Watch(inventory, lake.secrets).look(ran.out, ran.err, file.read_text(encoding="utf-8"))


def test_no_engine_is_imported(unity: UnityServer, tmp_path: Path) -> None:
    fill(unity, tmp_path)
    words = ["scan", f"uc://{unity.authority}", "--format", "json", "--no-progress"]
    heavy = ("pyspark", "botocore", "boto3", "deltalake", "requests")
    code = (
        f"import json, sys; from deltaproto.cli.main import main; assert main({words!r}) == 0; "
        f"print(json.dumps([each for each in {heavy!r} if each in sys.modules]), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["tables"] == 6
    assert json.loads(ran.stderr.strip().splitlines()[-1]) == []


def test_a_catalog_that_does_not_answer_is_asked_no_more(
    cli: Cli, unity: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(unity, tmp_path)
    inventory = str(tmp_path / "inventory")
    assert cli("scan", f"uc://{unity.authority}", "--inventory", inventory).code == 0
    # One table that the catalog cannot describe does not matter to the others.
    unity.faults.append(lambda path, _: refused(500, "defect") if path.endswith("t1") else None)
    assert cli("discover", inventory, "--no-store").code == 0
    unity.requests.clear()
    assert cli("discover", inventory, "--no-store").code == 0
    assert unity.requests.total() > 6
    unity.close()
    asked: list[str] = []

    def counted(url: str, *more: Any) -> Answer:
        asked.append(url)
        return send(url, *more)

    monkeypatch.setattr("deltaproto.tables.catalogs.unity_api.send", counted)
    ran = cli("discover", inventory, "--no-store", "--format", "json")
    assert (ran.code, ran.json["tables"]) == (0, 6)
    assert asked
    asked.clear()
    assert cli("discover", inventory, "--no-store").code == 0
    assert not asked
