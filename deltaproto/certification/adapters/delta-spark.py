# /// script
# dependencies = ["delta-spark=={version}", "pyspark", "setuptools<81"]
# ///
"""Delta Lake for Apache Spark: SQL, and the DataFrame writer for whole rows."""

import os
import time
from importlib.metadata import version as installed

import kit
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

# Timestamps are collected in the time zone of the process.
os.environ["TZ"] = "UTC"
time.tzset()

VERSION = tuple(int(part) for part in installed("delta-spark").split(".")[:2])
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # The other settings are for tables with a few rows: every partition and every size check of a
    # stage is a separate task, and code for a plan takes longer to generate than to interpret.
    "spark.master": "local[1]",
    "spark.driver.memory": "2g",
    # The optimizing compiler never pays off here, and the simple compiler's code needs the space.
    "spark.driver.extraJavaOptions": "-Djdk.lang.Process.launchMechanism=VFORK -XX:+UseSerialGC"
    " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Every table is read a few times and never again, and its state takes some megabytes.
    "spark.databricks.delta.delta.log.cacheSize": "2",
}


# Before 3.1, only generated code can read rows of files with deletion vectors.
if VERSION >= (3, 1):
    SETTINGS["spark.sql.codegen.factoryMode"] = "NO_CODEGEN"
    SETTINGS["spark.sql.codegen.wholeStage"] = "false"


def _session():
    builder = SparkSession.builder.appName("adapter")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    found = configure_spark_with_delta_pip(builder).getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


spark = _session()


def release():
    return f"{installed('delta-spark')} on Spark {spark.version}"


def _name(table, version=None):
    return f"delta.`{table}`" + ("" if version is None else f" version as of {version}")


def rows(table, version=None, where=None):
    wanted = f" where {where.sql}" if where else ""
    found = spark.sql(f"select * from {_name(table, version)}{wanted}").collect()
    return [row.asDict(recursive=True) for row in found]


def count(table):
    return spark.sql(f"select count(*) from {_name(table)}").collect()[0][0]


def total(table, column):
    return spark.sql(f"select sum({column}) from {_name(table)}").collect()[0][0]


def schema(table):
    return [(f.name, f.dataType.simpleString()) for f in spark.table(_name(table)).schema]


def append(table, rows):
    spark.sql(rows.select()).write.format("delta").mode("append").save(table)


def overwrite(table, rows):
    spark.sql(rows.select()).write.format("delta").mode("overwrite").save(table)


def delete(table, where):
    spark.sql(f"delete from {_name(table)} where {where.sql}")


def update(table, where, column, value):
    spark.sql(f"update {_name(table)} set {column} = {kit.literal(value)} where {where.sql}")


def merge(table, rows, column):
    spark.sql(
        f"merge into {_name(table)} t using ({rows.select()}) s on t.{column} = s.{column}"
        f" {rows.merge_clauses()}"
    )


def optimize(table):
    spark.sql(f"optimize {_name(table)}")


def vacuum(table):
    spark.sql(f"vacuum {_name(table)} retain 0 hours")


def configure(table, key, value):
    spark.sql(f"alter table {_name(table)} set tblproperties ('{key}' = '{value}')")
