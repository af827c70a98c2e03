"""Plans for the tables of an inventory: those of the same tables, saved by `inspect`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deltaproto.cli.main import main
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet, without_contradictions
from tests.fleet.moves import sound_fleet
from tests.support.contract import validate
from tests.support.logs import Log, column, commit_info, metadata, protocol, schema_string

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]


class Fleet(NamedTuple):
    """A fleet that was scanned and inspected; the tests only read it."""

    tables: list[Path]
    inventory: str
    saved: str


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    folder = tmp_path_factory.mktemp("planned")
    tables = without_contradictions(make_fleet(folder / "lake", seed=61, count=150))
    made = Fleet(tables, str(folder / "i"), str(folder / "saved.json"))
    for words in (
        (
            "scan",
            str(folder / "lake"),
            "--inventory",
            made.inventory,
            "--output",
            str(folder / "scan"),
        ),
        ("inspect", *map(str, tables), "--format", "json", "--output", made.saved),
    ):
        assert main(list(words)) == 3
    return made


def bare(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan without what tells when it was made, and of what."""
    kept = {k: v for k, v in plan.items() if k not in ("plan_id", "seal", "warnings")}
    # Times count from the moment of planning.
    for step in kept.get("steps", ()):
        step.pop("not_before", None)
        step.pop("history_lost_before", None)
    for other in kept.get("alternatives", ()):
        bare(other)
    return kept


@pytest.mark.parametrize(
    "goal",
    [
        ("plan-downgrade", "--lowest"),
        ("plan-downgrade", "--protocol", "2,5"),
        ("plan-downgrade", "--lowest", "--include-enabled"),
        ("plan-upgrade", "--enable", "deletionVectors"),
    ],
)
def test_the_plans_are_those_of_a_saved_inspection(
    cli: Cli, fleet: Fleet, goal: tuple[str, ...]
) -> None:
    command, *words = goal
    theirs = cli(command, fleet.saved, *words, "--format", "json")
    ours = cli(command, "--from", fleet.inventory, *words, "--format", "json")
    validate(command, ours.json)
    by_table = {plan["table"]: plan for plan in theirs.json["plans"]}
    assert len(ours.json["plans"]) == len(by_table) == len(fleet.tables)
    planned = 0
    for plan in ours.json["plans"]:
        if "error" in plan:
            assert "error" in by_table[plan["table"]]
            continue
        planned += bool(plan["steps"])
        assert bare(plan) == bare(by_table[plan["table"]])
    assert planned > 5
    assert ours.code == theirs.code == 3
    assert ours.json["summary"] == theirs.json["summary"]


def test_the_summary_adds_up(cli: Cli, tmp_path: Path) -> None:
    sound_fleet(tmp_path / "lake", 63, 60)
    make_fleet(tmp_path / "lake" / "odd", seed=64, count=60)
    cli("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    clients = ("--client", "delta-spark@2.4", "--client", "trino@400", "--client", "polars@2.1.0")
    words = (str(tmp_path / "i"), "--lowest", "--include-enabled", *clients, "--format", "json")
    document = cli("plan-downgrade", *words).json
    plans = [plan for plan in document["plans"] if "error" not in plan]
    summary = document["summary"]
    assert summary["tables"] == len(document["plans"])
    assert summary["unreadable"] == len(document["plans"]) - len(plans) > 5
    assert summary["with_steps"] == sum(bool(plan["steps"]) for plan in plans) > 5
    assert summary["commits"] == sum(plan["cost"]["commits"] for plan in plans)
    assert summary["waits"] == sum(plan["cost"]["waits"] > 0 for plan in plans)
    gained: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str | None, str]] = Counter()
    for plan in plans:
        for change in plan["clients"]:
            if change["before"] != "ok" and change["after"] == "ok":
                gained[change["client"], change["access"]] += 1
        reasons.update({(each["feature"], each["reason"]) for each in plan["blocked"]})
    told = {(e["client"], e["access"]): e["tables"] for e in summary["clients_gained"]}
    assert told == gained
    assert gained
    told_reasons = {(e["feature"], e["reason"]): e["tables"] for e in summary["blocked_because"]}
    assert told_reasons == reasons
    shown = cli("plan-downgrade", *words[:-2]).out
    assert f"{summary['tables']:,} tables: {summary['with_steps']:,} with steps" in shown
    assert "+ delta-spark@2.4" in shown


def test_some_of_the_tables(cli: Cli, fleet: Fleet) -> None:
    words = ("plan-downgrade", "--from", fleet.inventory, "--lowest", "--format", "json")
    everything = [plan for plan in cli(*words).json["plans"] if "error" not in plan]
    some = cli(*words, "--where", "min_reader_version = 3 and \"table\" like '%area 1%'").json
    wanted = [
        plan["table"]
        for plan in everything
        if plan["protocol_before"]["minReaderVersion"] == 3 and "area 1" in plan["table"]
    ]
    assert [plan["table"] for plan in some["plans"] if "error" not in plan] == wanted
    assert len(wanted) > 5
    nothing = cli(*words, "--where", "version < 0", "--allow-empty")
    assert (nothing.code, nothing.json["plans"]) == (0, [])
    nothing = cli(*words, "--where", "version < 0")
    assert [each["error"]["code"] for each in nothing.json["plans"]] == ["no-tables"]
    assert nothing.code == 3
    for where in ("no_such_column = 1", "select", "version < 0) or (true"):
        refused = cli(*words, "--where", where)
        assert refused.code == 2, where
        assert "Traceback" not in refused.err


