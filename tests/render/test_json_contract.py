"""The JSON of an inspection: every member for its meaning, and when it is complete."""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from deltaproto import __version__
from deltaproto.render.interface import (
    NEUTRALIZED_COMMAND,
    SCHEMA_VERSION,
    dump_json,
    json_text,
    write_json,
)
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

Cli = Callable[..., Ran]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
)
ENVELOPE = ["schema_version", "tool", "command", "generated_at", "complete", "tables"]


@pytest.fixture
def rich(log: Log) -> Log:
    """A table with something in every member."""
    schema_text = schema_string(column("id", nullable=False), column("day", "date"))
    log.commit(
        0,
        protocol(1, 2),
        metadata(schema=schema_text, partition_columns=["day"]),
        commit_info("CREATE TABLE"),
    )
    described = metadata(
        {"delta.enableRowTracking": "true", "delta.isolationLevel": "Serializable", "a": None},
        schema=schema_text,
        partition_columns=["day"],
    )
    described["metaData"]["name"] = "orders"
    return log.commit(
        1,
        protocol(
            3,
            7,
            ["deletionVectors"],
            ["rowTracking", "domainMetadata", "deletionVectors", "appendOnly", "invariants"],
        ),
        described,
        add(deletionVector={"storageType": "u", "pathOrInlineDv": "x"}, baseRowId=0),
        commit_info("SET TBLPROPERTIES"),
    )


