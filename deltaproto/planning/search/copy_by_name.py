"""The statements that copy a table, and what is lost.

`apply` executes the copy of a table that a catalog names: the new table is created with the columns
and properties of the old one, then filled. At the end, the names are swapped, and the old table
stays as NAME__before. Other copies are made by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.planning.plan import Rewrites, Step, StreamEffect, StreamImpact
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Path, Struct, Type
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import Action, format_properties
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import column_name, quote_identifier, quote_literal, split_name

NEW_SUFFIX, OLD_SUFFIX = "__new", "__before"
COPY_OF, REPLACED_BY = "deltaproto.copyOf", "deltaproto.replacedBy"
"""properties: the id of the table that a new table is a copy of; the plan that replaced a table"""
MOST_CATCH_UPS = 100
"""maximum number of commits to the new table after the first copy before writers must stop"""
# Types whose name in the schema is also their name in statements.
_TYPES = (
    *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date"),
    *("timestamp", "timestamp_ntz", "variant"),
)
_SIZED = ("decimal(", "varchar(", "char(")
_BY_PATH, _MANUAL = "delta.`", ("CREATE TABLE AS SELECT",)

LOSSES: Mapping[str, str] = {
    "time-travel": "the new table has no history: versions of the old one stay with NAME__before",
    "streams": "the new table has another id: streams that read or write the table must be "
    "stopped, and need new checkpoints",
    "location": "the new table is external, in the folder of the old one with __new appended: "
    "clients that use the old path stay with the old table, and DROP TABLE keeps the files",
    "grants": "grants, owners, row filters and column masks of the catalog stay with the old table",
    "sharing": "shares and shallow clones stay with the old table",
    "tags": "tags of the catalog, and comments that only the catalog has, stay with the old table",
    "cdf": "readers of the change data feed cannot read changes before the copy",
    "row-ids": "rows get new row ids",
    "constraints": "CHECK constraints and column invariants are not copied",
    "not-null": "NOT NULL is not copied",
    "defaults": "default values are not copied",
    "generated": "generated columns become plain columns with the current values",
    "identity": "identity columns become plain columns with the current values",
    "types": "columns get another type",
    "names": "columns get another name",
    "properties": "properties that enable removed features are not copied",
    "clustering": "clustering columns are not copied",
}
"""what a copy can lose, by the name that acknowledges it"""
_LOST = (
    "the new table has another id and no history: streams need new checkpoints, and time travel, "
    "grants, comments and sharing stay with the old one"
)
"""what a manual copy loses in any case"""


class TableCopy(NamedTuple):
    """The new table."""

    protocol: Protocol
    columns: tuple[Column, ...]
    """its columns, in the order of the old ones"""
    selected: tuple[str, ...]
    """an expression over the old table per column"""
    properties: Mapping[str, str]
    clustering: tuple[str, ...]
    constraints: Mapping[str, str]
    """expressions of the CHECK constraints by name"""
    lost: tuple[str, ...]
    """keys of `LOSSES`"""
    manual: bool
    """whether the copy is made by hand: one statement creates and fills the new table"""


def loss_names(steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the names of what the steps of a copy lose, in order."""
    texts = [loss.partition(":")[0] for step in steps for loss in step.losses]
    return tuple(dict.fromkeys(name for name in texts if name in LOSSES))


def can_be_named(schema: Struct) -> bool:
    """Return True if every type can be written in CREATE TABLE exactly as it is stored."""
    return all(_is_plain(column.type) for column in schema.columns)


def _is_plain(kind: Type, *, in_collection: bool = False) -> bool:
    match kind:
        case Struct(columns):
            return all(
                _is_plain(column.type, in_collection=in_collection)
                and (column.nullable or not in_collection)
                for column in columns
            )
        # Statements cannot say that elements or values are not null, and Delta refuses NOT NULL
        # in structs below them.
        case Array(element, nullable):
            return nullable and _is_plain(element, in_collection=True)
        case Map(key, value, nullable):
            parts = (key, value)
            return nullable and all(_is_plain(part, in_collection=True) for part in parts)
        case Atomic(name):
            return name in _TYPES or name.startswith(_SIZED)


def new_location(location: str) -> str:
    """Return the folder of the copy of the table at a location."""
    return location.rstrip("/") + NEW_SUFFIX


def suffixed_name(sql_name: str, suffix: str) -> str:
    """Return a catalog name or `delta.` with a path, with a suffix to its last part."""
    *first, last = split_name(sql_name)
    if sql_name.startswith(_BY_PATH):
        return f"delta.{quote_identifier(last.rstrip('/') + suffix)}"
    return ".".join(map(quote_identifier, (*first, last + suffix)))


def is_manual_copy(steps: Sequence[Step]) -> bool:
    """Return True if the steps make a copy by hand."""
    return any(step.operations == _MANUAL for step in steps)


