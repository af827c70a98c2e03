"""Forecasts of automatic upgrades: real tables, scanned through a stand-in for Unity Catalog."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

import deltaproto
from deltaproto.clients.requirements import table_requirements
from deltaproto.fleet.forecast.upgrades import (
    find_hold,
    has_feature,
    idle_days,
    is_verified,
    requirements_with,
)
from deltaproto.fleet.seen.seen_findings import SeenOnTable
from deltaproto.fleet.seen.times import Times
from deltaproto.fleet.seen.uses import Client, SeenClient, SeenTable
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.automatic_upgrades import RULES, AutomaticUpgrade, Stage, TableAge
from deltaproto.protocol.databricks_runtime import parse_runtime
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.writers import Confidence
from tests.conftest import Ran
from tests.fleet.test_clients_seen import APPEND, DAY
from tests.support import contract
from tests.support.logs import Log, commit_info, metadata, protocol
from tests.support.unity_server import UnityServer, unity_server

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
V2 = ["v2Checkpoint"]
EXISTING = [rule for rule in RULES if rule.tables is TableAge.EXISTING]
(CHECKPOINTS,) = (rule for rule in EXISTING if rule.feature == "v2Checkpoint")
SPARK = {"engineInfo": "Apache-Spark/3.4.1 Delta-Lake/2.4.0", "userName": "bob"}
RUNTIME = {"engineInfo": "Databricks-Runtime/16.4.x-scala2.12", "userName": "ada"}


@pytest.fixture
def unity(monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    monkeypatch.setenv("UC_TOKEN", "token")
    with unity_server() as running:
        yield running


class Lake:
    """Tables in a folder and in Unity Catalog, and their inventory."""

    def __init__(self, cli: Cli, unity: UnityServer, folder: Path) -> None:
        self.cli, self.unity, self.folder = cli, unity, folder
        self.inventory = str(folder / "inventory")

    def table(
        self,
        name: str,
        *commits: tuple[float, dict[str, Any]],
        kind: str | None = "MANAGED",
        stored: dict[str, Any] | None = None,
        **settings: str,
    ) -> Log:
        """A table with commits so many days ago; without a kind, no catalog has it."""
        log = Log(self.folder / "lake" / name)
        now = int(time.time() * 1000)
        for version, (days, info) in enumerate(commits or [(1, RUNTIME)]):
            first = [stored or protocol(1, 2), metadata(settings, id=name)]
            timed = {**APPEND, **info, "timestamp": now - int(days * DAY)}
            log.commit(version, commit_info(**timed), *(() if version else first))
        if kind is not None:
            self.unity.add(f"main.sales.{name}", f"file://{log.table}", table_type=kind)
        return log

    def scan(self, *roots: str, code: int = 0) -> str:
        words = roots or (f"uc://{self.unity.authority}",)
        ran = self.cli("scan", *words, "--inventory", self.inventory, "-q")
        assert ran.code == code, ran.err
        return self.inventory

    def policy(self, text: str) -> str:
        file = self.folder / "policy.yaml"
        file.write_text(f"policy_version: 1\n{text}", encoding="utf-8")
        return str(file)

    def forecast(self, *words: str, code: int = 0) -> dict[str, Any]:
        ran = self.cli("forecast", self.inventory, *words, "--format", "json")
        assert ran.code == code, (ran.out, ran.err)
        (document,) = contract.documents(ran, "forecast")
        return document


@pytest.fixture
def lake(cli: Cli, unity: UnityServer, tmp_path: Path) -> Lake:
    return Lake(cli, unity, tmp_path)


def by_table(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["table"].rpartition(".")[2]: each for each in document["tables"]}


def of_feature(table: dict[str, Any], feature: str) -> dict[str, Any]:
    (found,) = (each for each in table["upgrades"] if each["feature"] == feature)
    assert isinstance(found, dict)
    return found


def blocked(upgrade: dict[str, Any]) -> list[str]:
    return [f"{each['client']} {each['access']} {each['after']}" for each in upgrade["blocked"]]


class TestWhichTables:
    def test_only_managed_tables_are_affected(self, lake: Lake) -> None:
        lake.table("mine")
        lake.table("theirs", kind="EXTERNAL")
        lake.table("clone", kind="MANAGED_SHALLOW_CLONE")
        write_deltalake(str(lake.folder / "lake" / "real"), pa.table({"id": [1]}))
        lake.unity.add("main.sales.real", f"file://{lake.folder}/lake/real", table_type="MANAGED")
        lake.scan()
        found = by_table(lake.forecast("--client", "duckdb@1.4.0", code=3))
        assert {name: (each["affected"], each["table_type"]) for name, each in found.items()} == {
            "mine": ("yes", "managed"),
            "real": ("yes", "managed"),
            "theirs": ("no", "external"),
            "clone": ("unknown", "managed_shallow_clone"),
        }
        features = [rule.feature for rule in EXISTING]
        assert [each["feature"] for each in found["real"]["upgrades"]] == features
        assert [each["feature"] for each in found["clone"]["upgrades"]] == features
        assert found["theirs"]["upgrades"] == []

    def test_tables_without_a_catalog_are_not_left_out(self, lake: Lake) -> None:
        lake.table("orders", kind=None)
        lake.scan(str(lake.folder / "lake"))
        document = lake.forecast("--client", "duckdb@1.4.0", code=3)
        (table,) = document["tables"]
        assert (document["complete"], table["affected"]) == (False, "unknown")
        text = lake.cli("forecast", lake.inventory)
        assert text.code == 3
        assert "0 of 1 table affected, 1 not known; as documented" in text.out
        assert "not known whether this is a managed table of Unity Catalog: " in " ".join(
            text.out.split()
        )
        assert "0 of 1 table affected" in text.out

    def test_an_inventory_of_an_earlier_release(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        rows = DeltaTable(f"{lake.inventory}/tables").to_pyarrow_table()
        assert rows.column("catalog").to_pylist() == ["uc"]
        older = rows.drop_columns(["catalog", "table_type"])
        write_deltalake(
            f"{lake.inventory}/tables", older, mode="overwrite", schema_mode="overwrite"
        )
        (table,) = lake.forecast("--client", "duckdb@1.4.0", code=3)["tables"]
        assert (table["affected"], table["table_type"]) == ("unknown", None)
        # The next scan adds the columns.
        lake.scan()
        (table,) = lake.forecast("--client", "duckdb@1.4.0")["tables"]
        assert table["affected"] == "yes"

    def test_a_changed_type_is_noticed_although_the_log_is_unchanged(
        self, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("deltaproto.fleet.unchanged._SETTLED_NS", -1)
        lake.table("orders", kind="EXTERNAL")
        lake.scan()
        lake.unity.tables["main", "sales"][0]["table_type"] = "MANAGED"
        lake.scan()
        (table,) = lake.forecast("--client", "duckdb@1.4.0")["tables"]
        assert table["affected"] == "yes"

    def test_a_table_that_could_not_be_read(self, lake: Lake) -> None:
        lake.table("good")
        bad = lake.table("bad")
        (Path(bad.table) / "_delta_log" / f"{1:020d}.json").write_text("{not json\n")
        lake.scan(code=3)
        found = by_table(lake.forecast("--client", "duckdb@1.4.0", code=3))
        assert found["bad"]["error"]["code"] == "corrupt-log"
        assert "upgrades" not in found["bad"]
        assert found["good"]["affected"] == "yes"

    def test_an_empty_inventory(self, lake: Lake) -> None:
        (lake.folder / "lake").mkdir()
        ran = lake.cli(
            *("scan", str(lake.folder / "lake"), "--inventory", lake.inventory, "--allow-empty")
        )
        assert ran.code == 0
        assert "no tables found" in lake.cli("forecast", lake.inventory).err
        assert lake.forecast("--allow-empty")["tables"] == []

    def test_no_inventory(self, lake: Lake) -> None:
        ran = lake.cli("forecast", str(lake.folder))
        assert (ran.code, ran.out) == (2, "")
        assert "is not an inventory" in ran.err


class TestWhichFeatures:
    def test_a_feature_in_use_is_not_forecast(self, lake: Lake) -> None:
        stored = protocol(3, 7, V2, V2)
        lake.table("used", stored=stored, **{"delta.checkpointPolicy": "v2"})
        lake.table("unused", stored=protocol(2, 5))
        lake.scan()
        found = by_table(lake.forecast("--client", "duckdb@1.4.0"))
        features = [each["feature"] for each in found["used"]["upgrades"]]
        assert features == ["rowTracking", "columnMapping", "catalogManaged"]
        # (2,5) supports column mapping, but the table does not use it.
        assert "columnMapping" in [each["feature"] for each in found["unused"]["upgrades"]]

    def test_clients_lose_what_a_plan_says_that_they_lose(self, lake: Lake) -> None:
        logs = {
            name: lake.table(name, stored=stored)
            for name, stored in (
                ("plain", protocol(1, 2)),
                ("listed", protocol(1, 7, None, ["appendOnly"])),
                ("mapped", protocol(2, 5)),
            )
        }
        lake.scan()
        clients = ["trino@400", "deltalake@0.25.5", "delta-spark@2.4.0", "polars@1.31.0"]
        rows = deltaproto.Inventory(lake.inventory).forecast(clients=clients).rows()
        found = {(row["table"].rpartition(".")[2], row["feature"]): row["blocked"] for row in rows}
        for name, log in logs.items():
            for feature in ("v2Checkpoint", "rowTracking", "columnMapping"):
                plan = deltaproto.Table(log.table).plan_upgrade(
                    enable=[feature], clients=clients, engine="databricks@16.4"
                )
                lost = {
                    f"{each.client} ({each.access})"
                    for each in plan.clients
                    if each.after in ("refused", "wrong") and each.before == "ok"
                }
                assert lost
                assert set(found[name, feature]) == lost

    def test_names_are_quoted_in_statements(self, lake: Lake) -> None:
        for number, name in enumerate(["a.b", "Größe `x`", "select"]):
            lake.table(f"t{number}")
            lake.unity.tables["main", "sales"][number]["name"] = name
        lake.scan()
        document = lake.forecast("--client", "duckdb@1.4.0")
        statements = {
            of_feature(each, "v2Checkpoint")["opt_out"]["sql"] for each in document["tables"]
        }
        end = " SET TBLPROPERTIES ('delta.checkpointPolicy' = 'classic')"
        assert statements == {
            f"ALTER TABLE `main`.`sales`.{name}{end}"
            for name in ("`a.b`", "`Größe ``x```", "`select`")
        }
        assert of_feature(document["tables"][0], "catalogManaged")["opt_out"] is None


class TestClients:
    def test_a_declared_client_is_blocked(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        policy = lake.policy("clients: [athena@3, duckdb@1.4.0]\n")
        (table,) = lake.forecast("--policy", policy, code=1)["tables"]
        assert blocked(of_feature(table, "v2Checkpoint")) == ["athena@3 read refused"]
        assert lake.forecast("--policy", policy, "--fail-on", "never")["complete"]

    def test_upgrades_in_preview_are_warnings(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        words = ("--client", "deltalake/engine@1.6.6")
        (table,) = lake.forecast(*words)["tables"]
        assert blocked(of_feature(table, "v2Checkpoint")) == []
        assert blocked(of_feature(table, "rowTracking")) == [
            "deltalake/engine@1.6.6 append refused"
        ]
        lake.forecast(*words, "--fail-on", "warning", code=1)

    def test_findings_show_what_fails_and_what_delays_it(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        clients = ("--client", "trino@400", "--client", "databricks-runtime@12.2")
        ran = lake.cli("forecast", lake.inventory, *clients)
        text = " ".join(ran.out.split())
        # Documents contradict each other about clustering, which new tables get.
        assert ran.code == 3
        assert "with v2Checkpoint, trino@400 may return or write wrong rows (read): " in text
        assert "with v2Checkpoint, databricks-runtime@12.2 could not read: " in text
        assert "it delays the feature only while it comes back within 100 days" in text

    def test_a_feature_that_no_property_keeps_off(self, lake: Lake) -> None:
        lake.table("orders", kind=None)
        lake.scan(str(lake.folder / "lake"))
        # By path, only a catalog-managed table is out of reach for this client.
        text = lake.cli("forecast", lake.inventory, "--client", "delta-spark@4.4.0").out
        assert "hint: upgrade the client first: no property keeps the feature off" in text
        assert "No property keeps catalogManaged off." in text
        assert "These statements" not in text
        assert "see Statements" not in text

    def test_the_policy_approves_a_loss(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        policy = lake.policy(
            "clients: [athena@3]\napprovals:\n- {client: athena@3, access: [read], table: '**', "
            "feature: v2Checkpoint, approver: Ann, reason: retired, expires: 2099-01-01}\n"
        )
        (table,) = lake.forecast("--policy", policy)["tables"]
        upgrade = of_feature(table, "v2Checkpoint")
        assert upgrade["blocked"] == []
        (text,) = upgrade["approved"]
        assert text.startswith("athena@3 read (v2Checkpoint) is approved by Ann")

    def test_an_unknown_version_is_not_judged(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        (table,) = lake.forecast("--client", "trino@100000", code=3)["tables"]
        assert of_feature(table, "v2Checkpoint")["not_judged"] == [
            "trino@100000 (append)",
            "trino@100000 (read)",
        ]

    def test_all_known_clients_if_none_is_declared(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        document = lake.forecast()
        assert document["all_known_clients"]
        assert "athena@3 read refused" in blocked(of_feature(document["tables"][0], "v2Checkpoint"))
        new = {each["feature"]: each for each in document["new_tables"]}
        assert set(new) == {"v2Checkpoint", "clustering"}
        assert "athena@3 read refused" in blocked(new["v2Checkpoint"])

    def test_a_policy_that_requires_nothing(self, lake: Lake) -> None:
        lake.table("orders")
        lake.scan()
        ran = lake.cli("forecast", lake.inventory, "--policy", lake.policy(""))
        assert (ran.code, "declares no clients and no settings" in ran.err) == (3, True)

    def test_a_table_without_any_client_is_a_warning(self, lake: Lake) -> None:
        lake.table("orders")
        lake.table("other")
        lake.scan()
        policy = lake.policy("tables: {'*.*.orders': {clients: [duckdb@1.4.0]}}\n")
        ran = lake.cli("forecast", lake.inventory, "--policy", policy)
        assert "no client is declared or was seen: main.sales.other" in " ".join(ran.out.split())
        lake.forecast("--policy", policy, "--fail-on", "warning", code=1)


class TestClientsSeen:
    def test_accesses_delay_an_upgrade_and_rare_ones_do_not(self, lake: Lake) -> None:
        rare = [(days, {**SPARK, "userName": "close"}) for days in (361, 241, 121, 1)]
        lake.table("often", (120, RUNTIME), (40, SPARK), (2, RUNTIME))
        lake.table("rarely", *rare)
        lake.scan()
        assert lake.cli("discover", lake.inventory).code == 0
        found = by_table(lake.forecast(code=1))
        today = datetime.now(UTC).date()
        often = of_feature(found["often"], "v2Checkpoint")
        assert blocked(often) == ["delta-spark@2.4.0 append refused"]
        assert often["delayed_by"] == ["delta-spark@2.4.0"]
        until = date.fromisoformat(often["delayed_until"])
        assert abs((until - (today + timedelta(days=60))).days) <= 1
        assert often["missed_by_window"] == []
        # In preview the window is shorter.
        until = date.fromisoformat(of_feature(found["often"], "rowTracking")["delayed_until"])
        assert abs((until - (today + timedelta(days=10))).days) <= 1
        rarely = of_feature(found["rarely"], "v2Checkpoint")
        assert rarely["missed_by_window"] == ["delta-spark@2.4.0 (about every 120 days)"]
        label = rarely["blocked"][0]["label"]
        assert label.startswith("seen, not declared; last ")

    def test_an_unidentified_program_is_not_judged(self, lake: Lake) -> None:
        lake.table("orders", (3, {"engineInfo": "nobody-knows-me/1"}))
        lake.scan()
        assert lake.cli("discover", lake.inventory).code == 0
        (table,) = lake.forecast("--client", "duckdb@1.4.0", code=3)["tables"]
        assert of_feature(table, "v2Checkpoint")["not_judged"] == ["nobody-knows-me/1"]

    def test_an_idle_table_is_skipped(self, lake: Lake) -> None:
        lake.table("orders", (90, RUNTIME))
        lake.scan()
        (table,) = lake.forecast("--client", "duckdb@1.4.0")["tables"]
        assert table["idle_days"] in (90, 91)


class TestOutputs:
    @pytest.fixture
    def many(self, lake: Lake) -> Lake:
        for number in range(24):
            lake.table(f"t{number}", kind="EXTERNAL" if number % 3 == 0 else "MANAGED")
        lake.scan()
        return lake

    def test_many_tables_fit_on_a_screen(self, many: Lake) -> None:
        ran = many.cli("forecast", many.inventory, "--client", "athena@3", "--limit", "2")
        assert ran.code == 1
        assert "16 of 24 tables affected; as documented by Databricks" in ran.out
        assert "not known" not in ran.out.partition("\n\n")[0]
        assert len(ran.out.splitlines()) < 80
        wide = many.cli("forecast", many.inventory, "--client", "athena@3", "--format", "markdown")
        assert "| Tables | Affected | May get | Blocks | May block | Names |" in wide.out
        assert ran.out.count("ALTER TABLE") == 2
        assert "and 14 more: --limit 0 or --format json shows them" in ran.out
        every = many.cli("forecast", many.inventory, "--client", "athena@3", "--limit", "0")
        assert every.out.count("'delta.checkpointPolicy' = 'classic'") == 16
        for rule in RULES:
            assert f"read {rule.document.read_on}" in ran.out

    def test_every_format_names_the_blocked_client(self, many: Lake, tmp_path: Path) -> None:
        for format_ in ("text", "markdown", "html", "json", "jsonl"):
            ran = many.cli(
                *("forecast", many.inventory, "--client", "athena@3", "--format", format_)
            )
            assert ran.code == 1
            assert "athena@3" in ran.out
            assert "documented" in ran.out

    def test_from_python(self, many: Lake) -> None:
        result = deltaproto.Inventory(many.inventory).forecast(clients=["athena@3"])
        assert not result.ok
        with pytest.raises(deltaproto.ResultError, match="upgrades of 16 tables would block"):
            result.raise_for_status()
        rows = [row for row in result.rows() if row["feature"] == "v2Checkpoint"]
        assert len(rows) == 16
        assert rows[0]["blocked"] == ["athena@3 (read)"]
        assert json.loads(json.dumps(result.to_dict()))["tables"]
        assert deltaproto.Inventory(many.inventory).forecast(clients=["duckdb@1.4.0"]).ok


def use(client: Client, *days: int, at: date) -> SeenOnTable:
    """A client that used a table so many days before a day."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC).date()
    times = Times()
    for each in days:
        times.add((at - epoch - timedelta(days=each)).days * DAY)
    return SeenOnTable(client, SeenClient(Confidence.CERTAIN), SeenTable(), times, times.rhythm)


