"""What people's own statements do to writers and streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from deltaproto.planning.clash import clashes, streams
from deltaproto.planning.ddl.parse import parse
from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.planning.plan import Effect
from deltaproto.planning.schema import Atomic, Column, Struct
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol.protocol import Protocol

SCHEMA = Struct((Column("id", Atomic("integer")), Column("s", Atomic("string"))))
TABLE = Table(
    Protocol.carrying({"columnMapping", "typeWidening"}),
    {MODE: "name", "delta.enableTypeWidening": "true"},
    vectors=False,
).with_schema(SCHEMA)


@pytest.mark.parametrize(
    ("sql", "effect"),
    [
        ("alter table t add column x int", Effect.RESTART),
        ("alter table t rename column s to t", Effect.ENDS),
        ("alter table t drop column s", Effect.ENDS),
        ("alter table t alter column id type bigint", Effect.RESTART),
        ("alter table t alter column s first", Effect.CONTINUES),
        ("alter table t alter column id drop default", Effect.CONTINUES),
        ("alter table t alter column id comment 'x'", Effect.CONTINUES),
        ("alter table t set tblproperties ('a' = 'b')", Effect.CONTINUES),
    ],
)
def test_a_plain_stream(sql: str, effect: Effect) -> None:
    (each,) = parse(sql)
    said = each.statement.outcome(TABLE, Engine())
    found = streams(each.statement, TABLE, said)
    assert [s.effect for s in found if s.reads == "Delta Spark, plain"] == [effect]


@pytest.mark.parametrize(
    ("properties", "since"),
    [
        ("'delta.enableDeletionVectors' = 'true'", "4.1"),
        ("'delta.feature.v2Checkpoint' = 'supported'", "4.1"),
        ("'delta.enableRowTracking' = 'true'", "3.3"),
        ("'delta.enableRowTracking' = 'true', 'delta.checkpointPolicy' = 'v2'", "4.1"),
    ],
)
def test_older_releases_abort_where_newer_ones_are_rebased(properties: str, since: str) -> None:
    (each,) = parse(f"alter table t set tblproperties ({properties})")
    for version in ("3.3.3", "4.0.1", "4.1.0", "4.4.0"):
        engine = parse_engine(f"delta-spark@{version}")
        said = each.statement.outcome(TABLE, engine)
        found = clashes(each.statement, TABLE, said, engine)
        aborted = any(c.engine == "delta-spark" and "blind appends" in c.who for c in found)
        assert aborted is not engine.at_least(since), version


@pytest.mark.parametrize(
    "sql", ["insert into t values (1, 'a')", "delete from t where id = 1", "vacuum t", "optimize t"]
)
def test_what_leaves_the_metadata_alone_aborts_no_append(sql: str) -> None:
    (each,) = parse(sql)
    said = each.statement.outcome(TABLE, Engine())
    assert said.refusal is None
    found = list(clashes(each.statement, TABLE, said))
    assert not any("blind appends" in clash.who for clash in found)
    assert not list(streams(each.statement, TABLE, said))


def test_a_change_of_columns_aborts_every_writer() -> None:
    (each,) = parse("alter table t add column x int")
    said = each.statement.outcome(TABLE, Engine())
    found = list(clashes(each.statement, TABLE, said))
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
    (each,) = parse("alter table t set tblproperties ('delta.appendOnly' = 'true')")
    said = each.statement.outcome(TABLE, Engine())
    found = [c for c in clashes(each.statement, TABLE, said) if c.engine == "delta-rs"]
    assert [clash.exception for clash in found] == [CommitFailedError.__name__]
