"""What Databricks, as documented, accepts or refuses unlike Delta Spark."""

from __future__ import annotations

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.enable import FeatureToEnable, enabling_statements
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.outcome import Outcome
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.planning.test_classics import given
from tests.planning.test_managed import MANAGED

COLUMNS = Struct((Column("id", Atomic("long")), Column("s", Atomic("string"))))
PLAIN = bare_table(Protocol(1, 2), {}).with_schema(COLUMNS)
LISTED = bare_table(Protocol.carrying({"deletionVectors"}), {}).with_schema(COLUMNS)
COLLATED = bare_table(Protocol.carrying({"collations"}), {}).with_schema(COLUMNS)


def done(sql: str, table: Table = PLAIN, engine: str = "databricks@17.3") -> Outcome:
    (parsed,) = parse_script(sql)
    return predict_statement(parsed.statement, table, parse_engine(engine))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("alter table t alter column s type string collate UTF8_LCASE", "which one is not"),
        ("alter table t add column c string collate UTF8_LCASE", "which one is not"),
        ("alter table t add column g geometry(4326)", "Databricks Runtime 17.1"),
        ("alter table t cluster by auto", "the effect of CLUSTER BY AUTO"),
        ("alter table t add constraint k primary key (id)", "the effect of primary, foreign"),
        ("create table c deep clone t", "the effect of a deep clone"),
        ("analyze table t compute delta statistics", "the effect of ANALYZE"),
        ("insert into t replace using (id) select * from u", "the effect of INSERT … REPLACE"),
        ("alter table t add column i interval year", "unknown for Databricks"),
        (
            "reorg table t apply (upgrade uniform (iceberg_compat_version = 3))",
            "unknown for Databricks",
        ),
        (
            "alter table t set tblproperties ('delta.enableIcebergCompatV2' = 'true')",
            "unknown for Databricks",
        ),
    ],
)
def test_what_delta_spark_refuses_is_not_certain_on_databricks(sql: str, words: str) -> None:
    here, there = done(sql, engine="delta-spark@4.4.0").refusal, done(sql).refusal
    assert here is not None
    assert here.sure
    assert there is not None
    assert not there.sure
    assert not there.error
    assert words in there.message


def test_databricks_changes_a_collation_where_the_protocol_has_collations() -> None:
    sql = "alter table t alter column s type string collate UTF8_LCASE"
    changed = done(sql, COLLATED)
    assert changed.refusal is None
    assert changed.table.collated == ("s",)
    assert changed.table.unpredicted == ""
    assert done(sql, COLLATED, "delta-spark@4.4.0").refusal is not None


@pytest.mark.parametrize("table", [PLAIN, LISTED])
def test_databricks_makes_existing_columns_not_null(table: Table) -> None:
    sql = "alter table t alter column id set not null"
    changed = done(sql, table)
    assert changed.refusal is None
    assert changed.most == 1
    assert "invariants" in changed.table.protocol.supported
    assert any("reads every row" in warning for warning in changed.warnings)
    refused = done(sql, table, "delta-spark@4.4.0").refusal
    assert refused is not None
    assert refused.sure


def test_databricks_maintains_catalog_managed_tables() -> None:
    for sql in ("optimize t", "vacuum t", "reorg table t apply (purge)"):
        assert done(sql, MANAGED).refusal is None, sql
    drop = done("alter table t drop feature deletionVectors", MANAGED)
    assert drop.refusal is None
    assert "deletionVectors" not in drop.table.protocol.supported
    sql = "alter table t set tblproperties ('delta.enableInCommitTimestamps' = 'true')"
    refused = done(sql, MANAGED).refusal
    assert refused is not None
    assert not refused.sure


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("delta-spark@4.4.0", "only in a new table of a catalog"),
        ("databricks@17.3", "only in a new table of a catalog"),
        ("databricks@18.0", "databricks@18.0 can add it to managed tables of Unity Catalog"),
    ],
)
def test_who_adds_catalog_managed_to_an_existing_table(engine: str, words: str) -> None:
    wanted = FeatureToEnable("catalogManaged")
    blocked = enabling_statements(wanted, PLAIN, parse_engine(engine))
    assert isinstance(blocked, Blocked)
    assert words in blocked.reason
    key = "'delta.feature.catalogManaged' = 'supported'"
    by_property = done(f"alter table t set tblproperties ({key})", PLAIN, engine).refusal
    assert by_property is not None
    assert by_property.message == blocked.reason
    assert "18.0" in by_property.remedy + by_property.message


