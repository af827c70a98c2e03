"""A copy of a table that a catalog names: statements that `apply` executes, and what is lost.

The new table is created with the columns and properties of the old one, then filled. The names
change places at the end, and the old table stays as NAME__before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from deltaproto.planning.plan import Rewrites, Step, StreamEffect, StreamImpact
from deltaproto.planning.predict.auto_enable import features_of_columns, features_of_properties
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import Array, Atomic, Column, Map, Path, Struct, Type
from deltaproto.planning.predict.table import CONSTRAINT_PREFIX, MAX_COLUMN_ID, PROTECTED_BEFORE
from deltaproto.planning.request import PlanInput
from deltaproto.planning.statement import Action, format_properties
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import column_name, quote_identifier, quote_literal, split_name

NEW_SUFFIX, OLD_SUFFIX = "__new", "__before"
COPY_OF, REPLACED_BY = "deltaproto.copyOf", "deltaproto.replacedBy"
"""properties: the id of the table that a new table is a copy of; the plan that replaced a table"""
MOST_CATCH_UPS = 100
"""commits to the new table after the first copy, before writers must be stopped"""
_DEFAULTS = "allowColumnDefaults"
# Types whose name in the schema is also their name in statements.
_TYPES = (
    *("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date"),
    *("timestamp", "timestamp_ntz", "variant"),
)
_SIZED = ("decimal(", "varchar(", "char(")
_SET_BY_DELTA = (
    *("deltaproto.", CONSTRAINT_PREFIX, MAX_COLUMN_ID, PROTECTED_BEFORE, "delta.rowTracking"),
    *("delta.inCommitTimestampEnablement", "delta.universalFormat."),
)

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
    "constraints": "CHECK constraints are not copied",
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
_ALWAYS = ("time-travel", "streams", "location", "grants", "sharing", "tags")


class NamedCopy(NamedTuple):
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


def design_named_copy(
    inputs: PlanInput,
    columns: Sequence[tuple[Column, str]],
    properties: Mapping[str, str],
    clustering: tuple[str, ...],
    without: frozenset[str],
) -> NamedCopy:
    """Return the copy of a table, with everything that the features not in `without` allow.

    Args:
        columns: name and type of each new column, and its expression over the old table.
        properties: the copied properties, without those of constraints.
    """
    table = inputs.table
    assert table.schema is not None
    kept, lost = [], set[str]()
    for old, (new, _) in zip(table.schema.columns, columns, strict=True):
        lost |= {"names"} if new.name != old.name else set()
        lost |= {"types"} if new.type != old.type else set()
    changed = bool(lost)
    for old, (new, _) in zip(table.schema.columns, columns, strict=True):
        default = None if _DEFAULTS in without or new.type != old.type else old.default
        # The expression may name a column that has another name or type now.
        generated = None if "generatedColumns" in without or changed else old.generated
        nullable = old.nullable or "invariants" in without
        lost |= {"defaults"} if default != old.default else set()
        lost |= {"generated"} if generated != old.generated else set()
        lost |= {"identity"} if old.identity else set()
        lost |= {"not-null"} if nullable != old.nullable else set()
        kept.append(Column(new.name, new.type, nullable, default, generated))
    checks = {n: table.configuration[table.constraint_key(n) or ""] for n in table.constraints}
    if checks and ("checkConstraints" in without or changed):
        checks, lost = {}, {*lost, "constraints"}
    properties = {k: v for k, v in properties.items() if not k.startswith("deltaproto.")}
    features = features_of_properties(properties, Protocol(1, 1), inputs.engine)
    features |= features_of_columns(Struct(tuple(kept)), Protocol(1, 1))
    features |= feature_catalog.NEW_TABLE_FEATURES | ({"checkConstraints"} if checks else set())
    features |= {"clustering"} if clustering else set()
    if any(column.default is not None for column in kept):
        features.add(_DEFAULTS)
        properties = {**properties, f"delta.feature.{_DEFAULTS}": "supported"}
    lost |= {"cdf"} if table.keeps_changes else set()
    lost |= {"row-ids"} if "rowTracking" in table.protocol.supported else set()
    lost |= {"clustering"} if table.clustering and not clustering else set()
    lost |= {"properties"} if _loses_properties(table.configuration, properties) else set()
    return NamedCopy(
        Protocol.carrying(features),
        tuple(kept),
        tuple(expression for _, expression in columns),
        {**properties, COPY_OF: inputs.fingerprint.table_id or ""},
        clustering,
        checks,
        (*_ALWAYS, *(name for name in LOSSES if name in lost)),
    )


def _loses_properties(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return True if a property that a user can set is missing in the new table."""
    return any(key not in new and not key.startswith(_SET_BY_DELTA) for key in old)


def new_location(location: str) -> str:
    """Return the folder of the copy of the table at a location."""
    return location.rstrip("/") + NEW_SUFFIX


