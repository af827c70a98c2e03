"""Changes of tables with names that Delta Spark does not store, as other engines write them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import execute
from tests.planning.test_nested_not_null_on_spark import (
    array,
    compact,
    compare,
    field,
    look,
    struct,
    table,
)
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta
from tests.support.failures import collect_failures

NAMES = "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"
TWICE = "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE"
PARTITION = "DELTA_INVALID_PARTITION_COLUMN_NAME"
ID, BLANK = field("id", "long"), field("a b", "long")
SCHEMAS: dict[str, tuple[str | None, dict[str, Any], tuple[str, ...]]] = {
    "twice": (TWICE, struct(ID, field("x", "long"), field("X", "long")), ()),
    "twice in a struct": (
        TWICE,
        struct(ID, field("s", struct(field("x", "long"), field("X", "long")))),
        (),
    ),
    "blank": (NAMES, struct(ID, BLANK), ()),
    "blank in an array": (NAMES, struct(ID, field("s", array(struct(BLANK)))), ()),
    "comma": (NAMES, struct(ID, field("a,b", "long")), ()),
    "blank partition": (PARTITION, struct(ID, BLANK), ("a b",)),
    "blank partition beside a comma": (
        NAMES,
        struct(ID, BLANK, field("a,b", "long")),
        ("a b",),
    ),
    "dot": (None, struct(ID, field("a.b", "long")), ()),
    "percent": (None, struct(ID, field("a%b:/'é", "long")), ()),
}
SET = "alter table {t} set tblproperties ('team' = 'a')"
STATEMENTS = (
    SET,
    "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'name')",
    "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
    "comment on table {t} is 'x'",
    "alter table {t} add constraint large check (id > -9)",
    "alter table {t} drop constraint small",
    "alter table {t} cluster by (id)",
    "alter table {t} add columns (n int)",
    "alter table {t} alter column id comment 'x'",
    "alter table {t} drop feature vacuumProtocolCheck",
    "alter table {t} drop feature deletionVectors",
    "alter table {t} drop feature checkConstraints",
)


@needs_delta("4.4", "what it was measured with")
@pytest.mark.parametrize("name", ["twice", "blank", "blank partition"])
def test_spark_does_what_is_predicted(name: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    error, schema, partitions = SCHEMAS[name]
    made = table(tmp_path / "made", compact(schema), partitions)
    refused = set()
    with collect_failures() as failures:
        for number, statement in enumerate(STATEMENTS):
            path = str(shutil.copytree(made, tmp_path / str(number)))
            with failures.of(statement):
                if compare(delta_spark, path, statement) == error:
                    refused.add(statement)
    assert SET in refused
    assert (STATEMENTS[1] in refused) is (name == "twice")


@needs_delta("4.4", "what it was measured with")
def test_spark_refuses_the_names_that_are_predicted(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    with collect_failures() as failures:
        for number, (name, (error, schema, partitions)) in enumerate(SCHEMAS.items()):
            with failures.of(name):
                path = table(tmp_path / str(number), json.dumps(schema), partitions)
                assert compare(delta_spark, path, SET) == error


WORD, LETTERS = field("word", "string"), struct(field("a", "long"), field("A", "long"))
EXISTING, AMBIGUOUS = "DELTA_DUPLICATE_COLUMNS_FOUND.EXISTING_SCHEMA", "AMBIGUOUS_REFERENCE"
CAST = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"
# What Delta Spark 4.4.0 answered.
INSERTS: tuple[tuple[dict[str, Any], str, str | None], ...] = (
    *(
        (struct(ID, WORD, field("WORD", "string")), *each)
        for each in (
            ("insert into {t} values (1, 'a', 'b')", EXISTING),
            ("insert into {t} (id) values (1)", AMBIGUOUS),
            ("insert into {t} (id, word) values (1, 'a')", AMBIGUOUS),
            ("insert overwrite {t} (id) values (1)", AMBIGUOUS),
            ("insert into {t} values (1, null)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
            ("insert into {t} (nope) values (1)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        )
    ),
    *(
        (struct(ID, field("s", LETTERS)), *each)
        for each in (
            ("insert into {t} values (1, null)", EXISTING),
            ("insert into {t} (id) values (1)", f"{AMBIGUOUS}_TO_FIELDS"),
            ("insert into {t} values (1, 'a', 'b')", CAST),
        )
    ),
    (struct(ID, field("s", array("long"))), "insert into {t} values (1, 'a', 'b')", CAST),
    (struct(ID, WORD), "insert into {t} values (1, 'a', 'b')", "DELTA_METADATA_MISMATCH"),
    (struct(ID, WORD), "insert into {t} values (1, 'a')", None),
)


def test_inserts_are_refused_as_measured(tmp_path: Path) -> None:
    for number, (schema, statement, error) in enumerate(INSERTS):
        given = look(table(tmp_path / str(number), compact(schema)))
        (parsed,) = parse_script(statement.replace("{t}", given.sql))
        said = predict_statement(parsed.statement, given.table, RUNNING)
        assert (said.refusal.error if said.refusal else None) == error, statement


@needs_delta("4.4", "what it was measured with")
def test_a_table_of_deltalake_gets_mapping_first(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def write(_: object) -> None:
        deltalake.write_deltalake(path, pa.table({"id": [1], "a b": ["x"]}))

    delta_spark.run("write with deltalake", write)
    plan = plan_upgrade(look(path), UpgradeRequest(set={"delta.enableChangeDataFeed": "true"}))
    (blocked,) = plan.blocked
    assert blocked.error == NAMES
    assert "delta.columnMapping.mode = name" in blocked.remedy
    asked = {"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": "true"}
    plan = plan_upgrade(look(path), UpgradeRequest(set=asked))
    assert not plan.blocked
    for step in plan.steps:
        happened = execute(delta_spark, path, step.sql or "")
        assert happened.error is None
    assert look(path).table.protocol == plan.protocol_after


def test_nothing_is_dropped_from_such_a_table(tmp_path: Path) -> None:
    for name, (error, schema, partitions) in SCHEMAS.items():
        path = table(tmp_path / name.replace(" ", "-"), compact(schema), partitions)
        plan = plan_downgrade(look(path), DowngradeRequest(drop=("vacuumProtocolCheck",)))
        assert [blocked.error for blocked in plan.blocked] == ([error] if error else []), name
        assert bool(plan.steps) is (error is None), name
