"""Check that the statements of a plan file match its actions. Pure.

A plan file's checksum reveals accidents; it is not a signature. So each statement is parsed,
rebuilt from its action, feature and table, and compared, before anything is sent.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import dropwhile

from deltaproto.execution.goal_limits import requested_statements
from deltaproto.location import LocationKind, locate
from deltaproto.planning.advice import is_same_table
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.user_statement import AddConstraint, ClusterByPaths, UserStatement
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.schema import quoted_path
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.cost import Files, permanent_losses
from deltaproto.planning.search.prediction import PredictedStatement, predict_statement
from deltaproto.planning.statement import (
    Action,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SetProperties,
    Statement,
    UnsetProperties,
)
from deltaproto.planning.steps import build_steps
from deltaproto.policy.document.patterns import normalize_location
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import FEATURE_PREFIX
from deltaproto.sql.quoting import (
    name_in_statements,
    quote_identifier,
    split_name,
    sql_table_name,
)

# The effect of these depends on files and history, which are not read before each plan.
_HISTORY_DEPENDENT_ACTIONS = (Action.DROP, Action.REORG, Action.SQL, Action.WAIT)
_PREDICTED_FIELDS = ("commits", "operations", "truncates", "losses", "undo", "optional", "expects")


def find_mismatch(plan: Plan) -> str | None:
    """Describe the first part of the plan that contradicts the rest; None if all is consistent."""
    return next(_find_mismatches(plan), None)


def find_misprediction(plan: Plan, table: Table) -> str | None:
    """Describe the first step that the plan predicts differently from its statement.

    Compares the protocol, commits, losses, rollback and whether the step may be skipped, for the
    steps up to the first one that depends on files or history.

    Args:
        table: its state before the first step.
    """
    predictions: list[PredictedStatement] = []
    for step in plan.steps:
        if step.action in _HISTORY_DEPENDENT_ACTIONS or step.sql is None:
            return _find_untold_loss(plan, table)
        statement = _statement_of(step)
        outcome = predict_statement(statement, table, plan.engine)
        if outcome.refusal is not None:
            return None
        predictions.append(PredictedStatement(statement, table, outcome))
        table = outcome.table
        if table.protocol != step.protocol_after:
            return (
                f"{step.id} would lead to {table.protocol.in_words}, but the plan has "
                f"{step.protocol_after.in_words}"
            )
        predicted = build_steps(predictions, plan.engine, Files(), plan.sql_name)[-1]
        for member in _PREDICTED_FIELDS:
            if getattr(predicted, member) != getattr(step, member):
                return f"{step.id}: {member} does not match its statement"
    return None


def _find_untold_loss(plan: Plan, table: Table) -> str | None:
    """Describe the first drop that loses more than the plan lists, as far as `table` shows it.

    Args:
        table: its state before the first step that depends on files or history. What a drop loses
            depends on properties and domains only, which later steps have as predicted.
    """
    steps = iter(plan.steps)
    for step in dropwhile(lambda each: each.action not in _HISTORY_DEPENDENT_ACTIONS, steps):
        if step.sql is None:
            continue
        statement = _statement_of(step)
        outcome = predict_statement(statement, table, plan.engine)
        refused = outcome.refusal is not None and not outcome.refusal.retry
        if isinstance(statement, UserStatement) or refused:
            return None
        losses = permanent_losses(statement, table, outcome, plan.engine)
        if isinstance(statement, DropFeature) and not {*losses} <= {*step.losses}:
            return f"{step.id}: losses does not match its statement"
        table = outcome.table
    return None


def _find_mismatches(plan: Plan) -> Iterator[str]:
    if plan.sql_name != _expected_sql_name(plan):
        yield (
            f"the plan is for {_expected_sql_name(plan)}, but its statements are on {plan.sql_name}"
        )
    if not _path_matches_location(plan):
        yield f"the plan names {plan.table}, but changes the table at {plan.location}"
    protocol = plan.fingerprint.protocol
    if plan.protocol_before != protocol:
        yield "protocol_before differs from the protocol of the fingerprint"
    requested = None if "undo" in plan.goal else requested_statements(plan)
    for number, step in enumerate(plan.steps, 1):
        if step.id != f"s{number}":
            yield f"step {number} has the id {step.id} instead of s{number}"
        if step.protocol_before != protocol:
            yield f"{step.id} does not start with the protocol after the previous step"
        protocol = step.protocol_after
        if (why := _find_step_mismatch(plan, step, requested)) is not None:
            yield f"{step.id}: {why}"
        elif not _is_undo(plan, step):
            yield f"{step.id}: undo does not match its statement"
    if plan.protocol_after != protocol:
        yield "protocol_after differs from the protocol after the last step"


def _expected_sql_name(plan: Plan) -> str:
    """Return the name by which statements must address the table."""
    if plan.sql_name.startswith("delta.`"):
        return sql_table_name(locate(plan.location))
    return ".".join(map(quote_identifier, split_name(name_in_statements(plan.table))))


def _path_matches_location(plan: Plan) -> bool:
    """Return True if the path in a plan is the one it changes, as far as a relative path shows.

    Catalog names are resolved by the gates.
    """
    if not plan.sql_name.startswith("delta.`"):
        return True
    table = plan.table
    if locate(table).kind is LocationKind.CATALOG:
        return True
    if table[:7].lower() == "delta.`" and table.endswith("`"):
        table = table[7:-1].replace("``", "`")
    is_uri = "://" in table or table[:5].lower() == "file:"
    named, location = (
        normalize_location(table) if is_uri else table,
        normalize_location(plan.location),
    )
    if named.startswith("/") or "://" in named:
        return _normalize_path(named) == _normalize_path(location)
    parts = [part for part in _normalize_path(named).split("/") if part not in ("", ".", "..")]
    return location.split("/")[-len(parts) :] == parts if parts else True


def _normalize_path(path: str) -> str:
    """Return a path without `..` and without the table's `_delta_log`."""
    if "://" in path:
        return path
    return posixpath.normpath(path).removesuffix("/_delta_log")