def suffixed_name(sql_name: str, suffix: str) -> str:
    """Return a quoted catalog name with a suffix to its last part."""
    *first, last = split_name(sql_name)
    return ".".join(map(quote_identifier, (*first, last + suffix)))


ENDING = StreamImpact("every stream", StreamEffect.ENDS, "the table that it reads is replaced")


def copy_step(
    id_: str,
    action: Action,
    sql: str | None,
    why: str,
    undo: str | None,
    protocol: Protocol,
    operations: tuple[str, ...] = (),
) -> Step:
    """Return a step of a copy that leaves the protocol of the table as it is.

    Args:
        operations: the operation of each commit.
    """
    return Step(
        id=id_,
        action=action,
        sql=sql,
        feature=None,
        why=why,
        operations=operations,
        protocol_before=protocol,
        protocol_after=protocol,
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


def named_copy_steps(inputs: PlanInput, new: NamedCopy) -> Iterator[Step]:
    """Yield the steps: create, constrain, fill, rename the old table, close it, rename the new."""
    name = inputs.sql
    fresh, old = suffixed_name(name, NEW_SUFFIX), suffixed_name(name, OLD_SUFFIX)
    numbers = itertools.count(1)

    def step(
        action: Action, sql: str, why: str, undo: str | None, operations: tuple[str, ...] = ()
    ) -> Step:
        id_ = f"s{next(numbers)}"
        return copy_step(id_, action, sql, why, undo, inputs.table.protocol, operations)

    copy, swap = Action.REWRITE, Action.SWAP
    comments = inputs.comments or {}
    yield step(
        copy,
        _create_statement(inputs, new, fresh, comments),
        "create the new table; this one does not change",
        f"DROP TABLE {fresh}",
        ("CREATE TABLE",),
    )
    for check, expression in new.constraints.items():
        constraint = quote_identifier(check)
        yield step(
            copy,
            f"ALTER TABLE {fresh} ADD CONSTRAINT {constraint} CHECK ({expression})",
            "add the constraint to the empty table",
            f"ALTER TABLE {fresh} DROP CONSTRAINT {constraint}",
            ("ADD CONSTRAINT",),
        )
    names = ", ".join(quote_identifier(column.name) for column in new.columns)
    # Every name in the statement is quoted.
    fill = f"INSERT INTO {fresh} ({names}) SELECT {', '.join(new.selected)} FROM {name}"  # noqa: S608
    yield step(
        copy,
        fill,
        "copy the rows of one version, then those of later commits, and compare both tables: "
        "`apply` adds VERSION AS OF",
        None,
        ("WRITE",),
    )._replace(
        commits=(0, 1 + MOST_CATCH_UPS),
        rewrites=Rewrites(Rewrite.ALL, inputs.files.files, inputs.files.bytes),
    )
    yield step(
        swap,
        f"ALTER TABLE {name} RENAME TO {old}",
        "rename the old table, and copy what was committed before that",
        f"ALTER TABLE {old} RENAME TO {name}",
    )
    mark = quote_literal(REPLACED_BY)
    yield step(
        swap,
        f"ALTER TABLE {old} SET TBLPROPERTIES ({mark} = {quote_literal(name)})",
        "abort writers that still have the old table open: their transactions fail",
        f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({mark})",
        ("SET TBLPROPERTIES",),
    )
    yield step(
        swap,
        f"ALTER TABLE {fresh} RENAME TO {name}",
        "rename the new table to the original name",
        f"ALTER TABLE {name} RENAME TO {fresh}",
    )._replace(
        protocol_after=new.protocol,
        streams=(ENDING,),
        losses=tuple(f"{key}: {LOSSES[key]}" for key in new.lost),
    )


def _create_statement(
    inputs: PlanInput, new: NamedCopy, fresh: str, comments: Mapping[Path, str]
) -> str:
    assert inputs.table.schema is not None
    columns = ", ".join(
        _column_definition(column, (old.name,), comments)
        for column, old in zip(new.columns, inputs.table.schema.columns, strict=True)
    )
    clauses = ["USING delta"]
    if inputs.table.partition_columns:
        pairs = zip(inputs.table.schema.columns, new.columns, strict=True)
        named = {old.name: column.name for old, column in pairs}
        names = [named.get(each, each) for each in inputs.table.partition_columns]
        clauses.append(f"PARTITIONED BY ({', '.join(map(quote_identifier, names))})")
    if new.clustering:
        clauses.append(f"CLUSTER BY ({', '.join(map(column_name, new.clustering))})")
    clauses.append(f"LOCATION {quote_literal(new_location(inputs.location))}")
    if () in comments:
        clauses.append(f"COMMENT {quote_literal(comments[()])}")
    clauses.append(f"TBLPROPERTIES ({format_properties(new.properties)})")
    return f"CREATE TABLE {fresh} ({columns}) {' '.join(clauses)}"


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
