"""Catalog-managed tables without a server, made with Delta Spark's own in-memory coordinator.

It lives in the JVM of the session, and publishes commits at each tenth version.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "managed"
"""the schema of such tables in `spark_catalog`"""
PROPERTY = "'delta.feature.catalogManaged'='supported'"
_BATCH = 10
_NUMBERS = itertools.count()


def coordinate(spark: SparkSession) -> None:
    """Let the session's catalog coordinate commits, and create the schema."""
    package = spark._jvm.org.apache.spark.sql.delta.coordinatedcommits  # type: ignore[union-attr]
    provider = package.CatalogOwnedCommitCoordinatorProvider
    if not provider.getBuilder("spark_catalog").isDefined():
        provider.registerBuilder("spark_catalog", package.InMemoryCommitCoordinatorBuilder(_BATCH))
    spark.sql(f"create schema if not exists {SCHEMA}")


def new_name(schema: str) -> str:
    """Return a name that no table of this process has had.

    The coordinator and Delta's caches know a location even after its table was dropped.
    """
    return f"{schema}.t{next(_NUMBERS)}"


@contextmanager
def testing(spark: SparkSession) -> Iterator[None]:
    """Let a table be created as catalog-managed, which production code leaves to the catalog."""
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("spark.testing", "true")
    try:
        yield
    finally:
        system.clearProperty("spark.testing")


def table_folder(spark: SparkSession, table: str) -> Path:
    """The folder of a table on this machine."""
    (detail,) = spark.sql(f"describe detail {table}").collect()
    return Path(detail["location"].removeprefix("file:"))
