"""Costs of routes, for comparing them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deltaproto.planning.ddl.constraint_text import restorable_text
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.drop_feature import WAIT_ERROR
from deltaproto.planning.predict.outcome import Outcome, Rewrite
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_TRACKING, Table
from deltaproto.planning.statement import DropConstraint, DropFeature, Statement, Wait
from deltaproto.protocol import feature_catalog
from deltaproto.sql.tokens import is_enclosed

# Placeholders for unknown sizes; only their order matters.
_GUESSED = {
    Rewrite.NONE: 0,
    Rewrite.VECTORS: 1,
    Rewrite.WIDENED: 2,
    Rewrite.SOME: 3,
    Rewrite.ALL: 4,
}


class Files(NamedTuple):
    """Live data files: count and bytes. None: unknown."""

    files: int | None = None
    bytes: int | None = None
    with_vectors: int | None = None
    with_vectors_bytes: int | None = None
    before_type_change: int | None = None
    """upper bound of files written before a column was widened"""
    before_type_change_bytes: int | None = None

    def rewritten(self, rewrite: Rewrite) -> tuple[int | None, int | None]:
        """Return the maximum files and bytes that a statement rewrites."""
        match rewrite:
            case Rewrite.NONE:
                return 0, 0
            case Rewrite.VECTORS:
                return self.with_vectors, self.with_vectors_bytes
            case Rewrite.WIDENED:
                return self.before_type_change, self.before_type_change_bytes
            case Rewrite.SOME | Rewrite.ALL:
                return self.files, self.bytes


class Cost(NamedTuple):
    """Compared member by member: earlier members have priority over all later ones."""

    irreversible: int = 0
    """number of irreversible losses"""
    history: int = 0
    """1 if history is truncated"""
    bytes: int = 0
    """bytes of rewritten data files"""
    waits: int = 0
    commits: int = 0
    """upper bound"""


def compute_cost(
    steps: Iterable[tuple[Statement, Table, Outcome]], engine: Engine, files: Files
) -> Cost:
    """Return the cost of statements, each with the table before it and its outcome."""
    lost, history, rewritten, waits, commits = 0, 0, 0, 0, 0
    for statement, before, outcome in steps:
        lost += len(permanent_losses(statement, before, outcome, engine))
        history |= isinstance(statement, DropFeature) and deletes_history(statement, outcome)
        bytes_ = files.rewritten(outcome.rewrites)[1]
        rewritten += _GUESSED[outcome.rewrites] if bytes_ is None else bytes_
        waits += isinstance(statement, Wait)
        commits += outcome.most
    return Cost(lost, int(history), rewritten, waits, commits)


def deletes_history(drop: DropFeature, outcome: Outcome) -> bool:
    """Return True if the drop deletes history. The first of two calls stops before that."""
    refusal = outcome.refusal
    stopped = refusal is not None and refusal.error == WAIT_ERROR and refusal.sure
    return drop.truncate and not stopped


def permanent_losses(
    statement: Statement, before: Table, outcome: Outcome, engine: Engine
) -> tuple[str, ...]:
    """Return the statement's irreversible losses as phrases."""
    if isinstance(statement, DropFeature):
        return tuple(_losses_by_drop(statement.feature, before))
    if isinstance(statement, DropConstraint):
        key = statement.key(before)
        if key is None or restorable_text(before.configuration[key]) is not None:
            return ()
        if is_enclosed(before.configuration[key]):
            return (
                f"Delta Spark cannot read the CHECK expression of {statement.name} in a statement: "
                "no rollback is printed",
            )
        return (
            f"the CHECK expression of {statement.name} closes its own parenthesis and may contain "
            "other statements: review it in the table's properties; no rollback is printed",
        )
    gained = outcome.table.protocol.supported - before.protocol.supported
    never = (
        name for name in sorted(gained) if not engine.drops(feature_catalog.feature_record(name))
    )
    return tuple(f"{name} is added to the protocol, and {engine} cannot drop it" for name in never)


def _losses_by_drop(name: str, before: Table) -> Iterable[str]:
    if name == "rowTracking" and (before.is_on(ROW_TRACKING) or before.row_ids):
        yield "row ids and row commit versions are lost; re-enabling assigns new ones"
    if name == "columnMapping" and before.configuration.get(MAPPING_MODE, "").lower() == "id":
        yield "column mapping by id is lost: an existing table can only get mapping by name"
    if name == "domainMetadata" and before.domains:
        yield f"the metadata domains {', '.join(before.domains)} are deleted"
