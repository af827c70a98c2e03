"""The shipped JSON Schemas: valid, as strict as the contract, and no stricter."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema_rs import ValidationError

from deltaproto.clients.model import Access, Verdict
from deltaproto.errors import ErrorCode
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import StreamEffect
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.statement import Action
from deltaproto.policy.finding import Severity
from deltaproto.protocol.feature import FeatureKind, FeatureStatus, RequirementKind
from deltaproto.protocol.isolation import IsolationLevel, RowLevelSupport, WriterEngine
from deltaproto.protocol.table_state import ReaderName
from deltaproto.render.schemas import load_schema
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.failures import each_row
from tests.support.logs import Log, metadata, protocol

COMMANDS = ("inspect", "features", "explain")
Cli = Callable[..., Ran]


class TestSchemas:
    @pytest.mark.parametrize("command", [*COMMANDS, "history", "discover", "error"])
    def test_each_is_a_valid_schema_that_explains_itself(self, command: str) -> None:
        document = load_schema(command)
        Draft202012Validator.check_schema(document)
        assert document["$id"] == f"{command}.schema.json"
        assert document["title"]
        assert document["description"]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_new_members_may_join_the_envelope(self, cli: Cli, log: Log, command: str) -> None:
        log.commit(0, protocol(1, 2), metadata())
        words = [command, log.table] if command == "inspect" else [command]
        document = cli(*words, "--format", "json").json
        document["joined_later"] = 1
        payload = next(value for value in document.values() if isinstance(value, list))
        payload[0]["joined_later"] = 1
        validate(command, document)

    def test_an_output_without_a_schema_is_an_error(self) -> None:
        with pytest.raises(FileNotFoundError):
            load_schema("nosuch")

    def test_the_closed_lists_are_those_of_the_code(self) -> None:
        defs = load_schema("inspect")["$defs"]
        feature, finding = defs["feature"]["properties"], defs["finding"]["properties"]
        isolation = defs["isolation"]["properties"]
        record = load_schema("features")["$defs"]["feature"]["properties"]
        rule = load_schema("explain")["$defs"]["rule"]["properties"]
        for shown, declared in (
            (defs["error"]["properties"]["code"], ErrorCode),
            (feature["kind"], FeatureKind),
            (record["kind"], FeatureKind),
            (feature["status"], FeatureStatus),
            (finding["severity"], Severity),
            (rule["severity"], Severity),
            (defs["answer"]["properties"]["reader"], ReaderName),
            (defs["readers"]["propertyNames"], ReaderName),
            (isolation["effective"]["propertyNames"], WriterEngine),
            (isolation["row_level_concurrency"]["properties"]["databricks"], RowLevelSupport),
            (record["requires"]["items"]["properties"]["need"], RequirementKind),
        ):
            assert sorted(shown["enum"]) == sorted(declared), declared
        assert {*defs["level"]["enum"]} == {*IsolationLevel, None}
        # A feature that is in the catalog is not unknown.
        assert {*record["status"]["enum"]} == {*FeatureStatus} - {FeatureStatus.UNKNOWN}


def test_the_closed_lists_of_plans_are_those_of_the_code() -> None:
    defs = load_schema("plan-upgrade")["$defs"]
    step, plan = defs["step"]["properties"], defs["plan"]["properties"]
    conflict = step["conflicts"]["items"]["properties"]
    change = plan["clients"]["items"]["properties"]
    for shown, declared in (
        (step["action"], Action),
        (step["rewrites"]["properties"]["which"], Rewrite),
        (step["streams"]["items"]["properties"]["effect"], StreamEffect),
        (conflict["engine"], WriterEngine),
        (plan["engine"]["properties"]["name"], EngineName),
        (change["access"], Access),
        (change["after"], Verdict),
    ):
        assert sorted(shown["enum"]) == sorted(declared), declared


# Every member that the contract documents, by its path in an inspection.
ENVELOPE = ("schema_version", "tool", "command", "generated_at", "complete", "tables")
TABLE = (
    "table",
    "location",
    "reader",
    "version",
    "id",
    "name",
    "protocol",
    "lowest_protocol",
    "features",
    "isolation",
    "partition_columns",
    "clustering_columns",
    "configuration",
    "findings",
)
FEATURE = ("name", "kind", "listed", "implied", "enabled", "present", "required_by", "droppable")
DEEP = (
    ("protocol", "minReaderVersion"),
    ("protocol", "minWriterVersion"),
    ("protocol", "readerFeatures"),
    ("protocol", "writerFeatures"),
    ("isolation", "declared"),
    ("isolation", "effective"),
    ("isolation", "effective", "delta-spark"),
    ("isolation", "effective", "databricks"),
    ("isolation", "effective", "delta-rs"),
    ("isolation", "row_level_concurrency"),
    ("isolation", "row_level_concurrency", "databricks"),
    ("isolation", "row_level_concurrency", "reason"),
    ("features", 0, "droppable", "delta_spark"),
    ("features", 0, "droppable", "databricks"),
    ("features", 0, "droppable", "rewrites_data"),
    ("features", 0, "droppable", "needs_history"),
)
FINDING = ("rule", "severity", "message", "hint", "table")
PATHS: list[tuple[str | int, ...]] = [
    *((name,) for name in ENVELOPE),
    ("tool", "name"),
    ("tool", "version"),
    *(("tables", 0, name) for name in TABLE),
    *(("tables", 0, *path) for path in DEEP),
    *(("tables", 0, "features", 0, name) for name in FEATURE),
    *(("tables", 0, "findings", 0, name) for name in FINDING),
]


class TestStrictness:
    @each_row("path", PATHS, ids=lambda path: ".".join(map(str, path)))
    def test_every_documented_member_is_there_and_the_schema_demands_it(
        self, cli: Cli, log: Log, path: tuple[str | int, ...]
    ) -> None:
        log.commit(0, protocol(1, 2), metadata({"delta.isolationLevel": "Snapshot"}))
        document = cli("inspect", log.table, "--format", "json").json
        validate("inspect", document)
        broken = copy.deepcopy(document)
        place: Any = broken
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        with pytest.raises(ValidationError):
            validate("inspect", broken)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("command",), "features"),
            (("schema_version",), "2.0"),
            (("generated_at",), "2026-01-01 00:00:00"),
            (("generated_at",), "2026-01-01T00:00:00+01:00"),
            (("complete",), None),
            (("tables", 0, "reader"), "auto"),
            (("tables", 0, "version"), -1),
            (("tables", 0, "protocol", "readerFeatures"), "none"),
            (("tables", 0, "findings", 0, "severity"), "fatal"),
            (("tables", 0, "findings", 0, "rule"), "invalid-isolation-level"),
            (("tables", 0, "features", 0, "kind"), "reader"),
            (("tables", 0, "isolation", "row_level_concurrency", "databricks"), "maybe"),
            (("tables", 0, "isolation", "effective", "delta-rs"), "Snapshot"),
            (("tables", 0, "error"), {"code": "not-found", "message": "m", "hint": ""}),
        ],
    )
    def test_the_schema_refuses_what_the_contract_does_not_allow(
        self, cli: Cli, log: Log, path: tuple[str | int, ...], value: Any
    ) -> None:
        log.commit(0, protocol(1, 2), metadata({"delta.isolationLevel": "Snapshot"}))
        document = cli("inspect", log.table, "--format", "json").json
        place: Any = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValidationError):
            validate("inspect", document)
