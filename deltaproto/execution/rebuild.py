"""Check that the statements of a plan file match its actions. Pure.

A plan file's checksum reveals accidents; it is not a signature. So each statement is parsed,
rebuilt from its action, feature and table, and compared, before anything is sent.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from deltaproto.location import locate
from deltaproto.planning.advice import is_same_table
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.table_statements import AddConstraint, ClusterByPaths
from deltaproto.planning.ddl.user_statement import UserStatement
from deltaproto.planning.enable import DISABLING_PROPERTIES
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.properties import normalize_properties
from deltaproto.planning.predict.table import MIN_READER_VERSION, MIN_WRITER_VERSION, Table
from deltaproto.planning.predict.validation import FEATURE_PREFIX
from deltaproto.planning.search.cost import Files
from deltaproto.planning.search.route import PredictedStatement, predict_statement
from deltaproto.planning.statement import Action, ClusterBy, SetProperties, Statement
from deltaproto.planning.steps import build_steps
from deltaproto.policy.document.patterns import normalize_location
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION
from deltaproto.protocol.isolation import ISOLATION_PROPERTY as ISOLATION
from deltaproto.sql.quoting import quote_identifier, split_name, sql_table_name

# The effect of these depends on files and history, which are not read before each plan.
_HISTORY_DEPENDENT_ACTIONS = (Action.DROP, Action.REORG, Action.SQL, Action.WAIT)
_PREDICTED_FIELDS = ("commits", "truncates", "losses", "undo", "optional", "expects")
_VERSION_KEYS = (MIN_READER_VERSION.lower(), MIN_WRITER_VERSION.lower())


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
    moves: list[PredictedStatement] = []
    for step in plan.steps:
        if step.action in _HISTORY_DEPENDENT_ACTIONS or step.sql is None:
            return None
        (parsed,) = parse_script(step.sql)
        statement = _to_planner_statement(parsed.statement, step)
        outcome = predict_statement(statement, table, plan.engine)
        if outcome.refusal is not None:
            return None
        moves.append(PredictedStatement(statement, table, outcome))
        table = outcome.table
        if table.protocol != step.protocol_after:
            return (
                f"{step.id} would lead to {table.protocol.in_words}, but the plan has "
                f"{step.protocol_after.in_words}"
            )
        predicted = build_steps(moves, plan.engine, Files(), plan.sql_name)[-1]
        for member in _PREDICTED_FIELDS:
            if getattr(predicted, member) != getattr(step, member):
                return f"{step.id}: {member} does not match its statement"
    return None


def find_unrequested_property(plan: Plan) -> str | None:
    """Describe the first property or feature that the plan sets or drops beyond its goal."""
    if "undo" in plan.goal:
        return None
    requested, features = _requested_properties(plan), _requested_features(plan)
    dropped = _droppable(plan)
    for step in plan.steps:
        if step.action is Action.DROP and dropped is not None and step.feature not in dropped:
            return f"{step.id} drops {step.feature}, which is not part of its goal"
        constraint = step.action is Action.DROP_CONSTRAINT
        if constraint and dropped is not None and "checkConstraints" not in dropped:
            return f"{step.id} drops a constraint, which is not part of its goal"
        if step.action is Action.CLUSTER_BY and "clustering" not in features:
            return f"{step.id} changes the clustering, which is not part of its goal"
        for parsed in parse_script(step.sql or ""):
            if not isinstance(parsed.statement, SetProperties) or step.action is Action.SQL:
                continue
            for key, value in parsed.statement.properties.items():
                lower = key.lower()
                if lower.startswith(FEATURE_PREFIX):
                    if key[len(FEATURE_PREFIX) :] not in features:
                        return f"{step.id} sets {key}, which is not part of its goal"
                elif lower not in _VERSION_KEYS and value.lower() not in requested.get(lower, ()):
                    return f"{step.id} sets {key} to {value}, which is not part of its goal"
    return None


def _droppable(plan: Plan) -> frozenset[str] | None:
    """Return the features that a plan may drop; None: any, if its goal is clients or versions."""
    if plan.command == "plan-upgrade":
        return frozenset()
    if plan.goal["kind"] != "drop":
        return None
    found = {CHECKPOINT_PROTECTION}
    pending = list(plan.goal["features"])
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += feature_catalog.find_dependents(name, plan.protocol_before.supported)
    return frozenset(found)


def _requested_features(plan: Plan) -> frozenset[str]:
    """Return the features that a plan may add: those of its goal, and the ones they require."""
    if plan.command != "plan-upgrade":
        return frozenset({"clustering"})
    properties = plan.goal.get("set") or {}
    set_ = {key.lower() for key in normalize_properties(properties)}
    named = {
        key[len(FEATURE_PREFIX) :] for key in properties if key.lower().startswith(FEATURE_PREFIX)
    }
    switched = {
        record.name
        for record in feature_catalog.all_features()
        if any(key.lower() in set_ for key in record.switches)
    }
    return feature_catalog.with_required_features(
        {*(plan.goal.get("enable") or ()), *named, *switched}
    )


def _requested_properties(plan: Plan) -> dict[str, set[str]]:
    """Return the values that a plan may set, by property, all in lower case."""
    found: dict[str, set[str]] = {}

    def allow(key: str, values: Iterable[str]) -> None:
        found.setdefault(key.lower(), set()).update(value.lower() for value in values)

    for key, value in normalize_properties(plan.goal.get("set") or {}).items():
        allow(key, (value,))
    if plan.goal.get("isolation") is not None:
        allow(ISOLATION, (str(plan.goal["isolation"]),))
    features = [step.feature for step in plan.steps if step.feature is not None]
    if plan.command == "plan-upgrade":
        features = list(plan.goal.get("enable") or ())
    for text in plan.goal.get("sql") or ():
        for parsed in parse_script(text):
            if isinstance(parsed.statement, SetProperties):
                for key, value in parsed.statement.properties.items():
                    allow(key, (value,))
    seen: set[str] = set()
    while features:
        name = features.pop()
        if name in seen or (record := feature_catalog.find_feature(name)) is None:
            continue
        seen.add(name)
        features += [requirement.feature for requirement in record.requires]
        if isinstance(rule := record.enablement, PropertyIs):
            allow(rule.key, rule.values)
        if name in DISABLING_PROPERTIES:
            key, value = DISABLING_PROPERTIES[name]
            allow(key, (value,))
    return found


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
    asked = _requested_statements(plan)
    for number, step in enumerate(plan.steps, 1):
        if step.id != f"s{number}":
            yield f"step {number} has the id {step.id} instead of s{number}"
        if step.protocol_before != protocol:
            yield f"{step.id} does not start with the protocol after the previous step"
        protocol = step.protocol_after
        if (why := _find_step_mismatch(plan, step, asked)) is not None:
            yield f"{step.id}: {why}"
    if plan.protocol_after != protocol:
        yield "protocol_after differs from the protocol after the last step"


def _expected_sql_name(plan: Plan) -> str:
    """Return the name by which statements must address the table."""
    if plan.sql_name.startswith("delta.`"):
        return sql_table_name(locate(plan.location))
    return ".".join(quote_identifier(part) for part in split_name(plan.table))


def _path_matches_location(plan: Plan) -> bool:
    """Return True if the path in a plan is the one it changes, as far as a relative path shows.

    Catalog names are resolved by the gates.
    """
    if not plan.sql_name.startswith("delta.`"):
        return True
    table = plan.table
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


def _requested_statements(plan: Plan) -> frozenset[str] | None:
    """Return the user statements in the plan's goal; None for an undo plan."""
    if "undo" in plan.goal:
        return None
    texts = plan.goal.get("sql")
    found = (parsed for text in texts or () for parsed in parse_script(text))
    return frozenset(parsed.statement.sql(plan.sql_name) or "" for parsed in found)


def _find_step_mismatch(plan: Plan, step: Step, asked: frozenset[str] | None) -> str | None:
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
        return _find_unrequested_statement(statement, step.sql, asked)
    return _find_feature_mismatch(statement, step)


def _to_planner_statement(statement: Statement, step: Step) -> Statement:
    """Return the planner's form of a statement that was parsed as a user statement."""
    if step.action is not Action.CLUSTER_BY or not isinstance(statement, UserStatement):
        return statement
    if not isinstance(statement.effect, ClusterByPaths):
        return statement
    return ClusterBy(tuple(".".join(path) for path in statement.effect.paths))


def _find_unrequested_statement(
    statement: UserStatement, sql: str, asked: frozenset[str] | None
) -> str | None:
    if asked is None:
        restores = isinstance(statement.effect, AddConstraint | ClusterByPaths)
        return None if restores else "an undo plan has no such statement"
    return None if sql in asked else "its statement is not part of the goal"


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
