"""Parse ALTER TABLE after the table's name.

Source: Spark's `SqlBaseParser` and Delta's `DeltaSqlBase` grammar.
"""

from __future__ import annotations

from deltaproto.planning.ddl.change_column import ChangeColumn
from deltaproto.planning.ddl.columns import AddColumns, DropColumns, RenameColumn, ReplaceColumns
from deltaproto.planning.ddl.cursor import Cursor
from deltaproto.planning.ddl.types import parse_column_definition, parse_type
from deltaproto.planning.ddl.user_statement import (
    AddConstraint,
    ClusterByPaths,
    DropConstraintIfExists,
    PlannerStatement,
    RefusedStatement,
    StatementEffect,
)
from deltaproto.planning.predict.outcome import Refusal
from deltaproto.planning.predict.properties import canonical_name
from deltaproto.planning.predict.schema import Path
from deltaproto.planning.predict.table import is_constraint
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    SetProperties,
    UnsetProperties,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.properties import CONSTRAINT_PREFIX

_GRAMMAR = "PARSE_SYNTAX_ERROR"


def parse_alter_table(cursor: Cursor) -> PlannerStatement | StatementEffect:
    """Parse what follows the table's name.

    Raises:
        UnreadableError: if the form is not supported.
    """
    match cursor.keys(2):
        case ("SET", "TBLPROPERTIES"):
            return _parse_set_properties(cursor)
        case ("UNSET", "TBLPROPERTIES"):
            return _parse_unset_properties(cursor)
        case ("DROP", "FEATURE"):
            return _parse_drop_feature(cursor)
        case ("ADD", "CONSTRAINT") | ("ADD", "CHECK"):
            return _parse_add_constraint(cursor)
        case ("DROP", "CONSTRAINT"):
            cursor.take("DROP", "CONSTRAINT")
            if_exists = cursor.take("IF", "EXISTS")
            name = cursor.name()
            return DropConstraintIfExists(name) if if_exists else DropConstraint(name)
        case ("CLUSTER", "BY"):
            return _parse_cluster_by(cursor)
        case ("ADD", "COLUMN" | "COLUMNS"):
            cursor.at += 2
            return _parse_add_columns(cursor)
        case ("DROP", "COLUMN" | "COLUMNS"):
            cursor.at += 2
            if_exists = cursor.take("IF", "EXISTS")
            return DropColumns(tuple(_parse_paths(cursor)), if_exists)
        case ("RENAME", "COLUMN"):
            cursor.at += 2
            path = cursor.path()
            cursor.expect("TO")
            return RenameColumn(path, cursor.name())
        case ("REPLACE", "COLUMN" | "COLUMNS"):
            cursor.at += 2
            return _parse_replace_columns(cursor)
        case ("ALTER" | "CHANGE", _):
            change = cursor.next().key == "CHANGE"
            cursor.take("COLUMN")
            return _parse_change_column(cursor, change)
    raise cursor.unreadable("unsupported ALTER TABLE clause")


def _parse_paths(cursor: Cursor) -> list[Path]:
    if cursor.keys(1) == ("(",):
        return cursor.listed(cursor.path)
    found = [cursor.path()]
    while cursor.take(","):
        found.append(cursor.path())
    return found


def parse_properties(cursor: Cursor) -> dict[str, str] | None:
    """Read a property list; None if a value is missing, which only UNSET allows."""
    found: dict[str, str] = {}
    complete = True

    def one() -> None:
        nonlocal complete
        key = cursor.string() if _is_string_next(cursor) else ".".join(cursor.path())
        equals = cursor.take("=")
        if not equals and cursor.keys(1) in ((",",), (")",)):
            complete = False
            return
        if _is_string_next(cursor):
            found[canonical_name(key)] = cursor.string()
        else:
            found[canonical_name(key)] = cursor.until(",", ")")

    cursor.listed(one)
    return found if complete else None


def _is_string_next(cursor: Cursor) -> bool:
    return not cursor.done and cursor.tokens[cursor.at].string


def _parse_set_properties(cursor: Cursor) -> PlannerStatement | StatementEffect:
    cursor.at += 2
    properties = parse_properties(cursor)
    if properties is None:
        refusal = Refusal(
            "", "a property has no value", "write 'key' = 'value'", on_databricks=True
        )
        return RefusedStatement(refusal)
    return SetProperties(properties)


def _parse_unset_properties(cursor: Cursor) -> UnsetProperties | DropConstraint:
    cursor.at += 2
    cursor.take("IF", "EXISTS")

    def key() -> str:
        return canonical_name(
            cursor.string() if _is_string_next(cursor) else ".".join(cursor.path())
        )

    keys = tuple(cursor.listed(key))
    if len(keys) == 1 and _hides_constraint(keys[0]):
        return DropConstraint(keys[0][len(CONSTRAINT_PREFIX) :], keys[0])
    return UnsetProperties(keys)


def _hides_constraint(key: str) -> bool:
    """Return True for the property of a constraint that DROP CONSTRAINT does not find."""
    return is_constraint(key) and key != key.lower()


