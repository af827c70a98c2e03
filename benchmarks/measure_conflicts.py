"""What one release of Delta Spark does to writers in flight, statement by statement.

Two threads meet on a table: the loser is held inside a UDF until the winner has committed. What
becomes of it is recorded, release by release, in `tests/conflicts/measured_writers.json`, which the
suite replays. Run it with the Python of an environment that has the pyspark to be measured, and
nothing else of this project:

    python benchmarks/measure_conflicts.py io.delta:delta-spark_2.13:4.0.1
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "tests/conflicts/measured_writers.json"
ENFORCE = "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled"
RESOLVE = "spark.databricks.delta.featureEnablement.conflictResolution.enabled"

INSERT = "insert into {t} select held(id), 'new', 1 from range(100, 101)"
LOSERS = {
    "insert": INSERT,
    "update": "update {t} set s = 'u' where held(id) = 1",
    "delete": "delete from {t} where held(id) = 1",
    "merge": (
        "merge into {t} t using (select held(id) id from range(1, 2)) n on t.id = n.id "
        "when matched then update set s = 'm'"
    ),
    "nested": (
        "insert into {t} select held(id), named_struct('x', 1, 'y', 'y'), "
        "array(named_struct('x', 1)), array(1), map('k', 1) from range(100, 101)"
    ),
    "list": "insert into {t} select held(id), array(1), map('k', 1) from range(100, 101)",
}
PLAIN = "id bigint, s string, p int"
NESTED = (
    "id bigint, a struct<x int, y string>, l array<struct<x int>>, n array<int>, m map<string, int>"
)
# Name: columns, the rest of the definition, a row.
TABLES = {
    "plain": (PLAIN, "tblproperties ('kept'='1')", "(1, 's', 1), (2, 's', 2)"),
    "partitioned": (
        PLAIN,
        "partitioned by (p) tblproperties ('kept'='1')",
        "(1, 's', 1), (2, 's', 2)",
    ),
    "features": (
        PLAIN,
        "tblproperties ('delta.enableDeletionVectors'='true', "
        "'delta.feature.vacuumProtocolCheck'='supported', 'delta.enableChangeDataFeed'='true', "
        "'delta.checkpointPolicy'='v2', 'delta.enableInCommitTimestamps'='true')",
        "(1, 's', 1), (2, 's', 2)",
    ),
    "mapped": (
        PLAIN,
        "tblproperties ('delta.columnMapping.mode'='name', 'delta.minReaderVersion'='2', "
        "'delta.minWriterVersion'='5')",
        "(1, 's', 1), (2, 's', 2)",
    ),
    "clustered": (PLAIN, "cluster by (id)", "(1, 's', 1), (2, 's', 2)"),
    "checked": (PLAIN, "tblproperties ('delta.constraints.c'='id >= 0')", "(1, 's', 1)"),
    "nested": (
        NESTED,
        "",
        "(1, named_struct('x', 1, 'y', 'y'), array(named_struct('x', 1)), array(1), map('k', 1))",
    ),
    "list": ("id bigint, n array<int>, m map<string, int>", "", "(1, array(1), map('k', 1))"),
}


def set_(text):
    pairs = ("'{}'='{}'".format(*word.split("=", 1)) for word in text.split())
    return f"alter table {{t}} set tblproperties ({', '.join(pairs)})"


def supported(name):
    return set_(f"delta.feature.{name}=supported")


def drop(name):
    return f"alter table {{t}} drop feature {name}"


def unset(name):
    return f"alter table {{t}} unset tblproperties ('{name}')"


MAPPING = "delta.columnMapping.mode=name"
ENABLING = [
    set_("delta.enableDeletionVectors=true"),
    set_(MAPPING),
    set_("delta.enableRowTracking=true"),
    set_("delta.checkpointPolicy=v2"),
    set_("delta.enableInCommitTimestamps=true"),
]
FEATURES = [
    "allowColumnDefaults",
    "appendOnly",
    "catalogManaged",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "geospatial",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "rowTracking",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantType",
]
# Table, loser, winner, settings of the session.
PROBES = [
    *(("plain", "insert", each, {}) for each in ENABLING),
    *(("plain", "update", each, {}) for each in ENABLING),
    *(("plain", "insert", each, {RESOLVE: "false"}) for each in ENABLING),
    ("partitioned", "insert", set_(MAPPING), {}),
    ("partitioned", "merge", set_("delta.enableDeletionVectors=true"), {}),
    ("plain", "delete", set_("delta.enableDeletionVectors=true"), {}),
    ("nested", "nested", set_(MAPPING), {}),
    ("nested", "nested", set_("delta.enableRowTracking=true"), {}),
    ("list", "list", set_(MAPPING), {}),
    ("plain", "insert", set_("delta.enableDeletionVectors=true " + MAPPING), {}),
    (
        "plain",
        "insert",
        set_("delta.enableRowTracking=true delta.enableDeletionVectors=true"),
        {},
    ),
    ("plain", "insert", set_("delta.checkpointPolicy=v2 delta.enableDeletionVectors=true"), {}),
    ("plain", "insert", set_("delta.enableDeletionVectors=true team=a"), {}),
    ("plain", "insert", set_("team=a"), {}),
    ("plain", "insert", set_("kept=1"), {}),
    ("plain", "insert", set_("kept=2"), {}),
    ("plain", "insert", set_("delta.enableDeletionVectors=false"), {}),
    ("plain", "insert", set_("delta.checkpointPolicy=classic"), {}),
    ("plain", "insert", set_("delta.enableInCommitTimestamps=false"), {}),
    ("plain", "insert", set_("delta.columnMapping.mode=none"), {}),
    ("plain", "insert", set_("delta.enableRowTracking=false"), {}),
    ("plain", "insert", set_("delta.appendOnly=false"), {}),
    ("plain", "insert", set_("delta.enableChangeDataFeed=true"), {}),
    ("plain", "insert", set_("delta.enableTypeWidening=true"), {}),
    ("plain", "insert", unset("kept"), {}),
    ("plain", "insert", "alter table {t} unset tblproperties if exists ('missing')", {}),
    ("plain", "insert", set_("delta.minReaderVersion=1 delta.minWriterVersion=4"), {}),
    ("plain", "insert", set_("delta.minReaderVersion=3 delta.minWriterVersion=7"), {}),
    ("plain", "insert", set_("delta.minReaderVersion=1 delta.minWriterVersion=1"), {}),
    ("features", "insert", set_("delta.minReaderVersion=1 delta.minWriterVersion=2"), {}),
    ("plain", "insert", "alter table {t} cluster by (id)", {}),
    ("plain", "insert", "alter table {t} add columns (z int)", {}),
    ("plain", "insert", "alter table {t} alter column s comment 'c'", {}),
    ("plain", "insert", "comment on table {t} is 'c'", {}),
    ("plain", "insert", "alter table {t} add constraint c check (id >= 0)", {}),
    ("checked", "insert", "alter table {t} drop constraint c", {}),
    ("clustered", "insert", "alter table {t} cluster by (s)", {}),
    ("clustered", "insert", "alter table {t} cluster by none", {}),
    ("mapped", "insert", "alter table {t} rename column s to u", {}),
    ("mapped", "insert", set_("delta.enableDeletionVectors=true"), {}),
    ("features", "insert", set_("delta.enableDeletionVectors=true"), {}),
    ("features", "update", set_("delta.enableDeletionVectors=true"), {}),
    ("features", "insert", set_("delta.enableDeletionVectors=false"), {}),
    ("features", "insert", set_("delta.checkpointPolicy=v2"), {}),
    ("features", "insert", set_("delta.checkpointPolicy=classic"), {}),
    ("features", "insert", set_("delta.enableInCommitTimestamps=false"), {}),
    ("features", "insert", unset("delta.enableDeletionVectors"), {}),
    ("features", "insert", drop("vacuumProtocolCheck"), {}),
    ("features", "insert", drop("deletionVectors"), {}),
    ("features", "insert", drop("changeDataFeed"), {}),
    ("features", "insert", drop("inCommitTimestamp"), {}),
    ("features", "insert", drop("v2Checkpoint"), {}),
    ("plain", "insert", supported("v2Checkpoint"), {}),
    ("plain", "insert", supported("deletionVectors"), {}),
    ("plain", "update", supported("vacuumProtocolCheck"), {}),
    *(
        (table, loser, winner, {})
        for table in ("plain", "mapped")
        for loser in ("insert", "update", "delete", "merge")
        for winner in (
            "restore table {t} to version as of 1",
            "restore table {t} to version as of 0",
            "truncate table {t}",
        )
    ),
]
# A commit of a newer release, whose feature no release knows.
PROBES.append(
    (
        "plain",
        "insert",
        json.dumps(
            {
                "protocol": {
                    "minReaderVersion": 1,
                    "minWriterVersion": 7,
                    "writerFeatures": ["appendOnly", "invariants", "unheardOf"],
                }
            }
        )
        + "\n"
        + json.dumps({"commitInfo": {"timestamp": 1, "operation": "SET TBLPROPERTIES"}})
        + "\n",
        {},
    )
)
ENFORCED = [
    *(("plain", "insert", supported(name), {ENFORCE: "true"}) for name in FEATURES),
    *(("plain", "insert", each, {ENFORCE: "true"}) for each in ENABLING),
    ("plain", "insert", "alter table {t} cluster by (id)", {ENFORCE: "true"}),
    ("plain", "insert", "alter table {t} add constraint c check (id >= 0)", {ENFORCE: "true"}),
    ("plain", "insert", set_("delta.minWriterVersion=3"), {ENFORCE: "true"}),
    (
        "plain",
        "insert",
        set_("delta.minReaderVersion=1 delta.minWriterVersion=4"),
        {ENFORCE: "true"},
    ),
    ("plain", "update", supported("v2Checkpoint"), {ENFORCE: "true"}),
]
# Of a table (k identity, id, s), whose values `k` are generated unless given.
KEYED = [
    ("keys", loser, winner, {})
    for loser in (
        "insert into {t} (id, s) select held(id), 'new' from range(100, 101)",
        "insert into {t} (k, id, s) select held(id) + 900, id, 'new' from range(100, 101)",
        "update {t} set s = 'u' where held(id) = 1",
        "delete from {t} where held(id) = 1",
        "merge into {t} t using (select held(id) id from range(1, 2)) n on t.id = n.id "
        "when matched then update set s = 'm'",
        "merge into {t} t using (select held(id) id from range(50, 51)) n on t.id = n.id "
        "when not matched then insert (id, s) values (n.id, 'm')",
    )
    for winner in (
        "insert into {t} (id, s) values (7, 'w')",
        "insert into {t} (k, id, s) values (500, 7, 'w')",
        "delete from {t} where id = 2",
        set_("delta.enableDeletionVectors=true"),
        set_("delta.enableRowTracking=true"),
        "optimize {t}",
    )
]


def main(package, output=RECORDED):
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.jars.packages", package)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    version = package.rpartition(":")[2]
    folder = Path(tempfile.mkdtemp())
    gate = folder / "gate"
    gate.mkdir()
    spark.udf.register("held", held(str(gate)), "bigint")
    bases = made(spark, folder)
    tables = {name: state(base) for name, base in bases.items()}
    enforces = tuple(map(int, version.split(".")[:2])) >= (4, 2)
    found = []
    for table, loser, winner, settings in [*(ENFORCED if enforces else ()), *PROBES, *KEYED]:
        if table not in bases:
            continue
        path = folder / "probe"
        shutil.copytree(bases[table], path)
        for key, value in settings.items():
            spark.conf.set(key, value)
        started = time.monotonic()
        became = meet(spark, path, LOSERS.get(loser, loser), winner, gate)
        for key in settings:
            spark.conf.unset(key)
        shutil.rmtree(path)
        if became is None:
            continue
        found.append(
            {"table": table, "loser": loser, "winner": winner, "settings": settings, **became}
        )
        store(Path(output), version, tables, found)
        print(
            version,
            table,
            loser[:30],
            "|",
            winner[12:90],
            settings and list(settings.values()),
            "->",
            became["raised"],
            f"{time.monotonic() - started:.1f} s",
            flush=True,
        )
    spark.stop()
    shutil.rmtree(folder)


def store(file, version, tables, found):
    """Add what a release did to the file, in place of what it holds of that release."""
    kept = json.loads(file.read_text()) if file.exists() else {"tables": {}, "measured": []}
    by_probe = {probe(each): each for each in kept["measured"]}
    for each in by_probe.values():
        each["raised"].pop(version, None)
    for each in found:
        known = by_probe.setdefault(probe(each), {**each, "raised": {}})
        known["raised"][version] = each["raised"]
    measured = [each for each in by_probe.values() if each["raised"]]
    tables = {**kept["tables"], **tables}
    lines = [f'"tables": {json.dumps(tables)}', '"measured": [']
    lines.append(",\n".join(json.dumps(each) for each in measured) + "]")
    file.write_text("{" + f"{lines[0]},\n{lines[1]}\n{lines[2]}" + "}\n")


def probe(each):
    return json.dumps([each[key] for key in ("table", "loser", "winner", "settings")])


def held(place):
    def wait(value):
        import os
        import time

        with open(f"{place}/reached", "w"):
            pass
        deadline = time.monotonic() + 30
        while not os.path.exists(f"{place}/go") and time.monotonic() < deadline:
            time.sleep(0.01)
        return value

    return wait


def made(spark, folder):
    bases = {}
    for name, (columns, rest, rows) in TABLES.items():
        path = folder / name
        try:
            spark.sql(f"create table delta.`{path}` ({columns}) using delta {rest}")
            names = ", ".join(
                f"c{n}" for n in range(len(re.sub(r"<[^>]*>+", "", columns).split(",")))
            )
            values = f"select /*+ coalesce(1) */ * from values {rows} v({names})"
            spark.sql(f"insert into delta.`{path}` {values}")
            bases[name] = path
        except Exception as error:
            print("no table", name, reason(error), flush=True)
    try:
        bases["keys"] = keyed(spark, folder / "keys")
    except Exception as error:
        print("no table keys", reason(error), flush=True)
    return bases


def keyed(spark, path):
    jvm, session = spark._jvm, spark._jsparkSession
    tables = jvm.io.delta.tables.DeltaTable
    column = tables.columnBuilder(session, "k").dataType("BIGINT").generatedByDefaultAsIdentity()
    (
        tables.create(session)
        .location(str(path))
        .addColumn(column.build())
        .addColumn("id", "BIGINT")
        .addColumn("s", "STRING")
        .execute()
    )
    for row in ("(1, 's')", "(2, 's')"):
        spark.sql(f"insert into delta.`{path}` (id, s) values {row}")
    return path


def meet(spark, path, loser, winner, gate):
    """What became of the loser; None where the winner was refused before it committed anything."""
    table, raised = f"delta.`{path}`", []
    for file in gate.iterdir():
        file.unlink()
    before = len(commits(path))
    refused = None

    def lose():
        try:
            spark.sql(loser.format(t=table)).collect()
            raised.append(None)
        except Exception as error:
            raised.append(reason(error))

    thread = threading.Thread(target=lose)
    thread.start()
    while not (gate / "reached").exists() and thread.is_alive():
        thread.join(0.01)
    assert (gate / "reached").exists(), raised
    try:
        if winner.startswith("{"):
            (path / f"_delta_log/{before:020d}.json").write_text(winner)
        else:
            spark.sql(winner.format(t=table)).collect()
    except Exception as error:
        refused = reason(error)
    made = commits(path)[before:]
    (gate / "go").touch()
    thread.join(120)
    if refused and not made:
        return None
    return {"raised": raised[0]}


def state(path):
    found = {}
    for file in commits(path):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            found.update({k: action[k] for k in ("protocol", "metaData") if k in action})
    metadata = found["metaData"]
    return {
        "protocol": found["protocol"],
        "configuration": metadata["configuration"],
        "schema": json.loads(metadata["schemaString"]),
    }


def commits(path):
    return sorted(f for f in path.glob("_delta_log/*.json") if f.stem.isdecimal())


def reason(error):
    """The simple name of the exception that Delta raised."""
    origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    text = str(error) if origin is None else str(origin.toString())
    name = re.search(r"([A-Za-z]+Exception)", text)
    named = re.search(r"\[?(DELTA_[A-Z_0-9.]+)\]?", text)
    return name[1] if name else named[1] if named else text.split("\n")[0][:80]


if __name__ == "__main__":
    main(*sys.argv[1:])
