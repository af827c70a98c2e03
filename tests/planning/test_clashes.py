"""What people's own statements do to writers and streams."""

from __future__ import annotations

import pytest

from deltaproto.planning.clash import clashes, streams
from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Effect
from deltaproto.planning.schema import Atomic, Column, Struct
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol.protocol import Protocol

SCHEMA = Struct((Column("id", Atomic("integer")), Column("s", Atomic("string"))))
TABLE = Table(
    Protocol.carrying({"columnMapping", "typeWidening"}),
    {MODE: "name", "delta.enableTypeWidening": "true"},
    vectors=False,
).with_schema(SCHEMA)


@pytest.mark.parametrize(
    ("sql", "effect"),
    [
        ("alter table t add column x int", Effect.RESTART),
        ("alter table t rename column s to t", Effect.ENDS),
        ("alter table t drop column s", Effect.ENDS),
        ("alter table t alter column id type bigint", Effect.RESTART),
        ("alter table t alter column s first", Effect.CONTINUES),
        ("alter table t alter column id drop default", Effect.CONTINUES),
        ("alter table t alter column id comment 'x'", Effect.CONTINUES),
        ("alter table t set tblproperties ('a' = 'b')", Effect.CONTINUES),
    ],
)
def test_a_plain_stream(sql: str, effect: Effect) -> None:
    (each,) = parse(sql)
    said = each.statement.outcome(TABLE, Engine())
    found = streams(each.statement, TABLE, said)
    assert [s.effect for s in found if s.reads == "Delta Spark, plain"] == [effect]


@pytest.mark.parametrize(
    "sql", ["insert into t values (1)", "delete from t where id = 1", "vacuum t", "optimize t"]
)
def test_what_leaves_the_metadata_alone_aborts_no_append(sql: str) -> None:
    (each,) = parse(sql)
    said = each.statement.outcome(TABLE, Engine())
    assert said.refusal is None
    found = list(clashes(each.statement, TABLE, said))
    assert not any("blind appends" in clash.who for clash in found)
    assert not list(streams(each.statement, TABLE, said))


def test_a_change_of_columns_aborts_every_writer() -> None:
    (each,) = parse("alter table t add column x int")
    said = each.statement.outcome(TABLE, Engine())
    found = list(clashes(each.statement, TABLE, said))
    assert any("blind appends" in clash.who for clash in found)
