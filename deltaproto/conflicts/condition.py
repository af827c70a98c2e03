"""Analyze a parsed condition for conflicts: its literals, and what prevents row-level resolution.

Source: the Databricks page "Isolation levels and write conflicts", its limitations of row-level
concurrency, and its advice on predicates. Nodes are sqlglot's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_COMPARISONS = {"EQ", "NullSafeEQ", "GT", "GTE", "LT", "LTE", "Between", "In"}
_COMPLEX = {
    "Bracket",
    "VarMap",
    "Struct",
    "Lambda",
    "Dot",
}
_COLLECTIONS = ("Array", "Map")
_COLLECTION_CALLS = ("array_", "arrays_", "map_")
_COMPLEX_CALLS = {"cardinality", "element_at", "named_struct", "size"}
USES_COMPLEX_TYPE = "uses a struct, array or map"
_VOLATILE = {
    "Rand",
    "Randn",
    "Uuid",
    "CurrentDate",
    "CurrentDatetime",
    "CurrentTime",
    "CurrentTimestamp",
    "Localtime",
    "Localtimestamp",
}
_VOLATILE_CALLS = {
    "rand",
    "randn",
    "random",
    "randstr",
    "uniform",
    "uuid",
    "shuffle",
    "now",
    "curdate",
    "current_date",
    "current_timestamp",
    "localtimestamp",
    "monotonically_increasing_id",
    "input_file_name",
    "spark_partition_id",
}


def literal_columns(conditions: list[Any], target: Any) -> frozenset[str]:
    """Return the target columns that a conjunct compares only with literals."""
    from sqlglot import exp

    own = {"", target.alias_or_name.casefold()}
    found = set()
    for condition in conditions:
        whole = condition.unnest()
        for conjunct in whole.flatten() if isinstance(whole, exp.And) else [whole]:
            columns = {
                (c.table.casefold(), c.name.casefold()) for c in _find_all(conjunct, exp.Column)
            }
            if (
                len(columns) == 1
                and _compares_with_literal(conjunct.unnest())
                and not any(_find_all(conjunct, exp.Query))
                and any(_find_all(conjunct, exp.Literal))
            ):
                ((table, name),) = columns
                if table in own:
                    found.add(name)
    return frozenset(found)


def _compares_with_literal(node: Any) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Or):
        return all(_compares_with_literal(part.unnest()) for part in node.flatten())
    if type(node).__name__ not in _COMPARISONS:
        return False
    sides = (node.this, node.args.get("expression"))
    return any(isinstance(side, exp.Column) for side in sides)


def _find_all(node: Any, kind: Any) -> Iterator[Any]:
    found: Iterator[Any] = node.find_all(kind)
    return found


def condition_columns(conditions: list[Any], *sources: Any) -> frozenset[str]:
    """Return the columns of the conditions, casefolded; for a struct field `s.x`, return s.

    Args:
        sources: the tables in the statement, the target first.
    """
    from sqlglot import exp

    known = set().union(*map(_qualifiers, sources))
    return frozenset(
        _column_path(column, known)[0]
        for condition in conditions
        for column in condition.find_all(exp.Column)
    )


def why_compared_by_files(conditions: list[Any], target: Any, *sources: Any) -> tuple[str, ...]:
    """Return why Databricks cannot compare rows for these conditions.

    Args:
        sources: the other tables in the statement.
    """
    from sqlglot import exp

    found: dict[str, None] = {}
    known = set().union(*map(_qualifiers, (target, *sources)))
    for condition in conditions:
        for node in condition.walk():
            kind = type(node).__name__
            name = node.name.casefold() if isinstance(node, exp.Anonymous) else ""
            if (
                kind in _COMPLEX
                or kind.startswith(_COLLECTIONS)
                or name in _COMPLEX_CALLS
                or name.startswith(_COLLECTION_CALLS)
                or (
                    isinstance(node, exp.Column)
                    and node.find_ancestor(exp.Query) is None
                    and len(_column_path(node, known)) > 1
                )
            ):
                found[USES_COMPLEX_TYPE] = None
            if kind in _VOLATILE or name in _VOLATILE_CALLS:
                called = name or node.sql_name().casefold()
                found[f"calls {called}, which may be non-deterministic"] = None
            if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
                correlated = _is_correlated(node, target)
                found["has a correlated subquery" if correlated else "has a subquery"] = None
    return tuple(f"Its condition {why}, which prevents row-level resolution." for why in found)


def _qualifiers(table: Any) -> set[tuple[str, ...]]:
    """Return the valid qualifiers of a table's columns: its alias, or its (partial) name."""
    if table.alias:
        return {(table.alias.casefold(),)}
    parts = tuple(part.name.casefold() for part in getattr(table, "parts", ()))
    return {parts[start:] for start in range(len(parts))}


def _column_path(column: Any, known: set[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the column and field names, casefolded, without the table's name."""
    names = tuple(part.name.casefold() for part in column.parts)
    for length in range(len(names) - 1, 0, -1):
        if names[:length] in known:
            return names[length:]
    return names


def _is_correlated(query: Any, target: Any) -> bool:
    from sqlglot import exp

    inside = {table.alias_or_name.casefold() for table in query.find_all(exp.Table)}
    name = target.alias_or_name.casefold()
    return name not in inside and any(
        column.table.casefold() == name for column in query.find_all(exp.Column)
    )
