"""Scripts and statements as they are read; none of it needs Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.ddl.cursor import Cursor, split_script
from deltaproto.planning.ddl.maintenance import Optimize, PurgeWhere, Vacuum
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.restore import Restore
from deltaproto.planning.ddl.rows import RowClauses, RowStatement
from deltaproto.planning.ddl.types import parse_column_definition
from deltaproto.planning.ddl.user_statement import NotUnderstood, UpgradeUniform, UserStatement
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    Map,
    Struct,
    find_column,
    parse_schema,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import (
    ClusterBy,
    DropFeature,
    Purge,
    SetProperties,
    Statement,
    UnsetProperties,
)
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import quote_identifier, quote_literal
from deltaproto.sql.tokens import scan_tokens
from tests.planning.bare import bare_table
from tests.support.engines import RUNNING
from tests.support.failures import each_row

PLAIN = Table(Protocol(1, 2), schema=Struct((Column("id", Atomic("long")),)), vectors=False)
DATABRICKS = Engine(EngineName.DATABRICKS, "17.3")
# Pieces that make trouble for whoever looks for semicolons.
PIECES = st.sampled_from(
    (
        *("a", "`x;y`", "';'", '";"', "/* ; /* */ ; */", "--;\n", "r'\\'", "''", "\\", "(", ")"),
        *(" ", "\n", "alter", "table", "t", "add", "column", "set", ",", "<", ">", "create"),
        *("drop", "'it''s;'"),
    )
)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for each in parse_script(text):
        assert each.text in text
        assert each.statement.outcome(PLAIN, Engine()) is not None


@given(st.lists(PIECES).map("".join))
def test_troublesome_text_is_read(text: str) -> None:
    for each in parse_script(text):
        assert each.text in text
        each.statement.outcome(PLAIN, Engine())


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t change column a a bigint comment 'c' after b",
        "alter table if exists t add columns (a struct<b: int not null> first, c decimal(5, 2))",
        "alter table t add constraint c check (a > 1) not enforced",
        "create or replace table t (a int default 1, constraint c check (a > 1)) cluster by (a)",
        "reorg table t where a = 1 apply (upgrade uniform (iceberg_compat_version = 2))",
        "with q as (select 1) insert into t values (1)",
        "optimize t where a = 1 zorder by (b, c)",
        "vacuum t using inventory (select 1) retain 1 hours dry run",
    ],
)
def test_a_statement_may_break_off_anywhere(sql: str) -> None:
    for token in scan_tokens(sql):
        (each,) = parse_script(sql[: token.end])
        each.statement.outcome(PLAIN, Engine())


@given(
    st.lists(st.text().map(quote_literal) | st.text(min_size=1).map(quote_identifier), min_size=1)
)
def test_semicolons_in_strings_and_names_part_nothing(words: list[str]) -> None:
    statement = "select " + ", ".join(words)
    script = f"-- first;\n{statement};\n/* ; /* nested; */ */\n{statement} ;;"
    assert [piece.text for piece in split_script(script)] == [statement, statement]


@given(st.text())
def test_a_literal_stands_for_its_text(text: str) -> None:
    (token,) = scan_tokens(quote_literal(text))
    assert token.string
    assert token.value == text


@given(st.text(min_size=1))
def test_a_quoted_name_stands_for_its_text(text: str) -> None:
    (token,) = scan_tokens(quote_identifier(text))
    assert token.quoted
    assert token.value == text


@given(st.dictionaries(st.text(min_size=1).map("k".__add__), st.text(), min_size=1))
def test_properties_come_back(properties: dict[str, str]) -> None:
    (each,) = parse_script(SetProperties(properties).sql("t"))
    assert each.statement == SetProperties(properties)
    assert each.target == ("t",)


def test_lines_are_counted() -> None:
    found = parse_script("\n-- the first\nselect 1;\n\n/* a\nb */ select 2")
    assert [(each.text, each.line) for each in found] == [("select 1", 3), ("select 2", 6)]


@pytest.mark.parametrize("sql", ["", " ; ;", "-- nothing", "/* nothing"])
def test_a_script_without_statements(sql: str) -> None:
    assert parse_script(sql) == []


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("ALTER TABLE t DROP FEATURE deletionVectors", DropFeature("deletionVectors")),
        (
            "alter table t drop feature 'v2Checkpoint' truncate history",
            DropFeature("v2Checkpoint", truncate=True),
        ),
        ("ALTER TABLE t CLUSTER BY NONE", ClusterBy(())),
        ("REORG TABLE t APPLY (PURGE)", Purge()),
        (
            "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS (delta.APPENDONLY, 'k')",
            UnsetProperties(("delta.appendOnly", "k")),
        ),
        (
            "ALTER TABLE t SET TBLPROPERTIES ('delta.COLUMNMAPPING.mode' = 'name', a.b 3)",
            SetProperties({"delta.columnMapping.mode": "name", "a.b": "3"}),
        ),
    ],
)
def test_statements_that_plans_make_themselves(sql: str, statement: object) -> None:
    (each,) = parse_script(sql)
    assert each.statement == statement


@pytest.mark.parametrize(
    ("sql", "vacuum"),
    [
        ("vacuum t retain 12.5 hours", Vacuum(hours=12.5)),
        ("vacuum t lite retain 0 hours dry run", Vacuum(hours=0, dry=True)),
        ("vacuum t using inventory (select 1) full dry run", Vacuum(dry=True)),
    ],
)
def test_how_vacuum_is_called(sql: str, vacuum: Vacuum) -> None:
    (each,) = parse_script(sql)
    assert isinstance(each.statement, UserStatement)
    assert each.statement.effect == vacuum


@pytest.mark.parametrize(
    ("sql", "target", "operation"),
    [
        ("alter table a.`b.c`.d add column x int", ("a", "b.c", "d"), Operation.METADATA_CHANGE),
        ("alter table t drop feature x", ("t",), Operation.PROTOCOL_CHANGE),
        ("optimize delta.`/a/b` zorder by x", ("delta", "/a/b"), Operation.OPTIMIZE_ZORDER),
        ("optimize '/a/b'", ("delta", "/a/b"), Operation.OPTIMIZE),
        ("reorg table t apply (purge)", ("t",), Operation.REORG),
        ("vacuum t", ("t",), None),
        ("insert into t values (1)", ("t",), Operation.INSERT),
        ("insert into table db.t (a) select a from u", ("db", "t"), Operation.INSERT),
        ("insert into t select * from db.t", ("t",), Operation.MERGE),
        ("insert overwrite t values (1)", ("t",), Operation.DELETE),
        ("insert into t replace where a = 1 values (1)", ("t",), Operation.DELETE),
        ("with q as (select 1) insert into t select * from q", ("t",), Operation.INSERT),
        ("with q as (select * from t) insert into t select * from q", ("t",), Operation.MERGE),
        ("update t set a = 1", ("t",), Operation.UPDATE),
        ("delete from t", ("t",), Operation.DELETE),
        ("merge into t using s on t.a = s.a when matched then delete", ("t",), Operation.MERGE),
        ("truncate table t", ("t",), Operation.DELETE),
        ("create or replace table t (a int) using delta", ("t",), Operation.PROTOCOL_CHANGE),
        ("create table if not exists t (a int)", ("t",), None),
        (
            "create or replace table t using delta with q as (select 1) select * from q",
            ("t",),
            Operation.PROTOCOL_CHANGE,
        ),
        ("with q as (select 1) select * from q", None, None),
        ("set spark.sql.shuffle.partitions = 3", None, None),
        ("create or replace temp view v as select 1", None, None),
    ],
)
def test_the_table_and_what_it_counts_as(
    sql: str, target: tuple[str, ...] | None, operation: Operation | None
) -> None:
    (each,) = parse_script(sql)
    assert each.understood
    assert (each.target, each.operation) == (target, operation)


@pytest.mark.parametrize(
    "sql",
    [
        "copy into t from 'x'",
        "drop table t",
        "alter table t rename to u",
        "alter table t add columns (a nosuchtype)",
        "alter table t alter column a type int, b type int",
        "alter table t set tblproperties ('a' = 'b') oops",
        "set spark.databricks.delta.replace.protocolDowngradeAllowed = true",
        "set  spark.databricks.delta.replace.protocolDowngradeAllowed = true",
        "set `spark.databricks.delta.replace.protocolDowngradeAllowed` = true",
        "reorg table t p = 1 apply (purge)",
        "reorg table t apply (upgrade uniform (iceberg_compat_version = x))",
        "vacuum t retain many hours",
        "alter table",
        "'string'",
    ],
)
def test_nothing_is_claimed_about_what_is_not_understood(sql: str) -> None:
    (each,) = parse_script(sql)
    assert not each.understood
    said = each.statement.outcome(PLAIN, Engine())
    assert said.table == PLAIN
    assert said.refusal is not None
    assert not said.refusal.sure


def test_the_name_of_the_table_is_exchanged_and_nothing_else() -> None:
    (each,) = parse_script("ALTER TABLE /* which */ a.b ADD COLUMN b int -- of b")
    assert each.statement.sql("delta.`/x`") == "ALTER TABLE /* which */ delta.`/x` ADD COLUMN b int"
    (each,) = parse_script("update a.b set x = a.b.y")
    assert each.statement.sql("delta.`/x`") == each.text


def test_types_are_read() -> None:
    sql = (
        "alter table t add columns (a struct<x: array<decimal(5, 2)>, y int not null comment 'c'>, "
        "b map<string, struct<z: timestamp_ntz>>, c dec, d interval year to month)"
    )
    (each,) = parse_script(sql)
    assert isinstance(each.statement, UserStatement)
    columns = [definition.column for definition in each.statement.effect.columns]
    assert columns == [
        Column(
            "a",
            Struct(
                (
                    Column("x", Array(Atomic("decimal(5,2)"))),
                    Column("y", Atomic("integer"), nullable=False),
                )
            ),
        ),
        Column("b", Map(Atomic("string"), Struct((Column("z", Atomic("timestamp_ntz")),)))),
        Column("c", Atomic("decimal(10,0)")),
        Column("d", Atomic("interval year to month")),
    ]


def test_statements_build_on_each_other() -> None:
    script = """
        alter table t add columns (at timestamp_ntz);
    """
    prepared = "alter table t set tblproperties ('delta.feature.timestampNtz' = 'supported');"
    renamed = "alter table t rename column at to `the time`;"
    mapped = "alter table t set tblproperties ('delta.columnMapping.mode' = 'name');"
    ((_, refused),) = run(script)
    assert refused.refusal is not None
    assert refused.refusal.error == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    steps = run(prepared + script + mapped + renamed)
    assert [outcome.refusal for _, outcome in steps] == [None] * 4
    last = steps[-1][1].table
    assert last.unmappable == ("the time",)
    assert last.protocol.supported >= {"timestampNtz", "columnMapping"}


def run(script: str) -> list[tuple[Statement, Outcome]]:
    """The outcomes one after the other, up to the first refusal."""
    table, outcomes = PLAIN, []
    for each in parse_script(script):
        outcome = each.statement.outcome(table, Engine())
        outcomes.append((each.statement, outcome))
        if outcome.refusal is not None and not outcome.refusal.retry:
            break
        table = outcome.table
    return outcomes


def test_without_a_schema_commits_are_not_sure() -> None:
    unknown = PLAIN.with_schema(None)
    for sql in (
        "alter table t add column x int",
        "alter table t alter column x type bigint",
        "alter table t replace columns (x int)",
    ):
        (each,) = parse_script(sql)
        said = each.statement.outcome(unknown, Engine())
        assert said.refusal is None
        assert (said.fewest, said.most) == (0, 1)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t cluster by auto",
        "alter table t add columns (d int default 5)",
        "alter table t set tblproperties ('delta.nosuch' = '1')",
        "create or replace table t deep clone u",
        "alter table t drop feature nosuch",
    ],
)
def test_what_delta_spark_refuses_is_not_said_of_databricks(sql: str) -> None:
    (each,) = parse_script(sql)
    here, there = (each.statement.outcome(PLAIN, e).refusal for e in (Engine(), DATABRICKS))
    assert here is not None
    assert here.sure
    assert there is not None
    assert (there.error, there.sure) == ("", False)


TWO_COLUMNS = PLAIN.with_schema(
    Struct((Column("id", Atomic("long")), Column("s", Atomic("string"))))
)


@pytest.mark.parametrize(
    ("table", "words", "error"),
    [
        (TWO_COLUMNS, "", None),
        (TWO_COLUMNS, "partitioned by (id)", "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"),
        (TWO_COLUMNS, "cluster by (id)", ""),
        (TWO_COLUMNS, "tblproperties ('a' = 'b')", ""),
        (TWO_COLUMNS._replace(partition_columns=("id",)), "partitioned by (id)", None),
        (
            TWO_COLUMNS._replace(partition_columns=("id",)),
            "",
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        ),
        (TWO_COLUMNS._replace(clustering=("id",)), "cluster by (id)", None),
        (TWO_COLUMNS._replace(clustering=("id",)), "", ""),
        (
            TWO_COLUMNS._replace(protocol=Protocol.carrying({"clustering"})).with_schema(
                Struct(())
            ),
            "partitioned by (id)",
            "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
        ),
        (TWO_COLUMNS.with_schema(Struct(())), "", "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (TWO_COLUMNS.with_schema(None), "", ""),
    ],
)
def test_a_definition_by_path_must_be_the_existing_one(
    table: Table, words: str, error: str | None
) -> None:
    (each,) = parse_script(
        f"create or replace table delta.`/t` (id bigint, s string) using delta {words}"
    )
    said = each.statement.outcome(table, Engine())
    assert (said.table, said.commits) == (table, ())
    assert (said.refusal and said.refusal.error) == error


@pytest.mark.parametrize("columns", ["id bigint default 3", "id int, z int default 3"])
def test_the_parser_refuses_defaults_of_replaced_columns(columns: str) -> None:
    (each,) = parse_script(f"alter table t replace columns ({columns})")
    refusal = each.statement.outcome(PLAIN, Engine()).refusal
    assert refusal is not None
    assert refusal.error == "UNSUPPORTED_DEFAULT_VALUE.WITHOUT_SUGGESTION"


def test_a_type_of_any_depth_is_read() -> None:
    for depth in (10, 10_000):
        deep = "array<" * depth + "int" + ">" * depth
        (each,) = parse_script(f"alter table t add columns (x {deep})")
        assert each.understood is (depth == 10)
        refusal = each.statement.outcome(PLAIN, Engine()).refusal
        assert (refusal and refusal.sure) is (None if depth == 10 else False)


def test_a_schema_as_the_log_stores_it() -> None:
    schema = parse_schema(
        {
            "type": "struct",
            "fields": [
                {
                    "name": "A",
                    "type": "string",
                    "nullable": False,
                    "metadata": {
                        "__CHAR_VARCHAR_TYPE_STRING": "varchar(5)",
                        "CURRENT_DEFAULT": "1",
                    },
                },
                {"name": "g", "type": {"type": "array", "elementType": "geometry(4326)"}},
                {"name": "m", "type": "long", "metadata": {"delta.typeChanges": []}},
                "damaged",
            ],
        }
    )
    assert find_column(schema, ("a",)) == Column(
        "A", Atomic("varchar(5)"), nullable=False, default="1"
    )
    assert find_column(schema, ("g", "element", "x")) is None
    table = PLAIN.with_schema(schema)
    assert table.geospatial == ("g.element",)
    assert table.widened
    assert table.with_schema(None).widened is None


def test_what_is_restored_is_not_taken_for_known() -> None:
    """A partitioned table stays one, and nobody knows what the old files hold."""
    (each,) = parse_script("restore table t to version as of 1")
    table = PLAIN._replace(partition_columns=("id",))
    after = each.statement.outcome(table, Engine()).table
    assert (after.vectors, after.stray_columns, after.schema, after.clustering) == (None,) * 4
    refusal = ClusterBy(("id",)).outcome(after, Engine()).refusal
    assert refusal is not None
    assert "partitioned" in refusal.message


def test_collections_as_the_log_stores_them() -> None:
    array = {"type": "array", "elementType": "integer", "containsNull": False}
    map_ = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": False}
    changes = [{"fromType": "integer", "toType": "long"}, "damaged"]
    fields = [
        {"name": "a", "type": array},
        {"name": "m", "type": map_, "metadata": {"delta.typeChanges": changes}},
        {"name": "o", "type": {"type": "udt", "sqlType": "x"}, "nullable": True},
        {"name": "s", "type": {"type": "struct", "fields": [{"name": "x", "type": "date"}]}},
        {"name": "c", "type": "string", "metadata": {"__COLLATIONS": {"c": "UTF8_LCASE"}}},
        {"name": "i", "type": "long", "metadata": {"delta.identity.step": 1}},
        {"name": "g", "type": "long", "metadata": {"delta.generationExpression": "i + 1"}},
        {"name": "n", "type": {"type": "array", "elementType": "long", "containsNull": True}},
        {"name": "k", "type": {"type": "map", "keyType": "long", "valueType": "long"}},
    ]
    integers = Array(Atomic("integer"), nullable=False)
    assert parse_schema({"fields": fields}).columns == (
        Column("a", integers),
        Column(
            "m",
            Map(Atomic("string"), integers, nullable=False),
            type_changes=((Atomic("integer"), Atomic("long")),),
        ),
        Column("o", Atomic("udt")),
        Column("s", Struct((Column("x", Atomic("date")),))),
        Column("c", Atomic("string collate ?UTF8_LCASE")),
        Column("i", Atomic("long"), identity=True),
        Column("g", Atomic("long"), generated="i + 1"),
        Column("n", Array(Atomic("long"))),
        Column("k", Map(Atomic("long"), Atomic("long"))),
    )
    assert parse_schema({}) == Struct(())


@each_row(
    ("sql", "effect"),
    [
        (
            "update t as x set a = f(1, 2), b.c = 3 where id = 1",
            RowStatement(
                *("UPDATE", True, True),
                words=RowClauses(
                    ("x",), "id = 1", ((("a",), "f(1, 2)"), (("b", "c"), "3")), opaque=False
                ),
            ),
        ),
        (
            "update a.t set a = 1 and more, where b",
            RowStatement("UPDATE", True, True, words=RowClauses(("t",), opaque=True)),
        ),
        (
            "delete from t `set` where a",
            RowStatement("DELETE", removes=True, words=RowClauses(("set",), "a")),
        ),
        ("delete from a.b", RowStatement("DELETE", removes=True, words=RowClauses(("b",)))),
        (
            "insert into table t (a, b.c) values (1, 'x'), (f(2, 3), default), 4",
            RowStatement(
                *("WRITE", True),
                sure=True,
                words=RowClauses(
                    columns=(("a",), ("b", "c")),
                    values=(("1", "'x'"), ("f(2, 3)", "default"), ("4",)),
                ),
            ),
        ),
        (
            "insert overwrite t values (1) limit 3",
            RowStatement(
                "WRITE", True, True, True, words=RowClauses(values=(("1",),), opaque=True)
            ),
        ),
        (
            "insert into t replace where a values (1)",
            RowStatement("WRITE", True, True, True, words=RowClauses(where="a", values=(("1",),))),
        ),
        (
            "with u as (select 1) insert into t select * from u",
            RowStatement("WRITE", True, words=RowClauses(opaque=True)),
        ),
        (
            "insert with schema evolution into t (select 1)",
            RowStatement("WRITE", True, evolves=True, words=RowClauses(opaque=True)),
        ),
        (
            "merge into t using s on a when not matched then insert *",
            RowStatement("MERGE", True, False),
        ),
        (
            "merge with schema evolution into t using s on a when matched then delete",
            RowStatement("MERGE", True, True, evolves=True),
        ),
        ("truncate table t", RowStatement("TRUNCATE", removes=True, words=RowClauses())),
        ("optimize t full", Optimize(full=True)),
        (
            "optimize t where p = 1 zorder by a, b.c",
            Optimize("p = 1", (("a",), ("b", "c"))),
        ),
        ("optimize t zorder by (a, b)", Optimize(zorder=(("a",), ("b",)))),
        ("reorg table t where p = 1 apply (purge)", PurgeWhere("p = 1")),
        (
            "reorg table t apply (upgrade uniform (iceberg_compat_version = 2))",
            UpgradeUniform(2),
        ),
        ("restore table t to version as of 3", Restore("version as of 3")),
        ("restore t version as of 3", Restore("version as of 3")),
        ("drop table if exists t", NotUnderstood("it drops the table, which ends the plan")),
    ],
)
def test_what_is_read_of_a_statement(sql: str, effect: object) -> None:
    (each,) = parse_script(sql)
    assert isinstance(each.statement, UserStatement)
    assert each.statement.effect == effect


LONG = Column("a", Atomic("long"))


@each_row(
    ("written", "column", "position", "after"),
    [
        ("a bigint", LONG, "", None),
        ("a bigint null comment 'x' first", LONG, "FIRST", None),
        (
            "a bigint default f(1, 2) not null",
            LONG._replace(nullable=False, default="f(1, 2)"),
            *("", None),
        ),
        ("a bigint default 5 comment 'x' after b", LONG._replace(default="5"), "AFTER", "b"),
        ("a bigint default 5 first", LONG._replace(default="5"), "FIRST", None),
        ("a bigint default 5 after `first`", LONG._replace(default="5"), "AFTER", "first"),
        (
            "a bigint generated always as (b * (2 + 1)) not null",
            LONG._replace(nullable=False, generated="b * (2 + 1)"),
            *("", None),
        ),
        (
            "a bigint generated by default as identity (start with 3) comment 'x'",
            LONG._replace(identity=True),
            *("", None),
        ),
        (
            "a bigint default 5 generated always as identity",
            LONG._replace(default="5", identity=True),
            *("", None),
        ),
    ],
)
def test_a_column_with_its_options(
    written: str, column: Column, position: str, after: str | None
) -> None:
    for more in ("", ", b int"):
        cursor = Cursor(f"{written}{more}")
        assert parse_column_definition(cursor) == (("a",), column, position, after)
        assert cursor.done is (not more)


@each_row(
    ("sql", "fewest", "error"),
    [
        ("insert into t values (1, 'a')", 1, None),
        # A query may return no rows, also one that reads VALUES.
        ("insert into t select * from values (1, 'a')", 0, None),
        ("insert into t select * from u", 0, None),
        (
            "insert into t (id, s) values (1)",
            0,
            "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
        ),
        (
            "insert into t (id) values (1, 2)",
            0,
            "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        ),
        ("insert into t values (1)", 0, "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
        ("insert into t values (1, 'a', 2)", 0, "DELTA_METADATA_MISMATCH"),
    ],
)
def test_an_insert_adds_rows_or_does_not_fit(sql: str, fewest: int, error: str | None) -> None:
    schema = Struct((Column("id", Atomic("integer")), Column("s", Atomic("string"))))
    (each,) = parse_script(sql)
    outcome = each.statement.outcome(PLAIN.with_schema(schema), Engine())
    assert (outcome.fewest, outcome.refusal and outcome.refusal.error) == (fewest, error)


def test_replaced_columns_keep_what_delta_records_of_them() -> None:
    """Measured with Delta Spark 4.4.0: the old name, generation expressions and type changes."""
    widened = ((Atomic("short"), Atomic("integer")),)
    old = (
        Column("Id", Atomic("integer"), nullable=False, default="1"),
        Column("g", Atomic("integer"), generated="Id+1"),
        Column("w", Atomic("integer"), type_changes=widened),
    )
    (each,) = parse_script("alter table t replace columns (id int, g int, w int, n string)")
    table = PLAIN._replace(protocol=Protocol(1, 4)).with_schema(Struct(old))
    outcome = each.statement.outcome(table, Engine())
    assert outcome.refusal is None
    assert outcome.table.schema == Struct(
        (
            Column("Id", Atomic("integer")),
            *old[1:],
            Column("n", Atomic("string")),
        )
    )


def test_only_databricks_computes_delta_statistics() -> None:
    (parsed,) = parse_script("ANALYZE TABLE t COMPUTE DELTA STATISTICS")
    refusal = parsed.statement.outcome(PLAIN, Engine()).refusal
    assert refusal is not None
    assert refusal.error == "PARSE_SYNTAX_ERROR"
    refusal = parsed.statement.outcome(PLAIN, DATABRICKS).refusal
    assert refusal is not None
    assert not refusal.sure


@pytest.mark.parametrize(
    ("type_", "known"),
    [
        ("decimal(38, 38)", True),
        ("numeric(38)", True),
        ("decimal(39, 1)", False),
        ("decimal(5, 6)", False),
        ("struct<x: decimal(50, 2)>", False),
        pytest.param(f"decimal({'9' * 5000}, 2)", False, id="of-5000-digits"),
    ],
)
def test_decimals_that_spark_does_not_have_are_not_understood(type_: str, known: bool) -> None:
    (parsed,) = parse_script(f"alter table t add columns (d {type_})")
    outcome = parsed.statement.outcome(bare_table(Protocol(1, 2), {}), RUNNING)
    assert (outcome.refusal is None) is known
