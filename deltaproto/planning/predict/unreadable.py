"""Stored values because of which Delta Spark refuses every statement, or every statement of a kind.

Source: Delta Spark 4.4's `Invariants`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from deltaproto.caches import cache_by_identity
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import coordinated
from deltaproto.planning.predict.consistency import validate_collations, validate_maintenance
from deltaproto.planning.predict.outcome import Outcome, Refusal
from deltaproto.planning.predict.properties import find_untracked_files
from deltaproto.planning.predict.schema import (
    Column,
    Path,
    Struct,
    dotted_path,
    find_column,
)
from deltaproto.planning.predict.table import Table
from deltaproto.sql.quoting import split_name


def refuse_every_statement(table: Table, engine: Engine) -> Refusal | None:
    """Return why the engine refuses every change of the table, or None."""
    if engine.name is not EngineName.DELTA_SPARK:
        return None
    refusal = coordinated.validate_stored(table, engine)
    if refusal is not None or table.schema is None:
        return refusal
    return validate_collations(table.schema) or _validate_invariants(table.schema)


_RESOLVES_CLUSTERING = frozenset({"ADD COLUMNS", "CHANGE COLUMN", "CLUSTER BY", "REPLACE COLUMNS"})


def refuse_lost_clustering(table: Table, outcome: Outcome, engine: Engine) -> Refusal | None:
    """Refuse column changes that look up clustering columns that are missing from the schema.

    For OPTIMIZE and REORG, see `refuse_file_rewrite`.
    """
    found = not _RESOLVES_CLUSTERING.isdisjoint(each.operation for each in outcome.commits)
    return find_lost_clustering(table, engine) if found else None


def refuse_file_rewrite(table: Table, what: str, engine: Engine) -> Refusal | None:
    """Return why the engine refuses OPTIMIZE and REORG, even with nothing to rewrite, or None."""
    refusal = validate_maintenance(table, what, engine) or find_lost_clustering(table, engine)
    if refusal is not None or engine.name is not EngineName.DELTA_SPARK:
        return refusal
    return find_untracked_files(table, "")


def find_lost_clustering(table: Table, engine: Engine) -> Refusal | None:
    """Return why the engine refuses to look up the clustering columns, or None.

    The schema lacks these columns after column mapping was removed from a clustered table.
    """
    if table.schema is None or engine.name is not EngineName.DELTA_SPARK:
        return None
    for column in table.clustering or ():
        if find_column(table.schema, tuple(split_name(column))) is None:
            return Refusal(
                "",
                f"the schema does not have the clustering column {column}",
                "RESTORE the table to a version from before column mapping was removed",
            )
    return None


@cache_by_identity(64)
def _validate_invariants(schema: Struct) -> Refusal | None:
    """Refuse columns whose `delta.invariants` is not a condition in JSON."""
    for path, column in _fields(schema, ()):
        if column.invariant is None or _is_condition(column.invariant):
            continue
        error = "DELTA_UNRECOGNIZED_INVARIANT" if _is_other_object(column.invariant) else ""
        return Refusal(
            error,
            f"{dotted_path(path)} stores {column.invariant or 'nothing'} as delta.invariants, "
            "which is not a condition",
            "remove it from the column with the client that stored it",
        )
    return None


def _fields(struct: Struct, parent: Path) -> Iterator[tuple[Path, Column]]:
    """Yield columns and fields of structs. Delta reads no invariants inside collections."""
    for column in struct.columns:
        path = (*parent, column.name)
        yield path, column
        if isinstance(column.type, Struct):
            yield from _fields(column.type, path)


def _is_condition(stored: str) -> bool:
    rule = _parse(stored)
    inner = rule.get("expression") if isinstance(rule, dict) else None
    return isinstance(inner, dict) and isinstance(inner.get("expression"), str)


def _is_other_object(stored: str) -> bool:
    rule = _parse(stored)
    return isinstance(rule, dict) and not isinstance(rule.get("expression"), str)


def _parse(stored: str) -> Any:
    try:
        return json.loads(stored)
    except ValueError:
        return None
