"""Convert predicted statements to plan steps, with their undo statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from deltaproto.planning.conflict_impact import find_step_conflicts, predict_stream_impacts
from deltaproto.planning.ddl.constraint_text import restorable_text
from deltaproto.planning.engine import Engine
from deltaproto.planning.plan import Blocked, Plan, Rewrites, Step
from deltaproto.planning.predict.outcome import REMOVE_MAPPING, Outcome, Rewrite
from deltaproto.planning.predict.properties import TRUNCATION_RETENTION, retention_hours
from deltaproto.planning.predict.set_properties import is_protocol_property
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.request import goal_text
from deltaproto.planning.search.cost import Files, deletes_history, permanent_losses
from deltaproto.planning.search.prediction import PredictedStatement
from deltaproto.planning.statement import (
    ClusterBy,
    DropConstraint,
    DropFeature,
    Purge,
    SetProperties,
    Statement,
    UnsetProperties,
    Wait,
)
from deltaproto.planning.writer_survival import UNKNOWN_WRITERS, Writers
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION, FEATURE_PREFIX
from deltaproto.protocol.stored_secrets import hide_in_json, hide_in_property
from deltaproto.redaction import holds_credentials
from deltaproto.sql.quoting import quote_identifier

_UNKNOWN_VALUE = (
    "the value from before holds a credential, which plans do not store: only someone who knows it "
    "can restore it"
)
NOT_STORED = Blocked(
    None,
    "a statement would contain a credential (or *** in its place), and plans are stored and shown",
    "execute this change yourself, and store the credential outside of the table",
)


def build_steps(
    predictions: Sequence[PredictedStatement],
    engine: Engine,
    files: Files,
    table: str,
    writers: Writers = UNKNOWN_WRITERS,
) -> tuple[Step, ...]:
    """Return the steps for `table`, which is already quoted as SQL."""
    made: list[Step] = []
    pending: set[tuple[str, bool]] = set()
    for prediction in predictions:
        statement, before, outcome = prediction
        repeats = isinstance(statement, DropFeature) and (statement.feature, False) in pending
        wait_only_maybe = (
            isinstance(statement, Wait) and bool(pending) and not any(sure for _, sure in pending)
        )
        truncates = isinstance(statement, DropFeature) and deletes_history(statement, outcome)
        count, size = files.rewritten(outcome.rewrites)
        undo = build_undo_sql(prediction, predictions[0].before, engine, table)
        secret = undo is not None and holds_credentials(undo)
        made.append(
            Step(
                id=f"s{len(made) + 1}",
                action=statement.action,
                sql=statement.sql(table),
                feature=statement.feature,
                why=_describe_purpose(prediction),
                operations=tuple(commit.operation for commit in outcome.commits),
                protocol_before=before.protocol,
                protocol_after=outcome.table.protocol,
                commits=(outcome.fewest, outcome.most),
                rewrites=Rewrites(outcome.rewrites, count, size),
                expects=outcome.refusal.error if outcome.refusal is not None else None,
                truncates=truncates,
                retention_hours=retention_hours(before.configuration, TRUNCATION_RETENTION)
                if truncates
                else None,
                wait_hours=statement.hours if isinstance(statement, Wait) else 0,
                setting=statement.setting if isinstance(statement, Wait) else None,
                clashes=tuple(find_step_conflicts(statement, before, outcome, writers)),
                streams=tuple(predict_stream_impacts(statement, before, outcome)),
                losses=(
                    *permanent_losses(statement, before, outcome, engine),
                    *((_UNKNOWN_VALUE,) if secret else ()),
                ),
                undo=None if secret else undo,
                warnings=outcome.warnings,
                optional=repeats or wait_only_maybe,
            )
        )
        if isinstance(statement, DropFeature) and outcome.refusal is not None:
            pending.add((statement.feature, outcome.refusal.sure))
    return tuple(made)


def block_secrets(plan: Plan) -> Plan:
    """Return the plan, blocked if one of its statements would contain a credential."""
    alternatives = tuple(each for each in plan.alternatives if not _have_secrets(each.steps))
    if _have_secrets(plan.steps):
        plan = plan._replace(
            blocked=(*plan.blocked, NOT_STORED), steps=(), protocol_after=plan.protocol_before
        )
    if NOT_STORED in plan.blocked:
        goal = hide_in_json({**plan.goal})
        if "set" in goal:
            goal["set"] = dict(hide_in_property(*item) for item in goal["set"].items())
        plan = plan._replace(goal=goal, goal_text=goal_text(goal, plan.protocol_before))
    return plan._replace(alternatives=alternatives)


def _have_secrets(steps: Iterable[Step]) -> bool:
    return any(step.sql is not None and holds_credentials(step.sql) for step in steps)


def _describe_purpose(prediction: PredictedStatement) -> str:
    statement, before, outcome = prediction
    after = outcome.table
    match statement:
        case Wait():
            return "wait until the history that shows the dropped features may be deleted"
        case DropFeature():
            return _describe_drop(statement, prediction)
        case DropConstraint():
            return f"drop the constraint {statement.name}, so that checkConstraints can be dropped"
        case ClusterBy(columns=()) if before.mapped or before.vectors or before.widened:
            return (
                "remove clustering before files are rewritten; otherwise Delta Spark skips files "
                "that OPTIMIZE has clustered, and clustering keeps physical column names"
            )
        case ClusterBy(columns=()):
            return "remove clustering; the feature stays in the protocol"
        case ClusterBy():
            columns = ", ".join(statement.columns)
            return f"cluster by {columns}; only OPTIMIZE FULL rewrites existing files"
        case Purge():
            return "rewrite the files that have deletion vectors"
        case SetProperties() | UnsetProperties():
            gained = sorted(after.protocol.supported - before.protocol.supported)
            if any(commit.operation == REMOVE_MAPPING for commit in outcome.commits):
                return "disable column mapping: rewrite every file with the column names"
            if gained:
                vanish = before.protocol.uses_table_features > after.protocol.uses_table_features
                lists = ", which removes the feature lists" if vanish else ""
                others = ", ".join(_find_other_properties(statement, gained))
                also = f"; also set {others}" if others else ""
                return f"add {', '.join(gained)} to the protocol{lists}{also}"
            if after.protocol.uses_table_features > before.protocol.uses_table_features:
                return "list the same features by name"
            if after.protocol != before.protocol:
                return "store the same features as the lowest protocol"
            if isinstance(statement, UnsetProperties) and all(
                map(is_protocol_property, statement.keys)
            ):
                return (
                    "remove protocol properties, which the metadata stores and other steps would "
                    "apply again"
                )
            if before.untracked and after.untracked is False:
                return "give row ids to the files that have none; the protocol stays the same"
            return "change properties; the protocol stays the same"
    return "run your statement"


def _find_other_properties(
    statement: SetProperties | UnsetProperties, gained: Iterable[str]
) -> Iterator[str]:
    """Yield the properties that the statement sets for other reasons than these features."""
    if isinstance(statement, SetProperties):
        records = map(feature_catalog.feature_record, gained)
        switches = {key.lower() for record in records for key in record.switches}
        for key in statement.properties:
            if not is_protocol_property(key) and key.lower() not in switches:
                yield key


def _describe_drop(statement: DropFeature, prediction: PredictedStatement) -> str:
    name, refusal = statement.feature, prediction.outcome.refusal
    if refusal is not None and refusal.retry:
        done = "disables the feature" if prediction.outcome.commits else "tries the drop"
        if not refusal.sure:
            return f"drop {name}, at once if no remaining history shows it, otherwise after a wait"
        return f"first of two calls: it {done}; {name} stays until its history may be deleted"
    gained = sorted(
        prediction.outcome.table.protocol.supported - prediction.before.protocol.supported
    )
    stays = f"; {', '.join(gained)} is added and protects its history" if gained else ""
    history = ", and history older than the retention is deleted" if statement.truncate else ""
    rewritten = {
        Rewrite.NONE: "",
        Rewrite.VECTORS: ", files with deletion vectors are rewritten",
        Rewrite.WIDENED: ", files from before a type change are rewritten",
        Rewrite.SOME: ", files with deletion vectors or columns missing from the schema are "
        "rewritten",
        Rewrite.ALL: ", every file is rewritten",
    }[prediction.outcome.rewrites]
    return f"remove {name} from the protocol{rewritten}{history}{stays}"


def build_undo_sql(
    prediction: PredictedStatement, start: Table, engine: Engine, table: str
) -> str | None:
    """Return the SQL that undoes a statement, as far as possible.

    None if nothing has to be undone, or nothing can be. `start` is the table before the plan.
    """
    found: list[str] = []
    reached = prediction.outcome.table
    for back in _undo_statements(prediction, start, engine, table):
        if isinstance(back, str):
            found.append(back)
            continue
        sql, outcome = back.sql(table), back.outcome(reached, engine)
        if sql is not None and (outcome.refusal is None or outcome.refusal.retry):
            found.append(sql)
            reached = outcome.table
    return "; ".join(found) or None


def _undo_statements(
    prediction: PredictedStatement, start: Table, engine: Engine, table: str
) -> Iterable[Statement | str]:
    statement, before, outcome = prediction
    if isinstance(statement, DropFeature):
        changed = outcome.table.configuration != before.configuration
        if (outcome.refusal is None or changed) and statement.feature != CHECKPOINT_PROTECTION:
            yield _reenable_feature(statement.feature, start)
    elif isinstance(statement, DropConstraint):
        key = statement.key(before)
        expression = None if key is None else restorable_text(before.configuration[key])
        if expression is not None:
            name = quote_identifier(statement.name)
            yield f"ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({expression})"
    elif isinstance(statement, ClusterBy):
        yield ClusterBy(before.clustering or ())
    elif isinstance(statement, SetProperties | UnsetProperties):
        keys = statement.properties if isinstance(statement, SetProperties) else statement.keys
        yield from _restore_properties(keys, before, outcome)
        gained = outcome.table.protocol.supported - before.protocol.supported
        for name in _sort_droppable(gained, engine):
            yield DropFeature(name)


def _restore_properties(
    keys: Iterable[str], before: Table, outcome: Outcome
) -> Iterable[Statement]:
    stored = [key for key in keys if not is_protocol_property(key)]
    old = {k: before.configuration[k] for k in stored if k in before.configuration}
    if any(outcome.table.configuration.get(key) != value for key, value in old.items()):
        yield SetProperties(old)
    new = tuple(k for k in stored if k not in old and k in outcome.table.configuration)
    # Undoing the mapping rewrites every file; its drop already does that.
    new = tuple(k for k in new if k != MAPPING_MODE)
    if new:
        yield UnsetProperties(new)


def _sort_droppable(gained: Iterable[str], engine: Engine) -> list[str]:
    """Return the features that can be dropped again, dependents first."""
    droppable = [
        name for name in sorted(gained) if engine.drops(feature_catalog.feature_record(name))
    ]
    return sorted(
        droppable,
        key=lambda n: (
            any(n in feature_catalog.with_required_features({o}) - {o} for o in droppable),
            n,
        ),
    )


def _reenable_feature(name: str, before: Table) -> SetProperties:
    rule = feature_catalog.feature_record(name).enablement
    if isinstance(rule, PropertyIs):
        value = before.configuration.get(rule.key)
        if value is not None and rule.holds(value):
            # An existing table can only get column mapping by name.
            return SetProperties({rule.key: "name" if rule.key == MAPPING_MODE else value})
    return SetProperties({f"{FEATURE_PREFIX}{name}": "supported"})
