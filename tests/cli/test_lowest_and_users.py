"""Issue 27 item by item, as a user meets it: the lowest protocol, and who can use a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.contract import plan
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
BASIC = ["appendOnly", "invariants"]
VECTORS = protocol(3, 7, ["deletionVectors"], [*BASIC, "deletionVectors"])
ON = {"delta.enableDeletionVectors": "true"}
STRUCT = {"type": "struct", "fields": [column("x")]}


def words(ran: Ran) -> str:
    return " ".join(ran.out.split())


def lost(found: dict[str, object]) -> list[object]:
    clients = found["clients"]
    assert isinstance(clients, list)
    return [c for c in clients if c["before"] == "ok" and c["after"] != "ok"]


@pytest.mark.parametrize(("pair", "lowest"), [((2, 5), (1, 4)), ((2, 6), (1, 6))])
def test_item_1_the_lowest_versions_take_no_access(
    cli: Cli, log: Log, pair: tuple[int, int], lowest: tuple[int, int]
) -> None:
    log.commit(0, commit_info(), protocol(*pair), metadata()).commit(1, add())
    found = plan(cli("plan-downgrade", log.table, "--lowest", "--format", "json"))
    after = found["protocol_after"]
    assert (after["minReaderVersion"], after["minWriterVersion"]) == lowest
    assert lost(found) == []
    (kept,) = [each for each in found["kept"] if each["feature"] == "checkConstraints"]
    assert "(1,7)" in kept["reason"]
    assert "trino@483 append" in kept["reason"]


def test_item_1_a_client_that_would_do_wrong_is_a_warning(cli: Cli, log: Log) -> None:
    """Reader version 2 kept kafka-delta-ingest out, which writes (1,4) and checks no constraint."""
    checks = {"delta.constraints.positive": "id > 0"}
    log.commit(0, commit_info(), protocol(2, 5), metadata(checks)).commit(1, add())
    found = plan(cli("plan-downgrade", log.table, "--lowest", "--format", "json"))
    newly = {c["client"] for c in found["clients"] if c["after"] == "wrong" != c["before"]}
    assert newly == {"kafka-delta-ingest"}
    (warning,) = [text for text in found["warnings"] if "wrong rows" in text]
    assert "kafka-delta-ingest (append)" in warning
    assert "checkConstraints" in warning
    log.commit(2, commit_info(), metadata()).commit(3, add("b.parquet"))
    found = plan(cli("plan-downgrade", log.table, "--lowest", "--format", "json"))
    assert "wrong rows" not in " ".join(found["warnings"])


def test_item_1_a_feature_without_a_switch_is_not_in_use(cli: Cli, log: Log) -> None:
    features = ["vacuumProtocolCheck"]
    log.commit(0, commit_info(), protocol(3, 7, features, [*BASIC, *features]), metadata())
    log.commit(1, add())
    found = plan(cli("plan-downgrade", log.table, "--lowest", "--format", "json"))
    (kept,) = [each for each in found["kept"] if each["feature"] == "vacuumProtocolCheck"]
    assert kept["reason"] == "it is unknown whether anything uses it"
    assert "--drop vacuumProtocolCheck" in kept["remedy"]


def test_item_2_only_what_stays_blocks_a_client(cli: Cli, log: Log) -> None:
    """One path needs a drop that is possible, the other one that is not."""
    readers = ["columnMapping", "timestampNtz", "vacuumProtocolCheck"]
    stored = protocol(3, 7, readers, [*BASIC, *readers, "icebergCompatV2"])
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "id"}
    mapped = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    settings = metadata(mapped, schema_string(column("id", **ids)))
    log.commit(0, commit_info(), stored, settings).commit(1, add())
    for goal in ((), ("--lowest",)):
        client = ("--for-client", "deltalake@1.6.6", "--access", "read")
        found = plan(cli("plan-downgrade", log.table, *goal, *client, "--format", "json"))
        assert [each["feature"] for each in found["blocked"]] == ["columnMapping"]
    engine = ("--for-client", "deltalake/engine@1.6.6", "--access", "read")
    found = plan(cli("plan-downgrade", log.table, *engine, "--format", "json"))
    assert found["features_removed"] == ["vacuumProtocolCheck"]


def test_item_2_the_lowest_protocol_for_a_client_and_for_a_policy(
    cli: Cli, log: Log, tmp_path: Path
) -> None:
    names = ["columnMapping", "deletionVectors", "timestampNtz"]
    settings = {**ON, "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    ids = {"delta__columnMapping__id": 1, "delta__columnMapping__physicalName": "id"}
    others = {"delta__columnMapping__id": 2, "delta__columnMapping__physicalName": "at"}
    schema = schema_string(column("id", **ids), column("at", "timestamp_ntz", **others))
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    log.commit(
        0, commit_info(), protocol(3, 7, names, [*BASIC, *names]), metadata(settings, schema)
    ).commit(1, add("a.parquet", deletionVector=vector))
    # Deletion vectors are in use: alone, --lowest keeps them.
    alone = plan(cli("plan-downgrade", log.table, "--lowest", "--format", "json"))
    assert alone["features_removed"] == []
    client = "trino@483"
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"policy_version: 1\nclients: [{{client: {client}, access: [append]}}]\n")
    before = cli("check", log.table, "--policy", str(policy), "--format", "json").json
    assert [each["verdict"] for each in before["verdicts"]] != ["ok"]
    plans = [
        plan(cli("plan-downgrade", log.table, "--lowest", *goal, "--format", "json"))
        for goal in (("--for-client", client, "--access", "append"), ("--policy", str(policy)))
    ]
    for found in plans:
        assert found["goal"]["kind"] == "lowest"
        assert found["features_removed"] == ["deletionVectors"]
        assert {"columnMapping", "timestampNtz"} <= {*found["protocol_after"]["readerFeatures"]}
        (gained,) = [c for c in found["clients"] if c["client"].startswith("trino")]
        assert (gained["access"], gained["after"]) == ("append", "ok")
    # The end of a wait and of the history count from the second in which the plan is made.
    times = {"not_before": None, "history_lost_before": None}
    steps = [[{**step, **times} for step in found["steps"]] for found in plans]
    assert steps[0] == steps[1]


def test_item_4_a_blocked_plan_changes_nothing_for_clients(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), VECTORS, metadata(ON)).commit(1, add())
    for goal in (("--drop", "invariants"), ("--lowest",)):
        found = plan(cli("plan-downgrade", log.table, *goal, "--format", "json"))
        assert found["steps"] == found["clients"] == []


def test_item_5_lower_versions_and_one_more_reader_feature(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), VECTORS, metadata(ON)).commit(1, add())
    lower = words(cli("plan-upgrade", log.table, "--set", "delta.minReaderVersion=1"))
    assert "Nothing to do" in lower
    assert "does not lower a protocol: use plan-downgrade" in lower
    more = words(cli("plan-upgrade", log.table, "--enable", "variantType"))
    assert "Adds reader features" in more


def test_item_6_who_can_use_this_table(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), VECTORS, metadata(ON)).commit(1, add())
    ran = cli("check", log.table)
    assert ran.code == 0
    (trino,) = [line for line in ran.out.splitlines() if line.split()[:1] == ["trino"]]
    assert trino.split()[1] == "483"
    assert "databricks-runtime" in ran.out
    ranges = cli("check", log.table, "--client", "databricks-runtime")
    assert ranges.code == 0
    assert ">= 12.2" in ranges.out
    assert cli("check", log.table, "--client", "all").code == 0


def test_item_6_each_client_takes_one_line_of_80_columns(
    cli: Cli, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    log.commit(0, commit_info(), VECTORS, metadata(ON)).commit(1, add())
    table = cli("check", log.table).out.partition("\n\n")[0].splitlines()[2:]
    alone = [line for line in table if not line.startswith("     ")]
    assert all(len(line) <= 80 for line in table)
    assert len(alone) > 40
    # Only a cell with several deciding features continues on the next line.
    assert len(table) - len(alone) <= len(alone) / 3
    for name in ("delta-spark", "starrocks", "snowflake-delta-direct"):
        (line,) = [line for line in table if line.split()[0] == name]
        assert line.split()[1:3] == ["ok", ">="]


def test_item_6_a_client_that_opens_no_table_of_others(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, add())
    ran = cli("check", log.table, "--client", "fabric-warehouse", "--access", "read")
    assert "it does not open tables of other engines" in words(ran)


def test_item_10_history_names_the_plan_of_a_commit(cli: Cli, log: Log) -> None:
    mark = '{"deltaproto":{"plan":"0123456789abcdef","step":"s1","run":"r1","actor":"ann"}}'
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    log.commit(1, commit_info("SET TBLPROPERTIES", userMetadata=mark), VECTORS, metadata(ON))
    text = words(cli("history", log.table))
    assert "plan 0123456789abcdef, step s1, run r1" in text
    assert "by ann" in text


def test_item_11_gates_fail_together_before_spark(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, add())
    file, policy = tmp_path / "plan.json", tmp_path / "policy.yaml"
    goal = ("--enable", "deletionVectors", "--format", "json", "--output", str(file))
    cli("plan-upgrade", log.table, *goal)
    policy.write_text("policy_version: 1\ntables: {'**': {maintenance_windows: []}}\n")
    log.commit(2, commit_info(), metadata({"delta.appendOnly": "true"}))
    ran = cli("apply", str(file), "--yes", "--policy", str(policy), "--format", "json")
    assert ran.code == 4
    failed = {g["name"] for r in ran.json["results"] for g in r["gates"] if not g["passed"]}
    assert len(failed) >= 2


def test_item_12_a_struct_field_rules_rows_out(cli: Cli, log: Log) -> None:
    schema = schema_string(column("id"), column("s", STRUCT))
    log.commit(0, commit_info(), VECTORS, metadata(ON, schema)).commit(1, add())
    engine = ("--engine", "databricks", "--format", "json", "--sql")
    for condition in ("lower(s.x) = 'a'", "t.s.x BETWEEN 1 AND 3"):
        found = cli("conflicts", log.table, *engine, f"DELETE FROM t WHERE {condition}").json
        assert found["row_level_concurrency"] == "off"
    plain = cli("conflicts", log.table, *engine, "DELETE FROM t WHERE id = 3").json
    assert plain["row_level_concurrency"] == "on"


@pytest.mark.parametrize(("runtime", "verdict"), [("16.0", "unknown"), ("16.1", "ok")])
def test_item_13_no_yes_against_the_page(cli: Cli, log: Log, runtime: str, verdict: str) -> None:
    stored = protocol(1, 7, None, [*BASIC, "collations", "domainMetadata"])
    log.commit(0, commit_info(), stored, metadata()).commit(1, add())
    client = ("--client", f"databricks-runtime@{runtime}", "--access", "read")
    (found,) = cli("check", log.table, *client, "--format", "json").json["verdicts"]
    assert found["verdict"] == verdict


def test_item_14_a_stream_seen_from_two_clusters(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    for batch in range(6):
        query = {"outputMode": "Append", "queryId": "q", "epochId": str(batch)}
        info = commit_info(
            "STREAMING UPDATE", operationParameters=query, clusterId=f"c-{batch % 2}"
        )
        txn = {"txn": {"appId": "q", "version": batch, "lastUpdated": 1}}
        log.commit(batch + 1, info, txn, add(f"{batch}.parquet"))
    found = cli("inspect", log.table, "--activity", "--format", "json").table["findings"]
    assert "DP122" in {each["rule"] for each in found}


def test_item_16_gitlab_code_quality(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), protocol(2, 5), metadata()).commit(1, add())
    ran = cli("check", log.table, "--client", "trino@400", "--format", "gitlab")
    assert ran.code == 1
    assert {"description", "check_name", "fingerprint", "severity", "location"} <= {*ran.json[0]}