def _parse_drop_feature(cursor: Cursor) -> PlannerStatement | StatementEffect:
    cursor.at += 2
    name = cursor.string() if _is_string_next(cursor) else cursor.name()
    truncate = cursor.take("TRUNCATE", "HISTORY")
    if name.lower().startswith("delta.") and canonical_name(name.lower()) != name.lower():
        error, why = "IS_DELTA_PROPERTY", f"{name} is a property, not a feature"
        refusal = Refusal(
            f"DELTA_FEATURE_DROP_FEATURE_{error}",
            why,
            "use UNSET TBLPROPERTIES",
            on_databricks=True,
        )
        return RefusedStatement(refusal)
    known = {
        f.name.lower()
        for f in feature_catalog.all_features()
        if feature_catalog.is_registered(f.name)
    }
    if name.lower() not in known:
        refusal = Refusal(
            "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            f"Delta Spark has no feature {name}",
            "see `deltaproto features`",
            on_databricks=False,
        )
        return RefusedStatement(refusal)
    return DropFeature(name, truncate)


_OTHER_CONSTRAINTS = ("PRIMARY", "FOREIGN", "UNIQUE")


def _parse_add_constraint(cursor: Cursor) -> StatementEffect:
    cursor.expect("ADD")
    if not cursor.take("CONSTRAINT"):
        raise cursor.unreadable("constraints without names are not supported")
    name = cursor.name()
    if not cursor.take("CHECK"):
        known = cursor.key in _OTHER_CONSTRAINTS
        error = "INVALID_IDENTIFIER" if cursor.key == "-" else "PARSE_SYNTAX_ERROR"
        cursor.at = len(cursor.tokens)
        if not known:
            message = "the name of a constraint is one identifier, and CHECK follows"
            remedy = "put backticks around a name with dots"
            return RefusedStatement(Refusal(error, message, remedy))
        refusal = Refusal(
            "UNSUPPORTED_FEATURE.TABLE_OPERATION",
            "Delta Spark supports only CHECK constraints",
            "remove it",
            on_databricks=False,
        )
        return RefusedStatement(refusal, databricks="primary, foreign and unique keys")
    start = cursor.tokens[cursor.at].end if not cursor.done else 0
    cursor.bracketed()
    # With comments at its ends: Delta's grammar may read them otherwise.
    expression = cursor.sql[start : cursor.tokens[cursor.at - 1].start].strip()
    if cursor.take("NOT", "ENFORCED"):
        error = "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC"
        refusal = Refusal(error, "CHECK constraints are always enforced", "remove NOT ENFORCED")
        return RefusedStatement(refusal)
    if cursor.take("ENFORCED"):
        return RefusedStatement(
            Refusal("", "Delta Spark does not support ENFORCED", "remove ENFORCED")
        )
    return AddConstraint(name, expression)


def _parse_cluster_by(cursor: Cursor) -> PlannerStatement | StatementEffect:
    cursor.at += 2
    if cursor.take("NONE"):
        return ClusterBy(())
    if cursor.take("AUTO"):
        refusal = Refusal(_GRAMMAR, "only Databricks supports CLUSTER BY AUTO", "list the columns")
        return RefusedStatement(refusal, databricks="CLUSTER BY AUTO")
    return ClusterByPaths(tuple(cursor.listed(cursor.path)))


def _parse_add_columns(cursor: Cursor) -> StatementEffect:
    bracketed = cursor.keys(1) == ("(",)
    if bracketed:
        found = cursor.listed(lambda: parse_column_definition(cursor))
    else:
        found = [parse_column_definition(cursor)]
        while cursor.take(","):
            found.append(parse_column_definition(cursor))
    for definition in found:
        if definition.column.generated is not None or definition.column.identity:
            refusal = Refusal(
                _GRAMMAR,
                "generated and identity columns can only be defined when creating a table",
                "create a new table",
            )
            return RefusedStatement(refusal)
    return AddColumns(tuple(found))


def _parse_replace_columns(cursor: Cursor) -> StatementEffect:
    columns = [d.column for d in cursor.listed(lambda: parse_column_definition(cursor))]
    if not all(column.nullable for column in columns):
        refusal = Refusal(
            "", "REPLACE COLUMNS does not support NOT NULL", "remove it", on_databricks=True
        )
        return RefusedStatement(refusal)
    return ReplaceColumns(tuple(columns))


def _parse_change_column(cursor: Cursor, change: bool) -> StatementEffect:
    """Parse Spark's ALTER COLUMN, or Hive's CHANGE COLUMN (old name, new name, type)."""
    path = cursor.path()
    hive = change and cursor.key not in _CHANGES
    if hive and cursor.path() != path:
        cursor.at = len(cursor.tokens)
        refusal = Refusal(
            "", "CHANGE COLUMN cannot rename columns", "use RENAME COLUMN", on_databricks=True
        )
        return RefusedStatement(refusal)
    found = ChangeColumn(path, type=parse_type(cursor) if hive else None)
    while word := cursor.one_of(*_CHANGES):
        match word:
            case "TYPE":
                found = found._replace(type=parse_type(cursor))
            case "SET" | "DROP":
                found = _parse_column_option(cursor, found, on=word == "SET")
            case "COMMENT":
                cursor.string()
                found = found._replace(comment=True)
            case "FIRST":
                found = found._replace(moved=True)
            case "AFTER":
                found = found._replace(moved=True, after=cursor.name())
            case "SYNC":
                cursor.expect("IDENTITY")
                found = found._replace(sync_identity=True)
    return found


_CHANGES = ("TYPE", "SET", "DROP", "COMMENT", "FIRST", "AFTER", "SYNC")


def _parse_column_option(cursor: Cursor, found: ChangeColumn, *, on: bool) -> ChangeColumn:
    if cursor.take("NOT", "NULL"):
        return found._replace(nullable=not on)
    cursor.expect("DEFAULT")
    return found._replace(default=cursor.until(",") if on else "")