TODAY = date(2026, 11, 26)
ids = st.sampled_from([None, "trino", "databricks-runtime"])
versions = st.sampled_from([None, "12.2", "13.3", "14.1", "16.4", "19", "x"])
rules = st.sampled_from(EXISTING)


@given(st.lists(st.tuples(ids, versions, st.integers(0, 400)), max_size=5), rules)
def test_only_unverified_accesses_within_the_window_delay(
    uses: list[tuple[str | None, str | None, int]], rule: AutomaticUpgrade
) -> None:
    seen = [use(Client(id_, version), days, at=TODAY) for id_, version, days in uses]
    hold = find_hold(seen, rule, TODAY)
    delays = [
        TODAY - timedelta(days=days) + rule.window
        for id_, version, days in uses
        if days < rule.window.days and is_verified(id_, version, rule) is False
    ]
    assert (hold and hold.until) == max(delays, default=None)


@given(ids, versions, rules)
def test_only_a_runtime_that_knows_the_feature_is_verified(
    client: str | None, version: str | None, rule: AutomaticUpgrade
) -> None:
    found = is_verified(client, version, rule)
    if client != "databricks-runtime":
        assert found is False
    elif version in (None, "x"):
        assert found is None
    else:
        number = float(version)
        assert found is (number >= float(rule.runtime))


