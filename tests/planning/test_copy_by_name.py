"""The statements of a copy that `apply` executes, and what they lose."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from deltaproto.planning.converge import plan_target
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.from_state import read_comments
from deltaproto.planning.plan import Plan
from deltaproto.planning.predict.schema import (
    Array,
    Atomic,
    Column,
    Map,
    Struct,
    parse_schema,
)
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.copy_by_name import LOSSES, loss_names
from deltaproto.planning.search.copy_table import plan_copy, same_copy
from deltaproto.planning.search.goals import FeaturesAbsent
from deltaproto.planning.target import Requirements, Target
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given

ALWAYS = ("time-travel", "streams", "location", "grants", "sharing", "tags")
COMMENTS = MappingProxyType({(): "it's", ("id",): "the 'id'", ("n", "a`b"): "deep"})
ID = Column("id", Atomic("long"), nullable=False)
NESTED = Column(
    "n",
    Struct((Column("a`b", Array(Map(Atomic("string"), Atomic("decimal(3,1)"))), nullable=False),)),
)


def table(*features: str, columns: tuple[Column, ...] = (ID, NESTED), **changed: Any) -> PlanInput:
    protocol = Protocol.carrying(frozenset({"appendOnly", "invariants", *features}))
    found = given(protocol, schema=Struct(columns), **changed)
    location = "file:/lake/o"
    return found._replace(
        sql="`c`.`s 1`.`t``1`", name="c.`s 1`.`t``1`", location=location, comments=COMMENTS
    )


def planned(inputs: PlanInput, *drop: str) -> Plan:
    return plan_downgrade(inputs, DowngradeRequest(drop=drop, rewrite=True))


def test_every_statement_in_order() -> None:
    check = {"delta.constraints.c d": "id > 0", "k": "v"}
    inputs = table(
        *("identityColumns", "checkConstraints"), configuration=check, partition_columns=("id",)
    )
    plan = planned(inputs, "identityColumns")
    id_ = inputs.fingerprint.table_id
    assert [step.sql for step in plan.steps] == [
        "CREATE TABLE `c`.`s 1`.`t``1__new` (`id` LONG NOT NULL COMMENT 'the \\'id\\'', `n` "
        "STRUCT<`a``b`: ARRAY<MAP<STRING, DECIMAL(3,1)>> NOT NULL COMMENT 'deep'>) USING delta "
        "PARTITIONED BY (`id`) LOCATION 'file:/lake/o__new' COMMENT 'it\\'s' "
        f"TBLPROPERTIES ('k' = 'v', 'deltaproto.copyOf' = '{id_ or ''}')",
        "ALTER TABLE `c`.`s 1`.`t``1__new` ADD CONSTRAINT `c d` CHECK (id > 0)",
        "INSERT INTO `c`.`s 1`.`t``1__new` (`id`, `n`) SELECT `id`, `n` FROM `c`.`s 1`.`t``1`",
        "ALTER TABLE `c`.`s 1`.`t``1` RENAME TO `c`.`s 1`.`t``1__before`",
        "ALTER TABLE `c`.`s 1`.`t``1__before` SET TBLPROPERTIES "
        "('deltaproto.replacedBy' = '`c`.`s 1`.`t``1`')",
        "ALTER TABLE `c`.`s 1`.`t``1__new` RENAME TO `c`.`s 1`.`t``1`",
    ]
    assert loss_names(plan.steps) == ALWAYS
    assert plan.protocol_after == Protocol(1, 3)
    assert plan.steps[-1].undo == "ALTER TABLE `c`.`s 1`.`t``1` RENAME TO `c`.`s 1`.`t``1__new`"


@pytest.mark.parametrize(
    ("drop", "columns", "configuration", "lost"),
    [
        ("checkConstraints", (ID,), {"delta.constraints.c": "id > 0"}, {"constraints"}),
        ("allowColumnDefaults", (Column("a", Atomic("long"), default="1"),), {}, {"defaults"}),
        ("generatedColumns", (Column("a", Atomic("long"), generated="1"),), {}, {"generated"}),
        ("identityColumns", (Column("a", Atomic("long"), identity=True),), {}, {"identity"}),
        ("timestampNtz", (Column("a", Atomic("timestamp_ntz")),), {}, {"types"}),
        (
            "changeDataFeed",
            (ID,),
            {"delta.enableChangeDataFeed": "true"},
            {"cdf", "properties"},
        ),
    ],
)
def test_what_is_lost(
    drop: str, columns: tuple[Column, ...], configuration: dict[str, str], lost: set[str]
) -> None:
    inputs = table(drop, columns=columns, configuration=configuration)
    copy = plan_copy(inputs, FeaturesAbsent(frozenset({drop})))
    assert copy is not None
    assert {*loss_names(copy.steps)} == {*ALWAYS, *lost}
    assert drop not in copy.protocol_after.supported
    texts = [loss for step in copy.steps for loss in step.losses]
    assert texts == [f"{name}: {LOSSES[name]}" for name in loss_names(copy.steps)]


def test_constraints_whose_names_differ_only_in_case_are_lost() -> None:
    checks = {"delta.constraints.c": "id > 0", "delta.constraints.C": "id < 9"}
    for kept, names in ((1, ["delta.constraints.C"]), (0, [*checks])):
        configuration = {name: checks[name] for name in names}
        inputs = table("checkConstraints", "variantType", configuration=configuration)
        copy = plan_copy(inputs, FeaturesAbsent(frozenset({"variantType"})))
        assert copy is not None
        assert sum("ADD CONSTRAINT" in step.sql for step in copy.steps) == kept
        assert ("constraints" in loss_names(copy.steps)) is not bool(kept)


def test_what_cannot_be_written_in_a_statement_is_copied_manually() -> None:
    strict = Column("a", Array(Atomic("long"), nullable=False))
    odd = Column("a", Atomic("string collate"))
    deep = Column("a", Array(Struct((Column("b", Atomic("long"), nullable=False),))))
    for column in (strict, odd, deep):
        plan = planned(table("identityColumns", columns=(column,)), "identityColumns")
        assert plan.steps[0].operations == ("CREATE TABLE AS SELECT",)


@pytest.mark.parametrize("nested", [False, True])
def test_a_hint_names_the_option_only_if_a_plan_can_copy_the_table(nested: bool) -> None:
    column = Column("v", Atomic("variant"))
    if nested:
        column = Column("n", Array(Struct((column,))))
    inputs = table("variantType", "clustering", columns=(ID, column))
    for request in (DowngradeRequest(to=(1, 2)), DowngradeRequest(lowest=True)):
        plan = plan_downgrade(inputs, request)
        hints = {each.feature: each.remedy for each in (*plan.blocked, *plan.kept)}
        assert ("(`plan-downgrade --rewrite`)" in hints["variantType"]) is not nested
        # A copy without clustering needs no domain.
        assert "(`plan-downgrade --rewrite`)" in hints["domainMetadata"]
    (unmet,) = plan_target(inputs, Target(Requirements(absent=frozenset({"variantType"})))).unmet
    assert ("(`plan-downgrade --rewrite`)" in unmet.remedy) is not nested


def test_a_manual_copy_is_partitioned_by_the_new_names() -> None:
    configuration = {"delta.columnMapping.mode": "name", "deltaproto.copyOf": "x", "k": "v"}
    columns = (Column("a b", Atomic("long")), ID)
    inputs = table(
        "columnMapping", columns=columns, configuration=configuration, partition_columns=("a b",)
    )
    inputs = inputs._replace(sql="delta.`/lake/o`", comments=None)
    copy = plan_copy(inputs, FeaturesAbsent(frozenset({"columnMapping"})))
    assert copy is not None
    assert copy.steps[0].sql == (
        "CREATE TABLE delta.`/lake/o__new` USING delta PARTITIONED BY (`a_b`) "
        "TBLPROPERTIES ('k' = 'v') AS SELECT `a b` AS `a_b`, `id` FROM delta.`/lake/o`"
    )


def test_a_plan_is_compared_with_the_table() -> None:
    inputs = table(
        "identityColumns", "checkConstraints", configuration={"delta.constraints.c": "id > 0"}
    )
    plan = planned(inputs, "identityColumns")
    assert same_copy(inputs, plan)
    assert not same_copy(table("identityColumns", "checkConstraints"), plan)
    for number, step in enumerate(plan.steps):
        assert step.sql is not None
        for edited in (
            step._replace(sql=step.sql + " "),
            step._replace(losses=()) if step.losses else step._replace(undo="DROP TABLE x"),
        ):
            steps = (*plan.steps[:number], edited, *plan.steps[number + 1 :])
            assert not same_copy(inputs, plan._replace(steps=steps))
    more = plan_copy(inputs, FeaturesAbsent(frozenset({"identityColumns", "checkConstraints"})))
    assert more is not None
    other = plan._replace(steps=more.steps, protocol_after=more.protocol_after)
    assert not same_copy(inputs, other)
    assert same_copy(
        inputs,
        other._replace(goal={**plan.goal, "features": ["identityColumns", "checkConstraints"]}),
    )


def test_a_copy_keeps_a_feature_that_has_the_property_of_its_preview() -> None:
    widening = {"delta.enableTypeWidening": "true"}
    inputs = table("clustering", "typeWidening", configuration=widening, clustering=("id",))
    plan = planned(inputs, "clustering")
    assert "'delta.enableTypeWidening' = 'true'" in (plan.steps[0].sql or "")
    assert same_copy(inputs, plan)


def test_comments_inside_collections_are_kept() -> None:
    x = {"name": "x", "type": "long", "nullable": True, "metadata": {"comment": "deep"}}
    row = {"type": "struct", "fields": [x]}
    listed = {"type": "array", "elementType": row, "containsNull": True}
    mapped = {"type": "map", "keyType": row, "valueType": listed, "valueContainsNull": True}
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("rows", listed), ("m", mapped))
    ]
    schema = {"type": "struct", "fields": fields}
    comments = read_comments(Metadata("id", schema_string=json.dumps(schema)))
    assert comments == {
        ("rows", "element", "x"): "deep",
        ("m", "key", "x"): "deep",
        ("m", "value", "element", "x"): "deep",
    }
    inputs = table("variantType", columns=parse_schema(schema).columns)
    plan = planned(inputs._replace(comments=comments), "variantType")
    assert str(plan.steps[0].sql).count("`x`: LONG COMMENT 'deep'") == 3
