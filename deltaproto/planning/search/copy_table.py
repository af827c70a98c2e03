"""If DROP FEATURE cannot reach the goal: copy the table into a new one, and swap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltaproto.planning.plan import Alternative, Plan, Rewrites, Step
from deltaproto.planning.predict.auto_enable import features_of_columns, features_of_properties
from deltaproto.planning.predict.bounds import hazards_of_copy
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.schema import FORBIDDEN, Atomic, Column, Struct, walk_columns
from deltaproto.planning.predict.table import CONSTRAINT_PREFIX, Table
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_by_name import (
    ENDING,
    NEW_SUFFIX,
    OLD_SUFFIX,
    NamedCopy,
    can_be_named,
    copy_step,
    design_named_copy,
    named_copy_steps,
)
from deltaproto.planning.search.cost import Cost
from deltaproto.planning.search.goals import EndState, FeaturesAbsent, Goal, VersionsAtMost
from deltaproto.planning.statement import Action, format_properties
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import column_name, quote_identifier, split_name


class TableCopy(NamedTuple):
    """The new table."""

    protocol: Protocol
    properties: Mapping[str, str]
    clustering: tuple[str, ...]
    selected: tuple[str, ...]
    """an expression per column"""
    losses: tuple[str, ...]


def copy_steps(inputs: PlanInput, new: TableCopy) -> Iterator[Step]:
    """Yield the steps that replace the table with a copy."""
    parts = split_name(inputs.sql)
    by_path = parts[0].lower() == "delta"
    fresh = _suffixed_name(parts, NEW_SUFFIX)
    clauses = ["USING delta"]
    if inputs.table.partition_columns:
        names = ", ".join(map(quote_identifier, inputs.table.partition_columns))
        clauses.append(f"PARTITIONED BY ({names})")
    if new.clustering:
        names = ", ".join(map(column_name, new.clustering))
        clauses.append(f"CLUSTER BY ({names})")
    if new.properties:
        clauses.append(f"TBLPROPERTIES ({format_properties(new.properties)})")
    # Every name in the statement is quoted.
    select = f"SELECT {', '.join(new.selected)} FROM {inputs.sql}"  # noqa: S608
    yield _step(
        inputs,
        "s1",
        Action.REWRITE,
        f"CREATE TABLE {fresh} {' '.join(clauses)} AS {select}",
        "copy the rows into a new table; this one does not change. Stop writers first: later "
        "writes are not copied",
        inputs.table.protocol,
        undo=f"DROP TABLE {fresh}" if not by_path else None,
        rewrites=Rewrites(Rewrite.ALL, inputs.files.files, inputs.files.bytes),
    )
    if by_path:
        yield _step(
            inputs,
            "s2",
            Action.SWAP,
            None,
            f"compare the row counts, then use the storage's tools to move {parts[-1]} away and "
            f"{parts[-1].rstrip('/')}{NEW_SUFFIX} to its location",
            new.protocol,
            losses=new.losses,
        )
        return
    old = _suffixed_name(parts, OLD_SUFFIX)
    yield _step(
        inputs,
        "s2",
        Action.SWAP,
        f"ALTER TABLE {inputs.sql} RENAME TO {old}",
        "compare the row counts, then rename the old table",
        inputs.table.protocol,
        undo=f"ALTER TABLE {old} RENAME TO {inputs.sql}",
    )
    yield _step(
        inputs,
        "s3",
        Action.SWAP,
        f"ALTER TABLE {fresh} RENAME TO {inputs.sql}",
        "rename the new table to the original name",
        new.protocol,
        losses=new.losses,
        undo=f"ALTER TABLE {inputs.sql} RENAME TO {fresh}",
    )


def _suffixed_name(parts: list[str], suffix: str) -> str:
    last = parts[-1].rstrip("/") + suffix
    first = ["delta"] if parts[0].lower() == "delta" else [*map(quote_identifier, parts[:-1])]
    return ".".join([*first, quote_identifier(last)])


def _step(
    inputs: PlanInput,
    id_: str,
    action: Action,
    sql: str | None,
    why: str,
    after: Protocol,
    *,
    losses: tuple[str, ...] = (),
    undo: str | None = None,
    rewrites: Rewrites = Rewrites(Rewrite.NONE, 0, 0),
) -> Step:
    operations = ("CREATE TABLE AS SELECT",) if action is Action.REWRITE else ()
    step = copy_step(id_, action, sql, why, undo, inputs.table.protocol, operations)
    streams = (ENDING,) if losses else ()
    return step._replace(protocol_after=after, rewrites=rewrites, streams=streams, losses=losses)


# Internal properties that no new table may be given.
_INTERNAL = (
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.",
    "delta.rowTrackingSuspended",
    "delta.inCommitTimestampEnablement",
    "delta.requireCheckpointProtectionBeforeVersion",
    "delta.coordinatedCommits.",
    "delta.universalFormat.",
    CONSTRAINT_PREFIX,
)
_CASTS = {"timestamp_ntz": ("timestampNtz", "TIMESTAMP"), "variant": ("variantType", "STRING")}
_LOST = (
    "the new table has another id and no history: streams need new checkpoints, and time travel, "
    "grants, comments and sharing stay with the old one"
)


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
    if isinstance(new, NamedCopy):
        losses, made = len(new.lost), tuple(named_copy_steps(inputs, new))
    else:
        losses, made = len(new.losses), tuple(copy_steps(inputs, new))
    return Alternative(
        "rewrite",
        "copy the rows into a new table that replaces this one",
        True,
        new.protocol,
        Cost(losses, 1, inputs.files.bytes or 0, 0, 1),
        made,
    )


def end_state_of_copy(table: Table) -> EndState:
    """Return the end state of a copy that keeps the protocol; the copy's own is to be put in."""
    return EndState(table.protocol, rewritten=True, bounds=hazards_of_copy(table))