def test_collations_are_enabled_with_a_column() -> None:
    for name in ("collations", "collations-preview"):
        blocked = enabling_statements(FeatureToEnable(name), PLAIN, parse_engine("databricks@17.3"))
        assert isinstance(blocked, Blocked)
        assert blocked.reason.startswith("it is enabled with the collation of a column")


@pytest.mark.parametrize(
    ("protocol", "feature", "engine", "possible"),
    [
        (Protocol(1, 3), "checkConstraints", "databricks@16.0", False),
        (Protocol(1, 3), "checkConstraints", "databricks@16.1", True),
        (Protocol(1, 3), "checkConstraints", "delta-spark@3.3", True),
        (Protocol(2, 5), "columnMapping", "databricks@15.4", False),
        (Protocol(2, 5), "columnMapping", "databricks@16.4", True),
        (
            Protocol(1, 7, None, frozenset({"checkConstraints"})),
            "checkConstraints",
            "databricks@15.4",
            True,
        ),
        (
            Protocol(2, 7, None, frozenset({"columnMapping"})),
            "columnMapping",
            "databricks@15.4",
            False,
        ),
        (
            Protocol(3, 7, frozenset({"columnMapping"}), frozenset({"columnMapping"})),
            "columnMapping",
            "databricks@15.4",
            True,
        ),
        (Protocol.carrying({"typeWidening"}), "typeWidening", "databricks@16.2", False),
        (Protocol.carrying({"typeWidening"}), "typeWidening", "databricks@16.3", True),
    ],
)
def test_what_databricks_drops(
    protocol: Protocol, feature: str, engine: str, possible: bool
) -> None:
    table = bare_table(protocol, {}).with_schema(COLUMNS)
    droppable = find_droppable(table, parse_engine(engine))
    assert (feature in droppable.names) is possible
    outcome = done(f"alter table t drop feature {feature}", table, engine)
    assert (outcome.refusal is None or outcome.refusal.retry) is possible
    if not possible:
        assert "databricks@16.3" in droppable.undroppable[feature].remedy


@pytest.mark.parametrize(
    ("features", "key", "words"),
    [
        (
            set[str](),
            "delta.feature.vacuumProtocolCheck=supported",
            ("vacuumProtocolCheck", "adds it"),
        ),
        (set[str](), "delta.enableRowTracking=true", None),
        ({"variantType-preview"}, "delta.appendOnly=true", ("variantType-preview", "can change")),
        ({"variantType"}, "delta.appendOnly=true", None),
    ],
)
def test_what_is_not_documented_is_not_verified(
    features: set[str], key: str, words: tuple[str, ...] | None
) -> None:
    inputs = given(Protocol.carrying(features))._replace(engine=parse_engine("databricks@17.3"))
    name, _, value = key.partition("=")
    plan = plan_upgrade(inputs, UpgradeRequest(set={name: value}))
    found = [text for text in plan.warnings if "is not verified" in text]
    assert len(found) == (words is not None)
    assert all(word in found[0] for word in words or ())


def test_partitions_are_replaced_by_clustering_since_18_1() -> None:
    table = PLAIN._replace(partition_columns=("s",))
    for engine, replaced in (("databricks@18.0", False), ("databricks@18.1", True)):
        refusal = done("alter table t cluster by (id)", table, engine).refusal
        assert refusal is not None
        assert ("REPLACE PARTITIONED BY" in refusal.remedy) is replaced


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t set tblproperties ('a')",
        "alter table t drop feature 'delta.appendOnly'",
        "alter table t replace columns (id bigint not null)",
        "alter table t change column a b bigint",
        "insert into t values ()",
    ],
)
def test_what_both_engines_refuse_is_certain_on_databricks(sql: str) -> None:
    (parsed,) = parse_script(sql)
    table = bare_table(Protocol(1, 2), {})
    refusal = predict_statement(parsed.statement, table, parse_engine("databricks@17.3")).refusal
    assert refusal is not None
    assert refusal.sure
    assert "unknown for Databricks" not in refusal.message
