"""Real Delta tables, made by Spark: every feature that a path table can get."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import pytest
from filelock import FileLock

from deltaproto.certification.verify_writes import FEW_ROWS
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import missing, needs_delta, skip_below

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet
    from pyspark.sql import SparkSession

CACHE = Path(__file__).parents[2] / ".cache" / "tables"


class Recipe(NamedTuple):
    """How to make one table. `{t}` in a statement is the table."""

    columns: str
    properties: str = ""
    clause: str = ""
    rows: str = "select id, cast(id as string) s from range(10)"
    then: tuple[str, ...] = ()
    since: str = "3.1"
    """the first Delta Spark that makes it as it is meant"""


_PLAIN = "id bigint, s string"
RECIPES: dict[str, Recipe] = {
    "plain": Recipe(_PLAIN),
    "oldest": Recipe(_PLAIN, "'delta.minReaderVersion'='1','delta.minWriterVersion'='1'"),
    "not_null": Recipe("id bigint not null, s string"),
    "append_only": Recipe(_PLAIN, "'delta.appendOnly'='true'"),
    "constraint": Recipe(_PLAIN, then=("alter table {t} add constraint positive check (id >= 0)",)),
    "change_data_feed": Recipe(
        _PLAIN, "'delta.enableChangeDataFeed'='true'", then=("delete from {t} where id = 3",)
    ),
    "generated": Recipe(
        "id bigint, s string, twice bigint generated always as (id * 2)",
        rows="select id, cast(id as string) s, id * 2 twice from range(10)",
        since="4.0",
    ),
    "identity": Recipe(
        "n bigint generated always as identity, s string",
        rows="(s) select cast(id as string) from range(10)",
        since="4.0",
    ),
    "mapping_by_name": Recipe(_PLAIN, "'delta.columnMapping.mode'='name'"),
    "mapping_by_id": Recipe(_PLAIN, "'delta.columnMapping.mode'='id'"),
    "vectors_unused": Recipe(_PLAIN, "'delta.enableDeletionVectors'='true'"),
    "vectors_used": Recipe(
        _PLAIN, "'delta.enableDeletionVectors'='true'", then=("delete from {t} where id = 3",)
    ),
    "vectors_off_again": Recipe(
        _PLAIN,
        "'delta.enableDeletionVectors'='true'",
        then=("alter table {t} set tblproperties ('delta.enableDeletionVectors'='false')",),
    ),
    "row_tracking": Recipe(_PLAIN, "'delta.enableRowTracking'='true'", since="3.2"),
    "clustered": Recipe(_PLAIN, clause="cluster by (id)", since="3.2"),
    "clustered_no_more": Recipe(
        _PLAIN, clause="cluster by (id)", then=("alter table {t} cluster by none",), since="3.2"
    ),
    "defaults": Recipe(
        "id bigint, s string default 'x'", "'delta.feature.allowColumnDefaults'='supported'"
    ),
    "iceberg": Recipe(
        _PLAIN, "'delta.columnMapping.mode'='name','delta.enableIcebergCompatV2'='true'"
    ),
    "commit_timestamps": Recipe(_PLAIN, "'delta.enableInCommitTimestamps'='true'", since="3.3"),
    "v2_checkpoint": Recipe(_PLAIN, "'delta.checkpointPolicy'='v2','delta.checkpointInterval'='1'"),
    "widening_unused": Recipe(_PLAIN, "'delta.enableTypeWidening'='true'", since="4.0"),
    "widening_used": Recipe(
        "id int, s string",
        "'delta.enableTypeWidening'='true'",
        rows="select cast(id as int), cast(id as string) from range(10)",
        then=("alter table {t} alter column id type bigint",),
        since="4.0",
    ),
    "timestamp_ntz": Recipe(
        "id bigint, at timestamp_ntz",
        rows="select id, timestamp_ntz'2026-01-01 00:00:00' from range(10)",
    ),
    "variant": Recipe(
        "id bigint, v variant",
        rows="select id, parse_json('{\"a\":1}') from range(10)",
        since="4.0",
    ),
    "legacy_2_5": Recipe(_PLAIN, "'delta.minReaderVersion'='2','delta.minWriterVersion'='5'"),
    "legacy_2_6": Recipe(_PLAIN, "'delta.minReaderVersion'='2','delta.minWriterVersion'='6'"),
    "protected": Recipe(
        _PLAIN,
        "'delta.feature.vacuumProtocolCheck'='supported'",
        then=("alter table {t} drop feature vacuumProtocolCheck",),
        since="4.0",
    ),
    "everything": Recipe(
        "id bigint not null, s string, at timestamp_ntz, small int",
        "'delta.enableChangeDataFeed'='true','delta.columnMapping.mode'='name',"
        "'delta.enableDeletionVectors'='true','delta.enableRowTracking'='true',"
        "'delta.enableTypeWidening'='true','delta.enableInCommitTimestamps'='true',"
        "'delta.checkpointPolicy'='v2'",
        clause="cluster by (id)",
        rows="select id, cast(id as string), null, cast(id as int) from range(10)",
        then=(
            "alter table {t} add constraint positive check (id >= 0)",
            "delete from {t} where id = 3",
            "alter table {t} alter column small type bigint",
        ),
        since="4.0",
    ),
}


class RealTables(Mapping[str, str]):
    """The path of each recipe's table in the cache; Spark makes it on first use."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getitem__(self, name: str) -> str:
        skip_below(RECIPES[name].since, _table(name))
        return str(cached_table(self._spark, name))

    def __iter__(self) -> Iterator[str]:
        return (name for name, r in RECIPES.items() if missing(r.since, _table(name)) is None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def cached_table(spark: SparkSession, name: str) -> Path:
    """Return the path of a recipe's table, which is made once for all runs and processes.

    The cache's key is the recipe with the versions of Spark and Delta; nobody may change a table.
    """
    made_by = f"{version('pyspark')} {version('delta-spark')} {FEW_ROWS}"
    key = hashlib.sha256(f"{made_by} {RECIPES[name]}".encode()).hexdigest()[:12]
    path = CACHE / f"{name}-{key}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{name}.lock"):
        if not path.exists():
            with TemporaryDirectory(dir=CACHE) as folder:
                made = Path(make_table(spark, name, Path(folder) / name))
                made.rename(path)
    return path