def _find_step_mismatch(plan: Plan, step: Step, requested: frozenset[str] | None) -> str | None:
    if (step.action is Action.WAIT) != (step.sql is None):
        return f"{step.action} {'has a' if step.sql is not None else 'lacks its'} statement"
    if step.sql is None:
        same = step.protocol_before == step.protocol_after
        return None if same else "a wait does not change the protocol"
    statements = parse_script(step.sql)
    if len(statements) != 1:
        return f"it has {len(statements)} statements instead of one"
    (parsed,) = statements
    statement = _to_planner_statement(parsed.statement, step)
    if not parsed.understood:
        return "its statement is not supported"
    if parsed.target is None or not is_same_table(parsed.target, plan.sql_name):
        return f"its statement is not on {plan.sql_name}"
    if statement.action is not step.action:
        return f"its statement is {statement.action}, but the plan has {step.action}"
    if statement.sql(plan.sql_name) != step.sql:
        return "its statement does not match its action"
    if isinstance(statement, UserStatement):
        return _find_unrequested_statement(statement, step.sql, requested)
    if isinstance(statement, DropFeature) and statement.truncate:
        stays = step.protocol_after == step.protocol_before
        ends = any(each.truncates and each.feature == step.feature for each in plan.steps)
        if not (step.truncates or (stays and ends)):
            return "it deletes history, which the plan does not say"
    return _find_feature_mismatch(statement, step)


def _is_undo(plan: Plan, step: Step) -> bool:
    """Return True if the rollback of a step is one that its statement can have.

    It depends on the table before the step, which only exists until the step is finished.
    """
    if step.undo is None:
        return True
    if step.sql is None:
        return False
    statement = _statement_of(step)
    return all(
        parsed.target is not None
        and is_same_table(parsed.target, plan.sql_name)
        and _can_undo(statement, parsed.statement)
        for parsed in parse_script(step.undo)
    )


def _can_undo(done: Statement, undo: Statement) -> bool:
    effect = undo.effect if isinstance(undo, UserStatement) else None
    if isinstance(done, DropFeature) and isinstance(undo, SetProperties):
        record = feature_catalog.feature_record(done.feature)
        enabling = {*record.switches, f"{FEATURE_PREFIX}{done.feature}"}
        return undo.properties.keys() <= enabling
    if isinstance(done, DropConstraint):
        return isinstance(effect, AddConstraint) and effect.name == done.name
    if isinstance(done, ClusterBy):
        return isinstance(undo, ClusterBy) or isinstance(effect, ClusterByPaths)
    if isinstance(done, SetProperties | UnsetProperties):
        changed = {*(done.properties if isinstance(done, SetProperties) else done.keys)}
        if isinstance(undo, SetProperties | UnsetProperties):
            restored = {*(undo.properties if isinstance(undo, SetProperties) else undo.keys)}
            return restored <= changed
        return isinstance(undo, DropFeature) and not undo.truncate
    return False


def _statement_of(step: Step) -> Statement:
    """Return the only statement of a step, in the planner's form."""
    (parsed,) = parse_script(step.sql or "")
    return _to_planner_statement(parsed.statement, step)


def _to_planner_statement(statement: Statement, step: Step) -> Statement:
    """Return the planner's form of a statement that was parsed as a user statement."""
    if step.action is not Action.CLUSTER_BY or not isinstance(statement, UserStatement):
        return statement
    if not isinstance(statement.effect, ClusterByPaths):
        return statement
    return ClusterBy(tuple(map(quoted_path, statement.effect.paths)))


def _find_unrequested_statement(
    statement: UserStatement, sql: str, requested: frozenset[str] | None
) -> str | None:
    if requested is None:
        restores = isinstance(statement.effect, AddConstraint | ClusterByPaths)
        return None if restores else "an undo plan has no such statement"
    return None if sql in requested else "its statement is not part of the goal"


def _find_feature_mismatch(statement: Statement, step: Step) -> str | None:
    if not isinstance(statement, SetProperties):
        same = step.feature == statement.feature or statement.feature is None
        return None if same else f"its statement is on {statement.feature}, not {step.feature}"
    known = step.protocol_before.supported | step.protocol_after.supported
    named = {
        key[len(FEATURE_PREFIX) :]
        for key in statement.properties
        if key.lower().startswith(FEATURE_PREFIX)
    }
    if lacking := sorted(named - step.protocol_after.supported):
        return f"it adds {', '.join(lacking)}, which protocol_after lacks"
    if step.feature is not None and step.feature not in known:
        return f"it is about {step.feature}, which protocol_after lacks"
    return None