class TestInspection:
    def test_the_envelope_says_who_when_and_what(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata())
        (document,) = documents(cli("inspect", log.table, "--format", "json"), "inspect")
        assert list(document) == ENVELOPE
        assert document["schema_version"] == SCHEMA_VERSION == "1.1"
        assert document["tool"] == {"name": "deltaproto", "version": __version__}
        assert document["command"] == "inspect"

    @pytest.mark.parametrize("command", ["inspect", "features", "explain"])
    def test_generated_at_is_now_in_utc_as_rfc_3339_writes_it(
        self, cli: Cli, log: Log, command: str
    ) -> None:
        log.commit(0, protocol(1, 2), metadata())
        words = [command, log.table] if command == "inspect" else [command]
        text = cli(*words, "--format", "json").json["generated_at"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text)
        age = datetime.now(UTC) - datetime.fromisoformat(text)
        assert timedelta(seconds=-1) <= age < timedelta(minutes=5)

    def test_the_members_mean_what_they_say(
        self,
        inspected: Callable[..., dict[str, Any]],
        rich: Log,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.chdir(rich.root.parent)
        table = inspected("./table", "--look-in-files")
        assert table["table"] == "./table"
        assert table["location"] == rich.root.as_uri()
        assert table["reader"] == "log"
        assert table["version"] == 1
        assert table["id"] == "11111111-1111-1111-1111-111111111111"
        assert table["name"] == "orders"
        writer_features = [
            "appendOnly",
            "deletionVectors",
            "domainMetadata",
            "invariants",
            "rowTracking",
        ]
        assert table["protocol"] == {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": writer_features,
        }
        # Deletion vectors and row tracking have no legacy number, so nothing can be lowered.
        assert table["lowest_protocol"] == table["protocol"]
        assert table["partition_columns"] == ["day"]
        assert table["clustering_columns"] == []
        assert table["configuration"] == {
            "a": None,
            "delta.enableRowTracking": "true",
            "delta.isolationLevel": "Serializable",
        }
        assert table["isolation"]["declared"] == "Serializable"
        assert set(table["isolation"]["effective"].values()) == {"Serializable"}
        assert table["isolation"]["row_level_concurrency"]["databricks"] == "no"
        features = {feature["name"]: feature for feature in table["features"]}
        assert list(features) == writer_features
        assert all(f["listed"] and not f["implied"] for f in features.values())
        vectors = features["deletionVectors"]
        assert vectors["kind"] == "reader-writer"
        # Supported and in the files, though no property enables it.
        assert (vectors["enabled"], vectors["present"]) == (False, True)
        assert vectors["droppable"]["rewrites_data"]
        assert vectors["droppable"]["needs_history"]
        assert features["domainMetadata"]["required_by"] == ["rowTracking"]
        assert features["rowTracking"]["enabled"] is True
        assert features["invariants"]["evidence"] == "column id"
        assert features["appendOnly"]["droppable"]["delta_spark"] is None

    def test_what_nobody_looked_at_is_null_and_not_false(
        self, inspected: Callable[..., dict[str, Any]], rich: Log
    ) -> None:
        features = {f["name"]: f for f in inspected(rich.table)["features"]}
        assert features["deletionVectors"]["present"] is None

    def test_legacy_versions_imply_and_lists_are_absent(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        log.commit(0, protocol(2, 5), metadata())
        table = inspected(log.table)
        assert table["protocol"]["readerFeatures"] is None
        assert table["protocol"]["writerFeatures"] is None
        assert len(table["features"]) == 6
        assert all(f["implied"] and not f["listed"] for f in table["features"])
        assert table["name"] is None

    @pytest.mark.parametrize(
        ("action", "readers", "writers"),
        [
            (protocol(1, 2), None, None),
            (protocol(1, 7, None, []), None, []),
            (protocol(3, 7, [], []), [], []),
            (protocol(2, 7, None, ["columnMapping"]), None, ["columnMapping"]),
            (protocol(1, 2, [], []), [], []),
        ],
        ids=["legacy", "writers-only", "both-empty", "reader-2", "lists-where-none-belong"],
    )
    def test_an_empty_list_is_not_an_absent_one(
        self,
        inspected: Callable[..., dict[str, Any]],
        log: Log,
        action: dict[str, Any],
        readers: list[str] | None,
        writers: list[str] | None,
    ) -> None:
        log.commit(0, action, metadata())
        shown = inspected(log.table)["protocol"]
        assert shown["readerFeatures"] == readers
        assert shown["writerFeatures"] == writers

    def test_lists_are_sorted_whatever_the_log_says(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        names = ["v2Checkpoint", "timestampNtz", "deletionVectors", "columnMapping"]
        more = ["rowTracking", "domainMetadata", "clustering"]
        properties = {"delta.z": "1", "delta.a": "1", "b": "1"}
        log.commit(0, protocol(3, 7, names, names + more), metadata(properties))
        table = inspected(log.table)
        assert table["protocol"]["readerFeatures"] == sorted(names)
        assert table["protocol"]["writerFeatures"] == sorted(names + more)
        assert [feature["name"] for feature in table["features"]] == sorted(names + more)
        assert list(table["configuration"]) == sorted(properties)
        required = {f["name"]: f["required_by"] for f in table["features"]}
        assert required["domainMetadata"] == ["clustering", "rowTracking"]

    def test_a_protocol_that_the_spec_forbids_has_no_lowest_form(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        log.commit(0, protocol(3, 7), metadata())
        assert inspected(log.table)["lowest_protocol"] is None

    def test_the_lowest_form_is_shown_beside_the_stored_one(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        log.commit(0, protocol(3, 7, [], ["appendOnly", "invariants"]), metadata())
        lowest = {"minReaderVersion": 1, "minWriterVersion": 2}
        absent = {"readerFeatures": None, "writerFeatures": None}
        assert inspected(log.table)["lowest_protocol"] == {**lowest, **absent}

    @pytest.mark.parametrize(
        ("declared", "spark", "databricks", "delta_rs"),
        [
            (None, "Serializable", "WriteSerializable", "Serializable"),
            ("Serializable", "Serializable", "Serializable", "Serializable"),
            ("WriteSerializable", "WriteSerializable", "WriteSerializable", "Serializable"),
            ("Snapshot", None, None, "Serializable"),
        ],
    )
    def test_isolation_is_declared_and_effective(
        self,
        inspected: Callable[..., dict[str, Any]],
        log: Log,
        declared: str | None,
        spark: str | None,
        databricks: str | None,
        delta_rs: str,
    ) -> None:
        properties = {} if declared is None else {"delta.isolationLevel": declared}
        log.commit(0, protocol(1, 2), metadata(properties))
        isolation = inspected(log.table)["isolation"]
        assert isolation["declared"] == declared
        assert isolation["effective"] == {
            "delta-spark": spark,
            "databricks": databricks,
            "delta-rs": delta_rs,
        }

    @pytest.mark.parametrize(
        ("actions", "answer"),
        [
            ([protocol(1, 2), metadata()], "no"),
            (
                [
                    protocol(3, 7, ["deletionVectors"], ["deletionVectors"]),
                    metadata({"delta.enableDeletionVectors": "true"}),
                ],
                "yes",
            ),
            (
                [
                    protocol(3, 7, ["deletionVectors"], ["deletionVectors"]),
                    metadata({"delta.enableDeletionVectors": "true"}, partition_columns=["id"]),
                ],
                "no",
            ),
            (
                [
                    protocol(3, 7, ["deletionVectors"], ["deletionVectors", "identityColumns"]),
                    metadata({"delta.enableDeletionVectors": "true"}, schema="unreadable"),
                ],
                "unknown",
            ),
        ],
        ids=["plain", "vectors", "partitioned", "nobody-knows-about-identity"],
    )
    def test_row_level_concurrency_is_answered_with_a_reason(
        self,
        inspected: Callable[..., dict[str, Any]],
        log: Log,
        actions: list[dict[str, Any]],
        answer: str,
    ) -> None:
        log.commit(0, *actions)
        row_level = inspected(log.table)["isolation"]["row_level_concurrency"]
        assert row_level["databricks"] == answer
        assert row_level["reason"]

    def test_findings_name_the_table_and_leave_out_what_does_not_apply(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        properties = {"delta.enableDeletionVectors": "true", "delta.isolationLevel": "x"}
        log.commit(0, protocol(1, 2), metadata(properties))
        findings = {f["rule"]: f for f in inspected(log.table)["findings"]}
        assert set(findings) == {"DP103", "DP113"}
        assert {f["table"] for f in findings.values()} == {log.table}
        assert findings["DP103"]["feature"] == "deletionVectors"
        assert "delta.enableDeletionVectors" in findings["DP103"]["evidence"]
        assert "feature" not in findings["DP113"]
        assert not any("client" in finding for finding in findings.values())

    def test_a_real_table_of_delta_rs_with_each_reader(self, cli: Cli, tmp_path: Path) -> None:
        table = tmp_path / "real"
        write_deltalake(table, pa.table({"id": [1], "day": [1]}), partition_by=["day"], name="real")
        for reader in ("log", "delta-rs"):
            ran = cli("inspect", str(table), "--format", "json", "--reader", reader)
            documents(ran, "inspect")
            shown = ran.table
            assert ran.code == 0
            assert shown["reader"] == reader
            assert shown["id"] == str(DeltaTable(table).metadata().id)
            assert shown["name"] == "real"
            assert shown["partition_columns"] == ["day"]
        assert shown["clustering_columns"] is None

    def test_output_is_ascii_so_that_no_terminal_can_break_it(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 7, None, ["größe\x1b[31m"]), metadata({"ключ": "значение"}))
        ran = cli("inspect", log.table, "--format", "json")
        assert ran.out.isascii()
        assert ran.out.replace("\n", "").isprintable()
        assert ran.table["protocol"]["writerFeatures"] == ["größe\x1b[31m"]


class TestComplete:
    def test_one_readable_table_is_complete(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata())
        ran = cli("inspect", log.table, "--format", "json")
        assert ran.json["complete"] is True
        assert ran.table["complete"] is True

    def test_one_unreadable_table_makes_the_whole_incomplete(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata())
        ran = cli("inspect", log.table, log.table + "-missing", "--format", "json")
        (document,) = documents(ran, "inspect")
        assert document["complete"] is False
        assert document["tables"][0]["complete"] is True
        assert ran.code == 3

    def test_each_line_of_jsonl_speaks_for_itself(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(1, 2), metadata())
        missing = log.table + "-missing"
        ran = cli("inspect", log.table, missing, log.table, "--format", "jsonl")
        lines = documents(ran, "inspect")
        assert [line["complete"] for line in lines] == [True, False, True]
        assert [line["tables"][0]["table"] for line in lines] == [log.table, missing, log.table]
        assert all(len(line["tables"]) == 1 for line in lines)

    @pytest.mark.parametrize("name", ["catalogManaged", "catalogOwned-preview", "catalogOwned"])
    def test_a_log_is_never_complete_where_a_catalog_commits(
        self, cli: Cli, log: Log, name: str
    ) -> None:
        support = [name, "inCommitTimestamp", "vacuumProtocolCheck"]
        log.commit(
            0,
            protocol(3, 7, [name, "vacuumProtocolCheck"], support),
            metadata({"delta.enableInCommitTimestamps": "true"}),
        )
        (document,) = documents(cli("inspect", log.table, "--format", "json"), "inspect")
        assert document["complete"] is False
        assert document["tables"][0]["complete"] is False
        assert "DP112" in {f["rule"] for f in document["tables"][0]["findings"]}


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59Z"),
        (253_402_300_800_000, None),
        (-62_135_596_800_000, "0001-01-01T00:00:00Z"),
        (-62_135_596_800_001, None),
        (10**400, None),
    ],
)
def test_times_of_commits_are_rfc_3339_or_unknown(
    cli: Cli, log: Log, milliseconds: int, shown: str | None
) -> None:
    log.commit(0, commit_info(timestamp=milliseconds), protocol(1, 2), metadata())
    (event,) = cli("history", log.table, "--format", "json").json["events"]
    assert event["timestamp"] == shown


@pytest.mark.parametrize("line", [True, False])
@pytest.mark.parametrize("entries", [[], [{"a": ["##[x]\n", {}]}], [1, [], "}\n"]])
def test_a_document_written_entry_by_entry_is_the_same(
    line: bool, entries: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaproto.render.interface.NOTICES", ["mind the }"])
    first = {"text": "one\ntwo ##[x]", "nested": {"a": [1, {"b": []}], "c": {}}}
    file = io.StringIO()
    write_json("forecast", {**first, "tables": iter(entries), "end": []}, file, line=line)
    whole = json_text("forecast", {**first, "tables": entries, "end": []}, line=line)
    written, expected = json.loads(file.getvalue()), json.loads(whole)
    expected["generated_at"] = written["generated_at"]
    assert list(written.items()) == list(expected.items())
    assert "##" not in file.getvalue()
    assert file.getvalue().endswith("}\n")
    assert not line or file.getvalue().count("\n") == 1


class TestIndentation:
    @pytest.mark.parametrize("fast", [True, False])
    @given(document=ANY_JSON)
    def test_it_is_that_of_the_json_module(self, fast: bool, document: Any) -> None:
        expected = json.dumps(document, indent=2, allow_nan=False)
        with pytest.MonkeyPatch.context() as patch:
            if fast:
                importlib.import_module("msgspec")
            else:
                patch.delitem(sys.modules, "msgspec", raising=False)
            assert dump_json(document) == expected.replace(*NEUTRALIZED_COMMAND)

    def test_a_long_document_with_half_a_surrogate_pair(self) -> None:
        document = [{"name": "\ud800" * 20_000, "##[group]": [[], {}]}]
        assert json.loads(dump_json(document)) == document
        assert "##[" not in dump_json(document)

    def test_infinity_is_refused(self) -> None:
        with pytest.raises(ValueError, match="JSON compliant"):
            dump_json({"value": float("inf")})