def copy_warning(steps: Sequence[Step]) -> str:
    """Return the warning to read before these steps are executed."""
    if is_manual_copy(steps):
        return (
            "A copy is a different table: rehearse it, compare the rows before the swap, and keep "
            "the old table until everyone has moved."
        )
    return (
        "A copy is a different table. While the names change places, statements on the table fail. "
        "Keep the old table until everyone has moved."
    )


def copy_steps(inputs: PlanInput, new: TableCopy) -> tuple[Step, ...]:
    """Return the steps that replace the table with a copy."""
    made = _manual_steps(inputs, new) if new.manual else _named_steps(inputs, new)
    return tuple(step._replace(id=f"s{number}") for number, step in enumerate(made, 1))


def _step(
    inputs: PlanInput,
    action: Action,
    sql: str | None,
    why: str,
    undo: str | None = None,
    operations: tuple[str, ...] = (),
) -> Step:
    """Return a step that does not change the table's protocol.

    Args:
        operations: the operation of each commit.
    """
    return Step(
        id="",
        action=action,
        sql=sql,
        feature=None,
        why=why,
        operations=operations,
        protocol_before=inputs.table.protocol,
        protocol_after=inputs.table.protocol,
        commits=(len(operations), len(operations)),
        rewrites=Rewrites(Rewrite.NONE, 0, 0),
        expects=None,
        truncates=False,
        retention_hours=None,
        wait_hours=0,
        setting=None,
        clashes=(),
        streams=(),
        losses=(),
        undo=undo,
        warnings=(),
    )


def _manual_steps(inputs: PlanInput, new: TableCopy) -> Iterator[Step]:
    """Yield the steps: create and fill, rename or move the old table, rename the new one."""
    name = inputs.sql
    fresh, by_path = suffixed_name(name, NEW_SUFFIX), name.startswith(_BY_PATH)
    yield _step(
        inputs,
        Action.REWRITE,
        f"CREATE TABLE {fresh} {_table_clauses(inputs, new)} AS {_select(inputs, new)}",
        "copy the rows into a new table; this one does not change. Stop writers first: later "
        "writes are not copied",
        None if by_path else f"DROP TABLE {fresh}",
        _MANUAL,
    )._replace(rewrites=_every_row(inputs))
    losses = (_LOST, *_manual_losses(inputs.table))
    if by_path:
        path = split_name(name)[-1]
        why = (
            f"compare the row counts, then use the storage's tools to move {path} away and "
            f"{path.rstrip('/')}{NEW_SUFFIX} to its location"
        )
        yield _replacing(_step(inputs, Action.SWAP, None, why), new, losses)
        return
    yield _rename_old(inputs, "compare the row counts, then rename the old table")
    yield _rename_new(inputs, new, losses)


def _manual_losses(table: Table) -> Iterator[str]:
    columns = () if table.schema is None else table.schema.columns
    if table.constraints:
        yield f"the constraints {', '.join(table.constraints)} have to be added again, if wanted"
    plain = [c.name for c in columns if c.generated or c.identity or c.default]
    if plain:
        yield f"{', '.join(plain)} become plain columns with the current values"
    if any(not column.nullable for column in columns):
        yield "NOT NULL has to be set again, if wanted"


def _named_steps(inputs: PlanInput, new: TableCopy) -> Iterator[Step]:
    """Yield the steps: create, constrain, fill, rename the old table, close it, rename the new."""
    name = inputs.sql
    fresh, old = suffixed_name(name, NEW_SUFFIX), suffixed_name(name, OLD_SUFFIX)
    yield _step(
        inputs,
        Action.REWRITE,
        _create_statement(inputs, new, fresh),
        "create the new table; this one does not change",
        f"DROP TABLE {fresh}",
        ("CREATE TABLE",),
    )
    for check, expression in new.constraints.items():
        constraint = quote_identifier(check)
        yield _step(
            inputs,
            Action.REWRITE,
            f"ALTER TABLE {fresh} ADD CONSTRAINT {constraint} CHECK ({expression})",
            "add the constraint to the empty table",
            f"ALTER TABLE {fresh} DROP CONSTRAINT {constraint}",
            ("ADD CONSTRAINT",),
        )
    names = ", ".join(quote_identifier(column.name) for column in new.columns)
    yield _step(
        inputs,
        Action.REWRITE,
        f"INSERT INTO {fresh} ({names}) {_select(inputs, new)}",
        "copy the rows of one version, then those of later commits, and compare both tables: "
        "`apply` adds VERSION AS OF",
        operations=("WRITE",),
    )._replace(commits=(0, 1 + MOST_CATCH_UPS), rewrites=_every_row(inputs))
    yield _rename_old(inputs, "rename the old table, and copy what was committed before that")
    mark = quote_literal(REPLACED_BY)
    yield _step(
        inputs,
        Action.SWAP,
        f"ALTER TABLE {old} SET TBLPROPERTIES ({mark} = {quote_literal(name)})",
        "abort writers that still have the old table open: their transactions fail",
        f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({mark})",
        ("SET TBLPROPERTIES",),
    )
    yield _rename_new(inputs, new, tuple(f"{key}: {LOSSES[key]}" for key in new.lost))


