"""What older Delta Sparks did, recorded with them, against what planning says of them.

`benchmarks/measure_engines.py` records; the suite itself runs one Spark only.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.enable import FeatureToEnable, enabling_statements
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.predict.schema import Atomic, Column, Struct
from deltaproto.planning.predict.set_properties import set_properties
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.goals import FeaturesAbsent, HistoryChoice
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.search.search import SearchTask, find_solutions
from deltaproto.planning.statement import DropFeature, SetProperties, Statement, UnsetProperties
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.support.failures import collect_failures

RECORDED = json.loads(Path(__file__).with_name("measured_engines.json").read_text())
CASES = [
    (each["delta-spark"], number, case)
    for each in RECORDED
    for number, case in enumerate(each["measured"])
]


def statement(sql: str) -> Statement:
    dropped = re.search(r"drop feature `?([\w-]+)`?( truncate history)?", sql)
    if dropped is not None:
        return DropFeature(dropped[1], truncate=dropped[2] is not None)
    if "unset" in sql:
        return UnsetProperties(tuple(re.findall(r"'([^']+)'", sql)))
    if "set tblproperties" in sql:
        return SetProperties(dict(re.findall(r"'([^']+)'='([^']*)'", sql)))
    (parsed,) = parse_script(sql.format(t="t"))
    return parsed.statement


def stored(protocol: Protocol) -> dict[str, Any]:
    return {
        key: sorted(value) if isinstance(value, list) else value
        for key, value in protocol.to_action().items()
    }


def test_it_is_as_recorded() -> None:
    with collect_failures() as failures:
        for version, number, case in CASES:
            with failures.of(f"{version}-{number}", case["statement"]):
                assert_as_recorded(version, case)


def assert_as_recorded(version: str, case: dict[str, Any]) -> None:
    table = bare_table(Protocol.stored(case["protocol"]), case["configuration"])
    said = statement(case["statement"]).outcome(table, parse_engine(f"delta-spark@{version}"))
    assert stored(said.table.protocol) == case["after"]
    assert (said.refusal is None) is (case["error"] is None)
    if said.refusal is not None and case["error"].startswith("DELTA_"):
        assert said.refusal.error == case["error"]
    operations = [c.operation for c in said.commits if c.sure or c.operation in case["operations"]]
    assert operations == case["operations"]


@pytest.mark.parametrize(
    ("feature", "known"),
    [
        ("inCommitTimestamp-preview", {"3.2.0"}),
        ("catalogOwned-preview", {"4.0.0"}),
        ("checkpointProtection", {"3.3.0", "3.3.3", "4.0.0", "4.0.1", "4.4.0"}),
    ],
)
def test_a_name_is_known_from_one_release_to_another(feature: str, known: set[str]) -> None:
    record = feature_catalog.feature_record(feature)
    for version in ("3.1.0", "3.2.0", "3.3.0", "3.3.3", "4.0.0", "4.0.1", "4.4.0"):
        engine = parse_engine(f"delta-spark@{version}")
        assert engine.knows(record) is (version in known), version
        assert not engine.drops(record) or version in known, version


def test_history_that_is_to_go_is_truncated_also_where_drops_are_slow() -> None:
    table = Table(
        Protocol.carrying({"v2Checkpoint"}),
        vectors=False,
        widened=False,
        v2_checkpoint=False,
        row_ids=False,
        traced=frozenset({"v2Checkpoint"}),
    )
    task = SearchTask(
        table, FeaturesAbsent(frozenset({"v2Checkpoint"})), parse_engine("delta-spark@3.3.3")
    )
    for history, truncates in ((HistoryChoice.KEEP, False), (HistoryChoice.TRUNCATE, True)):
        for found in find_solutions(task._replace(history=history)):
            drops = [m.statement for m in found.predictions if isinstance(m.statement, DropFeature)]
            assert {drop.truncate for drop in drops} == {truncates}, found


COLUMNS = Struct((Column("id", Atomic("long")), Column("b", Atomic("byte"))))


@pytest.mark.parametrize(
    ("sql", "since"),
    [
        ("alter table t add columns (v variant)", "4.0"),
        ("alter table t cluster by (id)", "3.1"),
        ("alter table t alter column b type int", "3.1"),
        ("alter table t alter column b type bigint", "4.0"),
    ],
)
def test_own_sql_is_judged_by_what_the_engine_knows(sql: str, since: str) -> None:
    table = Table(
        Protocol.carrying({"appendOnly", "invariants", "typeWidening"}),
        {"delta.enableTypeWidening": "true"},
        schema=COLUMNS,
    )
    (each,) = parse_script(sql)
    for version in ("3.3.3", "4.0.1", "4.4.0"):
        engine = parse_engine(f"delta-spark@{version}")
        said = predict_statement(each.statement, table, engine)
        assert (said.refusal is None) is engine.at_least(since), version
        if said.refusal is not None:
            assert said.refusal.remedy.startswith(f"delta-spark@{since}")
            assert said.table == table


@pytest.mark.parametrize(
    ("version", "by_property", "statement"),
    [
        (
            "3.3.3",
            "typeWidening-preview",
            {"delta.feature.typeWidening", "delta.enableTypeWidening"},
        ),
        ("4.0.0", "typeWidening", {"delta.enableTypeWidening"}),
    ],
)
def test_the_preview_of_type_widening_comes_with_the_property_before_4_0(
    version: str, by_property: str, statement: set[str]
) -> None:
    engine, table = parse_engine(f"delta-spark@{version}"), Table(Protocol(1, 2))
    said = set_properties(table, {"delta.enableTypeWidening": "true"}, engine)
    assert said.table.protocol.listed & {by_property, "typeWidening"} == {by_property}
    (only,) = enabling_statements(FeatureToEnable("typeWidening"), table, engine)
    assert isinstance(only, SetProperties)
    assert {*only.properties} == statement
    after = only.outcome(table, engine).table.protocol.supported
    assert "typeWidening" in after
    assert "typeWidening-preview" not in after


def test_every_line_of_releases_was_recorded() -> None:
    assert {each["delta-spark"][:3] for each in RECORDED} == {"3.1", "3.2", "3.3", "4.0"}
    assert all(len(each["measured"]) > 30 for each in RECORDED)


@pytest.mark.parametrize(
    ("version", "protocol", "versions"),
    [
        ("3.2.1", (1, 2), {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}),
        ("3.1.0", (2, 4), {"delta.minWriterVersion": "5"}),
        ("3.1.0", (1, 7), {"delta.minReaderVersion": "2"}),
        ("3.1.0", (3, 7), {}),
        ("3.3.0", (1, 2), {}),
    ],
)
def test_a_mapping_mode_comes_with_the_versions_that_it_wants(
    version: str, protocol: tuple[int, int], versions: dict[str, str]
) -> None:
    reader, writer = protocol
    stored = {"minReaderVersion": reader, "minWriterVersion": writer}
    stored |= {"readerFeatures": []} if reader == 3 else {}
    stored |= {"writerFeatures": []} if writer == 7 else {}
    table, engine = Table(Protocol.stored(stored)), parse_engine(f"delta-spark@{version}")
    found = enabling_statements(FeatureToEnable("columnMapping"), table, engine)
    assert isinstance(found, list)
    (only,) = found
    assert isinstance(only, SetProperties)
    assert only.properties == {"delta.columnMapping.mode": "name", **versions}
    outcome = predict_statement(only, table, engine)
    assert outcome.refusal is None
    assert "columnMapping" in outcome.table.protocol.supported
