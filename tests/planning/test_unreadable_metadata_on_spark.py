"""Tables whose metadata Delta Spark cannot read: it refuses every statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import execute, planned
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta
from tests.support.logs import Log, column, metadata, protocol, schema_string

STATEMENTS = (
    "alter table {t} set tblproperties ('delta.logRetentionDuration' = 'interval 60 days')",
    "insert into {t} values (1, 2)",
)
ID = column("id")


def typed(type_: Any) -> dict[str, Any]:
    return metadata(schema=schema_string(ID, column("v", type_)))


def members(**changed: Any) -> dict[str, Any]:
    """Members of the action; None: it lacks the member."""
    stored = {**metadata(schema=schema_string(ID, column("v")))["metaData"], **changed}
    return {"metaData": {key: value for key, value in stored.items() if value is not None}}


UNREADABLE: dict[str, dict[str, Any]] = {
    "unknown type": typed("uint32"),
    "unknown type in an array": typed(
        {"type": "array", "elementType": "uint32", "containsNull": True}
    ),
    "type in capitals": typed("INTEGER"),
    "decimal out of range": typed("decimal(50,2)"),
    "decimal with a negative scale": typed("decimal(10,-2)"),
    "time out of range": typed("time(9)"),
    "length below 0": typed("varchar(-1)"),
    "geography without a feature": typed("geography(OGC:CRS84, SPHERICAL)"),
    "member that no specification has": members(
        schemaString=schema_string(ID, {**column("v"), "comment": "x"})
    ),
    "partition column not in the schema": members(partitionColumns=["gone"]),
    "no JSON": members(schemaString='{"type":"struct","fields":['),
    "no columns' names": members(schemaString='{"type":"struct","fields":[{"type":"long"}]}'),
    "no id": members(id=None),
    "no partition columns": members(partitionColumns=None),
    "configuration as a list": members(configuration=[]),
    "time of creation as text": members(createdTime="yesterday"),
}
READABLE: dict[str, dict[str, Any]] = {
    "type with a space": typed("decimal(10, 2)"),
    "decimal without parameters": typed("decimal"),
    "timestamp_ltz": typed("timestamp_ltz"),
    "id as a number": members(id=5),
    "no time of creation": members(createdTime=None),
}


def write(path: Path, action: dict[str, Any]) -> str:
    Log(path).commit(0, protocol(1, 7, None, ["domainMetadata"]), action)
    return str(path)


@needs_delta("4.4", "what it was measured with")
@pytest.mark.parametrize("name", UNREADABLE)
def test_spark_refuses_every_statement(delta_spark: DeltaSpark, tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "t", UNREADABLE[name])
    for statement in STATEMENTS:
        result = execute(delta_spark, path, statement.format(t=f"delta.`{path}`"))
        assert result.error is not None, statement
    inputs = planned(path)
    request = UpgradeRequest(set={"delta.logRetentionDuration": "interval 60 days"})
    blocked = plan_upgrade(inputs, request).blocked
    assert any("cannot read the metadata" in each.reason for each in blocked)
    assert not plan_downgrade(inputs, DowngradeRequest(lowest=True)).steps


@needs_delta("4.4", "what it was measured with")
@pytest.mark.parametrize("name", READABLE)
def test_spark_changes_other_tables(delta_spark: DeltaSpark, tmp_path: Path, name: str) -> None:
    path = write(tmp_path / "t", READABLE[name])
    request = UpgradeRequest(set={"delta.logRetentionDuration": "interval 60 days"})
    assert not plan_upgrade(planned(path), request).blocked
    assert execute(delta_spark, path, STATEMENTS[0].format(t=f"delta.`{path}`")).error is None
