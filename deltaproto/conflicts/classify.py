"""Classify a pending statement by its first words, or by sqlglot's parse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deltaproto.conflicts.condition import condition_columns, literal_columns, why_compared_by_files
from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.query import Classification, Condition, unknown_classification
from deltaproto.conflicts.statement_prefix import classify_prefix
from deltaproto.errors import UsageError
from deltaproto.sql.tokens import tokenize

_EVOLUTION = ["WITH", "SCHEMA", "EVOLUTION"]


def classify(sql: str) -> Classification:
    """Classify the statement for the matrices; never raises for its contents.

    Raises:
        UsageError: if the statement needs a parser and sqlglot is not installed.
    """
    found = tokenize(sql)
    decided = classify_prefix(found)
    if decided is not None:
        return decided
    evolves = [token.key for token in found[1:4]] == _EVOLUTION
    if evolves:
        sql = f"{found[0].text} {sql[found[3].end :]}"
    tree = _parse_single(sql)
    if tree is None:
        return unknown_classification("sqlglot cannot parse it as Databricks SQL.")
    try:
        answer = _classify_tree(tree)
    except RecursionError:
        return unknown_classification("The statement is nested too deeply.")
    if evolves and answer.operation is not None:
        warning = (
            "WITH SCHEMA EVOLUTION: a write that changes the schema is a METADATA CHANGE for "
            "other transactions, and makes every concurrent write fail."
        )
        return answer._replace(warnings=(*answer.warnings, warning))
    return answer


def _parse_single(sql: str) -> Any:
    """Return the only statement's tree, or None if it cannot be parsed."""
    try:
        import sqlglot
    except ImportError as error:
        raise UsageError(
            "sqlglot, which parses this statement, is not installed",
            "pip install sqlglot (the extra `sql` of deltaproto)",
        ) from error
    import logging

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(sql, read="databricks")
    except Exception:  # third-party parser: any exception means that it cannot parse
        return None
    return trees[0] if len(trees) == 1 else None


def _classify_tree(tree: Any) -> Classification:
    match type(tree).__name__:
        case "Insert":
            return _classify_insert(tree)
        case "Update":
            return _classify_change(tree, Operation.UPDATE)
        case "Delete":
            return _classify_change(tree, Operation.DELETE)
        case "Merge":
            return _classify_merge(tree)
        case "Select" | "Union" | "Except" | "Intersect":
            if tree.args.get("into") is None:
                return Classification(
                    None,
                    True,
                    reasons=("Read-only: it reads a snapshot and conflicts with nothing.",),
                )
    return unknown_classification("The matrices do not cover this kind of statement.")


def _classify_insert(tree: Any) -> Classification:
    from sqlglot import exp

    target = _target_table(tree.this)
    if target is None:
        return unknown_classification("Cannot determine the target table.")
    args = tree.args
    replaces = [args.get(name) for name in ("overwrite", "where", "using", "on")]
    reads = _reads_target(tree, target)
    if any(replaces):
        reasons = [
            "It replaces rows, so it is not a blind append: it is evaluated as DELETE plus "
            "INSERT, and the DELETE decides."
        ]
        if reads:
            reasons.append("It reads its target table.")
        conditions = [each for each in (args.get("where"), args.get("on")) if each is not None]
        return Classification(
            Operation.DELETE,
            True,
            blind_append=False,
            reasons=tuple(reasons),
            files=why_compared_by_files(conditions, target),
        )
    if reads:
        return Classification(
            Operation.MERGE,
            True,
            blind_append=False,
            reasons=("It reads its target table, so it has the same conflicts as MERGE.",),
        )
    what = "values" if isinstance(tree.expression, exp.Values) else "a query on other tables"
    return Classification(
        Operation.INSERT,
        True,
        blind_append=True,
        reasons=(f"A blind append: {what}, without references to the table itself.",),
        warnings=(
            "With schema evolution, an INSERT that changes the schema is a METADATA CHANGE.",
        ),
    )


def _reads_target(tree: Any, target: Any) -> bool:
    """Return True if a subquery refers to the target, or may: `t` may be `db.t`."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if table is target or not _is_same_table(table, target):
            continue
        defined = {}
        for cte in tree.find_all(exp.CTE):
            defined[cte.alias.casefold()] = cte
        own = defined.get(table.name.casefold()) if not table.db else None
        if own is None or any(above is own for above in _ancestors(table)):
            return True
    return False


def _ancestors(node: Any) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def _is_same_table(one: Any, other: Any) -> bool:
    names = [[part.name.casefold() for part in table.parts][::-1] for table in (one, other)]
    return all(a == b for a, b in zip(*names, strict=False)) and bool(names[0] and names[1])


def _classify_change(tree: Any, operation: Operation) -> Classification:
    target = _target_table(tree.this)
    where = tree.args.get("where")
    if target is None:
        return unknown_classification("Cannot determine the target table.")
    for other in ("from_", "from", "using", "tables"):
        if tree.args.get(other):
            return unknown_classification(
                f"Delta does not support {operation} with several tables."
            )
    conditions = [] if where is None else [where.this]
    reason = (
        f"{operation} of rows" + ("" if conditions else ": all rows, because it has no WHERE") + "."
    )
    return Classification(
        operation,
        True,
        blind_append=False,
        reasons=(reason,),
        files=why_compared_by_files(conditions, target),
        condition=Condition(
            target.alias or None,
            literal_columns(conditions[:1], target),
            condition_columns(conditions, target),
        ),
    )


def _classify_merge(tree: Any) -> Classification:
    from sqlglot import exp

    target, on = _target_table(tree.this), tree.args.get("on")
    source = tree.args.get("using")
    if target is None or on is None or source is None:
        return unknown_classification("Cannot determine the target table.")
    conditions = [on]
    for when in tree.find_all(exp.When):
        if when.args.get("condition") is not None:
            conditions.append(when.args["condition"])
    return Classification(
        Operation.MERGE,
        True,
        blind_append=False,
        reasons=("MERGE reads the target to match rows.",),
        files=why_compared_by_files(conditions, target, source),
        condition=Condition(
            target.alias_or_name,
            literal_columns([on], target),
            condition_columns(conditions, target, source),
        ),
    )


def _target_table(node: Any) -> Any:
    from sqlglot import exp

    found = node.this if isinstance(node, exp.Schema) else node
    return found if isinstance(found, exp.Table) and found.name else None
