"""Classifying a pending statement: its first words where they decide, else sqlglot's parse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deltaproto.errors import UsageError
from deltaproto.protocol.conflicts.operation import Operation
from deltaproto.protocol.conflicts.statement import Classification, Condition, not_understood
from deltaproto.protocol.conflicts.statement_prefix import by_prefix
from deltaproto.protocol.conflicts.tokens import tokens

_EVOLUTION = ["WITH", "SCHEMA", "EVOLUTION"]
_COMPARISONS = {"EQ", "NullSafeEQ", "GT", "GTE", "LT", "LTE", "Between", "In"}
_COMPLEX = {
    "Bracket",
    "Array",
    "Map",
    "VarMap",
    "MapFromEntries",
    "Struct",
    "ArrayContains",
    "ArraySize",
    "Lambda",
}
_COMPLEX_CALLS = {"element_at", "named_struct", "map_contains_key", "map_keys", "map_values"}
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


def classify(sql: str) -> Classification:
    """What the statement counts as in the matrices; never raises for what it says.

    Raises:
        UsageError: when the statement takes a parser and sqlglot is not installed.
    """
    found = tokens(sql)
    decided = by_prefix(found)
    if decided is not None:
        return decided
    evolves = [token.key for token in found[1:4]] == _EVOLUTION
    if evolves:
        sql = f"{found[0].text} {sql[found[3].end :]}"
    tree = _parsed(sql)
    if tree is None:
        return not_understood("sqlglot, which read it as SQL of Databricks, cannot parse it.")
    try:
        answer = _judged(tree)
    except RecursionError:
        return not_understood("It is nested too deeply.")
    if evolves and answer.operation is not None:
        warning = (
            "WITH SCHEMA EVOLUTION: a write that changes the schema is a METADATA CHANGE for "
            "everybody else, and makes every concurrent write fail."
        )
        return answer._replace(warnings=(*answer.warnings, warning))
    return answer


def _parsed(sql: str) -> Any:
    """The only statement's tree; None when it cannot be parsed."""
    try:
        import sqlglot
    except ImportError as error:
        raise UsageError(
            "--sql: sqlglot, which parses this statement, is not installed",
            "pip install 'deltaproto[sql]'",
        ) from error
    import logging

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        trees = sqlglot.parse(sql, read="databricks")
    except Exception:  # a parser of others, on any text: whatever it raises, it did not parse
        return None
    return trees[0] if len(trees) == 1 else None


def _judged(tree: Any) -> Classification:
    match type(tree).__name__:
        case "Insert":
            return _insert(tree)
        case "Update":
            return _change(tree, Operation.UPDATE)
        case "Delete":
            return _change(tree, Operation.DELETE)
        case "Merge":
            return _merge(tree)
        case "Select" | "Union" | "Except" | "Intersect":
            if tree.args.get("into") is None:
                return Classification(
                    None, True, reasons=("It only reads: a snapshot, in nobody's way.",)
                )
    return not_understood("No matrix says what a statement of this kind counts as.")


def _insert(tree: Any) -> Classification:
    from sqlglot import exp

    target = _table(tree.this)
    if target is None:
        return not_understood("The table that it writes to could not be made out.")
    args = tree.args
    replaces = [args.get(name) for name in ("overwrite", "where", "using", "on")]
    reads = _reads(tree, target)
    if any(replaces):
        reasons = [
            "It replaces rows, so it is no blind append: judged as DELETE plus INSERT, of which "
            "the DELETE decides."
        ]
        if reads:
            reasons.append("It reads the table that it writes to.")
        return Classification(Operation.DELETE, True, blind_append=False, reasons=tuple(reasons))
    if reads:
        return Classification(
            Operation.MERGE,
            True,
            blind_append=False,
            reasons=("It reads the table that it writes to, so it has the concurrency of MERGE.",),
        )
    what = "values" if isinstance(tree.expression, exp.Values) else "a query on other tables"
    return Classification(
        Operation.INSERT,
        True,
        blind_append=True,
        reasons=(f"A blind append: {what}, and nothing that refers to the table itself.",),
        warnings=(
            "With schema evolution, an INSERT that changes the schema is a METADATA CHANGE.",
        ),
    )


