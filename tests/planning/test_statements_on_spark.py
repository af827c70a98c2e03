"""Statements that people write: as predicted, and as Spark does them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.user_statement import ParsedStatement
from tests.planning.oracle import agree, came_true, execute, look
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta
from tests.support.tables import copy_table

NESTED = "st struct<a: int, b: int>, ar array<int>, m map<string, int>"
MAPPED = "tblproperties ('delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
WIDENING = "tblproperties ('delta.enableTypeWidening' = 'true')"

# What the table is made of, or the name of a recipe; then one statement after the other.
CASES: dict[str, tuple[str, str]] = {
    "columns-added": (
        f"(id bigint, s string, {NESTED})",
        """
        alter table {t} add column (x int);
        alter table {t} add columns (y timestamp_ntz);
        alter table {t} add columns (y2 struct<a: int, b: array<timestamp_ntz>>);
        alter table {t} add column X string;
        alter table {t} add columns (n int not null);
        alter table {t} add columns (n struct<a: int not null>);
        alter table {t} add columns (d int default 5);
        alter table {t} add columns (g bigint generated always as (id * 2));
        alter table {t} add columns (g geography(4326));
        alter table {t} add columns (`a b` int);
        alter table {t} add columns (i interval day);
        alter table {t} add columns (q string collate utf8_lcase);
        alter table {t} add columns (q int, q int);
        alter table {t} add column st.c string comment 'it''s; here', ar2 array<struct<a: int>>;
        alter table {t} add column ar2.element.b decimal(5, 2);
        alter table {t} add column nope.b int;
        alter table {t} add column id.b int;
        alter table {t} add column z int after nope;
        alter table {t} add column z int first;
        alter table {t} add column st.z int after A;
        alter table {t} add columns (c char(5), vc varchar(7), v variant)
        """,
    ),
    "defaults": (
        "(id bigint, s string)",
        """
        alter table {t} alter column id set default 5;
        alter table {t} alter column id drop default;
        alter table {t} set tblproperties ('delta.FEATURE.allowcolumndefaults' = 'supported');
        alter table {t} add columns (d int default 5);
        alter table {t} alter column id set default 5 + 1;
        alter table {t} alter column nope set default 5
        """,
    ),
    "constraints": (
        "(id bigint, s string)",
        """
        alter table {t} add constraint Cc check (id > 0 and s <> ';');
        alter table {t} add constraint cC check (id > 0);
        alter table {t} drop constraint nope;
        alter table {t} drop constraint if exists nope;
        alter table {t} add constraint pk primary key (id);
        alter table {t} add constraint d check (id > 0) not enforced;
        alter table {t} rename column id to id2;
        alter table {t} drop constraint if exists CC
        """,
    ),
    "names-under-mapping": (
        f"(id bigint, s string, {NESTED}, g bigint generated always as (id * 2)) using delta "
        f"{MAPPED}",
        """
        alter table {t} add constraint positive check (length(s) > 0);
        alter table {t} drop column s;
        alter table {t} rename column id to i;
        alter table {t} drop columns (id);
        alter table {t} alter column id type decimal(20, 0);
        alter table {t} alter column g type decimal(20, 0);
        alter table {t} drop column g;
        alter table {t} rename column nope to x;
        alter table {t} rename column st to id;
        alter table {t} rename column st.a to aa;
        alter table {t} drop columns (st.aa, m);
        alter table {t} drop column st.b;
        alter table {t} drop columns (nope);
        alter table {t} drop column if exists nope;
        alter table {t} rename column id to `i d`;
        alter table {t} replace columns (s string, n int);
        alter table {t} replace columns (s string, st struct<b: int>, `i d` bigint)
        """,
    ),
    "names-without-mapping": (
        "(id bigint, s string)",
        """
        alter table {t} rename column s to s2;
        alter table {t} drop column s;
        alter table {t} drop column nope;
        alter table {t} rename column s to S;
        alter table {t} change column s s2 string;
        alter table {t} change s s string comment 'y';
        alter table {t} alter column s comment 'y';
        alter table {t} alter column s after nope;
        alter table {t} alter column s first;
        alter table {t} change column s s string after id;
        alter table {t} alter column s type string;
        alter table {t} change column s s int;
        alter table {t} replace columns (id bigint);
        alter table {t} replace columns (id bigint, s int);
        alter table {t} replace columns (id bigint not null, s string);
        alter table {t} replace columns (s string, id bigint, v variant)
        """,
    ),
    "types-widened": (
        f"(b tinyint, sh smallint, i int, f float, d date, dc decimal(5, 2), s string, {NESTED}, "
        f"vc varchar(5), ch char(3), l bigint) using delta {WIDENING}",
        """
        alter table {t} alter column b type smallint;
        alter table {t} alter column b type decimal(10, 0);
        alter table {t} alter column sh type double;
        alter table {t} alter column i type bigint;
        alter table {t} alter column i type int;
        alter table {t} alter column f type double;
        alter table {t} alter column d type timestamp_ntz;
        alter table {t} alter column dc type decimal(8, 4);
        alter table {t} alter column dc type decimal(7, 2);
        alter table {t} alter column l type double;
        alter table {t} alter column l type decimal(20, 0);
        alter table {t} alter column st.a type bigint;
        alter table {t} alter column ar.element type bigint;
        alter table {t} alter column m.value type bigint;
        alter table {t} alter column m.key type varchar(5);
        alter table {t} alter column ar.element comment 'x';
        alter table {t} alter column st type struct<a: bigint>;
        alter table {t} alter column ar type array<decimal(20, 0)>;
        alter table {t} alter column st type int;
        alter table {t} alter column i type interval day;
        alter table {t} alter column vc type varchar(4);
        alter table {t} alter column vc type string;
        alter table {t} alter column ch type varchar(5);
        alter table {t} alter column s type varchar(5);
        alter table {t} alter column nope type int;
        alter table {t} set tblproperties ('delta.feature.timestampNtz' = 'supported');
        alter table {t} alter column d type timestamp_ntz
        """,
    ),
    "types-as-they-are": (
        "(b tinyint, d date, s string, vc varchar(5))",
        """
        alter table {t} alter column b type smallint;
        alter table {t} alter column b type string;
        alter table {t} alter column d type timestamp_ntz;
        alter table {t} alter column vc type varchar(9)
        """,
    ),
    "not-null": (
        "(id bigint not null, s string, st struct<a: int not null>)",
        """
        alter table {t} alter column s set not null;
        alter table {t} alter column id set not null;
        alter table {t} alter column id drop not null;
        alter table {t} alter column st.a drop not null
        """,
    ),
    "identity": (
        "(n bigint generated always as identity, s string)",
        """
        alter table {t} alter column n sync identity;
        alter table {t} alter column s sync identity;
        alter table {t} alter column n drop not null;
        alter table {t} alter column n comment 'x';
        alter table {t} replace columns (n bigint, s string)
        """,
    ),
    "partitioned": (
        f"(id bigint, p string, k int) using delta partitioned by (p) {MAPPED}",
        """
        alter table {t} drop column p;
        alter table {t} rename column p to q;
        alter table {t} cluster by (id);
        alter table {t} cluster by none;
        optimize {t} where q = 'a';
        optimize {t} where k = 1;
        optimize {t} zorder by (q);
        reorg table {t} where k > 1 apply (purge)
        """,
    ),
    "clustered": (
        f"(id bigint, s string, {NESTED}) using delta cluster by (id, st.a) {MAPPED}",
        """
        alter table {t} drop column id;
        optimize {t} zorder by (s);
        optimize {t} where id = 3;
        alter table {t} rename column id to i;
        alter table {t} rename column st to tt;
        alter table {t} cluster by (nope);
        alter table {t} cluster by (s, S);
        alter table {t} cluster by (s, ar);
        alter table {t} cluster by (i, s, tt.a, tt.b, m);
        alter table {t} cluster by auto;
        alter table {t} cluster by (s);
        optimize {t} full;
        alter table {t} cluster by none;
        optimize {t} full;
        alter table {t} drop column i
        """,
    ),
    "clustered-late": (
        "(id bigint, s string)",
        """
        alter table {t} cluster by none;
        alter table {t} cluster by (ID)
        """,
    ),
    "upkeep": (
        "plain",
        """
        optimize {t};
        optimize {t} zorder by (id);
        optimize {t} zorder by nope;
        vacuum {t} retain 200 hours;
        vacuum {t} dry run;
        reorg table {t} apply (purge);
        analyze table {t} compute statistics;
        describe history {t};
        select ';' from {t};
        comment on table {t} is 'x';
        alter table {t} add column x int;
        restore table {t} to version as of 1;
        alter table if exists {t} add columns (x int);
        truncate table {t}
        """,
    ),
    "rows": (
        "vectors_unused",
        """
        insert into {t} values (11, 'x');
        insert into {t} select * from {t} where id < 0;
        with q as (select 5L id, 's' s) insert into {t} select * from q;
        update {t} set s = 'k' where id = 4;
        delete from {t} where id = 5;
        merge into {t} as x using (select 1L id) y on x.id = y.id when matched then delete;
        insert overwrite {t} values (3, 'c');
        insert with schema evolution into {t} select 9L id, 'x' s, 4 z;
        reorg table {t} apply (purge)
        """,
    ),
    "append-only": (
        "append_only",
        """
        delete from {t} where id = 3;
        truncate table {t};
        insert overwrite {t} values (3, 'c');
        replace table {t} (id bigint) using delta;
        insert into {t} values (3, 'c')
        """,
    ),
    "uniform-2": (
        "vectors_used",
        """
        reorg table {t} apply (upgrade uniform (iceberg_compat_version = 3));
        reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2));
        alter table {t} add column (v variant);
        alter table {t} add column (m map<string, int>);
        reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2));
        reorg table {t} apply (upgrade uniform (iceberg_compat_version = 1))
        """,
    ),
    "uniform-1": (
        "(id bigint, s string)",
        """
        reorg table {t} apply (upgrade uniform (iceberg_compat_version = 1));
        alter table {t} add column (a array<int>)
        """,
    ),
    "uniform-by-id": (
        "mapping_by_id",
        "reorg table {t} apply (upgrade uniform (iceberg_compat_version = 2))",
    ),
    "properties-as-written": (
        "(id bigint)",
        """
        alter table {t} set tblproperties (delta.enabledeletionVECTORS = true, k = 3);
        alter table {t} set tblproperties ('delta.nosuch' = 'x');
        alter table {t} set tblproperties ('owner' = 'x');
        alter table {t} set tblproperties ('x');
        alter table {t} unset tblproperties if exists (k, 'delta.enableDeletionVectors');
        alter table {t} drop feature nope;
        alter table {t} drop feature `delta.enableDeletionVectors`
        """,
    ),
    "replaced-by-path": (
        "vectors_used",
        """
        create or replace table {t} (id bigint, z int) using delta;
        create or replace table {t} (id bigint, s string) using delta;
        replace table {t} (id bigint, z timestamp_ntz) using delta;
        replace table {t} (id bigint, z varchar(5) not null, c date) using delta
            partitioned by (c) tblproperties ('delta.feature.timestampNtz' = 'supported');
        create or replace table {t} using delta as select 1L id, 'a' s;
        replace table {t} (id bigint default 3) using delta;
        replace table {t} (id bigint) using parquet;
        replace table {t} (id bigint, check (id > 0)) using delta;
        replace table {t} using delta;
        replace table {t} (`i d` bigint) using delta;
        replace table {t} (id bigint, s string) using delta cluster by (s)
            tblproperties ('delta.enableChangeDataFeed' = 'true');
        replace table {t} (id bigint, s string) using delta partitioned by (s);
        replace table {t} (id bigint, g bigint generated always as (id + 1),
            i bigint generated by default as identity (start with 5)) using delta
            tblproperties ('delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')
        """,
    ),
    "replaced-to-iceberg": (
        "row_tracking",
        """
        replace table {t} (id bigint) using delta
            tblproperties ('delta.enableIcebergCompatV2' = 'true');
        create or replace table {t} deep clone {t};
        create table {t} shallow clone {t}
        """,
    ),
}


OWN = "each statement as this release and its Spark take it"
_AS_PINNED = """
append-only clustered constraints defaults names-under-mapping names-without-mapping
properties-as-written replaced-by-path rows types-widened uniform-1 uniform-2 upkeep
"""
NEWER = {
    **dict.fromkeys(_AS_PINNED.split(), ("4.4", OWN)),
    "columns-added": ("4.3", "geospatial"),
    "identity": ("4.4", "identity columns in SQL, and the errors of its Spark"),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[needs_delta(*NEWER[name])] if name in NEWER else [])
        for name in CASES
    ],
)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    made, script = CASES[name]
    path = str(tmp_path / "t")
    if made.startswith("("):
        made = made if "using delta" in made else f"{made} using delta"
        delta_spark.sql(f"create table delta.`{path}` {made}")
    else:
        copy_table(delta_spark, made, path)
    for each in parse_script(script.format(t=f"delta.`{path}`")):
        _as_predicted(delta_spark, path, each)


@needs_delta("4.4", OWN)
def test_a_table_with_a_name_is_replaced_as_predicted(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    delta_spark.sql(
        "create table named_one (id bigint, s string) using delta cluster by (id) "
        f"location '{path}' tblproperties ('delta.enableDeletionVectors' = 'true', 'k' = 'v')"
    )
    delta_spark.sql("insert into named_one values (1, 'a')")
    script = """
        create or replace table named_one (id bigint, v variant) using delta;
        create or replace table named_one using delta as select 1L id;
        create table if not exists named_one (other int) using delta;
        create table named_one (other int) using delta
    """
    try:
        for each in parse_script(script):
            assert each.target == ("named_one",)
            _as_predicted(delta_spark, path, each)
    finally:
        delta_spark.sql("drop table named_one")


def test_dropping_a_struct_that_holds_a_clustering_column_breaks_the_table(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} (id int, st struct<a: int>) using delta cluster by (st.a) {MAPPED}"
    )
    delta_spark.sql(f"insert into {table} values (1, named_struct('a', 1))")
    (each,) = parse_script(f"alter table {table} drop column st")
    said = each.statement.outcome(look(path), RUNNING)
    assert said.warnings
    agree(said, execute(delta_spark, path, each.text))
    assert execute(delta_spark, path, f"optimize {table}").error is not None


def _as_predicted(delta_spark: DeltaSpark, path: str, each: ParsedStatement) -> None:
    assert each.understood, each
    said = each.statement.outcome(look(path), RUNNING)
    agree(said, execute(delta_spark, path, each.text))
    came_true(said, look(path), each.text)
