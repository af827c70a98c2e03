"""Changes of tables with NOT NULL inside arrays and maps, as other engines write them."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from deltaproto.plan_inputs.from_log import load_plan_input
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.predict.nested_not_null import find_unenforced, is_spark_text
from deltaproto.planning.predict.schema import parse_schema
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.protocol.table_state import SparkSettings
from tests.planning.oracle import execute, newest
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta
from tests.support.failures import collect_failures

NOTHING: Mapping[str, str] = MappingProxyType({})
NESTED = "DELTA_NESTED_NOT_NULL_CONSTRAINT"
READERS = ["columnMapping", "deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"]
WRITERS = [*READERS, "checkConstraints", "domainMetadata", "invariants", "rowTracking"]


def field(name: str, type_: Any, *, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": nullable, "metadata": {}}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any, *, nullable: bool = True) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": nullable}


def map_(key: Any, value: Any, *, nullable: bool = True) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}


STRICT = struct(field("x", "long", nullable=False))
FORBIDDEN = {
    "struct in array": array(STRICT),
    "struct as value": map_("string", STRICT),
    "struct as key": map_(STRICT, "long"),
    "array in array": array(array("long", nullable=False)),
    "array below a struct in array": array(struct(field("y", array("long", nullable=False)))),
    "array in a struct": struct(field("y", array(STRICT))),
    "map with struct in array": array(map_("string", struct(field("x", "long")), nullable=False)),
}
ALLOWED = {
    "elements": array("long", nullable=False),
    "values": map_("string", "long", nullable=False),
    "struct": STRICT,
    "struct three arrays down": array(array(array(STRICT))),
    "map of numbers in array": array(map_("string", "long", nullable=False)),
    "nullable": array(struct(field("x", "long"))),
}
SCHEMAS = {
    name: struct(field("id", "long"), field("c", type_))
    for name, type_ in {**FORBIDDEN, **ALLOWED}.items()
}


def compact(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def turned(part: Any) -> Any:
    """The same schema with the keys of every object in another order."""
    if isinstance(part, list):
        return [turned(each) for each in part]
    return {k: turned(v) for k, v in reversed(part.items())} if isinstance(part, dict) else part


def table(
    path: Path, text: str, partitions: tuple[str, ...] = (), more: Mapping[str, str] = NOTHING
) -> str:
    """A table without rows, and a schema with this text."""
    actions = (
        {"commitInfo": {"timestamp": 1795000000000, "operation": "CREATE TABLE"}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": READERS,
                "writerFeatures": WRITERS,
            }
        },
        {
            "metaData": {
                "id": "nested",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": text,
                "partitionColumns": list(partitions),
                "configuration": {
                    "delta.constraints.small": "id < 9",
                    "delta.enableDeletionVectors": "true",
                    **more,
                },
                "createdTime": 1795000000000,
            }
        },
    )
    log = path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return str(path)


def look(path: str) -> PlanInput:
    given = load_plan_input(path, {}, SparkSettings(), time.time())
    return given._replace(engine=RUNNING)


SET = "alter table {t} set tblproperties ('team' = 'a')"
STATEMENTS = (
    SET,
    "alter table {t} unset tblproperties ('delta.x')",
    "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",
    "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
    "alter table {t} set tblproperties ('delta.feature.appendOnly' = 'supported')",
    "comment on table {t} is 'x'",
    "alter table {t} add constraint large check (id > -9)",
    "alter table {t} drop constraint small",
    "alter table {t} drop constraint if exists nope",
    "alter table {t} cluster by (id)",
    "alter table {t} add columns (n int)",
    "alter table {t} add columns (n array<struct<x: int not null>>)",
    "alter table {t} alter column id comment 'x'",
    "alter table {t} alter column id after c",
    "alter table {t} drop feature vacuumProtocolCheck",
    "alter table {t} drop feature deletionVectors",
    "alter table {t} drop feature v2Checkpoint",
    "alter table {t} drop feature rowTracking",
    "alter table {t} drop feature domainMetadata",
    "insert into {t} (id) values (1)",
    "delete from {t} where id = 1",
    "reorg table {t} apply (purge)",
    "select * from {t}",
)


def compare(delta_spark: DeltaSpark, path: str, statement: str) -> str | None:
    """What Spark answers, after it was compared with the prediction."""
    before = look(path).table._replace(version=newest(path))
    sql = statement.replace("{t}", f"delta.`{path}`")
    happened = execute(delta_spark, path, sql)
    if statement.startswith("select"):
        assert happened.error is None
        return None
    (parsed,) = parse_script(sql)
    said = predict_statement(parsed.statement, before, RUNNING)
    assert happened.error == (said.refusal.error if said.refusal else None), (said, happened)
    assert said.fewest <= len(happened.operations) <= said.most, (said, happened)
    after = look(path).table
    assert after.protocol == said.table.protocol
    return happened.error


@needs_delta("4.4", "what it was measured with")
@pytest.mark.parametrize("written", ["by Spark", "with blanks"])
def test_spark_does_what_is_predicted(
    written: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    schema = SCHEMAS["struct in array"]
    text = compact(schema) if written == "by Spark" else json.dumps(schema)
    made = table(tmp_path / "made", text)
    refused = set()
    with collect_failures() as failures:
        for number, statement in enumerate(STATEMENTS):
            path = str(shutil.copytree(made, tmp_path / str(number)))
            with failures.of(statement):
                if compare(delta_spark, path, statement) == NESTED:
                    refused.add(statement)
    assert (SET in refused) is (written == "with blanks")
    assert "alter table {t} add columns (n int)" in refused
    assert not {statement for statement in refused if "constraint" in statement}


@needs_delta("4.4", "what it was measured with")
def test_spark_checks_the_types_that_are_predicted(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    refused = set()
    with collect_failures() as failures:
        for name, schema in SCHEMAS.items():
            with failures.of(name):
                path = table(tmp_path / name.replace(" ", "-"), json.dumps(schema))
                if compare(delta_spark, path, SET) == NESTED:
                    refused.add(name)
    assert refused == {*FORBIDDEN}


@needs_delta("4.4", "what it was measured with")
def test_spark_compares_the_texts_that_are_predicted(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    schema = SCHEMAS["struct in array"]
    named = struct(field("Ä/\u007f\"'", "decimal(10,2)"), *schema["fields"])
    described = {**schema["fields"][0], "metadata": {"comment": "x"}}
    texts = {
        "compact": compact(schema),
        "blank at the end": compact(schema) + " ",
        "other order": compact(turned(schema)),
        "escaped": compact(schema).replace('"long"', '"l\\u006fng"', 1),
        "no metadata": compact(schema).replace(',"metadata":{}', "", 1),
        "decimal": compact(named).replace("(10,2)", "(10, 2)"),
        "decimal without size": compact(named).replace("(10,2)", "", 1),
        "unusual names": compact(named),
        "metadata": compact(struct(described, schema["fields"][1])),
    }
    with collect_failures() as failures:
        for number, (name, text) in enumerate(texts.items()):
            with failures.of(name):
                path = table(tmp_path / str(number), text)
                refused = compare(delta_spark, path, SET) == NESTED
                assert refused is (name not in ("compact", "unusual names", "metadata"))


@needs_delta("4.4", "what it was measured with")
def test_spark_takes_a_new_table_without_such_columns_only(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    made = table(tmp_path / "made", compact(SCHEMAS["struct in array"]))
    strict = "struct<x: int not null>"
    columns = (f"n array<{strict}>", "n array<struct<x: int>>", f"n {strict}")
    with collect_failures() as failures:
        for number, each in enumerate(columns):
            path = str(shutil.copytree(made, tmp_path / str(number)))
            with failures.of(each):
                found = compare(delta_spark, path, f"replace table {{t}} ({each}) using delta")
                assert (found == NESTED) is (number == 0)


@needs_delta("4.4", "what it was measured with")
def test_the_remedy_works(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = table(tmp_path / "t", json.dumps(SCHEMAS["struct in array"]))
    given = look(path)
    plan = plan_downgrade(given, DowngradeRequest(drop=("vacuumProtocolCheck",)))
    (blocked,) = plan.blocked
    assert blocked.error == NESTED
    setting = blocked.remedy.partition("set ")[2].partition(" =")[0]
    delta_spark.sql(f"set {setting} = true")
    try:
        happened = execute(delta_spark, path, SET.replace("{t}", given.sql))
    finally:
        delta_spark.sql(f"reset {setting}")
    assert happened.error is None
    assert find_unenforced(look(path).table.schema or parse_schema({})) is None


def test_nothing_can_be_dropped_while_the_text_differs(tmp_path: Path) -> None:
    schema = SCHEMAS["struct in array"]
    for text, stuck in ((json.dumps(schema), True), (compact(schema), False)):
        path = table(tmp_path / str(stuck), text)
        found = find_droppable(look(path).table, RUNNING).undroppable
        for name in ("vacuumProtocolCheck", "deletionVectors", "checkConstraints", "rowTracking"):
            assert (name in found and found[name].error == NESTED) is stuck, name


def test_texts_that_depend_on_more_than_their_content_are_unknown() -> None:
    many = {**field("id", "long"), "metadata": {"comment": "x", "n": 1}}
    number = {**field("id", "long"), "metadata": {"a": 1e10}}
    inside = field("s", struct(many))
    listed = field("a", {"type": "array", "elementType": struct(number), "containsNull": True})
    for each in (many, number, inside, listed):
        assert is_spark_text(compact(struct(each))) is None
    assert is_spark_text(json.dumps(struct(many))) is False
    assert is_spark_text("no json") is None
    for schema, expected in itertools.product(SCHEMAS.values(), (True,)):
        assert is_spark_text(compact(schema)) is expected
