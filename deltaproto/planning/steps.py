"""From moves to the steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from deltaproto.planning.clash import clashes, streams
from deltaproto.planning.cost import Files, losses, truncated
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import REMOVE_MAPPING, Rewrite
from deltaproto.planning.plan import Rewrites, Step
from deltaproto.planning.retention import TRUNCATION, hours
from deltaproto.planning.route import Move
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    Purge,
    SetProperties,
    UnsetProperties,
    Wait,
)
from deltaproto.planning.survival import UNKNOWN, Writers
from deltaproto.planning.table import MODE
from deltaproto.planning.undo import undo


def steps(
    moves: Sequence[Move], engine: Engine, files: Files, table: str, writers: Writers = UNKNOWN
) -> tuple[Step, ...]:
    """The steps for `table`, which is written as SQL already."""
    made: list[Step] = []
    pending: set[tuple[str, bool]] = set()
    for move in moves:
        statement, before, outcome = move
        repeats = isinstance(statement, DropFeature) and (statement.feature, False) in pending
        wait_only_maybe = (
            isinstance(statement, Wait) and bool(pending) and not any(sure for _, sure in pending)
        )
        truncates = isinstance(statement, DropFeature) and truncated(statement, outcome)
        count, size = files.rewritten(outcome.rewrites)
        made.append(
            Step(
                id=f"s{len(made) + 1}",
                action=statement.action,
                sql=statement.sql(table),
                feature=statement.feature,
                why=_why(move),
                operations=tuple(commit.operation for commit in outcome.commits),
                protocol_before=before.protocol,
                protocol_after=outcome.table.protocol,
                commits=(outcome.fewest, outcome.most),
                rewrites=Rewrites(outcome.rewrites, count, size),
                expects=outcome.refusal.error if outcome.refusal is not None else None,
                truncates=truncates,
                retention_hours=hours(before.configuration, TRUNCATION) if truncates else None,
                wait_hours=statement.hours if isinstance(statement, Wait) else 0,
                setting=statement.setting if isinstance(statement, Wait) else None,
                clashes=tuple(clashes(statement, before, outcome, writers)),
                streams=tuple(streams(statement, before, outcome)),
                losses=losses(statement, before, outcome, engine),
                undo=undo(move, moves[0].before, engine, table),
                warnings=outcome.warnings,
                optional=repeats or wait_only_maybe,
            )
        )
        if isinstance(statement, DropFeature) and outcome.refusal is not None:
            pending.add((statement.feature, outcome.refusal.sure))
    return tuple(made)


def _why(move: Move) -> str:
    statement, before, outcome = move
    after = outcome.table
    match statement:
        case Wait():
            return "wait until the history that shows the dropped features may be deleted"
        case DropFeature():
            return _drop(statement, move)
        case DropConstraint():
            return f"{statement.name} is no longer checked, so that checkConstraints can go"
        case ClusterBy(columns=()) if MODE in before.configuration:
            return (
                "unclustered while column mapping goes, or its clustering would keep physical "
                "names and break"
            )
        case ClusterBy(columns=()):
            return "the table is no longer clustered; clustering stays in the protocol"
        case ClusterBy():
            columns = ", ".join(statement.columns)
            return f"clustered by {columns}; only OPTIMIZE FULL rewrites existing files"
        case Purge():
            return "the files that carry deletion vectors are rewritten without them"
        case SetProperties() | UnsetProperties():
            gained = sorted(after.protocol.supported - before.protocol.supported)
            if any(commit.operation == REMOVE_MAPPING for commit in outcome.commits):
                return "column mapping is switched off: every file is rewritten to its column names"
            if gained:
                vanish = before.protocol.uses_table_features > after.protocol.uses_table_features
                lists = ", and the lists vanish" if vanish else ""
                joins = "joins" if len(gained) == 1 else "join"
                return f"{', '.join(gained)} {joins} the protocol{lists}"
            if after.protocol != before.protocol:
                return "the same features are stored as the lowest protocol that holds them"
            return "a change of properties; the protocol stays"
    return "a statement of your own"


def _drop(statement: DropFeature, move: Move) -> str:
    name, refusal = statement.feature, move.outcome.refusal
    if refusal is not None and refusal.retry:
        done = "takes it out of use" if move.outcome.commits else "tries"
        if not refusal.sure:
            return f"{name} goes at once if no history that is left shows it, else after a wait"
        return f"first of two calls: it {done}; {name} stays until its history may be deleted"
    gained = sorted(move.outcome.table.protocol.supported - move.before.protocol.supported)
    stays = f"; {', '.join(gained)} joins and protects its history" if gained else ""
    history = ", and history older than the retention is deleted" if statement.truncate else ""
    rewritten = {
        Rewrite.NONE: "",
        Rewrite.VECTORS: ", files with deletion vectors are rewritten",
        Rewrite.WIDENED: ", files from before a type change are rewritten",
        Rewrite.SOME: ", files with deletion vectors or with columns that the schema lacks are "
        "rewritten",
        Rewrite.ALL: ", every file is rewritten",
    }[move.outcome.rewrites]
    return f"{name} leaves the protocol{rewritten}{history}{stays}"
