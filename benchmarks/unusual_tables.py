"""Unusual tables that real Spark makes, one for each seed.

Each seed has a story, how the table came about, in turn: 14 in a row have all of them. What else
the table has is random: columns, partition values, and features of other stories.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.certification.fixtures.make import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STORIES = (
    *("clone", "mapped partitions", "mapped later", "clustered", "constraints", "change feed"),
    *("backfilled row tracking", "converted", "restored", "unusual types", "special values"),
    *("another time zone", "deletion vectors", "catalog-managed"),
)
ROWS = 8
"""rows of each of the two INSERTs"""
TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
ZONE = "spark.sql.session.timeZone"
_ZONES = ("America/New_York", "Asia/Kolkata", "Pacific/Auckland", "Europe/Berlin")
_WORDS = (
    *("'a'", "'a b'", "'é'", "'x=1/y'", "'50%'", "'%20'", "'it''s'", "'a:b'", "'ü#?'", "'a+b'"),
    *("''", "null", "'日本'", "'[x]'", "'a&b'", "' lead'", "'__HIVE_DEFAULT_PARTITION__x'"),
)


class _Kind(NamedTuple):
    """A column that a table may have."""

    name: str
    type: str
    value: str
    """an expression of `id`"""


# What may partition a table: few values each.
_PARTS = (
    _Kind("day", "date", "date_add(date'2026-02-28', cast(id % 3 as int))"),
    _Kind("at", "timestamp", "timestamp'2026-03-08 02:30:00' + make_interval(0,0,0,0,id % 3)"),
    _Kind("exact", "timestamp", "timestamp_micros(1770000000123456 + id % 2)"),
    _Kind("noon", "timestamp_ntz", "timestamp_ntz'2026-01-01 12:00:00'"),
    _Kind("small", "int", "if(id % 3 = 0, null, -id % 3)"),
    _Kind("flag", "boolean", "id % 2 = 0"),
    _Kind("price", "decimal(10,2)", "cast(id % 3 + 0.5 as decimal(10,2))"),
    _Kind("ratio", "double", "cast(id % 2 + 0.25 as double)"),
    _Kind("raw", "binary", "cast(concat('b', id % 2) as binary)"),
    _Kind("tiny", "tinyint", "cast(id % 3 as tinyint)"),
)
_PLAIN = (
    *_PARTS,
    _Kind("word", "string", "if(id % 5 = 0, null, concat('wé ', id))"),
    _Kind("listed", "array<int>", "if(id % 4 = 0, null, array(cast(id as int), null))"),
    _Kind("lookup", "map<string,double>", "map('k', id / 2, concat('é', id), null)"),
    _Kind("pair", "struct<a:int,b:string>", "named_struct('a', cast(id as int), 'b', 'x')"),
    _Kind("deep", "array<struct<x:int,m:map<string,date>>>", "array(named_struct('x', 1, "
          "'m', map('k', date'2026-01-01')))"),
    _Kind("odd name", "string", "'odd'"),
    _Kind("Größe", "int", "cast(id as int)"),
    _Kind("a.b", "string", "'dotted'"),
    _Kind("far", "timestamp", "timestamp'1899-12-31 23:59:59.999999'"),
)  # fmt: skip
_UNUSUAL = (
    _Kind("nothing", "void", ""),
    _Kind("loose", "variant", "parse_json(concat('{\"a\": ', id, '}'))"),
    _Kind("span", "interval day to second", "make_dt_interval(cast(id as int), 1, 2, 3.5)"),
    _Kind("months", "interval year to month", ""),
    _Kind("code", "varchar(9)", "concat('c', id)"),
    _Kind("fixed", "char(4)", "'ab'"),
    _Kind("empty", "struct<x:void,y:int>", "named_struct('x', null, 'y', 1)"),
    _Kind("big", "decimal(38,18)", "cast(id / 7 as decimal(38,18))"),
)
_CHECKS = (
    "id >= 0",
    "id < 1000 and id is not null",
    "(id >= 0 or id is null)",
    "length(cast(id as string)) < 9",
    "id between 0 and 1000",
    "id in (0, 900) or id > -1",
    "cast(id as double) >= 0.0",
    "not (id < 0)",
    "coalesce(id, 0) >= 0",
    "abs(id) >= 0",
    "id % 1 = 0",
    "id + 1 > 0",
)


class Made(NamedTuple):
    """A table as Spark knows it."""

    story: str
    path: str
    managed_name: str | None
    """the name by which a catalog manages it"""
    statements: tuple[str, ...]


def make(spark: SparkSession, seed: int, path: Path) -> Made:
    """Let Spark make the table of a seed at `path`, or where a catalog puts it."""
    draft = _Draft(seed)
    if draft.managed:
        return _make_managed(spark, draft, f"managed.unusual{seed}")
    done = []
    with session_settings(spark, {ZONE: draft.zone, TYPE_CHECK: str(not draft.unchecked).lower()}):
        for text in draft.statements:
            sql = text.replace("{t}", f"delta.`{path}`").replace("{path}", str(path))
            done.append(sql.replace("{source}", f"delta.`{path}-source`"))
            spark.sql(done[-1])
    return Made(draft.story, str(path), None, tuple(done))


def _make_managed(spark: SparkSession, draft: _Draft, name: str) -> Made:
    from tests.support.catalog_managed import coordinate, table_folder, testing

    coordinate(spark)
    create, *later = (text.replace("{t}", name) for text in draft.statements)
    spark.sql(f"drop table if exists {name}")
    with testing(spark):
        spark.sql(create)
    for sql in later:
        spark.sql(sql)
    return Made(draft.story, str(table_folder(spark, name)), name, (create, *later))


class _Draft:
    """The statements that make a table, in order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"unusual {seed}")
        self.story = STORIES[seed % len(STORIES)]
        self.managed = self._is("catalog-managed")
        self.zone = self.random.choice(_ZONES) if self._has("another time zone", 0.2) else "UTC"
        self.properties: dict[str, str] = {}
        later: dict[str, str] = {}
        self.mapping = ""
        if self._has("mapped partitions", 0.15):
            self.mapping = self.random.choice(("name", "id"))
            self.properties["delta.columnMapping.mode"] = self.mapping
        elif self._has("mapped later", 0.1):
            later["delta.columnMapping.mode"] = "name"
        if self._has("deletion vectors", 0.25):
            self.properties["delta.enableDeletionVectors"] = "true"
        if self._has("change feed", 0.15):
            self.properties["delta.enableChangeDataFeed"] = "true"
        if self._has("backfilled row tracking", 0.1):
            later["delta.enableRowTracking"] = "true"
        for key, value in (
            ("delta.checkpointPolicy", "v2"),
            ("delta.enableInCommitTimestamps", "true"),
            ("delta.appendOnly", "false"),
            ("delta.enableTypeWidening", "true"),
            ("delta.checkpointInterval", "2"),
            ("delta.randomizeFilePrefixes", "true"),
            ("delta.feature.materializePartitionColumns", "supported"),
            ("delta.dataSkippingNumIndexedCols", "0"),
        ):
            if self.random.random() < 0.08:
                self.properties[key] = value
        self._choose_columns()
        if self.parts and self.random.random() < 0.5:
            # As releases before 4.4 write files, and other engines.
            self.properties["delta.writePartitionColumnsToParquet"] = "false"
        self.statements: list[str] = []
        self._create()
        for start in (0, ROWS)[self._is("converted") :]:
            self._insert(start)
        self.statements += [
            f"alter table {{t}} set tblproperties ('{key}'='{value}')"
            for key, value in later.items()
        ]
        self._change()

    def _is(self, *stories: str) -> bool:
        return self.story in stories

    def _has(self, story: str, share: float) -> bool:
        """Return whether the table has what the story is about; it draws in any case."""
        return (self.random.random() < share and not self._is("catalog-managed")) or self._is(story)

    def _choose_columns(self) -> None:
        converted = self._is("converted")
        plain = [kind for kind in _PLAIN if kind.name not in ("odd name", "a.b") or self.mapping]
        self.kinds = [_Kind("id", "bigint", "id")]
        self.kinds += self.random.sample(plain, self.random.randint(2, 6))
        if self._has("unusual types", 0.1) and not converted:
            self.kinds += self.random.sample(_UNUSUAL, self.random.randint(1, 2))
        self.unchecked = any(kind.type.startswith("interval") for kind in self.kinds)
        self.parts: list[str] = []
        self.clustered = self._is("clustered") or (self.managed and self.random.random() < 0.3)
        wanted = self._is("mapped partitions", "special values", "another time zone")
        if self._has("special values", 0.15):
            self._partition_by(_Kind("sort", "string", self._words()))
        if not self.clustered and (wanted or self.random.random() < 0.35):
            names = ("at", "exact") if self._is("another time zone") else ()
            candidates = [kind for kind in _PARTS if not names or kind.name in names]
            if converted:
                # CONVERT TO DELTA parses no other types here.
                candidates = [k for k in candidates if k.type in ("date", "int", "boolean")]
            self._partition_by(self.random.choice(candidates))
        if self.clustered:
            self.parts = []

    def _words(self) -> str:
        words = self.random.sample(_WORDS, 3)
        return f"element_at(array({', '.join(words)}), cast(id % 3 + 1 as int))"

    def _partition_by(self, kind: _Kind) -> None:
        if kind.name not in (other.name for other in self.kinds):
            self.kinds.append(kind)
        self.parts.append(kind.name)

    def _create(self) -> None:
        by = ", ".join(f"`{name}`" for name in self.parts)
        layout = f"partitioned by ({by})" if by else "cluster by (id)" if self.clustered else ""
        if self._is("converted"):
            values = ", ".join(f"{k.value} as `{k.name}`" for k in self.kinds)
            self.statements.append(
                f"create table parquet_source using parquet {layout} location '{{path}}' as "
                f"select {values} from range(0, {ROWS}, 1, 2)"
            )
            types = {k.name: k.type for k in self.kinds}
            schema = ", ".join(f"`{name}` {types[name]}" for name in self.parts)
            self.statements += [
                "drop table parquet_source",
                "convert to delta parquet.`{path}`"
                + (f" partitioned by ({schema})" if schema else ""),
            ]
            self.statements += [
                f"alter table {{t}} set tblproperties ('{key}'='{value}')"
                for key, value in self.properties.items()
            ]
            return
        properties = dict(self.properties)
        if self.managed:
            properties["delta.feature.catalogManaged"] = "supported"
        pairs = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        columns = ", ".join(f"`{kind.name}` {kind.type}" for kind in self.kinds)
        self.statements.append(
            f"create table {{t}} ({columns}) using delta {layout}"
            + (f" tblproperties ({pairs})" if pairs else "")
        )

    def _insert(self, start: int) -> None:
        given = [kind for kind in self.kinds if kind.value]
        names = ", ".join(f"`{kind.name}`" for kind in given)
        values = ", ".join(kind.value for kind in given)
        self.statements.append(
            f"insert into {{t}} ({names}) select {values} from range({start}, {start + ROWS}, 1, 2)"
        )

    def _change(self) -> None:
        if self._has("constraints", 0.1):
            check = self.random.choice(_CHECKS)
            self.statements.append(f"alter table {{t}} add constraint sane check ({check})")
        if self.random.random() < 0.6 or self._is("deletion vectors"):
            self.statements.append("delete from {t} where id in (3, 9)")
        if self.random.random() < 0.4:
            self.statements.append("update {t} set id = 50 where id = 5")
        if self.random.random() < 0.2 and not self.managed:
            self.statements.append("optimize {t}")
        if self.mapping and self.random.random() < 0.4:
            name = next((k.name for k in self.kinds[1:] if k.name not in self.parts), "")
            if name:
                change = self.random.choice((f"rename column `{name}` to `other`", "drop"))
                change = f"drop column `{name}`" if change == "drop" else change
                self.statements.append(f"alter table {{t}} {change}")
        if self._is("restored"):
            self.statements.append("restore table {t} to version as of 2")
        if self._is("clone"):
            self.statements = [text.replace("{t}", "{source}") for text in self.statements]
            self.statements.append("create table {t} shallow clone {source}")
            if self.random.random() < 0.5:
                self.statements.append("delete from {t} where id = 12")
