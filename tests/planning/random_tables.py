"""Random real Delta tables: what a seed makes of them, as the statements that Spark runs.

Equal seeds give equal tables, so that a seed alone reproduces a case.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import deltalake
import pyarrow as pa
from pyarrow import parquet

from tests.planning.random_columns import UNUSUAL, Columns, random_columns
from tests.planning.random_requests import STORE, random_requests, store
from tests.recording.delta_spark import DeltaSpark, StatementError, run
from tests.support.catalog_managed import SCHEMA, coordinate, table_folder, testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORIGINS = ("clone", "converted", "restored")
"""how a table can come about, beside CREATE TABLE"""
RESTORE = "restore table"
"""the beginning of the one statement that Spark may refuse, as not every table goes back"""
_VECTORS = "'delta.enableDeletionVectors'"
AGE = "age"
"""stands among the statements where the history is made to look three days older"""
DELTALAKE = "write with deltalake"
"""stands where deltalake makes a table of the Parquet files in `{path}-parquet`"""
TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
_PAIRS = ((1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (2, 5), (2, 6), (2, 7), (3, 7))
# By property, in any case droppable or not; what excludes another is handled where it is chosen.
_SWITCHED_ON = {
    "changeDataFeed": ("delta.enableChangeDataFeed", "true"),
    "deletionVectors": ("delta.enableDeletionVectors", "true"),
    "rowTracking": ("delta.enableRowTracking", "true"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "true"),
    "v2Checkpoint": ("delta.checkpointPolicy", "v2"),
    "typeWidening": ("delta.enableTypeWidening", "true"),
    "materializePartitionColumns": ("delta.enableMaterializePartitionColumnsFeature", "true"),
    "variantShredding-preview": ("delta.enableVariantShredding", "true"),
}
_SWITCHED_OFF = {
    **{key: "false" for key, value in _SWITCHED_ON.values() if value == "true"},
    "delta.checkpointPolicy": "classic",
}
# All that a property may name on an existing table, protection as if an old drop had left it.
_NAMED = (
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    *("columnMapping", "identityColumns", "deletionVectors", "rowTracking", "domainMetadata"),
    *("allowColumnDefaults", "icebergCompatV1", "icebergCompatV2", "icebergCompatV3"),
    *("inCommitTimestamp", "materializePartitionColumns", "checkpointProtection", "timestampNtz"),
    *("v2Checkpoint", "vacuumProtocolCheck", "typeWidening", "typeWidening-preview"),
    *("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"),
    *("geospatial", "geospatial-dev", "coordinatedCommits-preview"),
)


_ICEBERG = frozenset(name for name in _NAMED if name.startswith("icebergCompat"))


class Draft(NamedTuple):
    """A table that does not exist yet."""

    seed: int
    statements: tuple[str, ...]
    """SQL in which `{t}` is the table, `{source}` another and `{path}` its folder; or AGE,
    DELTALAKE, or a line that begins with STORE"""
    managed: bool = False
    """whether a catalog manages the table"""


class Place(NamedTuple):
    """Where a table is, and what it is called."""

    path: str
    name: str
    """the path, or the name of a table that its catalog manages"""

    @property
    def sql(self) -> str:
        return f"delta.`{self.path}`" if self.name == self.path else self.name


def draft(seed: int, *, managed: bool = False, stored: bool = False) -> Draft:
    """The table of a seed; if `stored`, its metadata also has protocol properties."""
    drafted = _Drafting(seed, managed=managed).done()
    if not stored:
        return drafted
    return drafted._replace(statements=(*drafted.statements, random_requests(seed)))


def drafted_with(
    text: str, seed: int, before: int | None = None, *, managed: bool = False
) -> Iterator[int]:
    """The seeds from `seed` on whose tables are made with such a statement."""
    for each in itertools.count(seed) if before is None else range(seed, before):
        if any(text in statement for statement in draft(each, managed=managed).statements):
            yield each


def make(delta_spark: DeltaSpark, drafted: Draft, path: Path) -> Place:
    """Let Spark make the table at `path`, or one of that name where a catalog says where.

    Raises:
        AssertionError: naming the statement that Spark refuses, which the draft should not hold.
    """
    if drafted.managed:
        return _make_managed(delta_spark, drafted, f"{SCHEMA}.t{path.name.replace('-', '_')}")
    unchecked = any("interval day to second" in text for text in drafted.statements)
    if unchecked:
        delta_spark.sql(f"set {TYPE_CHECK} = false")
    try:
        _run(delta_spark, drafted, path)
    finally:
        if unchecked:
            delta_spark.sql(f"reset {TYPE_CHECK}")
    return Place(str(path), str(path))


def _make_managed(delta_spark: DeltaSpark, drafted: Draft, name: str) -> Place:
    create, *later = (text.replace("{t}", name) for text in drafted.statements)

    def begin(spark: SparkSession) -> str:
        coordinate(spark)
        with testing(spark):
            run(spark, create)
        return str(table_folder(spark, name))

    sql = create
    try:
        path: str = delta_spark.run(create, begin)
        for sql in later:
            if sql == AGE:
                age(path)
            else:
                delta_spark.sql(sql)
    except StatementError as error:
        raise AssertionError(
            f"seed {drafted.seed} drafts what Spark refuses: {sql}\n{error}"
        ) from None
    return Place(path, name)


def _run(delta_spark: DeltaSpark, drafted: Draft, path: Path) -> None:
    for statement in drafted.statements:
        if statement == AGE:
            age(str(path))
            continue
        if statement.startswith(STORE):
            store(str(path), statement)
            continue
        if statement == DELTALAKE:
            deltalake.write_deltalake(str(path), _accepted(parquet.read_table(f"{path}-parquet")))
            continue
        sql = statement.replace("{t}", f"delta.`{path}`").replace("{path}", str(path))
        try:
            delta_spark.sql(sql.replace("{source}", f"delta.`{path}-source`"))
        except StatementError as error:
            if statement.startswith(RESTORE):
                continue
            raise AssertionError(
                f"seed {drafted.seed} drafts what Spark refuses: {statement}\n{error}"
            ) from None


def _accepted(table: pa.Table) -> pa.Table:
    """Spark refuses NOT NULL columns beside a TIMESTAMP_NTZ as deltalake 1.6.6 writes them.

    See `tests/planning/test_unlisted_on_spark.py`.
    """
    if not any(pa.types.is_timestamp(field.type) for field in table.schema):
        return table
    return table.cast(pa.schema([_nullable(field) for field in table.schema]))


def _nullable(field: pa.Field) -> pa.Field:
    if pa.types.is_struct(field.type):
        field = field.with_type(pa.struct([_nullable(inner) for inner in field.type]))
    return field.with_nullable(True)


def age(path: str, hours: float = 72) -> None:
    """Make everything in the log look `hours` older, in the same order."""
    for folder, _, names in os.walk(Path(path) / "_delta_log"):
        for name in names:
            file = Path(folder) / name
            past = file.stat().st_mtime - hours * 3600
            os.utime(file, (past, past))


class _Drafting:
    """Chooses, from the layout to the last switch, in the order in which Spark is asked."""

    def __init__(self, seed: int, *, managed: bool) -> None:
        self.seed, self.random, self.managed = seed, Random(seed), managed
        self.dense = self.random.choice((0.05, 0.1, 0.2, 0.4))
        self.statements: list[str] = []
        self.inserts = 0
        self.on = {name for name in _SWITCHED_ON if self.chance()}
        self.mapping = self.random.choice(("name", "name", "id")) if self.chance() else ""
        self.iceberg = ""
        if self.mapping and self.chance(0.4) and not managed:
            self._choose_iceberg()
        self.named = {name for name in _NAMED if self.chance(self.dense / 3)}
        if self.iceberg:
            self.named -= {"deletionVectors", *_ICEBERG}
        self.append_only = self.chance()
        self.origin = Random(f"origin 26 {seed}").choice((*ORIGINS, *[""] * 5))
        unusual = Random(f"types of {seed}")
        self.unusual = "" if self.iceberg else unusual.choice((*UNUSUAL, *[""] * 10))
        self.by_deltalake = unusual.random() < 0.3
        if managed:
            # The catalog switches these on, and every such table has deletion vectors.
            self.on.discard("inCommitTimestamp")
            self.named -= {"coordinatedCommits-preview", *_ICEBERG}
            self.origin, self.unusual = "", ""

    def done(self) -> Draft:
        columns = self._create()
        self._insert(columns)
        later = [*self.later, *([("delta.columnMapping.mode", "name")] if self.map_later else [])]
        self.random.shuffle(later)
        for key, value in later:
            self._set(key, value)
        self.mapping = "name" if self.map_later else self.mapping
        if self.chance(0.5):
            self._insert(columns)
        changes = self._changes(columns)
        self.random.shuffle(changes)
        for change in changes:
            self.statements += change
            columns.follow(change)
            if self.chance(0.3):
                self._insert(columns)
        self._switch_off()
        self._left_behind(columns)
        self._brought_here()
        if self.append_only:
            self._set("delta.appendOnly", "true")
        return Draft(self.seed, tuple(self.statements), self.managed)

    def chance(self, share: float | None = None) -> bool:
        return self.random.random() < (self.dense if share is None else share)

    def _choose_iceberg(self) -> None:
        self.iceberg = self.random.choice(("1", "2", "2", "3"))
        self.on -= {"deletionVectors", "variantShredding-preview"}
        self.on |= {"rowTracking"} if self.iceberg == "3" else set()

    def _create(self) -> Columns:
        columns = random_columns(
            *(self.random, self.dense),
            mapped=bool(self.mapping),
            iceberg=bool(self.iceberg),
            unusual=self.unusual,
        )
        first: dict[str, str] = {}
        if self.mapping:
            first["delta.columnMapping.mode"] = self.mapping
        if self.iceberg:
            first[f"delta.enableIcebergCompatV{self.iceberg}"] = "true"
        if columns.defaults:
            first["delta.feature.allowColumnDefaults"] = "supported"
        if self.chance(0.3):
            reader, writer = self.random.choice(_PAIRS)
            first |= {"delta.minReaderVersion": str(reader), "delta.minWriterVersion": str(writer)}
        if self.chance(0.4):
            first["delta.checkpointInterval"] = self.random.choice(("1", "2", "5"))
        if self.chance(0.1):
            first["delta.dropFeatureTruncateHistory.retentionDuration"] = "interval 48 hours"
        if self.chance(0.1):
            first["delta.logRetentionDuration"] = "interval 7 days"
        self.later: list[tuple[str, str]] = []
        wanted = [_SWITCHED_ON[name] for name in sorted(self.on)]
        wanted += [(f"delta.feature.{name}", "supported") for name in sorted(self.named)]
        for key, value in wanted:
            needed_now = self.iceberg == "3" and key == "delta.enableRowTracking"
            if self.chance(0.5) or needed_now:
                first[key] = value
            else:
                self.later.append((key, value))
        self.map_later = not self.mapping and self.chance()
        if self.origin == "converted" and columns.plain and not self.mapping:
            self._convert(columns, first)
            return columns
        if self.managed:
            first["delta.feature.catalogManaged"] = "supported"
        properties = ", ".join(f"'{key}'='{value}'" for key, value in first.items())
        self.statements.append(
            f"create table {{t}} ({columns.declared}) using delta {columns.layout}"
            + (f" tblproperties ({properties})" if properties else "")
        )
        return columns

    def _convert(self, columns: Columns, first: Mapping[str, str]) -> None:
        """Parquet files become a table, which gets its properties later."""
        self.inserts += 1
        if self.by_deltalake:
            self.statements += [columns.files("{path}-parquet"), DELTALAKE]
        else:
            self.statements += [columns.files(), "convert to delta parquet.`{path}`"]
        for key, value in first.items():
            if key not in ("delta.minReaderVersion", "delta.minWriterVersion"):
                self._set(key, value)

    def _set(self, key: str, value: str) -> None:
        self.statements.append(f"alter table {{t}} set tblproperties ('{key}'='{value}')")

    def _insert(self, columns: Columns) -> None:
        start = self.inserts * 10
        self.inserts += 1
        self.statements.append(columns.insert(start, self.random.choice((1, 1, 2))))

    def _changes(self, columns: Columns) -> list[list[str]]:
        """Groups of statements whose order does not matter."""
        found: list[list[str]] = []
        if "typeWidening" in self.on or (
            "typeWidening-preview" in self.named and "typeWidening" in self.on
        ):
            found += [[text] for text in columns.widenings if self.chance(0.6)]
        if self.mapping:
            found += [[text] for text in columns.renamings if self.chance(0.3)]
        if self.chance():
            found.append(["alter table {t} add constraint positive check (id >= 0)"])
            if self.chance(0.3):
                found[-1].append("alter table {t} add constraint Small check (id < 1000)")
        for at in range(0, 10 * self.inserts, 10):
            if self.chance(0.4):
                found.append([f"delete from {{t}} where id = {at + 1}"])
            if self.chance(0.2):
                found.append([f"update {{t}} set word = 'new' where id = {at + 2}"])
        if not columns.partitioned and self.chance(self.dense / 2):
            found.append(["alter table {t} cluster by (id)"])
        return found

    def _brought_here(self) -> None:
        """The table is a clone of what was made so far, or is what it once was."""
        if self.origin == "clone":
            # Delta does not clone vectors that the clone's own properties forbid.
            self.statements = [
                text.replace("{t}", "{source}")
                for text in self.statements
                if not (_VECTORS in text and ("unset" in text or "'false'" in text))
            ]
            self.statements.append("create table {t} shallow clone {source}")
        elif self.origin == "restored":
            self.statements.append(f"{RESTORE} {{t}} to version as of 1")

    def _switch_off(self) -> None:
        for name in sorted(self.on):
            key, _ = _SWITCHED_ON[name]
            if self.chance(0.25) and not (self.iceberg == "3" and name == "rowTracking"):
                if self.chance(0.3):
                    self.statements.append(f"alter table {{t}} unset tblproperties ('{key}')")
                else:
                    self._set(key, _SWITCHED_OFF[key])
        # Delta Spark never switches the third off.
        if self.iceberg and self.chance(0.3) and self.iceberg != "3":
            self._set(f"delta.enableIcebergCompatV{self.iceberg}", "false")
        if any("add constraint" in text for text in self.statements) and self.chance(0.3):
            self.statements.append("alter table {t} drop constraint positive")
        clustered = any("cluster by" in text for text in self.statements)
        if clustered and self.chance(0.3):
            self.statements.append("alter table {t} cluster by none")

    def _left_behind(self, columns: Columns) -> None:
        """An earlier drop, and then perhaps a long time."""
        kept = self.managed or "coordinatedCommits-preview" in self.named
        if self.chance(self.dense / 2) and not kept:
            if "vacuumProtocolCheck" not in self.named:
                self._set("delta.feature.vacuumProtocolCheck", "supported")
            self.statements.append("alter table {t} drop feature vacuumProtocolCheck")
        if self.chance(0.15):
            self.statements.append(AGE)
            if self.chance(0.5):
                self._insert(columns)
