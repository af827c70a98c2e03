"""IcebergCompat and the columns, properties and history of a table: as predicted, and as Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.ddl.parse import parse_script
from tests.planning.oracle import agree, execute, look
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_feature

ATOMIC = "delta.universalFormat.iceberg.atomicConversion.supported"
MODE_OFF = "'delta.columnMapping.mode' = 'none'"
VECTORS_OFF = "'delta.enableDeletionVectors' = 'false'"


def _replacements(version: int, more: str) -> list[int | str]:
    """Statements that enable a version and change the columns, without a query and with one."""
    begin = "replace table {t}"
    end = f"using delta tblproperties ('delta.enableIcebergCompatV{version}' = 'true', {more})"
    return [f"{begin} (id bigint) {end}", f"{begin} {end} as select 1L as id"]


# Columns and properties (with column mapping); then IcebergCompat versions to switch on (2) or off
# (-2), and statements.
TABLES: dict[str, tuple[str, str, list[int | str]]] = {
    "array": ("id bigint, a array<int>", "", [1, 2, "unset mode", -2, "set mode"]),
    "array-3": ("id bigint, a array<int>", "", [3, "set mode"]),
    "decimal-partition": ("id bigint, d decimal(5,2)", "partitioned by (d)", [1, -1, 2, 3]),
    "partitioned": (
        "id bigint, p string",
        "partitioned by (p)",
        [
            *(1, "alter table {t} rename column p to q", -1),
            *("alter table {t} rename column p to q", 2, "alter table {t} rename column q to p"),
            "alter table {t} rename column id to number",
            "replace table {t} (p string, q string) using delta partitioned by (p) tblproperties "
            "('delta.enableIcebergCompatV2' = 'true')",
            "replace table {t} (p string, q string) using delta tblproperties "
            "('delta.enableIcebergCompatV3' = 'true')",
            "replace table {t} (p string, q string) using delta partitioned by (q) tblproperties "
            "('delta.enableIcebergCompatV3' = 'true')",
            "alter table {t} rename column q to r",
        ],
    ),
    "partitioned-by-others-without-compatibility": (
        "id bigint, p string",
        "partitioned by (p)",
        [
            "replace table {t} (p string, q string) using delta partitioned by (q)",
            "replace table {t} (p string, q string) using delta",
            "replace table {t} (p string, q string) using delta partitioned by (q) tblproperties "
            "('delta.enableIcebergCompatV2' = 'true')",
        ],
    ),
    "widened": (
        "t tinyint, f float, e decimal(5,2)",
        "'delta.enableTypeWidening' = 'true'",
        [
            "alter table {t} alter column t type int",
            "alter table {t} alter column f type double",
            "alter table {t} alter column e type decimal(7,2)",
            *(1, -1, 2, -2),
            "alter table {t} alter column e type decimal(9,3)",
            *(1, 2, 3),
            "reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2))",
        ],
    ),
    "widened-below": (
        "id bigint, s struct<x: map<string, tinyint>>",
        "'delta.enableTypeWidening' = 'true'",
        ["alter table {t} alter column s.x.value type double", 2, 3],
    ),
    "variant": ("id bigint, s struct<v: variant>", "", [1, -1, 2, 3, -3]),
    "void": ("id bigint, v void", "", [1, 2, 3]),
    "vectors-in-one-go": (
        "id bigint",
        "'delta.enableDeletionVectors' = 'true'",
        [
            "alter table {t} set tblproperties ('delta.enableIcebergCompatV2' = 'true', "
            "'delta.enableDeletionVectors' = 'false')",
            3,
        ],
    ),
    "defaults": (
        "id bigint, v int",
        "'delta.feature.allowColumnDefaults' = 'supported'",
        [
            "alter table {t} alter column v set default 5 + 1",
            *(2, -2, 3),
            "alter table {t} alter column v set default 5",
            3,
            "alter table {t} alter column v set default 6 + 1",
        ],
    ),
    "never-off": (
        "id bigint",
        "",
        [
            3,
            -3,
            "alter table {t} unset tblproperties ('delta.enableIcebergCompatV3')",
            "alter table {t} set tblproperties ('delta.enableIcebergCompatV3' = 'false', "
            "'delta.enableIcebergCompatV2' = 'true')",
            2,
            "set mode",
            "unset mode",
            "alter table {t} unset tblproperties ('delta.enableRowTracking')",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'false')",
            "reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2))",
        ],
    ),
    "one-after-the-other": (
        "id bigint",
        "",
        [
            2,
            1,
            "alter table {t} set tblproperties ('delta.enableIcebergCompatV2' = 'false', "
            "'delta.columnMapping.mode' = 'none')",
            "unset mode",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
            -2,
            "set mode",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'false')",
            "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true', "
            "'delta.enableIcebergCompatV3' = 'true')",
        ],
    ),
    "replaced-with-other-columns": (
        "id bigint, a array<int>",
        "",
        [*_replacements(1, MODE_OFF), *_replacements(2, MODE_OFF), *_replacements(1, "'x' = 'y'")],
    ),
    "replaced-after-type-changes": (
        "id bigint, a int",
        "'delta.enableTypeWidening' = 'true'",
        ["alter table {t} alter column a type double", *_replacements(2, "'x' = 'y'")],
    ),
    "replaced-with-vectors": (
        "id bigint, p int",
        "'delta.enableDeletionVectors' = 'true'",
        [*_replacements(1, VECTORS_OFF), *_replacements(2, VECTORS_OFF)],
    ),
    "replaced-with-other-versions": (
        "id bigint",
        "",
        [
            *_replacements(2, "'delta.enableIcebergCompatV1' = 'true'"),
            *_replacements(3, "'delta.enableRowTracking' = 'false'"),
            3,
            *_replacements(2, "'x' = 'y'"),
            "replace table {t} (id bigint) using delta",
        ],
    ),
}
SHORT = {
    "set mode": "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'none')",
    "unset mode": "alter table {t} unset tblproperties ('delta.columnMapping.mode')",
}


def statement_of(change: int | str) -> str:
    if isinstance(change, str):
        return SHORT.get(change, change)
    key, value = f"delta.enableIcebergCompatV{abs(change)}", str(change > 0).lower()
    return f"alter table {{t}} set tblproperties ('{key}' = '{value}')"


def needed(changes: list[int | str]) -> list[pytest.MarkDecorator]:
    """What the engine must know for these changes."""
    later = any("IcebergCompatV3" in change for change in map(statement_of, changes))
    return [needs_feature("icebergCompatV3")] if later else []


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needed(changes)) for name, (_, _, changes) in TABLES.items()],
)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    columns, more, changes = TABLES[name]
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    mapped = "'delta.columnMapping.mode' = 'name'"
    clause, properties = ("", f"{mapped}, {more}") if "=" in more else (more, mapped)
    delta_spark.sql(
        f"create table {table} ({columns}) using delta {clause} tblproperties ({properties})"
    )
    for change in changes:
        (each,) = parse_script(statement_of(change).format(t=table))
        said = each.statement.outcome(look(path), RUNNING)
        agree(said, execute(delta_spark, path, each.text))
        after = look(path)
        assert after.protocol == said.table.protocol, each.text
        assert after.schema == said.table.schema, each.text
        for key in ("delta.columnMapping.mode", "delta.enableRowTracking", ATOMIC):
            assert after.configuration.get(key) == said.table.configuration.get(key), each.text
