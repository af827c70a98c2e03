"""The parts of SQL expressions that not every engine plans."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from deltaproto.policy.constructs import OTHER_FUNCTION, find_constructs
from tests.support.failures import each_row

COLUMNS = ("id", "word", "price", "tags", "s")
PLAIN = (
    "id > 0",
    "id != -7 and price <= 0.5 or not word = 'x'",
    "id between 0 and 10",
    "word in ('a', 'it''s') and s.x is not null",
    "((`id`) + 1 - 2 * 3 <> 4)",
    "price > 1e-3 and id < 10L",
    "id > 0 /* size(x) */ -- div",
)
BELOW = "with a count that may be below 1"
ROWS = (
    ("size(tags) > 0", ("size()",)),
    ("YEAR(CURRENT_DATE()) > 2000", ("year()", "current_date()")),
    ("if(id > 0, true, false)", ("if()",)),
    ("id div 2 = 1", ("div",)),
    ('word = "x"', ("double-quoted string",)),
    ("\"Word\" = 'x'", ("a column's name in double quotes",)),
    ("strpos(word, 'a') > 0", ("strpos()", OTHER_FUNCTION)),
    ("id > arrow_cast('1', 'Int64')", ("arrow_cast()", OTHER_FUNCTION)),
    ("cast(tags as array<varchar(5)>) is null", ("cast", "varchar()")),
    ("some(id > 0) and (id in (1)) and not (id = 2)", ("some()",)),
    ("word = 'it\\'s'", ("backslash in a string",)),
    ("word like 'a%'", ("like",)),
    ("word not rlike '^a' and id > 0", ("rlike",)),
    ("like(word, 'a%')", ("like()",)),
    ("id > 0 and like(word, 'a%')", ("like()",)),
    ("!(id < 0)", ("!",)),
    ("id == 1", ("==",)),
    ("id <=> 1", ("<=>",)),
    ("cast(id as int) > 0", ("cast",)),
    ("id::int > 0", ("::",)),
    ("case when id > 0 then true else false end", ("case",)),
    ("tags[0] = 'a'", ("array index",)),
    ("tags['k'] = 'a'", ("map key",)),
    ("exists(tags, t -> t = 'a')", ("exists", "t", "lambda")),
    ("ID > 0", ("column in another case",)),
    ("price > 0.5D", ("typed number",)),
    ("price > 0.5D and id > 1", ("typed number", "text after a typed number")),
    ("(price > .5bd)", ("typed number", "text after a typed number")),
    ("price > 0.D and id > 1", ("typed number", "text after a typed number")),
    ("price > 1e-3F or id > 1", ("typed number", "text after a typed number")),
    ("id > 0l and id < 1", ("typed number", "text after a typed number")),
    ("id > 0L and id < 0x1F", ("hexadecimal number",)),
    ("word <> 'a' 'b'", ("adjacent strings",)),
    ("word = r'a' or word = R'b'", ("raw string",)),
    ("id | 1 > 0", ("|",)),
    ("id|1 > 0 and id || 'x' = 'y'", ("|", "||")),
    ("cast(id as LONG) > 0", ("cast", "cast to long")),
    ("id::timestamp_ntz is null", ("::", "cast to timestamp_ntz")),
    ("word like any ('a', 'b')", ("like", "like any")),
    ("word not ilike all ('a', 'b')", ("ilike", "like any")),
    ("word || 'x' = 'y'", ("||",)),
    ("id / 2 > 0", ("/",)),
    ("substr(word, 1, 2) = 'a'", ("substr()",)),
    ("substr(trim(word), 2) = 'a,b'", ("substr()", "trim()")),
    ("SUBSTRING(word from 1 for 1) = 'a'", ("substring()",)),
    ("substr(word, 0) = 'a'", ("substr()", f"substr() {BELOW}")),
    ("substring(word from -1) = 'a'", ("substring()", f"substring() {BELOW}")),
    ("right(word, id) = 'a'", ("right()", f"right() {BELOW}")),
    ("left(word, 1 + 1) = 'a'", ("left()", f"left() {BELOW}")),
    ("trim(both 'x' from word) = 'a'", ("trim()",)),
    ("ltrim('x', word) = 'a'", ("ltrim()", "ltrim() with 2 arguments")),
    ("replace(word, 'a') = 'a'", ("replace()", "replace() with 2 arguments")),
    ("ceil(price, 1) > 0", ("ceil()", "ceil() with 2 arguments")),
    ("cast(id as string) = '1'", ("cast", "cast to string")),
    ("price::decimal(5,2) > 0", ("::", "cast to decimal")),
    ("substr(", ("substr()", f"substr() {BELOW}")),
    ("day > date'2000-01-01'", ("day", "date literal")),
)


@each_row("expression", PLAIN)
def test_comparisons_of_columns_with_literals_are_plain(expression: str) -> None:
    assert find_constructs(expression, COLUMNS) == ()


@each_row("row", ROWS, ids=lambda row: row[0])
def test_everything_else_has_a_name(row: tuple[str, tuple[str, ...]]) -> None:
    assert find_constructs(row[0], COLUMNS) == row[1]


@given(st.text(max_size=60))
@example("`` > 0")
@example("` ` > 0")
def test_any_text_has_constructs(text: str) -> None:
    assert all(word.strip() for word in find_constructs(text, COLUMNS))