@given(st.sets(st.sampled_from(["appendOnly", "columnMapping", "v2Checkpoint", "rowTracking"])))
def test_a_feature_is_added_with_what_it_requires(features: set[str]) -> None:
    stored = Protocol.carrying(features)
    before = table_requirements(stored, dict.fromkeys(stored.supported, False), {})
    for rule in RULES:
        after = requirements_with(before, rule.feature)
        assert not has_feature(before, rule.feature)
        assert has_feature(after, rule.feature)
        wanted = feature_catalog.with_required_features({rule.feature})
        assert after.protocol.supported >= stored.supported | wanted
        assert requirements_with(after, rule.feature).protocol == after.protocol


@given(st.lists(st.none() | st.integers(-3, 400), max_size=4))
def test_a_table_is_idle_only_if_its_last_known_access_is_long_ago(days: list[int | None]) -> None:
    found = idle_days((None if d is None else TODAY - timedelta(days=d) for d in days), TODAY)
    known = [d for d in days if d is not None]
    assert found == (min(known) if known and min(known) > 30 else None)


def test_each_rule_is_sourced_and_names_a_known_feature() -> None:
    for rule in RULES:
        assert feature_catalog.find_feature(rule.feature) is not None
        assert parse_runtime(rule.runtime) is not None
        assert rule.document.url.startswith("https://")
        assert (rule.window.days == 0) is (rule.tables is TableAge.NEW)
        assert (rule.start is None) is (rule.stage is Stage.PREVIEW)
        if rule.start is not None:
            assert rule.start < rule.document.read_on
            assert rule.rolled_out is not None
            assert rule.start < rule.rolled_out
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_a_time_that_no_calendar_has(lake: Lake) -> None:
    far = use(Client("trino", "476"), 0, at=TODAY)
    far.times.last = 10**17
    assert find_hold([far], CHECKPOINTS, TODAY) is None
