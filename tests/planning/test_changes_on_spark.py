"""SET and UNSET TBLPROPERTIES as predicted, and as Spark does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.set_properties import set_properties, unset_properties
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.planning.oracle import agree, execute, look
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta

if TYPE_CHECKING:
    pass

VERSIONS = "delta.minReaderVersion={} delta.minWriterVersion={}"
# What the table is made with, then one statement after the other; a minus unsets.
SEQUENCES: dict[str, tuple[str, list[str]]] = {
    "each-legacy-feature": (
        "",
        [
            "delta.appendOnly=true",
            "delta.enableChangeDataFeed=true",
            "delta.columnMapping.mode=name",
            "delta.columnMapping.mode=id",
            "delta.columnMapping.mode=nosuch",
            "-delta.enableChangeDataFeed",
            "-delta.enableChangeDataFeed",
            VERSIONS.format(2, 5),
        ],
    ),
    "versions": (
        "",
        [
            VERSIONS.format(1, 3),
            VERSIONS.format(1, 2),
            VERSIONS.format(2, 3),
            VERSIONS.format(3, 7),
            VERSIONS.format(3, 6),
            VERSIONS.format(1, 9),
            "delta.minReaderVersion=3",
            "delta.minWriterVersion=7",
            VERSIONS.format(2, 5),
            VERSIONS.format(2, 6),
            VERSIONS.format(1, 7),
        ],
    ),
    "features-by-name": (
        "",
        [
            "delta.feature.appendOnly=supported",
            "delta.feature.CHECKCONSTRAINTS=supported",
            "delta.feature.deletionVectors=enabled",
            "delta.feature.nope=supported",
            "delta.feature.rowTracking=disabled",
            "delta.feature.clustering=supported",
            "delta.feature.icebergCompatV2=supported",
            "delta.feature.coordinatedCommits-preview=supported",
            "-delta.feature.deletionVectors",
            "delta.minWriterVersion=2",
        ],
    ),
    "features-by-property": (
        "",
        [
            "delta.enableDeletionVectors=true",
            "delta.columnMapping.mode=id delta.minWriterVersion=2",
            "delta.columnMapping.mode=name delta.minWriterVersion=2",
            "delta.checkpointPolicy=v2",
            "delta.enableTypeWidening=TRUE",
            "delta.enableInCommitTimestamps=true",
            "delta.enableMaterializePartitionColumnsFeature=true",
            "delta.enableVariantShredding=true",
            "delta.enableIcebergCompatV2=true",
            "delta.enableDeletionVectors=false",
            "team=a",
            "-team",
        ],
    ),
    "two-mistakes-at-once": ("", ["delta.columnMapping.mode=id delta.feature.nope=supported"]),
    "row-tracking": (
        "",
        ["delta.enableRowTracking=true", "delta.enableRowTracking=true", "delta.appendOnly=true"],
    ),
    "row-tracking-supported": (
        "delta.feature.rowTracking=supported",
        ["delta.enableRowTracking=true", "delta.enableRowTracking=false"],
    ),
    "mapping-and-iceberg": (
        "delta.columnMapping.mode=name",
        [
            "delta.enableIcebergCompatV2=true",
            "delta.enableIcebergCompatV2=false",
            "delta.columnMapping.mode=none",
            "team=a delta.columnMapping.mode=name",
            "-delta.columnMapping.mode",
        ],
    ),
    "iceberg-and-vectors": (
        "delta.enableDeletionVectors=true",
        [
            "delta.columnMapping.mode=name delta.enableIcebergCompatV2=true",
            "delta.enableDeletionVectors=false",
            "delta.columnMapping.mode=name delta.enableIcebergCompatV2=true",
            "delta.enableIcebergCompatV1=true",
            "delta.enableIcebergCompatV1=true delta.enableIcebergCompatV2=false",
            "delta.feature.catalogManaged=supported",
            "delta.feature.adaptiveMetadata-preview=supported",
        ],
    ),
    "iceberg-v3-and-row-tracking": (
        "delta.enableRowTracking=true",
        [
            "delta.columnMapping.mode=name delta.enableIcebergCompatV3=true",
            "delta.enableRowTracking=false",
            "delta.columnMapping.mode=name delta.enableIcebergCompatV3=true",
            "delta.columnMapping.mode=name delta.enableIcebergCompatV3=true "
            "delta.enableRowTracking=true",
        ],
    ),
    "what-comes-before-a-refusal-stays": (
        "delta.columnMapping.mode=name delta.feature.deletionVectors=supported",
        [
            "delta.enableRowTracking=true delta.isolationLevel=bogus",
            "delta.enableRowTracking=true delta.feature.bogus=supported",
            "delta.enableRowTracking=true delta.rowTrackingSuspended=true",
            "delta.columnMapping.mode=none delta.minWriterVersion=2",
        ],
    ),
    "gaps-are-filled": (
        "delta.enableChangeDataFeed=true",
        [VERSIONS.format(1, 4), "delta.enableDeletionVectors=true", VERSIONS.format(1, 6)],
    ),
    "isolation": (
        "",
        [
            "delta.isolationLevel=serializable",
            "delta.isolationLevel=WriteSerializable",
            "delta.isolationLevel=bogus",
        ],
    ),
    "preview-stays": (
        "delta.feature.typeWidening-preview=supported",
        ["delta.enableTypeWidening=true"],
    ),
}


NEWER = {"two-mistakes-at-once": ("4.4", "the order of its checks")}
NAMES = [
    pytest.param(name, marks=[needs_delta(*NEWER[name])] if name in NEWER else [])
    for name in SEQUENCES
]


@pytest.mark.parametrize("name", NAMES)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    made, statements = SEQUENCES[name]
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    properties = f"tblproperties ({assigned(made)})" if made else ""
    delta_spark.sql(f"create table {table} (id bigint, s string) using delta {properties}")
    delta_spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
    for statement in statements:
        before = look(path)
        if statement.startswith("-"):
            said = unset_properties(before, [statement[1:]], RUNNING)
            sql = f"unset tblproperties ('{statement[1:]}')"
        else:
            said = set_properties(before, pairs(statement), RUNNING)
            sql = f"set tblproperties ({assigned(statement)})"
        happened = execute(delta_spark, path, f"alter table {table} {sql}")
        agree(said, happened)
        after = look(path)
        assert after.protocol == said.table.protocol, statement
        for key, value in said.table.configuration.items():
            if key in pairs(made) or key in (() if statement[0] == "-" else pairs(statement)):
                assert after.configuration.get(key) == value, statement


def pairs(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split()) if text else {}


def assigned(text: str) -> str:
    return ", ".join(f"'{key}'='{value}'" for key, value in pairs(text).items())


# Measured with Delta Spark 4.4.0, on a table without allowColumnDefaults.
@pytest.mark.parametrize(
    ("value", "of_number", "of_struct"),
    [
        ("'x'", "INVALID_DEFAULT_VALUE.DATA_TYPE", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        (
            "5",
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            "INVALID_DEFAULT_VALUE.DATA_TYPE",
        ),
        ("nope", "INVALID_DEFAULT_VALUE.NOT_CONSTANT", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("rand()", "INVALID_DEFAULT_VALUE.DATA_TYPE", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
    ],
)
def test_a_default_is_judged_before_its_feature(value: str, of_number: str, of_struct: str) -> None:
    inner = Struct((Column("a", Atomic("integer")),))
    schema = Struct((Column("n", Atomic("integer")), Column("st", inner)))
    table = bare_table(Protocol(1, 2), {}).with_schema(schema)
    for name, error in (("n", of_number), ("st", of_struct)):
        (each,) = parse_script(f"alter table t alter column {name} set default {value}")
        refusal = each.statement.outcome(table, RUNNING).refusal
        assert refusal is not None
        assert refusal.error == error