def redesign_copy(inputs: PlanInput, plan: Plan) -> TableCopy | NamedCopy | None:
    """Return the new table of a plan that copies this table; None if it cannot be copied."""
    if inputs.table.schema is None:
        return None
    every = frozenset(each.name for each in feature_catalog.all_features())
    return _design_copy(inputs, inputs.table.schema, every - plan.protocol_after.supported)


def same_copy(inputs: PlanInput, plan: Plan) -> bool:
    """Return True if the plan has the statements and losses of a named copy of this table.

    What a copy leaves out is what its protocol lacks; for goals that name no client it must also be
    no more than the goal needs.
    """
    new = redesign_copy(inputs, plan)
    made = [tuple(named_copy_steps(inputs, new))] if isinstance(new, NamedCopy) else []
    goal: Goal | None = None
    if plan.goal["kind"] == "drop":
        goal = FeaturesAbsent(frozenset(plan.goal["features"]) & inputs.table.protocol.supported)
    elif plan.goal["kind"] == "to":
        goal = VersionsAtMost(int(plan.goal["reader"]), int(plan.goal["writer"]))
    if goal is not None:
        again = plan_copy(inputs, goal)
        made.append(again.steps if again is not None else ())
    wanted = [_comparable(step) for step in plan.steps]
    return bool(made) and all([_comparable(step) for step in steps] == wanted for steps in made)


def _comparable(step: Step) -> tuple[object, ...]:
    # Files and bytes change with each commit.
    return step._replace(rewrites=Rewrites(Rewrite.NONE, 0, 0))


def _design_copy(
    inputs: PlanInput, schema: Struct, without: frozenset[str]
) -> TableCopy | NamedCopy | None:
    table = inputs.table
    properties = {
        key: value
        for key, value in table.configuration.items()
        if not key.startswith(_INTERNAL) and not _enables_any(key, value, without)
    }
    mapped = properties.get("delta.columnMapping.mode", "none").lower() != "none"
    named = inputs.comments is not None and table.clustering is not None and can_be_named(schema)
    columns = _select_columns(schema, without, mapped=mapped, bare=named)
    if columns is None:
        return None
    clustering = () if "clustering" in without else table.clustering or ()
    if named:
        return design_named_copy(inputs, columns, properties, clustering, without)
    features = features_of_properties(
        properties, Protocol(1, 1), inputs.engine
    ) | features_of_columns(Struct(tuple(column for column, _ in columns)), Protocol(1, 1))
    protocol = Protocol.carrying(
        feature_catalog.NEW_TABLE_FEATURES | features | ({"clustering"} if clustering else set())
    )
    return TableCopy(
        protocol,
        properties,
        clustering,
        tuple(expression for _, expression in columns),
        (_LOST, *_copy_losses(table.constraints, schema)),
    )


def _enables_any(key: str, value: str, without: frozenset[str]) -> bool:
    """Return True if a property would enable an unwanted feature."""
    for name in without:
        rule = feature_catalog.feature_record(name).enablement
        if isinstance(rule, PropertyIs) and key in rule.keys:
            return rule.holds(value)
    # A feature that requires an unwanted one is unwanted too.
    for feature in feature_catalog.all_features():
        rule = feature.enablement
        if isinstance(rule, PropertyIs) and key in rule.keys:
            return rule.holds(value) and bool(
                feature_catalog.with_required_features({feature.name}) & without
            )
    return False


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


def _copy_losses(constraints: tuple[str, ...], schema: Struct) -> Iterator[str]:
    if constraints:
        yield f"the constraints {', '.join(constraints)} have to be added again, if wanted"
    plain = [c.name for c in schema.columns if c.generated or c.identity or c.default]
    if plain:
        yield f"{', '.join(plain)} become plain columns with the current values"
    if any(not column.nullable for column in schema.columns):
        yield "NOT NULL has to be set again, if wanted"