def test_fresh_plans_can_be_applied(cli: Cli, tmp_path: Path) -> None:
    tables = sound_fleet(tmp_path / "lake", 62, 6)
    inventory = str(tmp_path / "i")
    cli("scan", str(tmp_path / "lake"), "--inventory", inventory)
    words = ("--enable", "deletionVectors", "--format", "json")
    fresh = cli("plan-upgrade", "--from", inventory, "--fresh", *words).json["plans"]
    for plan, table in zip(fresh, sorted(tables), strict=True):
        own = cli("plan-upgrade", str(table), *words).json
        assert plan["fingerprint"] == own["fingerprint"]
        assert plan["fingerprint"]["metadata"] is not None
        assert plan["warnings"] == own["warnings"]


def test_mistakes_are_told(cli: Cli, fleet: Fleet, tmp_path: Path) -> None:
    for words in (
        ("--lowest",),
        (str(fleet.tables[0]), "--lowest", "--where", "true"),
        ("--from", str(tmp_path / "none"), "--lowest"),
        ("--from", fleet.inventory, "--lowest", "--scan", "none"),
    ):
        assert cli("plan-downgrade", *words).code == 2, words


def test_equal_tables_have_hints_with_their_own_names(cli: Cli, tmp_path: Path) -> None:
    lake = tmp_path / "a lake" / "tables"
    names = ("orders", "orders2", "with space", "it's", "deep/er/orders")
    protocols = (
        protocol(3, 7, ["deletionVectors"], ["deletionVectors"]),
        protocol(2, 7, None, ["columnMapping"]),
    )
    for folder in (lake, tmp_path / "lake"):
        for number, stored in enumerate(protocols):
            for name in names:
                Log(folder / str(number) / name).commit(0, commit_info(), stored, metadata())
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "policy_version: 1\nclients: [trino@400, 'databricks-runtime@12.2 LTS', athena@2]\n"
        "tables:\n  '**': {require_features: [deletionVectors, columnMapping]}\n"
    )
    inventory = str(tmp_path / "i")
    cli("scan", str(tmp_path), "--inventory", inventory)
    words = ("--policy", str(policy), "--format", "json")
    plans = {plan["table"]: plan for plan in cli("plan", inventory, *words).json["plans"]}
    assert len(plans) == 20
    named = 0
    for table, plan in plans.items():
        only = "\"table\" = '{}'".format(table.replace("'", "''"))
        (alone,) = cli("plan", inventory, "--where", only, *words).json["plans"]
        assert bare(plan) == bare(alone), table
        hints = [each["remedy"] for each in (*plan["unmet"], *plan["blocked"])]
        named += any(f"plan-downgrade {shlex.quote(table)} " in hint for hint in hints)
    assert named > 5


COLLATED = column("g", "string") | {"metadata": {"__COLLATIONS": {"g": "spark.UTF8_LCASE"}}}


@pytest.mark.parametrize(
    ("name", "stored", "cause", "engine"),
    [
        ("geospatial", column("g", "geometry(OGC:CRS84)"), "geospatial types", "delta-spark"),
        ("collations", COLLATED, "collations", "databricks"),
        ("collations-preview", COLLATED, "collations", "databricks"),
    ],
)
def test_columns_block_the_drop_of_their_feature_without_a_schema(
    name: str, stored: dict[str, Any], cause: str, engine: str, log: Log, cli: Cli, tmp_path: Path
) -> None:
    readers = ["geospatial"] if name == "geospatial" else []
    features = protocol(3, 7, readers, [name, "domainMetadata"])
    log.commit(0, commit_info(), features, metadata(schema=schema_string(stored)))
    saved, inventory = tmp_path / "saved.json", tmp_path / "inventory"
    cli("inspect", log.table, "--format", "json", "--output", str(saved))
    cli("scan", log.table, "--inventory", str(inventory))
    goal = ("--drop", name, "--engine", engine, "--format", "json")
    for source in ([log.table], [str(saved)], ["--from", str(inventory)]):
        ran = cli("plan-downgrade", *source, *goal)
        plan = ran.json if "blocked" in ran.json else ran.json["plans"][0]
        assert (ran.code, plan["changes"]) == (1, False)
        assert plan["blocked"][0]["reason"].endswith(f" have {cause}")
    assert cli("plan-downgrade", log.table, *goal, "--rewrite").code == 1


def test_databricks_changes_tables_with_collations(log: Log, cli: Cli) -> None:
    features = protocol(1, 7, None, ["collations", "domainMetadata"])
    log.commit(0, commit_info(), features, metadata(schema=schema_string(COLLATED)))
    goal = ("plan-upgrade", log.table, "--set", "delta.logRetentionDuration=interval 9 days")
    plan = cli(*goal, "--engine", "databricks", "--format", "json").json
    assert (len(plan["steps"]), plan["blocked"]) == (1, [])
    assert "does not support it" in cli(*goal).out
