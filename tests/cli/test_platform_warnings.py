"""The platform's checklist, continued: isolation, concurrency, statements, streams and warnings.

With `test_platform_checklist.py` and the last class here, each item that an audit found partly
done has a test of its name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.contract import plan
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
BASIC = ["appendOnly", "invariants"]
PLAIN = protocol(1, 2)
VECTORS = protocol(3, 7, ["deletionVectors"], [*BASIC, "deletionVectors"])
ON = {"delta.enableDeletionVectors": "true"}
IDENTITY = schema_string(
    column("id", delta__identity__start=1, delta__identity__step=1),
    column("s", {"type": "struct", "fields": [column("x")]}),
)
CLUSTERED = {
    "domainMetadata": {
        "domain": "delta.clustering",
        "configuration": '{"clusteringColumns":[["id"]],"domainName":"delta.clustering"}',
        "removed": False,
    }
}


def words(ran: Ran) -> str:
    return " ".join(ran.out.split())


def isolation(cli: Cli, log: Log, *actions: dict[str, Any]) -> dict[str, Any]:
    log.commit(0, commit_info(), *actions)
    found: dict[str, Any] = cli("inspect", log.table, "--format", "json").table["isolation"]
    return found


@pytest.mark.parametrize(
    ("level", "spark", "databricks"),
    [
        (None, "Serializable", "WriteSerializable"),
        ("WriteSerializable", "WriteSerializable", "WriteSerializable"),
        ("Serializable", "Serializable", "Serializable"),
        ("SnapshotIsolation", "SnapshotIsolation", None),
        ("serialisable", None, None),
    ],
)
def test_item_6_the_level_in_force(
    cli: Cli, log: Log, level: str | None, spark: str | None, databricks: str | None
) -> None:
    settings = {} if level is None else {"delta.isolationLevel": level}
    found = isolation(cli, log, PLAIN, metadata(settings))
    assert found["declared"] == level
    shown = found["effective"]
    assert (shown["delta-spark"], shown["databricks"]) == (spark, databricks)
    # A level that engines refuse is not in force in a matrix, either.
    said = words(cli("conflicts", log.table, "--engine", "delta-spark"))
    assert ("every commit fails" in said) == (spark is None)
    # Where every commit fails, nobody is said to be able to append.
    client = ("--client", "delta-spark@4.4.0", "--access", "append", "--format", "json")
    (verdict,) = cli("check", log.table, *client).json["verdicts"]
    assert (verdict["verdict"] == "ok") == (spark is not None)


@pytest.mark.parametrize(
    ("actions", "answer", "why"),
    [
        ((PLAIN, metadata()), "no", "requires deletion vectors"),
        ((VECTORS, metadata()), "no", "not enabled"),
        ((VECTORS, metadata(ON)), "yes", "since Databricks Runtime 14.2"),
        ((VECTORS, metadata(ON, None, ["id"])), "no", "partitioned tables"),
        (
            (
                protocol(
                    3,
                    7,
                    ["deletionVectors"],
                    [*BASIC, "clustering", "deletionVectors", "domainMetadata"],
                ),
                metadata(ON),
                CLUSTERED,
            ),
            "yes",
            "since Databricks Runtime 13.3 LTS",
        ),
        (
            (
                protocol(3, 7, ["deletionVectors"], ["deletionVectors", "identityColumns"]),
                metadata(ON, IDENTITY),
            ),
            "no",
            "identity columns support no concurrent transactions",
        ),
    ],
    ids=["plain", "off", "on", "partitioned", "clustered", "identity"],
)
def test_item_7_row_level_concurrency_and_why(
    cli: Cli, log: Log, actions: tuple[dict[str, Any], ...], answer: str, why: str
) -> None:
    rows = isolation(cli, log, *actions)["row_level_concurrency"]
    assert rows["databricks"] == answer
    assert why in rows["reason"]


def test_item_8_and_60_identity_columns_rule_out_concurrent_transactions(
    cli: Cli, log: Log
) -> None:
    log.commit(0, commit_info(), protocol(1, 6), metadata({}, IDENTITY))
    assert "support no concurrent transactions" in words(cli("inspect", log.table))
    found = plan(cli("plan-upgrade", log.table, "--enable", "deletionVectors", "--format", "json"))[
        "concurrency"
    ]
    for side in ("before", "after"):
        assert found[side]["row_level_concurrency"]["databricks"] == "no"
    assert found["cells"] == []


@pytest.mark.parametrize(
    ("name", "before", "since"),
    [
        ("clustering", "13.2", "13.3"),
        ("collations", "16.0", "16.1"),
        ("rowTracking", "14.2", "14.3"),
    ],
)
def test_item_17_a_runtime_before_the_minimum_and_the_feature(
    cli: Cli, log: Log, name: str, before: str, since: str
) -> None:
    stored = protocol(1, 7, None, [*BASIC, "domainMetadata", name])
    log.commit(0, commit_info(), stored, metadata(), *([CLUSTERED] if name == "clustering" else ()))
    old, new = (
        cli("check", log.table, "--client", f"databricks-runtime@{version}", "--format", "json")
        for version in (before, since)
    )
    (append,) = [each for each in old.json["verdicts"] if each["access"] == "append"]
    assert append["verdict"] == "refused"
    assert name in append["because"]
    assert {each["verdict"] for each in new.json["verdicts"]} == {"ok"}
    assert (old.code, new.code) == (1, 0)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("id = 3", "on"),
        ("id IN (1, 2) AND id < 9", "on"),
        ("s.x = 3", "off"),
        ("t.s.x BETWEEN 1 AND 3", "off"),
        ("`s`.`x` IS NULL", "off"),
        ("S.X = 3", "off"),
        ("s = named_struct('x', 1)", "off"),
        ("id > rand()", "off"),
        ("id IN (SELECT id FROM other)", "off"),
    ],
)
def test_item_24_conditions_that_rule_rows_out(
    cli: Cli, log: Log, condition: str, rows: str
) -> None:
    schema = schema_string(column("id"), column("s", {"type": "struct", "fields": [column("x")]}))
    log.commit(0, commit_info(), VECTORS, metadata(ON, schema))
    for statement in (f"DELETE FROM t WHERE {condition}", f"UPDATE t SET id = 1 WHERE {condition}"):
        found = cli("conflicts", log.table, "--engine", "databricks", "--sql", statement)
        assert ("row-level on:" in words(found).replace("row-level  ", "row-level ")) == (
            rows == "on"
        ), statement


@pytest.mark.parametrize(
    ("clusters", "severity"), [("aaaa", None), ("aabb", "info"), ("abab", "warning")]
)
def test_item_27_one_checkpoint_location_on_two_clusters(
    cli: Cli, log: Log, clusters: str, severity: str | None
) -> None:
    log.commit(0, commit_info(), PLAIN, metadata())
    for batch, cluster in enumerate(clusters):
        query = {"outputMode": "Append", "queryId": "q", "epochId": str(batch)}
        info = commit_info("STREAMING UPDATE", operationParameters=query, clusterId=cluster)
        txn = {"txn": {"appId": "q", "version": batch, "lastUpdated": 1}}
        log.commit(batch + 1, info, txn, add(f"{batch}.parquet"))
    found = cli("inspect", log.table, "--activity", "--format", "json").table["findings"]
    told = [each["severity"] for each in found if each["rule"] == "DP122"]
    assert told == ([] if severity is None else [severity])


def test_item_42_enabling_deletion_vectors_gains_row_level_concurrency(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(), PLAIN, metadata())
    enable = ("plan-upgrade", log.table, "--enable", "deletionVectors")
    found = plan(cli(*enable, "--format", "json"))["concurrency"]
    sides = [found[each]["row_level_concurrency"]["databricks"] for each in ("before", "after")]
    assert sides == ["no", "yes"]
    pairs = {(c["operation"], c["against"]): c for c in found["cells"]}
    assert pairs["UPDATE", "OPTIMIZE"]["after"]["conflict"] == "no"
    for format in ("text", "markdown", "html"):
        shown = words(cli(*enable, "--format", format)).replace("\\", "").replace("&gt;", ">")
        assert "no -> yes on Databricks" in shown, format


@pytest.mark.parametrize(
    ("stored", "settings", "warned"),
    [
        (protocol(2, 5), ("delta.minReaderVersion=1", "delta.minWriterVersion=2"), True),
        (protocol(1, 4), ("delta.minWriterVersion=2",), True),
        (VECTORS, ("delta.minReaderVersion=1",), True),
        (protocol(1, 2), ("delta.minWriterVersion=4",), False),
    ],
)
def test_item_48_lower_versions_lower_nothing(
    cli: Cli, log: Log, stored: dict[str, Any], settings: tuple[str, ...], warned: bool
) -> None:
    log.commit(0, commit_info(), stored, metadata())
    ran = cli("plan-upgrade", log.table, "--set", *settings)
    assert ("does not lower a protocol: use plan-downgrade" in words(ran)) == warned
    assert "raise the protocol" not in words(ran) or not warned


@pytest.mark.parametrize("stored", [PLAIN, protocol(2, 5), VECTORS], ids=["1,2", "2,5", "3,7"])
def test_item_50_a_reader_feature_cuts_readers_off(
    cli: Cli, log: Log, stored: dict[str, Any]
) -> None:
    log.commit(0, commit_info(), stored, metadata())
    more = words(cli("plan-upgrade", log.table, "--enable", "variantType"))
    assert "Adds reader features" in more
    writers = words(cli("plan-upgrade", log.table, "--enable", "inCommitTimestamp"))
    assert "Adds reader features" not in writers


class TestPeers:
    """Capabilities of the best peers, by their number in the comparison."""

    def test_capability_10_who_changed_the_protocol(self, cli: Cli, log: Log) -> None:
        mark = {
            "deltaproto": {"plan": "feedfacefeedface", "step": "s2", "run": "r7", "actor": "bo"}
        }
        log.commit(0, commit_info("CREATE TABLE"), PLAIN, metadata())
        info = commit_info("SET TBLPROPERTIES", userMetadata=json.dumps(mark))
        log.commit(1, info, VECTORS, metadata(ON))
        log.commit(
            2, commit_info("SET TBLPROPERTIES"), metadata({**ON, "delta.appendOnly": "true"})
        )
        events = cli("history", log.table, "--format", "json").json["events"]
        ours = [each for each in events if "feedface" in json.dumps(each)]
        assert [each["version"] for each in ours] == [1]
        assert "plan feedfacefeedface, step s2, run r7" in words(cli("history", log.table))

    def test_capability_24_findings_that_were_there_before(
        self, cli: Cli, log: Log, tmp_path: Path
    ) -> None:
        log.commit(0, commit_info(), VECTORS, metadata(ON))
        command = ("check", log.table, "--client", "trino@400", "--access", "read")
        saved = tmp_path / "known.json"
        assert cli(*command, "--format", "json", "--output", str(saved)).code == 1
        assert cli(*command, "--baseline", str(saved)).code == 0
        stored = protocol(3, 7, ["deletionVectors", "variantType"], [*BASIC, "deletionVectors"])
        stored["protocol"]["writerFeatures"].append("variantType")
        schema = schema_string(column("id"), column("v", "variant"))
        log.commit(1, commit_info(), stored, metadata(ON, schema))
        again = cli(*command, "--baseline", str(saved), "--format", "json")
        assert again.code == 1
        assert [each for each in again.json["findings"] if not each.get("known")]

    def test_capability_27_the_lowest_possible_protocol(self, cli: Cli, log: Log) -> None:
        names = ["columnMapping", "deletionVectors", "v2Checkpoint"]
        log.commit(0, commit_info(), protocol(3, 7, names, [*BASIC, *names]), metadata())
        lowest = ("plan-downgrade", log.table, "--lowest", "--history", "truncate")
        found = plan(cli(*lowest, "--format", "json"))
        after = found["protocol_after"]
        assert (after["minReaderVersion"], after["minWriterVersion"]) == (1, 2)
        assert [each for each in found["clients"] if each["before"] == "ok" != each["after"]] == []

    def test_capability_51_gitlab(self, cli: Cli, log: Log) -> None:
        log.commit(0, commit_info(), VECTORS, metadata(ON))
        command = ("check", log.table, "--client", "trino@400", "--format", "gitlab")
        first, second = cli(*command), cli(*command)
        assert first.code == 1
        prints = [[each["fingerprint"] for each in ran.json] for ran in (first, second)]
        assert prints[0] == prints[1]
        assert len(prints[0]) == len({*prints[0]}) > 0
        assert {each["severity"] for each in first.json} <= {
            *("info", "minor", "major", "critical", "blocker")
        }
