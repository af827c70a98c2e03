"""Plans for tables whose metadata stores protocol properties, executed by real Spark.

deltalake stores such properties, and whatever Delta Spark changes first applies them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.conftest import Ran
from tests.planning.random_requests import STORE, store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.rotating]
Cli = Callable[..., Ran]
POLICIES = {
    "limited": """
policy_version: 1
tables:
  "*": {require_properties: {delta.appendOnly: "true"}, max_writer_version: 4}
""",
    "by-name": """
policy_version: 1
clients: [{client: delta-spark@4.0.1, access: [read, append, dml]}]
tables:
  "*": {require_features: [appendOnly], require_properties: {delta.enableChangeDataFeed: "true"}}
""",
}


def make(path: Path, stored: dict[str, str]) -> str:
    """A table of deltalake with three rows and the feature domainMetadata."""
    deltalake.write_deltalake(str(path), pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    deltalake.DeltaTable(str(path)).alter.add_feature(
        [deltalake.TableFeatures.DomainMetadata], allow_protocol_versions_increase=True
    )
    store(str(path), STORE + json.dumps(stored))
    return str(path)


def plan(cli: Cli, command: str, table: str, *words: str) -> tuple[str, dict[str, Any]]:
    """The plan file beside the table, and its content."""
    file = Path(table).parent / "plan.json"
    ran = cli(command, table, *words, "--format", "json", "--output", str(file))
    assert ran.code == 0, ran
    return str(file), json.loads(file.read_text())


@pytest.mark.parametrize(
    ("stored", "command", "words"),
    [
        ({"delta.feature.inCommitTimestamp": "supported"}, "plan-downgrade", ("--to", "1,2")),
        ({"delta.feature.rowTracking": "enabled"}, "plan", ("--policy", "limited")),
        ({"delta.minWriterVersion": "4"}, "plan-upgrade", ("--enable", "rowTracking")),
        (
            {"delta.minReaderVersion": "3", "delta.minWriterVersion": "5"},
            "plan-downgrade",
            ("--drop", "domainMetadata"),
        ),
        (
            {"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"},
            "plan",
            ("--policy", "by-name"),
        ),
    ],
)
def test_a_plan_is_applied_as_predicted(
    stored: dict[str, str],
    command: str,
    words: tuple[str, str],
    cli: Cli,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    table = make(tmp_path / "t", stored)
    if words[1] in POLICIES:
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICIES[words[1]])
        words = (words[0], str(policy))
    file, planned = plan(cli, command, table, *words)
    assert planned["steps"]
    for _ in range(2):
        ran = cli("apply", file, "--yes", "--allow-irreversible", "--format", "json")
        (result,) = ran.json["results"]
        assert (ran.code, result["status"]) == (0, "done"), ran
        assert result["protocol"] == planned["protocol_after"]
    assert spark.read.format("delta").load(table).count() == 3
    assert not plan(cli, command, table, *words)[1]["steps"]


@pytest.mark.parametrize(("version", "status"), [("1", "done"), ("4", "refused")])
def test_a_clone_does_not_stand_in_for_a_table_whose_properties_a_step_applies(
    version: str, status: str, cli: Cli, tmp_path: Path
) -> None:
    table = make(tmp_path / "t", {"delta.minWriterVersion": version})
    file, _ = plan(cli, "plan-upgrade", table, "--set", "delta.logRetentionDuration=40 days")
    ran = cli("rehearse", file, "--format", "json")
    (result,) = ran.json["results"]
    assert result["status"] == status, result
    if status == "refused":
        assert "delta.minWriterVersion" in result["message"]
        assert "cannot stand in for the table" in result["message"]
        assert "UNSET TBLPROPERTIES ('delta.minWriterVersion')" in result["hint"]
