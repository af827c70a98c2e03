"""The way out where DROP FEATURE has none: copy the table into a new one, and swap the two.

A new table starts from scratch: it gets what its properties and columns ask for, and nothing of the
old history, constraints, grants or identity. Source: `Protocol.forNewTable` in Delta Spark 4.4;
measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.planning.copying import Copy, copied
from deltaproto.planning.cost import Cost
from deltaproto.planning.given import Given
from deltaproto.planning.goal import Ending, Goal
from deltaproto.planning.plan import Alternative
from deltaproto.planning.pulled import by_columns, by_properties
from deltaproto.planning.schema import FORBIDDEN, Atomic, Column, Struct, walk
from deltaproto.planning.table import CONSTRAINT
from deltaproto.protocol import catalogue
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.sql import identifier

# What the table keeps to itself, and no new table may be given.
_INTERNAL = (
    "delta.columnMapping.maxColumnId",
    "delta.rowTracking.",
    "delta.rowTrackingSuspended",
    "delta.inCommitTimestampEnablement",
    "delta.requireCheckpointProtectionBeforeVersion",
    "delta.coordinatedCommits.",
    "delta.universalFormat.",
    CONSTRAINT,
)
_BASIC = frozenset({"appendOnly", "invariants"})
_CASTS = {"timestamp_ntz": ("timestampNtz", "TIMESTAMP"), "variant": ("variantType", "STRING")}
_LOST = (
    "the new table has another id and no history: streams need new checkpoints, and time travel, "
    "grants, comments and sharing stay with the old one"
)


def rewrite(given: Given, goal: Goal) -> Alternative | None:
    """The copy that reaches the goal; None when none does, or the columns are not known."""
    schema = given.table.schema
    if schema is None or not schema.columns:
        return None
    without: frozenset[str] = frozenset()
    while True:
        new = _new(given, schema, without)
        if new is None:
            return None
        ending = Ending(new.protocol, frozenset())
        if goal.reached(ending):
            break
        more = without | goal.objections(ending)
        if more == without:
            return None
        without = more
    made = tuple(copied(given, new))
    return Alternative(
        "rewrite",
        "a copy of the rows as a new table, which takes the place of this one",
        True,
        new.protocol,
        Cost(len(new.losses), 1, given.files.bytes or 0, 0, 1),
        made,
    )


def _new(given: Given, schema: Struct, without: frozenset[str]) -> Copy | None:
    table = given.table
    properties = {
        key: value
        for key, value in table.configuration.items()
        if not key.startswith(_INTERNAL) and not _switches(key, value, without)
    }
    mapped = properties.get("delta.columnMapping.mode", "none").lower() != "none"
    columns = _columns(schema, without, mapped=mapped)
    if columns is None:
        return None
    clustering = () if "clustering" in without else table.clustering or ()
    features = by_properties(properties, Protocol(1, 1), given.engine) | by_columns(
        Struct(tuple(column for column, _ in columns)), Protocol(1, 1)
    )
    protocol = Protocol.carrying(_BASIC | features | ({"clustering"} if clustering else set()))
    return Copy(
        protocol,
        properties,
        clustering,
        tuple(expression for _, expression in columns),
        (_LOST, *_given_up(table.constraints, schema)),
    )


def _switches(key: str, value: str, without: frozenset[str]) -> bool:
    """Whether a property would bring a feature that must not come."""
    for name in without:
        rule = catalogue.record(name).enablement
        if isinstance(rule, PropertyIs) and key in rule.keys:
            return rule.holds(value)
    # A feature that requires one of them must not come either.
    for feature in catalogue.all_features():
        rule = feature.enablement
        if isinstance(rule, PropertyIs) and key in rule.keys:
            return rule.holds(value) and bool(catalogue.closure({feature.name}) & without)
    return False


def _columns(
    schema: Struct, without: frozenset[str], *, mapped: bool
) -> list[tuple[Column, str]] | None:
    found = []
    for column in schema.columns:
        plain = Column(column.name, column.type)
        expression = identifier(column.name)
        if column.default is not None:
            # A bare column keeps its default in the new table, which then needs the feature.
            expression = f"COALESCE({expression}) AS {expression}"
        kind = column.type.name if isinstance(column.type, Atomic) else ""
        feature, cast = _CASTS.get(kind, ("", ""))
        if feature in without:
            expression = f"CAST({expression} AS {cast}) AS {identifier(column.name)}"
            plain = Column(column.name, Atomic(cast.lower()))
        elif by_columns(Struct((plain,)), Protocol(1, 1)) & without:
            return None
        if not mapped and any(FORBIDDEN & set(p[-1]) for p, _ in walk(Struct((column,)))):
            if not isinstance(column.type, Atomic):
                return None
            name = "".join("_" if letter in FORBIDDEN else letter for letter in column.name)
            expression = f"{expression.partition(' AS `')[0]} AS {identifier(name)}"
            plain = plain._replace(name=name)
        found.append((plain, expression))
    return found


def _given_up(constraints: tuple[str, ...], schema: Struct) -> Iterator[str]:
    if constraints:
        yield f"the constraints {', '.join(constraints)} have to be added again, where wanted"
    plain = [c.name for c in schema.columns if c.generated or c.identity or c.default]
    if plain:
        yield f"{', '.join(plain)} become plain columns, filled with what is there"
    if any(not column.nullable for column in schema.columns):
        yield "NOT NULL has to be set again, where wanted"
