"""What is said of each statement of many scripts, word by word.

That it is true is what the tests on Spark show, with the same scripts; nothing of it, texts least
of all, is to change unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from syrupy.assertion import SnapshotAssertion

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.user_statement import ParsedStatement
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome, Rewrite
from deltaproto.planning.predict.schema import Array, Map, Struct, Type, walk_columns
from deltaproto.planning.predict.table import Table
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from tests.planning import scripts, swept_sql, swept_tables
from tests.planning.swept_tables import Swept
from tests.planning.test_changes_on_spark import SEQUENCES, assigned
from tests.planning.test_iceberg_on_spark import TABLES, statement_of
from tests.planning.test_statements_on_spark import CASES
from tests.support.golden import Text
from tests.support.protocols import changed
from tests.support.tables import RECIPES

MAPPED = "'delta.columnMapping.mode' = 'name'"
FEATURES = [f.name for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)]
OTHERS = (
    Engine(EngineName.DATABRICKS, "17.3"),
    Engine(EngineName.DATABRICKS, "14.1"),
    Engine(EngineName.DELTA_SPARK, "3.1.0"),
)


def every_script() -> dict[str, tuple[str, str]]:
    """By name: what a table is made with, and the statements."""
    found = dict(CASES)
    for name, (properties, changes) in SEQUENCES.items():
        with_them = f"tblproperties ({assigned(properties)})" if properties else ""
        made = f"(id bigint, s string) using delta {with_them}"
        found[f"set-{name}"] = made, ";".join(map(changing, changes))
    for name, (columns, more, statements) in TABLES.items():
        clause, properties = ("", f"{MAPPED}, {more}") if "=" in more else (more, MAPPED)
        made = f"({columns}) using delta {clause} tblproperties ({properties.rstrip(', ')})"
        found[f"iceberg-{name}"] = made, ";".join(map(statement_of, statements))
    return {**found, **scripts.SCRIPTS}


def changing(change: str) -> str:
    if change.startswith("-"):
        return f"alter table {{t}} unset tblproperties ('{change[1:]}')"
    return f"alter table {{t}} set tblproperties ({assigned(change)})"


SCRIPTS = every_script()


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_said_of_it(name: str, snapshot: SnapshotAssertion) -> None:
    made, script = SCRIPTS[name]
    if not made.startswith("("):
        recipe = RECIPES[made]
        properties = f"tblproperties ({recipe.properties})" if recipe.properties else ""
        made = f"({recipe.columns}) using delta {recipe.clause} {properties}"
    made = made if "using delta" in made else f"{made} using delta"
    (first,) = parse_script(f"replace table delta.`/t` {made}")
    table = first.statement.outcome(scripts.EMPTY, Engine()).table
    lines = [first.text, *_changes(scripts.EMPTY, table), ""]
    unseen = _unseen(table)
    for each in parse_script(script.format(t="delta.`/t`")):
        said = each.statement.outcome(table, Engine())
        lines += [*_parsed(each), *_said(said, table.protocol), *_changes(table, said.table)]
        lines += [
            f"  {other}: {text}" for other in OTHERS for text in _elsewhere(each, table, other)
        ]
        little = each.statement.outcome(unseen, Engine())
        lines += [f"  unseen: {text}" for text in _little(little, said, table.protocol)]
        lines.append("")
        table, unseen = said.table, little.table
    assert "\n".join(lines) == snapshot(extension_class=Text)


@pytest.mark.parametrize("name", scripts.TABLES)
def test_what_is_said_of_each_statement_alone(name: str, snapshot: SnapshotAssertion) -> None:
    (first,) = parse_script(f"replace table delta.`/t` {scripts.TABLES[name]}")
    made = first.statement.outcome(scripts.EMPTY, Engine()).table
    used = made._replace(vectors="deletionVectors" in made.protocol.supported, rewritten=False)
    lines = [first.text, ""]
    for text in scripts.statements(FEATURES):
        (each,) = parse_script(text.format(t="delta.`/t`"))
        said = each.statement.outcome(used, Engine())
        lines += [text.format(t="T"), *_said(said, used.protocol), *_changes(used, said.table)]
        lines += [f"  {o}: {line}" for o in OTHERS for line in _elsewhere(each, used, o)]
        little = each.statement.outcome(_unseen(used), Engine())
        lines += [f"  unseen: {line}" for line in _little(little, said, used.protocol)]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


SWEPT: dict[str, tuple[Swept, list[str]]] = {
    name: (swept, [*sweep.statements(name)])
    for sweep in (swept_sql, swept_tables)
    for name, swept in sweep.TABLES.items()
}


@pytest.mark.parametrize("name", SWEPT)
def test_what_is_said_of_each_swept_statement(name: str, snapshot: SnapshotAssertion) -> None:
    """Equal texts are shown once, with the number of their statements."""
    swept, statements = SWEPT[name]
    table = scripts.EMPTY
    for text in swept_tables.made(swept):
        (each,) = parse_script(text.replace("create table", "replace table").replace("{t}", "t"))
        table = each.statement.outcome(table, Engine()).table
    found: Counter[str] = Counter()
    for text in statements:
        (each,) = parse_script(text.replace("{t}", "t"))
        said = each.statement.outcome(table, Engine())
        found["\n".join(_said(said, table.protocol))] += 1
    lines = [f"{count} statements:\n{text}" for text, count in found.items()]
    assert "\n".join(lines) + "\n" == snapshot(extension_class=Text)


def _parsed(each: ParsedStatement) -> Iterator[str]:
    yield " ".join(each.text.split())
    written = each.statement.sql("T")
    yield f"  line {each.line}, {each.operation}, {each.statement.action}, of {each.target}"
    if written != each.text:
        yield f"  as {' '.join(written.split())}"


def _said(said: Outcome, before: Protocol) -> Iterator[str]:
    for commit in said.commits:
        yield f"  {commit.operation}{'' if commit.sure else ' perhaps'}: " + changed(
            before, commit.protocol
        )
        before = commit.protocol
    if said.rewrites is not Rewrite.NONE:
        yield f"  rewrites: {said.rewrites}"
    if said.refusal is not None:
        error, message, remedy, retry, sure, _ = said.refusal
        yield f"  refused: {error}: {message} | {remedy}{' | retry' * retry}{'' if sure else ' ?'}"
    yield from (f"  warning: {text}" for text in said.warnings)


def _elsewhere(each: ParsedStatement, table: Table, other: Engine) -> list[str]:
    """What another engine does otherwise."""
    here = [*_said(each.statement.outcome(table, Engine()), table.protocol)]
    there = _said(each.statement.outcome(table, other), table.protocol)
    return [text.strip() for text in there if text not in here]


def _unseen(table: Table) -> Table:
    """The table as it is where no reader could look at columns, files and history."""
    nothing = dict.fromkeys(
        ("schema", "vectors", "widened", "v2_checkpoint", "row_ids", "stray_columns")
    )
    return table._replace(**nothing, domains=None, clustering=None)


def _little(little: Outcome, said: Outcome, before: Protocol) -> list[str]:
    """What is said otherwise, or left open, of a table of which little is known."""
    here = [*_said(said, before)]
    return [text.strip() for text in _said(little, before) if text not in here]


def _changes(before: Table, after: Table) -> Iterator[str]:
    was, now = before._asdict(), after._asdict()
    for name in was:
        if was[name] == now[name]:
            continue
        if name == "configuration":
            for key in sorted(was[name].keys() | now[name].keys()):
                if was[name].get(key) != now[name].get(key):
                    yield f"  {key}: {was[name].get(key)} -> {now[name].get(key)}"
        elif name == "protocol":
            yield f"  {changed(before.protocol, after.protocol)}"
        elif name == "schema":
            old, new = [*_columns(before.schema)], [*_columns(after.schema)]
            yield from (f"  - {line}" for line in old if line not in new)
            yield from (f"  + {line}" for line in new if line not in old)
        else:
            value = sorted(now[name]) if isinstance(now[name], frozenset) else now[name]
            yield f"  {name}: {value}"


def _columns(schema: Struct | None) -> Iterator[str]:
    for path, column in [] if schema is None else walk_columns(schema):
        rest = [repr(value) for value in column[2:] if value not in (True, False, None)]
        null = "" if column.nullable else " not null"
        flags = f"{null}{' identity' * column.identity}{' widened' * column.widened}"
        yield f"{'.'.join(path)} {_type(column.type)}{flags} {' '.join(rest)}".rstrip()


def _type(type_: Type) -> str:
    if isinstance(type_, Struct):
        return "struct"
    if isinstance(type_, Array | Map):
        return type(type_).__name__.lower()
    return type_.name