def _rename_old(inputs: PlanInput, why: str) -> Step:
    name, old = inputs.sql, suffixed_name(inputs.sql, OLD_SUFFIX)
    sql, undo = f"ALTER TABLE {name} RENAME TO {old}", f"ALTER TABLE {old} RENAME TO {name}"
    return _step(inputs, Action.SWAP, sql, why, undo)


def _rename_new(inputs: PlanInput, new: TableCopy, losses: tuple[str, ...]) -> Step:
    name, fresh = inputs.sql, suffixed_name(inputs.sql, NEW_SUFFIX)
    sql, undo = f"ALTER TABLE {fresh} RENAME TO {name}", f"ALTER TABLE {name} RENAME TO {fresh}"
    why = "rename the new table to the original name"
    return _replacing(_step(inputs, Action.SWAP, sql, why, undo), new, losses)


def _replacing(step: Step, new: TableCopy, losses: tuple[str, ...]) -> Step:
    """Return the step after which the new table has the place of the old one."""
    ends = StreamImpact("every stream", StreamEffect.ENDS, "the table that it reads is replaced")
    return step._replace(protocol_after=new.protocol, streams=(ends,), losses=losses)


def _every_row(inputs: PlanInput) -> Rewrites:
    return Rewrites(Rewrite.ALL, inputs.files.files, inputs.files.bytes)


def _select(inputs: PlanInput, new: TableCopy) -> str:
    # Every name in it is quoted.
    return f"SELECT {', '.join(new.selected)} FROM {inputs.sql}"  # noqa: S608


def _create_statement(inputs: PlanInput, new: TableCopy, fresh: str) -> str:
    assert inputs.table.schema is not None
    columns = ", ".join(
        _column_definition(column, (old.name,), inputs.comments or {})
        for column, old in zip(new.columns, inputs.table.schema.columns, strict=True)
    )
    return f"CREATE TABLE {fresh} ({columns}) {_table_clauses(inputs, new)}"


def _table_clauses(inputs: PlanInput, new: TableCopy) -> str:
    assert inputs.table.schema is not None
    clauses = ["USING delta"]
    if inputs.table.partition_columns:
        pairs = zip(inputs.table.schema.columns, new.columns, strict=True)
        named = {old.name: column.name for old, column in pairs}
        names = [named.get(each, each) for each in inputs.table.partition_columns]
        clauses.append(f"PARTITIONED BY ({', '.join(map(quote_identifier, names))})")
    if new.clustering:
        clauses.append(f"CLUSTER BY ({', '.join(map(column_name, new.clustering))})")
    comments = inputs.comments or {}
    if not new.manual:
        clauses.append(f"LOCATION {quote_literal(new_location(inputs.location))}")
        clauses += [f"COMMENT {quote_literal(comments[()])}"] if () in comments else []
    if new.properties:
        clauses.append(f"TBLPROPERTIES ({format_properties(new.properties)})")
    return " ".join(clauses)


def _column_definition(column: Column, path: Path, comments: Mapping[Path, str]) -> str:
    parts = [quote_identifier(column.name), _type_definition(column.type, path, comments)]
    parts += [] if column.nullable else ["NOT NULL"]
    parts += [] if column.default is None else [f"DEFAULT {column.default}"]
    parts += [] if column.generated is None else [f"GENERATED ALWAYS AS ({column.generated})"]
    parts += [f"COMMENT {quote_literal(comments[path])}"] if path in comments else []
    return " ".join(parts)


def _type_definition(kind: Type, path: Path, comments: Mapping[Path, str]) -> str:
    match kind:
        case Atomic(name):
            return name.upper()
        case Array(element):
            return f"ARRAY<{_type_definition(element, (*path, 'element'), comments)}>"
        case Map(key, value):
            keys = _type_definition(key, (*path, "key"), comments)
            return f"MAP<{keys}, {_type_definition(value, (*path, 'value'), comments)}>"
        case Struct(columns):
            fields = []
            for field in columns:
                here = (*path, field.name)
                text = f"{quote_identifier(field.name)}: "
                text += _type_definition(field.type, here, comments)
                text += "" if field.nullable else " NOT NULL"
                text += f" COMMENT {quote_literal(comments[here])}" if here in comments else ""
                fields.append(text)
            return f"STRUCT<{', '.join(fields)}>"
