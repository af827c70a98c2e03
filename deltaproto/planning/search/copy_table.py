"""If DROP FEATURE cannot reach the goal: copy the table into a new one, and swap."""

from __future__ import annotations

from collections.abc import Iterable

from deltaproto.planning.ddl.constraint_text import restorable_text
from deltaproto.planning.plan import Alternative, Blocked, Plan, Rewrites, Step
from deltaproto.planning.predict.auto_enable import features_of_columns, features_of_properties
from deltaproto.planning.predict.bounds import hazards_of_copy
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import FORBIDDEN, Atomic, Column, Struct, walk_columns
from deltaproto.planning.predict.table import (
    MAX_COLUMN_ID,
    PROTECTED_BEFORE,
    Table,
)
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_by_name import (
    COPY_OF,
    LOSSES,
    TableCopy,
    can_be_named,
    copy_steps,
)
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.search.droppable import COPY_HINT
from deltaproto.planning.search.goals import EndState, FeaturesAbsent, Goal, VersionsAtMost
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import Feature, PropertyIs
from deltaproto.protocol.properties import CONSTRAINT_PREFIX
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import quote_identifier

_SET_BY_DELTA = (
    *("deltaproto.", CONSTRAINT_PREFIX, MAX_COLUMN_ID, PROTECTED_BEFORE, "delta.rowTracking"),
    *("delta.inCommitTimestampEnablement", "delta.universalFormat."),
)
"""properties that users do not set"""
_NOT_COPIED = (*_SET_BY_DELTA, "delta.coordinatedCommits.")
_DEFAULTS = "allowColumnDefaults"
_CASTS = {"timestamp_ntz": ("timestampNtz", "TIMESTAMP"), "variant": ("variantType", "STRING")}
_OWN_COPY = (
    "copy the rows with a custom query into a new table without it: `plan-downgrade "
    "--rewrite` converts only whole columns"
)
_ALWAYS = ("time-travel", "streams", "location", "grants", "sharing", "tags")


def plan_copy(inputs: PlanInput, goal: Goal) -> Alternative | None:
    """Return a copy that reaches the goal; None if impossible or the columns are unknown."""
    schema = inputs.table.schema
    if schema is None or not schema.columns:
        return None
    without: frozenset[str] = frozenset()
    copied = end_state_of_copy(inputs.table)
    while True:
        new = _design_copy(inputs, schema, without)
        if new is None:
            return None
        ending = copied._replace(protocol=new.protocol)
        if goal.reached(ending):
            break
        more = without | goal.objections(ending)
        if more == without:
            return None
        without = more
    made = copy_steps(inputs, new)
    losses = sum(len(step.losses) for step in made)
    return Alternative(
        "rewrite",
        "copy the rows into a new table that replaces this one",
        True,
        new.protocol,
        Cost(losses, 1, inputs.files.bytes or 0, 0, 1),
        made,
    )


def with_possible_copies(inputs: PlanInput, blocked: Iterable[Blocked]) -> tuple[Blocked, ...]:
    """Return the blockers, without the hint to copy the table where no plan can.

    If the columns are unknown, nothing is changed.
    """
    return tuple(
        each._replace(remedy=each.remedy.replace(COPY_HINT, _OWN_COPY))
        if COPY_HINT in each.remedy and not _can_omit(inputs, each.feature)
        else each
        for each in blocked
    )


def _can_omit(inputs: PlanInput, feature: str | None) -> bool:
    if feature is None or inputs.table.schema is None:
        return True
    names = feature_catalog.with_dependents((feature,), inputs.table.protocol.supported)
    return plan_copy(inputs, FeaturesAbsent(frozenset(names))) is not None


def end_state_of_copy(table: Table) -> EndState:
    """Return the end state of a copy, still with the old protocol, which the caller replaces."""
    return EndState(table.protocol, rewritten=True, bounds=hazards_of_copy(table))


def redesign_copy(inputs: PlanInput, plan: Plan) -> TableCopy | None:
    """Return the new table of a plan that copies this table; None if it cannot be copied."""
    if inputs.table.schema is None:
        return None
    kept = plan.protocol_after.supported
    switches = {
        key for name in kept for key in _enabling_keys(feature_catalog.feature_record(name))
    }
    # A preview has the property of the final feature.
    without = frozenset(
        each.name
        for each in feature_catalog.all_features()
        if each.name not in kept and switches.isdisjoint(_enabling_keys(each))
    )
    return _design_copy(inputs, inputs.table.schema, without)


def _enabling_keys(feature: Feature) -> tuple[str, ...]:
    rule = feature.enablement
    return tuple(rule.keys) if isinstance(rule, PropertyIs) else ()


def same_copy(inputs: PlanInput, plan: Plan) -> bool:
    """Return True if the plan has the statements and losses of a named copy of this table.

    A copy omits the features that its protocol lacks. For goals that name no client, it must omit
    no more than the goal needs.
    """
    new = redesign_copy(inputs, plan)
    if new is None or new.manual:
        return False
    made = [copy_steps(inputs, new)]
    goal: Goal | None = None
    if plan.goal["kind"] == "drop":
        goal = FeaturesAbsent(frozenset(plan.goal["features"]) & inputs.table.protocol.supported)
    elif plan.goal["kind"] == "to":
        goal = VersionsAtMost(int(plan.goal["reader"]), int(plan.goal["writer"]))
    if goal is not None:
        again = plan_copy(inputs, goal)
        made.append(again.steps if again is not None else ())
    wanted = [_comparable(step) for step in plan.steps]
    return all([_comparable(step) for step in steps] == wanted for steps in made)


