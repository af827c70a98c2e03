"""The protocol's timeline, on hand-made logs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, TableFeatures, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.inspection.history import read_history
from deltaproto.inspection.history_events import cause_of
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import CommitTag, LogState
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage.local import LocalLogStore
from tests.protocol.strategies import protocols
from tests.support.contract import validate
from tests.support.logs import Log, add, commit_info, metadata, protocol

P12 = protocol(1, 2)
PDV = protocol(3, 7, ["deletionVectors"], ["appendOnly", "deletionVectors", "invariants"])
DV_ON = metadata({"delta.enableDeletionVectors": "true"})
Cli = Callable[..., Any]


def events(ran: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ran.json["events"]
    return found


def set_properties(**properties: str) -> dict[str, Any]:
    dotted = {key.replace("__", "."): value for key, value in properties.items()}
    parameters = {"properties": json.dumps(dotted)}
    return commit_info("SET TBLPROPERTIES", operationParameters=parameters)


@pytest.fixture
def grown(log: Log) -> Log:
    """A table that got deletion vectors, an isolation level and a constraint."""
    log.commit(0, commit_info("CREATE TABLE", timestamp=1_000), P12, metadata())
    log.commit(1, commit_info(timestamp=2_000), add())
    log.commit(
        2,
        {
            "commitInfo": {
                **set_properties(delta__enableDeletionVectors="true")["commitInfo"],
                "timestamp": 3_000,
                "engineInfo": "Spark",
                "userName": "ann",
                "job": {"jobId": "7", "jobName": "nightly"},
            }
        },
        PDV,
        DV_ON,
    )
    level = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": "Serializable"}
    level_set = set_properties(delta__isolationLevel="Serializable")
    level_set["commitInfo"]["timestamp"] = 4_000
    log.commit(3, level_set, metadata(level))
    level["delta.constraints.positive"] = "id > 0"
    return log.commit(4, commit_info("ADD CONSTRAINT", timestamp=5_000), metadata(level))


@pytest.mark.parametrize("actor", ["ann", None])
def test_a_commit_of_apply_names_its_plan(log: Log, cli: Cli, actor: str | None) -> None:
    mark = CommitTag("0123456789abcdef", "step-2", "run-7", actor)
    log.commit(0, commit_info("CREATE TABLE", timestamp=1_000), P12, metadata())
    log.commit(1, commit_info("SET TBLPROPERTIES", userMetadata=mark.text()), PDV, DV_ON)
    ran = cli("history", log.table, "--format", "json")
    validate("history", ran.json)
    assert [event["applied"] for event in events(ran)] == [mark._asdict(), None]
    for format_ in ("text", "markdown", "html"):
        shown = cli("history", log.table, "--format", format_).out
        assert "plan 0123456789abcdef, step step-2, run run-7" in " ".join(shown.split())
        assert ("by ann" in shown) is (actor is not None)


@pytest.mark.parametrize("text", ["", "deltaproto", "[]", '{"deltaproto": []}', '"deltaproto"'])
def test_other_user_metadata_is_no_plan(log: Log, cli: Cli, text: str) -> None:
    log.commit(0, commit_info("CREATE TABLE", userMetadata=text), P12, metadata())
    (event,) = events(cli("history", log.table, "--format", "json"))
    assert event["applied"] is None


def test_each_change_with_its_commit(grown: Log, cli: Cli) -> None:
    ran = cli("history", grown.table, "--format", "json")
    assert ran.code == 0, ran.err
    found = events(ran)
    validate("history", ran.json)
    assert [event["version"] for event in found] == [4, 3, 2, 0]
    constraint, level, vectors, creation = found
    assert constraint["constraints_added"] == ["positive"]
    assert level["isolation"] == {"before": None, "after": "Serializable"}
    assert vectors["features_added"] == ["deletionVectors"]
    assert vectors["enabled"] == ["deletionVectors"]
    assert vectors["cause"] == "deletionVectors: property delta.enableDeletionVectors"
    assert (vectors["user"], vectors["engine"]) == ("ann", "Spark")
    assert vectors["job"] == "job nightly"
    assert vectors["timestamp"] == "1970-01-01T00:00:03Z"
    assert vectors["protocol_before"]["minWriterVersion"] == 2
    assert creation["protocol_before"] is None
    assert ran.json["oldest_version_seen"] == 0
    assert ran.json["whole"] is True


def test_a_property_of_a_new_table_is_the_cause(tmp_path: Path, cli: Cli) -> None:
    """deltalake does not record the properties in the commit."""
    configuration = {"delta.enableChangeDataFeed": "true", "delta.appendOnly": "true"}
    write_deltalake(tmp_path / "t", pa.table({"id": [1]}), configuration=configuration)
    (event,) = cli("history", str(tmp_path / "t"), "--format", "json").json["events"]
    causes = event["cause"].split("; ")
    assert "appendOnly: property delta.appendOnly" in causes
    assert "changeDataFeed: property delta.enableChangeDataFeed" in causes


def test_causes_of_deltalake(tmp_path: Path, cli: Cli) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"id": [1]}))
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    DeltaTable(path).alter.add_columns([Field("t", "timestamp_ntz")])
    later, feature, implied, _ = cli("history", path, "--format", "json").json["events"]
    assert "checkConstraints, generatedColumns: implied by the versions (1,4)" in implied["cause"]
    assert feature["cause"].startswith("deletionVectors: requested by ADD FEATURE; ")
    # ADD FEATURE lost the feature that the property needs; the next change of the schema adds it.
    assert "changeDataFeed: property delta.enableChangeDataFeed" in later["cause"]


def test_limit_stops_early(grown: Log, cli: Cli) -> None:
    ran = cli("history", grown.table, "--format", "json", "--limit", "1")
    assert [event["version"] for event in events(ran)] == [4]
    assert ran.json["oldest_version_seen"] == 3
    every = events(cli("history", grown.table, "--format", "json"))
    assert events(cli("history", grown.table, "--format", "json", "--limit", "0")) == every


def test_since_leaves_out_what_is_older(grown: Log, cli: Cli) -> None:
    ran = cli("history", grown.table, "--format", "json", "--since", "1970-01-01T00:00:02.500Z")
    assert [event["version"] for event in events(ran)] == [4, 3, 2]


def test_commits_that_were_not_read_are_not_called_unknown(grown: Log, cli: Cli) -> None:
    late = cli("history", grown.table, "--since", "2999-01-01").out
    assert "No commit that was read changed protocol, features or isolation." in late
    for shown in (late, cli("history", grown.table, "--limit", "1").out):
        assert re.search(r"- commits before version \d+ were not read", shown)
        assert "unknown" not in shown


@pytest.mark.parametrize("words", [["--limit", "-1"], ["--since", "yesterday"], ["--limit", "x"]])
def test_what_makes_no_sense(grown: Log, cli: Cli, words: list[str]) -> None:
    ran = cli("history", grown.table, *words)
    assert ran.code == 2
    assert words[1] in ran.err


def test_a_log_that_was_cleaned_up_ends_where_it_ends(grown: Log, cli: Cli) -> None:
    grown.checkpoint(2, PDV, DV_ON)
    for version in (0, 1, 2):
        grown.path(version, ".json").unlink()
    ran = cli("history", grown.table, "--format", "json")
    assert [event["version"] for event in events(ran)] == [4, 3]
    assert events(ran)[1]["isolation"] == {"before": None, "after": "Serializable"}
    assert (ran.json["oldest_version_seen"], ran.json["whole"]) == (3, False)
    assert "before version 3" in cli("history", grown.table).out


def test_the_history_ends_where_a_commit_before_the_checkpoint_is_missing(
    log: Log, cli: Cli
) -> None:
    log.commit(0, commit_info(), P12, metadata()).commit(1, commit_info(), metadata({"a": "b"}))
    log.commit(3, commit_info(), DV_ON).checkpoint(3, PDV, DV_ON)
    log.commit(4, commit_info(), protocol(1, 3))
    ran = cli("history", log.table, "--format", "json")
    newest, oldest = events(ran)
    assert (ran.json["oldest_version_seen"], newest["version"], oldest["version"]) == (3, 4, 3)
    assert newest["protocol_before"] == oldest["protocol_before"] == PDV["protocol"]


def test_an_unreadable_commit_is_reported_and_the_rest_shown(grown: Log, cli: Cli) -> None:
    grown.raw(1, b'{"commitInfo": {')
    ran = cli("history", grown.table, "--format", "json")
    assert ran.code == 3
    validate("history", ran.json)
    assert ran.json["complete"] is False
    assert [problem["version"] for problem in ran.json["problems"]] == [1]
    assert [event["version"] for event in events(ran)] == [4, 3, 2, 0]


def test_commits_that_change_nothing_are_counted_by_engine(log: Log, cli: Cli) -> None:
    log.commit(0, commit_info("CREATE TABLE"), P12, metadata())
    for version in range(1, 6):
        info = commit_info("SET TBLPROPERTIES", engineInfo="dbt")
        log.commit(version, info, metadata())
    ran = cli("history", log.table, "--format", "json")
    assert [event["version"] for event in events(ran)] == [0]
    assert ran.json["idle_commits"] == [
        {"engine": "dbt", "operation": "SET TBLPROPERTIES", "count": 5, "last_version": 5}
    ]
    assert "5 commits SET TBLPROPERTIES by dbt" in cli("history", log.table).out


def test_a_change_of_no_consequence_is_no_event(log: Log, cli: Cli) -> None:
    log.commit(0, commit_info("CREATE TABLE"), P12, metadata())
    log.commit(1, set_properties(owner="me"), metadata({"owner": "me"}))
    ran = cli("history", log.table, "--format", "json")
    assert [event["version"] for event in events(ran)] == [0]
    assert ran.json["idle_commits"] == []


def test_a_long_log_is_read_a_commit_at_a_time(log: Log) -> None:
    # More commits than Python's recursion limit.
    log.commit(0, commit_info("CREATE TABLE"), P12, metadata())
    for version in range(1, 1200):
        log.commit(version, commit_info("SET TBLPROPERTIES", engineInfo="dbt"), metadata())
    log.commit(1200, set_properties(delta__enableDeletionVectors="true"), PDV, DV_ON)
    now = LogReader().read(log.table)
    store = LocalLogStore(log.table)
    steps: list[int] = []
    history = read_history(
        store,
        build_listing(store.list()),
        LogState(now.protocol, now.metadata),
        seen=steps.append,
    )
    assert [event.version for event in history.events] == [1200, 0]
    assert len(history.idle[0].versions) == 1199
    assert steps[0] == 1200
    assert len(steps) == 1201


def test_a_checkpoint_settles_what_limit_needs(log: Log) -> None:
    for version in range(100):
        log.commit(version, commit_info(), add(str(version)))
    log.commit(0, commit_info("CREATE TABLE"), P12, metadata())
    log.checkpoint(90, P12, metadata())
    log.commit(100, set_properties(delta__enableDeletionVectors="true"), PDV, DV_ON)
    now = LogReader().read(log.table)
    store = LocalLogStore(log.table)
    history = read_history(
        store, build_listing(store.list()), LogState(now.protocol, now.metadata), limit=1
    )
    assert [event.version for event in history.events] == [100]
    assert history.oldest_version_seen == 90


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "jsonl", "html"])
def test_every_format(grown: Log, cli: Cli, format_: str) -> None:
    ran = cli("history", grown.table, "--format", format_)
    assert ran.code == 0
    assert "deletionVectors" in ran.out


def test_what_is_no_table(tmp_path: Path, cli: Cli) -> None:
    ran = cli("history", str(tmp_path / "nowhere"), "--format", "json")
    assert ran.code == 3
    validate("error", ran.json)
    assert ran.json["error"]["code"] == "not-found"


@given(protocols(), protocols())
def test_every_feature_that_comes_or_goes_has_a_cause(before: Any, after: Any) -> None:
    added = after.supported - before.supported
    removed = before.supported - after.supported
    cause = cause_of({"operation": "SET TBLPROPERTIES"}, added, removed, Metadata(None), after)
    for name in added | removed:
        assert name in cause


_ODD = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["operation", "operationParameters", "job"]), _ODD))
def test_no_commit_info_breaks_the_cause(info: dict[str, Any]) -> None:
    for added in ({"appendOnly"}, set()):
        assert cause_of(info, frozenset(added), frozenset(), Metadata(None), Protocol(1, 2))
