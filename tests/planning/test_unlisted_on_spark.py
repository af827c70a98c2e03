"""Tables that use a feature which their protocol does not list. deltalake 1.6.6 writes some."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import execute, planned
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

MISMATCH = "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
CREATED = 1795000000000
"""milliseconds"""
ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
STRICT = {**ID, "nullable": False}


def a_struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def column(type_: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": "c", "type": type_, "nullable": True, "metadata": metadata}


def an_array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": False}


# By name: features that the protocol lists, properties, columns.
TABLES: dict[str, tuple[tuple[str, ...], dict[str, str], tuple[dict[str, Any], ...]]] = {
    "NOT NULL": (("timestampNtz",), {}, (STRICT, column("timestamp_ntz"))),
    "NOT NULL in a struct": (("timestampNtz",), {}, (ID, column(a_struct(STRICT)))),
    "NOT NULL in an array": (("timestampNtz",), {}, (ID, column(an_array(a_struct(STRICT))))),
    "NOT NULL listed": (("invariants",), {}, (STRICT,)),
    "nothing unlisted": ((), {}, (ID,)),
    "timestamp without zone": ((), {}, (ID, column(an_array("timestamp_ntz")))),
    "variant": ((), {}, (ID, column("variant"))),
    "variant, preview": (("variantType-preview",), {}, (ID, column("variant"))),
    "generated": ((), {}, (ID, column("long", **{"delta.generationExpression": "id + 1"}))),
    "default": ((), {}, (ID, column("long", CURRENT_DEFAULT="1"))),
    "constraint": ((), {"delta.constraints.small": "id < 9"}, (ID,)),
    "append only": ((), {"delta.appendOnly": "true"}, (ID,)),
    "append only, off": ((), {"delta.appendOnly": "false"}, (ID,)),
    "vectors": ((), {"delta.enableDeletionVectors": "true"}, (ID,)),
    "change data feed": ((), {"delta.enableChangeDataFeed": "true"}, (ID,)),
    "widening": ((), {"delta.enableTypeWidening": "true"}, (ID,)),
    "widening, preview": (("typeWidening-preview",), {"delta.enableTypeWidening": "true"}, (ID,)),
    "v2 checkpoints": ((), {"delta.checkpointPolicy": "v2"}, (ID,)),
    "in-commit timestamps": ((), {"delta.enableInCommitTimestamps": "true"}, (ID,)),
    "shredding": ((), {"delta.enableVariantShredding": "true"}, (ID,)),
    "partition columns": ((), {"delta.enableMaterializePartitionColumnsFeature": "true"}, (ID,)),
    "required by clustering": (("clustering",), {}, (ID,)),
    "required by icebergCompatV3": (("columnMapping", "icebergCompatV3", "rowTracking"), {}, (ID,)),
    "required, and there": (("domainMetadata", "rowTracking"), {}, (ID,)),
}


def write_log(path: Path, name: str) -> str:
    """A table without rows."""
    features, properties, columns = TABLES[name]
    both = {"columnMapping", "timestampNtz", "typeWidening-preview", "variantType-preview"}
    readers = both & {*features}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(readers),
        "writerFeatures": sorted(features),
    }
    return write_commit(path, "unlisted", protocol, properties, *columns)


def write_commit(
    path: Path,
    id_: str,
    protocol: Mapping[str, Any],
    properties: Mapping[str, str],
    *columns: dict[str, Any],
    info: Mapping[str, Any] | None = MappingProxyType({}),
) -> str:
    """Write the first commit of a table without rows. Return the table's path.

    Args:
        info: more members of its commitInfo; None: it has no commitInfo.
    """
    metadata = {
        "id": id_,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(a_struct(*columns), separators=(",", ":")),
        "partitionColumns": [],
        "configuration": properties,
        "createdTime": CREATED,
    }
    actions: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    if info is not None:
        commit_info = {**info, "timestamp": CREATED, "operation": "CREATE TABLE"}
        actions.insert(0, {"commitInfo": commit_info})
    log = path / "_delta_log"
    log.mkdir(parents=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{0:020d}.json").write_text(lines)
    return str(path)


@needs_delta("4.4", "every feature that the tables use")
def test_spark_refuses_every_statement_and_plans_are_blocked(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    refused = set()
    for number, name in enumerate(TABLES):
        path = write_log(tmp_path / str(number), name)
        given = planned(path)
        plan = plan_upgrade(given, UpgradeRequest(set={"team": "a"}))
        said = {blocked.error for blocked in plan.blocked}
        happened = execute(delta_spark, path, f"select * from delta.`{path}`")
        changed = execute(
            delta_spark, path, f"alter table delta.`{path}` set tblproperties ('team' = 'a')"
        )
        assert (MISMATCH in said, MISMATCH if said else None) == (
            happened.error == MISMATCH,
            changed.error,
        ), name
        refused |= {name} if said else set()
    assert {"NOT NULL", "NOT NULL in a struct", "vectors"} <= refused
    assert {"required by clustering", "required by icebergCompatV3"} <= refused
    assert not {"NOT NULL listed", "nothing unlisted", "NOT NULL in an array"} & refused
    assert "required, and there" not in refused


# What Delta Spark would refuse for a reason of its own, if the protocol were complete.
REFUSED = (
    "alter table {t} add columns (id int)",
    "alter table {t} add constraint c check (nope > 0)",
    "alter table {t} cluster by (nope)",
    "alter table {t} drop constraint nope",
    "alter table {t} drop feature timestampNtz",
    "alter table {t} set tblproperties ('delta.nope' = '1')",
    "delete from {t} where nope = 1",
    "insert into {t} values (1, 2, 3)",
    "optimize {t} zorder by (nope)",
    "restore table {t} to version as of 5",
    "vacuum {t} retain 0 hours",
)


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("name", ["NOT NULL", "vectors", "required by clustering"])
def test_what_is_missing_comes_before_other_errors(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = write_log(tmp_path / "t", name)
    given = planned(path)
    for statement in REFUSED:
        sql = statement.replace("{t}", f"delta.`{path}`")
        plan = plan_upgrade(given, UpgradeRequest(statements=tuple(parse_script(sql))))
        happened = execute(delta_spark, path, sql)
        assert (plan.blocked[0].error, happened.error) == (MISMATCH, MISMATCH), sql
        assert len(plan.blocked) > 1, sql


@pytest.mark.parametrize("asked", [{"drop": ("timestampNtz",)}, {"lowest": True}, {"to": (1, 2)}])
def test_downgrades_are_blocked(tmp_path: Path, asked: dict[str, Any]) -> None:
    path = write_log(tmp_path / "t", "NOT NULL")
    given = planned(path)
    plan = plan_downgrade(given, DowngradeRequest(**asked))
    assert not plan.steps
    if "lowest" not in asked:  # Nothing of it can be dropped anyway.
        assert "invariants" in {each.feature for each in plan.blocked if each.error == MISMATCH}
        assert "TableFeatures.Invariants" in plan.blocked[-1].remedy


@pytest.mark.parametrize(("engine", "blocked"), [("3.1.0", False), ("4.4.0", True)])
def test_an_engine_ignores_properties_of_features_that_it_lacks(
    tmp_path: Path, engine: str, blocked: bool
) -> None:
    path = write_log(tmp_path / "t", "shredding")
    given = load_plan_input(path, {}, SparkSettings(), time.time())
    given = given._replace(engine=parse_engine(f"delta-spark@{engine}"))
    plan = plan_upgrade(given, UpgradeRequest(set={"team": "a"}))
    assert (MISMATCH in {each.error for each in plan.blocked}) is blocked