def _comparable(step: Step) -> tuple[object, ...]:
    # Files and bytes change with each commit.
    return step._replace(rewrites=Rewrites(Rewrite.NONE, 0, 0))


def _design_copy(inputs: PlanInput, schema: Struct, without: frozenset[str]) -> TableCopy | None:
    """Return the copy with everything that the features not in `without` allow.

    A manual copy has only the names and types of the columns, because its statement names nothing
    else.
    """
    table = inputs.table
    if table.typed_features & without:
        return None
    named = inputs.comments is not None and table.clustering is not None and can_be_named(schema)
    properties = {
        key: value
        for key, value in table.configuration.items()
        if not key.startswith(_NOT_COPIED) and not _enables_any(key, value, without)
    }
    mapped = properties.get("delta.columnMapping.mode", "none").lower() != "none"
    selected = _select_columns(schema, without, mapped=mapped, bare=named)
    if selected is None:
        return None
    pairs = [(old, new) for old, (new, _) in zip(schema.columns, selected, strict=True)]
    # An expression may name a column that has another name or type now.
    changed = any((new.name, new.type) != (old.name, old.type) for old, new in pairs)
    if named:
        pairs = [(old, _with_attributes(old, new, without, changed)) for old, new in pairs]
    columns = tuple(new for _, new in pairs)
    checks = {
        name.lower(): restorable_text(table.configuration[key])
        for name, key in table.constraints.items()
    }
    kept_checks = {name: text for name, text in checks.items() if text is not None}
    # Names that differ only in case name one constraint in ADD CONSTRAINT.
    all_checks = checks == kept_checks and len(checks) == len(table.constraints)
    if not named or changed or "checkConstraints" in without or not all_checks:
        kept_checks = {}
    clustering = () if "clustering" in without else table.clustering or ()
    features = features_of_properties(properties, Protocol(1, 1), inputs.engine)
    features |= features_of_columns(Struct(columns), Protocol(1, 1))
    features |= feature_catalog.NEW_TABLE_FEATURES | ({"clustering"} if clustering else set())
    features |= {"checkConstraints"} if kept_checks else set()
    features |= table.typed_features
    if any(column.default is not None for column in columns):
        features |= {_DEFAULTS}
        properties |= {f"delta.feature.{_DEFAULTS}": "supported"}
    lost = {
        "names": any(new.name != old.name for old, new in pairs),
        "types": any(new.type != old.type for old, new in pairs),
        "defaults": any(new.default != old.default for old, new in pairs),
        "generated": any(new.generated != old.generated for old, new in pairs),
        "identity": any(old.identity for old, _ in pairs),
        "not-null": any(new.nullable != old.nullable for old, new in pairs),
        "constraints": len(kept_checks) != len(table.constraints)
        or any(column.invariant is not None for _, column in walk_columns(schema)),
        "cdf": table.keeps_changes,
        "row-ids": "rowTracking" in table.protocol.supported,
        "clustering": bool(table.clustering) and not clustering,
        "properties": any(
            key not in properties and not key.startswith(_SET_BY_DELTA)
            for key in table.configuration
        ),
    }
    if named:
        properties |= {COPY_OF: inputs.fingerprint.table_id or ""}
    return TableCopy(
        Protocol.carrying(features),
        columns,
        tuple(expression for _, expression in selected),
        properties,
        clustering,
        kept_checks,
        (*_ALWAYS, *(name for name in LOSSES if lost.get(name))),
        not named,
    )


def _with_attributes(old: Column, new: Column, without: frozenset[str], changed: bool) -> Column:
    """Return the new column with the other attributes of the old one."""
    return new._replace(
        nullable=old.nullable or "invariants" in without,
        default=None if _DEFAULTS in without or new.type != old.type else old.default,
        generated=None if "generatedColumns" in without or changed else old.generated,
    )


def _enables_any(key: str, value: str, without: frozenset[str]) -> bool:
    """Return True if a property would enable an unwanted feature, or one that requires it."""
    return any(
        isinstance(rule := feature.enablement, PropertyIs)
        and key in rule.keys
        and rule.holds(value)
        and feature_catalog.with_required_features({feature.name}) & without
        for feature in feature_catalog.all_features()
    )


def _select_columns(
    schema: Struct, without: frozenset[str], *, mapped: bool, bare: bool
) -> list[tuple[Column, str]] | None:
    found = []
    for column in schema.columns:
        plain = Column(column.name, column.type)
        expression = quote_identifier(column.name)
        if column.default is not None and not bare:
            # A bare column keeps its default in the new table, which then needs the feature.
            expression = f"COALESCE({expression}) AS {expression}"
        kind = column.type.name if isinstance(column.type, Atomic) else ""
        feature, cast = _CASTS.get(kind, ("", ""))
        if feature in without:
            expression = f"CAST({expression} AS {cast}) AS {quote_identifier(column.name)}"
            plain = Column(column.name, Atomic(cast.lower()))
        elif features_of_columns(Struct((plain,)), Protocol(1, 1)) & without:
            return None
        if not mapped and any(FORBIDDEN & set(p[-1]) for p, _ in walk_columns(Struct((column,)))):
            if not isinstance(column.type, Atomic):
                return None
            name = "".join("_" if letter in FORBIDDEN else letter for letter in column.name)
            expression = f"{expression.partition(' AS `')[0]} AS {quote_identifier(name)}"
            plain = plain._replace(name=name)
        found.append((plain, expression))
    return found
