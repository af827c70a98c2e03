"""What people's own statements do to writers and streams."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from deltaproto.conflicts.matrix import MatrixEngine, build_cells
from deltaproto.conflicts.operation import Operation
from deltaproto.conflicts.releases import ENFORCE_ENABLEMENT_SETTING, RESOLVE_CONFLICTS_SETTING
from deltaproto.counts import all_names
from deltaproto.planning.conflict_impact import find_step_conflicts, predict_stream_impacts
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.planning.plan import StreamEffect
from deltaproto.planning.predict.schema import Array, Atomic, Column, Struct
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.planning.writer_survival import EVERY_WRITE, Writers, describe_other_writers
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.protocol.protocol import Protocol
from tests.planning.test_classics import given

SCHEMA = Struct((Column("id", Atomic("integer")), Column("s", Atomic("string"))))
TABLE = Table(
    Protocol.carrying({"columnMapping", "typeWidening"}),
    {MAPPING_MODE: "name", "delta.enableTypeWidening": "true"},
    vectors=False,
).with_schema(SCHEMA)


@pytest.mark.parametrize(
    ("sql", "effect"),
    [
        ("alter table t add column x int", StreamEffect.RESTART),
        ("alter table t rename column s to t", StreamEffect.ENDS),
        ("alter table t drop column s", StreamEffect.ENDS),
        ("alter table t alter column id type bigint", StreamEffect.RESTART),
        ("alter table t alter column s first", StreamEffect.CONTINUES),
        ("alter table t alter column id drop default", StreamEffect.CONTINUES),
        ("alter table t alter column id comment 'x'", StreamEffect.CONTINUES),
        ("alter table t set tblproperties ('a' = 'b')", StreamEffect.CONTINUES),
    ],
)
def test_a_plain_stream(sql: str, effect: StreamEffect) -> None:
    (each,) = parse_script(sql)
    said = each.statement.outcome(TABLE, Engine())
    found = predict_stream_impacts(each.statement, TABLE, said)
    assert [s.effect for s in found if s.reads == "Delta Spark, plain"] == [effect]


@pytest.mark.parametrize(
    ("properties", "since"),
    [
        ("'delta.enableDeletionVectors' = 'true'", "4.1"),
        ("'delta.feature.v2Checkpoint' = 'supported'", "4.1"),
        ("'delta.enableRowTracking' = 'true'", "3.3"),
        ("'delta.enableRowTracking' = 'true', 'delta.checkpointPolicy' = 'v2'", "4.3"),
        ("'delta.enableInCommitTimestamps' = 'true'", "4.3"),
        ("'delta.enableTypeWidening' = 'true'", "4.1"),
        ("'delta.minReaderVersion' = '1'", "4.1"),
    ],
)
@pytest.mark.parametrize("by", ["3.3.3", "4.4.0"])
def test_the_release_of_the_writer_decides_not_that_of_the_step(
    properties: str, since: str, by: str
) -> None:
    (each,) = parse_script(f"alter table t set tblproperties ({properties})")
    said = each.statement.outcome(TABLE, parse_engine(f"delta-spark@{by}"))

    def aborted(writers: Writers) -> list[str]:
        found = find_step_conflicts(each.statement, TABLE, said, writers)
        return [c.who for c in found if c.engine == "delta-spark" and "appends" in c.who]

    versions = ["3.2.1", "3.3.3", "4.0.1", "4.1.0", "4.2.0", "4.3.0", "4.4.0"]
    older = [v for v in versions if not parse_engine(f"delta-spark@{v}").at_least(since)]
    for version in versions:
        assert bool(aborted(Writers(frozenset({version})))) is (version in older), version
    (every,) = aborted(Writers(frozenset(versions)))
    assert f"Delta Spark {all_names(older)}," in every
    (unknown,) = aborted(Writers())
    assert f"Delta Spark before {since}," in unknown


@pytest.mark.parametrize(
    ("feature", "release", "aborted"),
    [
        ("allowColumnDefaults", "4.1.0", False),
        ("allowColumnDefaults", "4.2.0", True),
        ("allowColumnDefaults", "4.4.0", True),
        ("v2Checkpoint", "4.2.0", True),
        ("v2Checkpoint", "4.3.0", False),
        ("vacuumProtocolCheck", "4.3.1", True),
        ("vacuumProtocolCheck", "4.4.0", False),
        ("deletionVectors", "4.2.0", False),
    ],
)
def test_sessions_that_enforce_concurrent_feature_enablement(
    feature: str, release: str, aborted: bool
) -> None:
    (each,) = parse_script(
        f"alter table t set tblproperties ('delta.feature.{feature}' = 'supported')"
    )
    said = each.statement.outcome(TABLE, Engine())
    writers = Writers(frozenset({release}), {ENFORCE_ENABLEMENT_SETTING: "true"})
    found = list(find_step_conflicts(each.statement, TABLE, said, writers))
    assert aborted is any(
        c.exception == "ProtocolChangedException" and "blind appends" in c.who for c in found
    )
    plain = find_step_conflicts(each.statement, TABLE, said, Writers(frozenset({release})))
    told = any(ENFORCE_ENABLEMENT_SETTING in c.why for c in plain)
    assert told is (feature != "deletionVectors")


@pytest.mark.parametrize(
    ("properties", "aborted"),
    [
        ("'delta.feature.rowTracking' = 'supported'", True),
        ("'delta.feature.rowTracking' = 'supported', 'delta.enableRowTracking' = 'true'", False),
        ("'delta.feature.v2Checkpoint' = 'supported'", False),
    ],
)
def test_adding_row_tracking_without_enabling_it_aborts_every_release(
    properties: str, aborted: bool
) -> None:
    (each,) = parse_script(f"alter table t set tblproperties ({properties})")
    said = each.statement.outcome(TABLE, Engine())
    found = find_step_conflicts(each.statement, TABLE, said, Writers(frozenset({"4.4.0"})))
    assert aborted is any(c.engine == "delta-spark" and "appends" in c.who for c in found)


@pytest.mark.parametrize(
    ("feature", "configuration", "exceptions"),
    [
        ("vacuumProtocolCheck", {}, {"ProtocolChangedException"}),
        ("deletionVectors", {}, {"ProtocolChangedException"}),
        (
            "deletionVectors",
            {"delta.enableDeletionVectors": "true"},
            {"MetadataChangedException", "ProtocolChangedException"},
        ),
        ("domainMetadata", {}, {"ProtocolChangedException"}),
    ],
)
def test_a_drop_changes_the_metadata_only_where_it_has_a_property_to_unset(
    feature: str, configuration: dict[str, str], exceptions: set[str]
) -> None:
    table = Table(Protocol.carrying({feature}), configuration, vectors=False, domains=("d",))
    (each,) = parse_script(f"alter table t drop feature {feature}")
    said = each.statement.outcome(table, Engine())
    assert said.refusal is None
    found = find_step_conflicts(each.statement, table, said)
    assert {
        c.exception for c in found if c.engine == "delta-spark" and c.who == EVERY_WRITE
    } == exceptions


def test_a_drop_that_fails_half_way_aborts_writers_all_the_same() -> None:
    table = Table(
        Protocol.carrying({"catalogManaged", "deletionVectors"}),
        {"delta.enableDeletionVectors": "true"},
    )
    (each,) = parse_script("alter table t drop feature deletionVectors")
    said = each.statement.outcome(table, Engine())
    assert said.refusal is not None
    found = find_step_conflicts(each.statement, table, said)
    assert "MetadataChangedException" in {c.exception for c in found if c.who == EVERY_WRITE}


def test_changed_clustering_columns_meet_only_their_like() -> None:
    table = Table(Protocol.carrying({"clustering"}), clustering=("id",)).with_schema(SCHEMA)
    for sql in ("alter table t cluster by (s)", "alter table t cluster by none"):
        (each,) = parse_script(sql)
        said = each.statement.outcome(table, Engine())
        assert said.refusal is None
        found = list(find_step_conflicts(each.statement, table, said))
        assert "ConcurrentTransactionException" in failures(sql, table)
        assert [(c.engine, c.exception) for c in found if c.loser == "writer"] == [
            ("delta-spark", "ConcurrentTransactionException"),
            ("databricks", "MetadataChangedException"),
            ("delta-spark", "ConcurrentWriteException"),
        ]


def test_sessions_that_resolve_no_conflicts_abort_as_old_releases_do() -> None:
    writers = Writers(frozenset({"4.4.0"}), {RESOLVE_CONFLICTS_SETTING: "false"})
    for name, aborted in (("DeletionVectors", True), ("RowTracking", False)):
        (each,) = parse_script(f"alter table t set tblproperties ('delta.enable{name}' = 'true')")
        said = each.statement.outcome(TABLE, Engine())
        found = list(find_step_conflicts(each.statement, TABLE, said, writers))
        assert aborted is any(c.engine == "delta-spark" and "appends" in c.who for c in found)


def test_writers_of_a_release_that_does_not_know_a_feature_are_named() -> None:
    (each,) = parse_script(
        "alter table t set tblproperties ('delta.feature.geospatial' = 'supported')"
    )
    said = each.statement.outcome(TABLE, Engine())
    found = find_step_conflicts(each.statement, TABLE, said, Writers(frozenset({"4.2.0"})))
    who = {c.exception: c.who for c in found}
    assert "Delta Spark 4.2.0" in who["DeltaUnsupportedTableFeatureException"]


def test_releases_are_shown_in_their_order() -> None:
    (each,) = parse_script("alter table t set tblproperties ('delta.checkpointPolicy' = 'v2')")
    said = each.statement.outcome(TABLE, Engine())
    writers = Writers(frozenset({"4.10.0", "4.2.0", "10.0.0"}))
    found = describe_other_writers(TABLE, said, writers)
    assert found.endswith("the recent log shows Delta Spark 4.2.0 and 4.10.0 and 10.0.0")


@pytest.mark.parametrize(
    ("schema", "aborted"),
    [
        (Struct((Column("a", Array(Atomic("integer"))),)), False),
        (Struct((Column("a", Struct((Column("x", Atomic("integer")),))),)), True),
        (Struct((Column("a", Array(Struct((Column("x", Atomic("integer")),)))),)), True),
        (None, True),
    ],
)
def test_column_mapping_is_survived_on_tables_without_structs(
    schema: Struct | None, aborted: bool
) -> None:
    table = Table(Protocol(1, 2)).with_schema(schema)
    (each,) = parse_script("alter table t set tblproperties ('delta.columnMapping.mode' = 'name')")
    said = each.statement.outcome(table, Engine())
    found = find_step_conflicts(each.statement, table, said, Writers(frozenset({"4.4.0"})))
    assert aborted is any(c.engine == "delta-spark" and "appends" in c.who for c in found)


@pytest.mark.parametrize(
    "sql", ["insert into t values (1, 'a')", "delete from t where id = 1", "vacuum t", "optimize t"]
)
def test_what_leaves_the_metadata_alone_aborts_no_append(sql: str) -> None:
    (each,) = parse_script(sql)
    said = each.statement.outcome(TABLE, Engine())
    assert said.refusal is None
    found = list(find_step_conflicts(each.statement, TABLE, said))
    assert not any("blind appends" in clash.who for clash in found)
    assert not list(predict_stream_impacts(each.statement, TABLE, said))


@pytest.mark.parametrize(
    ("key", "versions"),
    [("delta.enableTypeWidening", ["3.3.3", "4.4.0"]), ("delta.appendOnly", ["3.3.3"])],
)
def test_only_unsetting_a_property_that_is_set_aborts_every_release(
    key: str, versions: list[str]
) -> None:
    (each,) = parse_script(f"alter table t unset tblproperties if exists ('{key}')")
    said = each.statement.outcome(TABLE, Engine())
    assert said.refusal is None
    for version in ("3.3.3", "4.4.0"):
        found = find_step_conflicts(each.statement, TABLE, said, Writers(frozenset({version})))
        aborted = any(c.engine == "delta-spark" and "appends" in c.who for c in found)
        assert aborted is (version in versions), version


def test_a_change_of_columns_aborts_every_writer() -> None:
    (each,) = parse_script("alter table t add column x int")
    said = each.statement.outcome(TABLE, Engine())
    found = list(find_step_conflicts(each.statement, TABLE, said))
    assert any("blind appends" in clash.who for clash in found)


@pytest.mark.parametrize(
    ("actions", "fails"),
    [
        ([{"metaData": {"delta.appendOnly": "false"}}], True),
        ([{"metaData": {}}], True),
        (
            [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}}],
            True,
        ),
        ([{"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}}], False),
        ([{"commitInfo": {"operation": "Empty Commit"}}], False),
        (
            [
                {
                    "domainMetadata": {
                        "domain": "delta.clustering",
                        "configuration": "{}",
                        "removed": False,
                    }
                }
            ],
            False,
        ),
    ],
)
@pytest.mark.parametrize("how", ["append", "delete"])
def test_delta_rs_takes_new_metadata_and_higher_protocols_for_conflicts(
    actions: list[dict[str, Any]], fails: bool, how: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"a": [1, 2]}))
    stale = DeltaTable(path)
    log = tmp_path / "t" / "_delta_log"
    first = (log / f"{0:020d}.json").read_text().splitlines()
    (metadata,) = (json.loads(line) for line in first if '"metaData"' in line)
    made = [dict(action) for action in actions]
    for action in made:
        if "metaData" in action:
            action["metaData"] = {**metadata["metaData"], "configuration": action["metaData"]}
    (log / f"{1:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in made))

    def write() -> None:
        if how == "append":
            write_deltalake(stale, pa.table({"a": [3]}), mode="append")
        else:
            stale.delete("a = 1")

    if fails:
        with pytest.raises(CommitFailedError, match="changed since last commit"):
            write()
    else:
        write()


def test_the_exception_of_delta_rs_is_told() -> None:
    (each,) = parse_script("alter table t set tblproperties ('delta.appendOnly' = 'true')")
    said = each.statement.outcome(TABLE, Engine())
    found = [c for c in find_step_conflicts(each.statement, TABLE, said) if c.engine == "delta-rs"]
    assert [clash.exception for clash in found] == [CommitFailedError.__name__]


DATA = ("INSERT", "UPDATE", "DELETE", "MERGE", "OPTIMIZE", "REORG")


@pytest.mark.parametrize(
    ("sql", "operation"),
    [
        ("insert into t values (1, 'a')", Operation.INSERT),
        ("insert overwrite t values (1, 'a')", Operation.MERGE),
        ("insert into t select id + 1, s from t", Operation.MERGE),
        ("update t set s = 'b' where id = 1", Operation.UPDATE),
        ("delete from t where id = 1", Operation.DELETE),
        ("truncate table t", Operation.DELETE),
        (
            "merge into t using u on t.id = u.id when matched then delete",
            Operation.MERGE,
        ),
        ("optimize t", Operation.OPTIMIZE),
    ],
)
@pytest.mark.parametrize("level", ["Serializable", "WriteSerializable"])
def test_statements_that_change_only_files_conflict_as_the_matrix_says(
    sql: str, operation: Operation, level: str
) -> None:
    table = TABLE.with_properties({"delta.isolationLevel": level})
    (each,) = parse_script(sql)
    outcome = each.statement.outcome(table, Engine())
    found = list(find_step_conflicts(each.statement, table, outcome))
    cells = {
        (str(cell.operation), str(cell.against)): set(map(str, cell.exceptions))
        for cell in build_cells(MatrixEngine.DELTA_SPARK, IsolationLevel(level))
    }

    def exceptions(other: str, loser: str) -> set[str]:
        spark = [each for each in found if (each.engine, each.loser) == ("delta-spark", loser)]
        return {each.exception for each in spark if re.search(rf"\b{other}\b", each.who)}

    for other in DATA:
        assert exceptions(other, "writer") == cells[other, str(operation)], other
        assert exceptions(other, "step") == cells[str(operation), other], other
    on_rs = [each for each in found if each.engine == "delta-rs"]
    assert [each.exception for each in on_rs] == ["CommitFailedError"]
    assert ("INSERT" in on_rs[0].who) is (operation not in (Operation.INSERT, Operation.OPTIMIZE))


@pytest.mark.parametrize(
    ("sql", "removes"),
    [
        ("insert into t select id + 1, s from t", False),
        ("merge into t using u on t.id = u.id when not matched then insert *", False),
        ("merge into t using u on t.id = u.id when matched then delete", True),
        ("insert overwrite t values (1, 'a')", True),
        ("optimize t", True),
    ],
)
def test_deltalake_misses_only_files_that_a_step_removes(sql: str, removes: bool) -> None:
    (each,) = parse_script(sql)
    found = find_step_conflicts(each.statement, TABLE, each.statement.outcome(TABLE, Engine()))
    (why,) = (each.why for each in found if each.engine == "delta-rs")
    assert ("removes data files" in why) is removes


def failures(sql: str, table: Table) -> dict[str, set[str]]:
    """What makes a step fail in Delta Spark, by exception."""
    (each,) = parse_script(sql)
    outcome = each.statement.outcome(table, Engine())
    assert outcome.refusal is None
    found: dict[str, set[str]] = {}
    for clash in find_step_conflicts(each.statement, table, outcome):
        if (clash.engine, clash.loser) == ("delta-spark", "step"):
            found.setdefault(clash.exception, set()).add(clash.who)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "alter table t add constraint c check (id > 0)",
        "alter table t alter column k sync identity",
        "replace table t (id bigint) using delta",
        "alter table t set tblproperties ('delta.columnMapping.mode' = 'none')",
        "merge with schema evolution into t using u on t.id = u.id when matched then update set *",
    ],
)
def test_a_metadata_change_that_reads_rows_fails_by_appends_at_both_levels(sql: str) -> None:
    schema = Struct((*SCHEMA.columns, Column("k", Atomic("long"), identity=True)))
    for level in ("Serializable", "WriteSerializable"):
        table = TABLE.with_schema(schema).with_properties({"delta.isolationLevel": level})
        (who,) = (w for w in failures(sql, table)["ConcurrentAppendException"] if "INSERT" in w)
        assert "of the same partitions or files" in who


@pytest.mark.parametrize(
    ("sql", "exceptions"),
    [
        ("alter table t set tblproperties ('a' = 'b')", {"MetadataChangedException"}),
        (
            "alter table t set tblproperties ('delta.enableChangeDataFeed' = 'true')",
            {"MetadataChangedException", "ProtocolChangedException"},
        ),
    ],
)
def test_two_protocol_changes_conflict_as_such(sql: str, exceptions: set[str]) -> None:
    assert failures(sql, TABLE).keys() == exceptions
    (each,) = parse_script(sql)
    outcome = each.statement.outcome(TABLE, Engine())
    found = find_step_conflicts(each.statement, TABLE, outcome)
    changes = {c.exception for c in found if c.who == "other metadata or protocol changes"}
    assert changes == exceptions - {"MetadataChangedException"}


@pytest.mark.parametrize(
    ("schema", "feature", "fails"),
    [
        (Struct((*SCHEMA.columns, Column("k", Atomic("long"), identity=True))), True, True),
        (SCHEMA, True, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_generated_identity_values_fail_a_metadata_change(
    schema: Struct | None, feature: bool, fails: bool
) -> None:
    table = Table(Protocol.carrying({"identityColumns"} if feature else set())).with_schema(schema)
    who = failures("alter table t set tblproperties ('a' = 'b')", table)["MetadataChangedException"]
    assert any("identity" in each for each in who) is fails


def test_any_commit_fails_a_restore() -> None:
    sql = "restore table t to version as of 0"
    (who,) = failures(sql, TABLE)["ConcurrentWriteException"]
    assert all(name in who for name in (*DATA, "metadata changes", "protocol changes", "RESTORE"))
    (each,) = parse_script(sql)
    found = find_step_conflicts(each.statement, TABLE, each.statement.outcome(TABLE, Engine()))
    lost = [c for c in found if (c.engine, c.loser) == ("delta-spark", "writer")]
    # Since 4.1, a blind append survives a RESTORE that leaves the metadata as it is.
    assert {c.exception for c in lost if "INSERT" in c.who} == {"MetadataChangedException"}
    assert {"DELETE", "metadata changes"} <= {
        word for c in lost for word in ("DELETE", "metadata changes") if word in c.who
    }
    assert not any(c.who == EVERY_WRITE for c in lost)


def test_rows_with_new_columns_also_change_the_metadata() -> None:
    (each,) = parse_script("insert with schema evolution into t select * from u")
    outcome = each.statement.outcome(TABLE, Engine())
    found = list(find_step_conflicts(each.statement, TABLE, outcome))
    hit = {each.exception for each in found if each.engine == "delta-spark"}
    assert {"ConcurrentAppendException", "MetadataChangedException"} <= hit


def test_only_steps_that_change_metadata_are_said_to() -> None:
    def warnings(*sql: str) -> str:
        statements = tuple(parsed for each in sql for parsed in parse_script(each))
        plan = plan_upgrade(given(Protocol(1, 2)), UpgradeRequest(statements=statements))
        return " ".join(plan.warnings)

    rows, properties = "delete from t", "alter table t set tblproperties ('a' = 'b')"
    assert "change only data files" in warnings(rows)
    assert "metadata or the protocol" not in warnings(rows)
    assert "s2 changes metadata or the protocol, s1 only data files" in warnings(rows, properties)
    assert "s1, s3 change metadata or the protocol, s2 only data files: stop or" in warnings(
        properties, rows, properties
    )
    assert "Every step changes metadata or the protocol" in warnings(properties, properties)
