"""What an older Delta Spark makes of a table's protocol, statement by statement.

The suite runs with one Spark; what planning says of earlier releases is held against what this
script recorded with them, in `tests/planning/measured_engines.json`. Run it with the Python of an
environment that has the pyspark to be measured, and nothing else of this project:

    python benchmarks/measure_engines.py io.delta:delta-spark_2.12:3.2.1 recorded.json
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

MAPPED = "delta.columnMapping.mode=name delta.minReaderVersion=2 delta.minWriterVersion=5"
UNSET = "alter table {{t}} unset tblproperties ('{}')"
SET = "alter table {t} set tblproperties "
DROP = "alter table {t} drop feature "
CLUSTER = "alter table {t} cluster by "
CHECK = "alter table {t} add constraint c check (id > 0)"
NTZ = "alter table {t} add columns (n timestamp_ntz)"
REPLACE = "replace table {{t}} (id bigint{}) using delta tblproperties ('delta.{}'='true')"


def properties(text):
    return ", ".join("'{}'='{}'".format(*word.split("=", 1)) for word in text.split())


def set_(text):
    return SET + f"({properties(text)})"


def versions(reader, writer):
    return set_(f"delta.minReaderVersion={reader} delta.minWriterVersion={writer}")


# What the table is made with, then one statement after the other.
SEQUENCES = [
    (
        "",
        [
            set_("delta.appendOnly=true"),
            set_("delta.enableChangeDataFeed=true"),
            set_("delta.columnMapping.mode=name delta.minReaderVersion=2 delta.minWriterVersion=5"),
            versions(2, 6),
        ],
    ),
    ("", [versions(1, 3), versions(1, 2), versions(2, 3), versions(2, 5)]),
    ("", [versions(1, 7)]),
    ("", [versions(3, 7)]),
    ("", [set_("delta.minWriterVersion=4")]),
    (
        "",
        [set_("delta.feature.changeDataFeed=supported"), set_("delta.enableDeletionVectors=true")],
    ),
    (
        "",
        [
            set_("delta.enableDeletionVectors=true"),
            set_("delta.enableChangeDataFeed=true"),
            set_("delta.columnMapping.mode=name"),
        ],
    ),
    ("", [set_("delta.feature.v2Checkpoint=supported"), DROP + "v2Checkpoint"]),
    (
        "",
        [
            set_("delta.enableChangeDataFeed=true"),
            set_("delta.feature.v2Checkpoint=supported"),
            DROP + "v2Checkpoint truncate history",
        ],
    ),
    (
        "delta.enableChangeDataFeed=true delta.feature.deletionVectors=supported "
        "delta.feature.v2Checkpoint=supported",
        [DROP + "v2Checkpoint truncate history", DROP + "deletionVectors truncate history"],
    ),
    ("delta.checkpointPolicy=v2", [DROP + "v2Checkpoint truncate history"]),
    (
        "delta.feature.changeDataFeed=supported delta.feature.appendOnly=supported "
        "delta.feature.v2Checkpoint=supported",
        [DROP + "v2Checkpoint truncate history"],
    ),
    ("delta.feature.rowTracking=supported", [DROP + "rowTracking", versions(1, 7)]),
    (
        "delta.minReaderVersion=2 delta.minWriterVersion=5",
        [
            DROP + "columnMapping",
            DROP + "checkConstraints",
            set_("delta.enableDeletionVectors=true"),
        ],
    ),
    (
        "",
        [
            set_("delta.feature.typeWidening-preview=supported"),
            DROP + "`typeWidening-preview` truncate history",
        ],
    ),
    (
        "delta.enableChangeDataFeed=true",
        [
            versions(1, 4),
            set_("delta.feature.domainMetadata=supported"),
            set_("delta.feature.vacuumProtocolCheck=supported"),
            DROP + "vacuumProtocolCheck truncate history",
        ],
    ),
    ("delta.feature.inCommitTimestamp=supported", [DROP + "inCommitTimestamp"]),
    (
        "delta.feature.deletionVectors=supported delta.feature.changeDataFeed=supported",
        [DROP + "deletionVectors"],
    ),
    ("", [set_("delta.columnMapping.mode=none"), UNSET.format("delta.columnMapping.mode")]),
    (MAPPED, [set_("delta.columnMapping.mode=none")]),
    (MAPPED, [UNSET.format("delta.columnMapping.mode")]),
    (MAPPED, [set_("delta.columnMapping.mode=none delta.appendOnly=true")]),
    (
        MAPPED,
        [
            set_("delta.enableIcebergCompatV2=true"),
            set_("delta.enableIcebergCompatV1=true"),
            set_("delta.enableDeletionVectors=true"),
            set_("delta.columnMapping.mode=none"),
            set_("delta.enableIcebergCompatV2=false delta.enableIcebergCompatV1=true"),
            set_("delta.enableIcebergCompatV1=false"),
            set_("delta.enableDeletionVectors=true"),
            set_("delta.enableIcebergCompatV2=true"),
        ],
    ),
    ("", [set_("delta.enableIcebergCompatV1=true")]),
    ("", [CLUSTER + "(id)", CLUSTER + "(s)", CLUSTER + "none"]),
    ("", [set_("delta.enableTypeWidening=true")]),
    ("", [set_("delta.feature.typeWidening=supported delta.enableTypeWidening=true")]),
    ("", [set_("delta.enableInCommitTimestamps=true")]),
    ("", [set_("delta.enableVariantShredding=true")]),
    ("", [set_("delta.enableChangeDataCapture=true")]),
    ("", [set_("delta.enableChangeDataCapture=true delta.enableChangeDataFeed=false")]),
    ("", [set_("delta.enableRowTracking=true")]),
    (MAPPED, [set_("delta.enableRowTracking=true"), set_("delta.enableIcebergCompatV3=true")]),
    ("delta.minWriterVersion=2", [CHECK]),
    ("delta.feature.changeDataFeed=supported", [CHECK]),
    (
        "delta.feature.appendOnly=supported delta.feature.invariants=supported",
        [CHECK, "alter table {t} drop constraint c"],
    ),
    ("", [NTZ]),
    ("delta.feature.timestampNtz=supported", [NTZ]),
    ("delta.feature.timestampNtz=supported delta.feature.changeDataFeed=supported", [NTZ]),
    ("delta.feature.changeDataFeed=supported", [REPLACE.format("", "appendOnly")]),
    (
        "delta.minReaderVersion=1 delta.minWriterVersion=4",
        [REPLACE.format(" not null", "enableDeletionVectors")],
    ),
    # The mapping mode, on each side of the versions that it wants.
    ("", [set_("delta.columnMapping.mode=name")]),
    ("delta.minReaderVersion=2", [set_("delta.columnMapping.mode=name")]),
    ("delta.minWriterVersion=5", [set_("delta.columnMapping.mode=name")]),
    (
        "delta.minWriterVersion=7",
        [
            set_("delta.columnMapping.mode=name"),
            set_("delta.columnMapping.mode=name delta.minReaderVersion=2"),
        ],
    ),
    (
        "",
        [
            set_("delta.columnMapping.mode=name delta.feature.columnMapping=supported"),
            set_("delta.feature.columnMapping=supported"),
            set_("delta.columnMapping.mode=name"),
        ],
    ),
    ("", [set_(f"{MAPPED} delta.enableChangeDataFeed=true delta.enableDeletionVectors=true")]),
]


def main(package: str, output: str) -> None:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", package)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .getOrCreate()
    )
    folder = Path(tempfile.mkdtemp())
    found = []
    for number, (made, statements) in enumerate(SEQUENCES):
        path = folder / str(number)
        table = f"delta.`{path}`"
        clause = f"tblproperties ({properties(made)})" if made else ""
        try:
            spark.sql(f"create table {table} (id bigint, s string) using delta {clause}")
            spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")
        except Exception:
            continue
        for statement in statements:
            protocol, configuration = state(path)
            known = len(commits(path))
            error = None
            try:
                spark.sql(statement.format(t=table)).collect()
            except Exception as raised:
                java = getattr(raised, "java_exception", None)
                text = str(raised) if java is None else str(java.toString())
                named = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", text)
                error = named[1] if named else text.split("\n")[0][:100]
            found.append(
                {
                    "protocol": protocol,
                    "configuration": configuration,
                    "statement": statement,
                    "operations": [operation(commit) for commit in commits(path)[known:]],
                    "error": error,
                    "after": state(path)[0],
                }
            )
    Path(output).write_text(
        json.dumps({"delta-spark": package.rpartition(":")[2], "measured": found})
    )
    spark.stop()
    shutil.rmtree(folder)


def commits(path):
    files = sorted(path.glob("_delta_log/*.json"))
    return [
        [json.loads(line) for line in file.read_text().splitlines()]
        for file in files
        if file.stem.isdecimal()
    ]


def operation(commit):
    return next(action["commitInfo"]["operation"] for action in commit if "commitInfo" in action)


def state(path):
    protocol, configuration = None, None
    for commit in commits(path):
        for action in commit:
            protocol = action.get("protocol", protocol)
            if "metaData" in action:
                configuration = action["metaData"]["configuration"]
    for names in ("readerFeatures", "writerFeatures"):
        if names in protocol:
            protocol[names] = sorted(protocol[names])
    return protocol, configuration


if __name__ == "__main__":
    main(*sys.argv[1:])
