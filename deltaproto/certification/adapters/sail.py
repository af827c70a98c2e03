# /// script
# dependencies = ["pysail=={version}", "pyspark-client", "pandas<3"]
# ///
"""Sail: its Spark Connect server in this process, with the plain PySpark client."""

import itertools

import kit
import pysail
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
spark = SparkSession.builder.remote("sc://{}:{}".format(*server.listening_address)).getOrCreate()
numbers = itertools.count()


def release():
    return pysail.__version__


def _read(table, version=None):
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(table)


def rows(table, version=None, where=None):
    found = _read(table, version)
    return (found.where(where.sql) if where else found).toArrow()


def count(table):
    return _read(table).count()


def total(table, column):
    return _read(table).agg({column: "sum"}).collect()[0][0]


def schema(table):
    return [(field.name, field.dataType.simpleString()) for field in _read(table).schema.fields]


def append(table, rows):
    spark.createDataFrame(rows.arrow()).write.format("delta").mode("append").save(table)


def overwrite(table, rows):
    spark.createDataFrame(rows.arrow()).write.format("delta").mode("overwrite").save(table)


def _change(table, sql):
    """Run a statement on the table under a temporary name."""
    name = f"target_{next(numbers)}"
    spark.sql(f"create table {name} using delta location '{table}'")
    try:
        spark.sql(sql.format(name))
    finally:
        spark.sql(f"drop table {name}")


def delete(table, where):
    _change(table, f"delete from {{}} where {where.sql}")


def update(table, where, column, value):
    _change(table, f"update {{}} set {column} = {kit.literal(value)} where {where.sql}")


def merge(table, rows, column):
    spark.createDataFrame(rows.arrow()).createOrReplaceTempView("source")
    _change(
        table,
        f"merge into {{}} t using source s on t.{column} = s.{column} {rows.merge_clauses()}",
    )


def configure(table, key, value):
    _change(table, f"alter table {{}} set tblproperties ('{key}' = '{value}')")
