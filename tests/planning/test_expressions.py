"""What is told of expressions: refused where Spark refuses, unknown where it cannot be told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from deltaproto.planning.ddl.expressions import ResolvedExpression, resolve_expression
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.resolution import UNRESOLVED, Fit, storage_fit
from deltaproto.planning.engine import Engine, EngineName, parse_engine
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Struct, Type
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol
from tests.support.failures import each_row
from tests.support.golden import Text

SCHEMA = Struct(
    (
        Column("i", Atomic("integer")),
        Column("s", Atomic("string")),
        Column("d", Atomic("date")),
        Column("t", Atomic("timestamp")),
        Column("ok", Atomic("boolean")),
        Column("ar", Array(Atomic("integer"))),
        Column("m", Map(Atomic("string"), Atomic("integer"))),
        Column("a b", Struct((Column("x", Atomic("long")),))),
        Column("v", Atomic("variant")),
        Column("rows", Array(Struct((Column("x", Atomic("long")),)))),
        Column("b", Atomic("binary")),
    )
)
MAP = Map(Atomic("string"), Atomic("integer"))
TABLE = Table(Protocol(2, 5), {"delta.columnMapping.mode": "name"}).with_schema(SCHEMA)


@each_row(
    "expression",
    [
        *("extract(year from d) > 2000", "trim(both 'x' from s) = 'y'", "position('a' in s) > 1"),
        *("substring(s from 1 for 2) = 'a'", "dateadd(day, 1, d) > d", "timestampdiff(HOUR, t, t)"),
        *("exists(ar, x -> x > 1)", "transform(ar, (x, n) -> x + n)[0] > 1", "f(a => 1) > 2"),
        *("s like any ('a', 'b')", "s like 'x!%' escape '!'", "i is distinct from 5", "v:a.b > 1"),
        *("i::string = 'x'", "s collate utf8_lcase = 'x'", "interval '1-2' year to month > 'x'"),
        *("interval 1 day 2 hours > d", "timestamp_ltz '2026-01-01' > t", "_metadata.x = 1"),
        *("i > ?", "i > :x", "db.f(i) > 1", "system.builtin.abs(i) > 1", "current_time > t"),
        *("case i when 'a' then true end", "if(i > 'a', true, false)", "coalesce(i > 'a', true)"),
        *("i is null is true", "i in (1) = ok", "i between 1 and 2 is true"),
        *(
            "count(distinct i) > 1",
            "from_json(s, 'x int').x > 1",
            "v.x = 1",
            "v = 1",
            "v > i",
            "v = 'x'",
        ),
        *("(d - d) * 2", "interval 1 day + i", "b = 'x'", "array(i, d)", "map(1, 2, 'x', d)"),
        *("(" * 200 + "i" + ")" * 200, "abs(i", "coalesce(ok, i > 'x')"),
        *("not s", "not null", "s and ok", "d like 'x'", "s is false", "-s", "not (select 1)"),
        *("i between 1 and s", "i between s and 1", "count(*)", "- (select 1)"),
        *(
            "cast(i as string collate unicode) > 'a'",
            "identifier('i') > 1",
            "identifier('nope') > 1",
        ),
        *(
            "interval 1 day > interval 1 month",
            "array(1) = array(1L)",
            "s::date is null",
            "i & 1.5",
        ),
        *("cast(s as array<int>) is null", "cast(ok as date) is null", "cast(i as binary) is null"),
        *(
            "~1.5",
            "cast('a' as int)",
            "d * 2 > d",
            "m[1]",
            "ar[d]",
            "case when null then 1 end = 1",
        ),
        *("if(s, 1, 2) = 1", "case when s then 1 end = 1", "case s when d then 1 end = 1"),
        *("case when", "i >", "(i", "i)", "array(1, 2)[", "²", "1e", "1e+", "5BD > 1", "..", "x'0"),
    ],
)
def test_nothing_is_claimed_about_what_is_not_read(expression: str) -> None:
    found = resolve_expression(expression, SCHEMA)
    assert not found.known
    assert found.refusal is None or found.refusal.error == "UNRESOLVED_ROUTINE"


@each_row(
    ("expression", "kind"),
    [
        ("c.s.t.i + 1", "integer"),
        ("T.`a b`.x / 2", "double"),
        ("`a b`.X", "long"),
        ("m['a']", "integer"),
        ("m.a", "integer"),
        ("ar[0] + i", "integer"),
        *(("abs(i)", "integer"), ("negative(i)", "integer"), ("positive(`a b`.x)", "long")),
        *(("if(ok, i, 2)", "integer"), ("nullif(d, d)", "date")),
        *(("ifnull(i, 1)", "integer"), ("nvl(s, 'a')", "string"), ("coalesce(d)", "date")),
        *(("greatest(i, 2)", "integer"), ("least(s, s)", "string")),
        *(("not ok", "boolean"), ("! ok", "boolean"), ("null or ok", "boolean")),
        *(("i not between 1 and 2", "boolean"), ("s not rlike s", "boolean")),
        *((f"s {word} 'a'", "boolean") for word in ("like", "ilike", "rlike", "regexp")),
        *(("ok is not unknown", "boolean"), ("i is not null", "boolean")),
        *(("- i", "integer"), ("+interval '1' day", "interval"), ("~ `a b`.x", "long")),
        *(("interval 1 day", "interval"), ("date'2026-01-01'", "date"), ("x'1f'", "binary")),
        *(("try_cast(s as int)", "integer"), ("null", "void"), ("rows[0].X", "long")),
        ("case i when 1 then 'a' else s end", "string"),
        ("coalesce(null, d, current_date())", "date"),
        ("i is unknown", "boolean"),
        ("exists (select 1)", "boolean"),
        ("current_user", "string"),
        ("cast(s as decimal(5, 2))", "decimal(5,2)"),
        ("d + 1", "date"),
        ("not ok and i in (1, 2) or s is null", "boolean"),
        ("i between 1 and 2 and d >= '2026-01-01'", "boolean"),
        ("length(s) > 3", "boolean"),
        ("-i <=> null", "boolean"),
        ("1 = 1", "boolean"),
        ("rows[0].x", "long"),
        ("rows.X[1]", "long"),
        ("array(1, 2)[0]", "integer"),
        ("map('a', d)['a']", "date"),
        ("ar = ar and array(null) = array(null)", "boolean"),
        ("cast('x' as binary)", "binary"),
        ("try_cast(s as integer)", "integer"),
        ("s || 'x'", "string"),
        ("i || s", "string"),
        ("1L", "long"),
        ("2s + 2S", "short"),
        ("3Y", "byte"),
        ("1.5D", "double"),
        ("1F", "float"),
    ],
)
def test_types_are_found(expression: str, kind: str) -> None:
    assert resolve_expression(expression, SCHEMA, ["t"]).type == Atomic(kind)


REFUSED = [
    ("nope", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("cast", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("t2.i", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("upper(nope) = 'x'", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("`a b`.y", "FIELD_NOT_FOUND"),
    ("i.x", "INVALID_EXTRACT_BASE_FIELD_TYPE"),
    ("nosuch(i)", "UNRESOLVED_ROUTINE"),
    ("i and ok", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
    ("i and i", "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"),
    ("ok + ok", "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"),
    ("ok + d", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
    ("i in (1, d)", "DATATYPE_MISMATCH.DATA_DIFF_TYPES"),
    ("coalesce(i, nope)", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("case when ok then nope end", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("rows.y", "FIELD_NOT_FOUND"),
    ("ar.x", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ("m = m", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
    ("ok = 'maybe'", "CAST_INVALID_INPUT"),
    ("d > 'x'", "CAST_INVALID_INPUT"),
    ("d > '2026-02-30'", "CAST_INVALID_INPUT"),
    ("i > d", "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"),
    ("i > 'x'", "CAST_INVALID_INPUT"),
    ("date'2026-02-30' > d", "INVALID_TYPED_LITERAL"),
    ("v = v", "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"),
    ("rank() over (order by i) > 1", "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE"),
    ("not d", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ("ar['1'] > 1", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ("ar[ok] > 1", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ("if(i, 1, 2) = 1", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ("case when i then 1 end = 1", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
]


@each_row(("expression", "error"), REFUSED)
def test_what_spark_refuses_is_refused(expression: str, error: str) -> None:
    refusal = resolve_expression(expression, SCHEMA, ["t"]).refusal
    assert refusal is not None
    assert refusal.error == error


def test_refusals_in_words(snapshot: SnapshotAssertion) -> None:
    lines = []
    for expression, _ in REFUSED:
        refusal = resolve_expression(expression, SCHEMA, ["t"]).refusal
        assert refusal is not None
        lines.append(f"{expression}: {refusal.message} | {refusal.remedy}")
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    resolve_expression(text, SCHEMA)
    resolve_expression(f"i > {text}", SCHEMA)
    resolve_expression(f"abs({text}) + {text}", None)


@each_row(
    ("sql", "engine"),
    [
        ("delete from t where s > 1", Engine()),
        ("delete from t where i > 'x'", parse_engine("delta-spark@3.3.2")),
        ("update t set i = 'x'", Engine(EngineName.DATABRICKS, "16.4")),
        ("update t set s = my_function(s)", Engine()),
        ("insert into t select 1", Engine()),
        ("alter table t add constraint c check (array_contains(ar, 1))", Engine()),
        ("merge into t using u on t.i = u.i when matched then delete", Engine()),
    ],
)
def test_a_statement_that_is_not_resolved_promises_nothing(sql: str, engine: Engine) -> None:
    (each,) = parse_script(sql)
    said = each.statement.outcome(TABLE, engine)
    assert said.refusal is None
    assert UNRESOLVED in said.warnings
    assert said.fewest == 0


@each_row(
    ("default", "error"),
    [
        ("uuid()", "INVALID_DEFAULT_VALUE.NON_DETERMINISTIC"),
        ("sum(1)", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
        ("s", "INVALID_DEFAULT_VALUE.NOT_CONSTANT"),
        ("(select 'x')", "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION"),
        ("nosuch()", "UNRESOLVED_ROUTINE"),
        ("array('x')", "INVALID_DEFAULT_VALUE.DATA_TYPE"),
    ],
)
def test_a_default_is_a_constant_of_its_type(default: str, error: str) -> None:
    protocol = Protocol.carrying({"allowColumnDefaults", "columnMapping"})
    table = TABLE._replace(protocol=protocol).with_properties({"delta.columnMapping.mode": "name"})
    (each,) = parse_script(f"alter table t alter column s set default {default}")
    refusal = each.statement.outcome(table, Engine()).refusal
    assert refusal is not None
    assert refusal.error == error


def test_without_columns_nothing_is_refused() -> None:
    (each,) = parse_script("delete from t where nope = 1")
    said = each.statement.outcome(TABLE.with_schema(None), Engine())
    assert said.refusal is None
    assert UNRESOLVED in said.warnings


@each_row(
    ("source", "kind", "strict", "fit"),
    [
        (Array(Atomic("integer")), Array(Atomic("integer")), True, Fit.YES),
        (Array(Atomic("void")), Array(Atomic("integer")), True, Fit.YES),
        (Array(Atomic("string")), Array(Atomic("integer")), True, Fit.NO),
        (Array(Atomic("long")), Array(Atomic("integer")), True, Fit.NO),
        (Array(Atomic("integer")), Array(Atomic("long")), True, Fit.UNKNOWN),
        (Array(Array(Atomic("long"))), Array(Atomic("integer")), True, Fit.UNKNOWN),
        (MAP, MAP, True, Fit.YES),
        (Map(Atomic("void"), Atomic("void")), MAP, True, Fit.YES),
        (Map(Atomic("long"), Atomic("integer")), MAP, True, Fit.UNKNOWN),
        (Map(Atomic("string"), Atomic("long")), MAP, True, Fit.UNKNOWN),
        (Atomic("integer"), Array(Atomic("integer")), True, Fit.NO),
        (Atomic("integer"), Atomic("variant"), True, Fit.YES),
        (Atomic("boolean"), Atomic("variant"), True, Fit.UNKNOWN),
        (Atomic("integer"), Atomic("variant"), False, Fit.UNKNOWN),
        (Atomic("variant"), Atomic("string"), True, Fit.UNKNOWN),
        (Atomic("variant"), Atomic("integer"), True, Fit.UNKNOWN),
        (None, Atomic("integer"), True, Fit.UNKNOWN),
    ],
)
def test_whether_a_value_fits_a_column(source: Type, kind: Type, strict: bool, fit: Fit) -> None:
    assert storage_fit(ResolvedExpression(source), kind, strict=strict) is fit