def _reads(tree: Any, target: Any) -> bool:
    """True when a query below refers to the target, or may: `t` may be `db.t`."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        if table is target or not _same(table, target):
            continue
        defined = {}
        for cte in tree.find_all(exp.CTE):
            defined[cte.alias.casefold()] = cte
        own = defined.get(table.name.casefold()) if not table.db else None
        if own is None or any(above is own for above in _above(table)):
            return True
    return False


def _above(node: Any) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def _same(one: Any, other: Any) -> bool:
    names = [[part.name.casefold() for part in table.parts][::-1] for table in (one, other)]
    return all(a == b for a, b in zip(*names, strict=False)) and bool(names[0] and names[1])


def _change(tree: Any, operation: Operation) -> Classification:
    target = _table(tree.this)
    where = tree.args.get("where")
    if target is None:
        return not_understood("The table that it writes to could not be made out.")
    for other in ("from_", "from", "using", "tables"):
        if tree.args.get(other):
            return not_understood(f"Delta knows no {operation} over several tables.")
    conditions = [] if where is None else [where.this]
    reason = f"{operation} of rows" + ("" if conditions else ": of all, as it has no WHERE") + "."
    return Classification(
        operation,
        True,
        blind_append=False,
        reasons=(reason,),
        files=_files(conditions, target),
        condition=Condition(target.alias or None, _literals(conditions[:1], target)),
    )


def _merge(tree: Any) -> Classification:
    from sqlglot import exp

    target, on = _table(tree.this), tree.args.get("on")
    if target is None or on is None:
        return not_understood("The table that it writes to could not be made out.")
    conditions = [on]
    for when in tree.find_all(exp.When):
        if when.args.get("condition") is not None:
            conditions.append(when.args["condition"])
    return Classification(
        Operation.MERGE,
        True,
        blind_append=False,
        reasons=("MERGE reads the target to match rows.",),
        files=_files(conditions, target),
        condition=Condition(target.alias_or_name, _literals([on], target)),
    )


def _table(node: Any) -> Any:
    from sqlglot import exp

    found = node.this if isinstance(node, exp.Schema) else node
    return found if isinstance(found, exp.Table) and found.name else None


def _literals(conditions: list[Any], target: Any) -> frozenset[str]:
    """The target's columns that a conjunct compares with literals and nothing else."""
    from sqlglot import exp

    own = {"", target.alias_or_name.casefold()}
    found = set()
    for condition in conditions:
        whole = condition.unnest()
        for conjunct in whole.flatten() if isinstance(whole, exp.And) else [whole]:
            columns = {(c.table.casefold(), c.name.casefold()) for c in _all(conjunct, exp.Column)}
            if (
                len(columns) == 1
                and _compares(conjunct.unnest())
                and not any(_all(conjunct, exp.Query))
                and any(_all(conjunct, exp.Literal))
            ):
                ((table, name),) = columns
                if table in own:
                    found.add(name)
    return frozenset(found)


def _compares(node: Any) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Or):
        return all(_compares(part.unnest()) for part in node.flatten())
    if type(node).__name__ not in _COMPARISONS:
        return False
    sides = (node.this, node.args.get("expression"))
    return any(isinstance(side, exp.Column) for side in sides)


def _all(node: Any, kind: Any) -> Iterator[Any]:
    found: Iterator[Any] = node.find_all(kind)
    return found


def _files(conditions: list[Any], target: Any) -> tuple[str, ...]:
    """Why Databricks cannot compare rows for these conditions."""
    from sqlglot import exp

    found: dict[str, None] = {}
    for condition in conditions:
        for node in condition.walk():
            kind = type(node).__name__
            name = node.name.casefold() if isinstance(node, exp.Anonymous) else ""
            if kind in _COMPLEX or name in _COMPLEX_CALLS:
                found["uses a struct, array or map"] = None
            if kind in _VOLATILE or name in _VOLATILE_CALLS:
                called = name or node.sql_name().casefold()
                found[f"calls {called}, which may be non-deterministic"] = None
            if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
                correlated = _correlated(node, target)
                found["has a correlated subquery" if correlated else "has a subquery"] = None
    return tuple(f"Its condition {why}: row-level resolution is ruled out." for why in found)


def _correlated(query: Any, target: Any) -> bool:
    from sqlglot import exp

    inside = {table.alias_or_name.casefold() for table in query.find_all(exp.Table)}
    name = target.alias_or_name.casefold()
    return name not in inside and any(
        column.table.casefold() == name for column in query.find_all(exp.Column)
    )