def copy_table(delta_spark: DeltaSpark, name: str, path: str) -> str:
    """Copy a recipe's table to `path`, as if it had been made just now, and return `path`."""

    def copy(spark: SparkSession) -> str:
        shutil.copytree(cached_table(spark, name), path)
        files = sorted(Path(path, "_delta_log").rglob("*"))
        passed = time.time_ns() - max(file.stat().st_mtime_ns for file in files)
        for file in files:
            now = file.stat().st_mtime_ns + passed
            os.utime(file, ns=(now, now))
        return path

    return str(delta_spark.run(f"make {name} at {path}: {RECIPES[name]}", copy))


def recipes(names: Iterable[str] = RECIPES) -> list[ParameterSet]:
    """The names of recipes, as a test takes them: each with the release that it needs."""
    return [
        pytest.param(name, marks=needs_delta(RECIPES[name].since, _table(name))) for name in names
    ]


def make_table(spark: SparkSession, name: str, path: Path) -> str:
    """Make the table of a recipe at `path` and return the path."""
    recipe = RECIPES[name]
    table = f"delta.`{path}`"
    properties = f"tblproperties ({recipe.properties})" if recipe.properties else ""
    spark.sql(f"create table {table} ({recipe.columns}) using delta {recipe.clause} {properties}")
    spark.sql(f"insert into {table} {recipe.rows}")
    for statement in recipe.then:
        spark.sql(statement.format(t=table))
    return str(path)


def _table(name: str) -> str:
    return f"the table {name}"
