"""Names and values of table properties: recorded from Delta Spark 4.4.0, one statement each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict import coordinated
from deltaproto.planning.predict.properties import (
    canonical_name,
    normalize_properties,
    validate_properties,
)
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.statement import SetProperties, UnsetProperties
from deltaproto.protocol.protocol import Protocol
from tests.support.failures import each_row

TAKEN = {
    "appendOnly": ("TRUE", "false"),
    "checkpointInterval": ("5", "+5"),
    "logRetentionDuration": ("30 days", "2 weeks"),
    "deletedFileRetentionDuration": ("interval 7 days",),
    "setTransactionRetentionDuration": ("interval 7 days",),
    "checkpointPolicy": ("v2", "classic"),
    "universalFormat.enabledFormats": ("hudi", ""),
    "autoOptimize.autoCompact": ("TRUE",),
    "parquet.format.version": ("2.12.0", "1.0.0"),
    "dataSkippingNumIndexedCols": ("-1", "32"),
    "dataSkippingStringPrefixLength": ("0",),
    "compatibility.symlinkFormatManifest.enabled": ("true", "false"),
    "inCommitTimestampEnablementVersion": ("3",),
    "requireCheckpointProtectionBeforeVersion": ("2",),
    "randomPrefixLength": ("3",),
    "dropFeatureTruncateHistory.retentionDuration": ("1 hour",),
    "universalFormat.config.iceberg.x": ("1",),
}
VALUE, INTERVAL = "UNSUPPORTED_TABLE_CHANGE", "DELTA_INVALID_INTERVAL"
REFUSED = {
    "appendOnly": (VALUE, ("maybe", " true", "1")),
    "checkpointInterval": (VALUE, ("0", "-1", "abc", "5.0", " 5", "99999999999", "9" * 5000)),
    "logRetentionDuration": (INTERVAL, ("abc", "P1D", "30", "9" * 5000 + " days")),
    "sampleRetentionDuration": (VALUE, ("1 month",)),
    "dropFeatureTruncateHistory.retentionDuration": (VALUE, ("1 month", "interval 1 year")),
    "deletedFileRetentionDuration": (INTERVAL, ("7 dayz",)),
    "setTransactionRetentionDuration": (VALUE, ("-1 days", "interval -1 days")),
    "checkpointPolicy": (VALUE, ("bogus", "V2", "CLASSIC")),
    "universalFormat.enabledFormats": (VALUE, ("nope", "iceberg,iceberg")),
    "autoOptimize.autoCompact": (VALUE, ("x", "auto", "legacy")),
    "parquet.format.version": (VALUE, ("9.9",)),
    "dataSkippingNumIndexedCols": (VALUE, ("-2",)),
    "dataSkippingStringPrefixLength": (VALUE, ("-1",)),
    "compatibility.symlinkFormatManifest.enabled": (VALUE, ("x",)),
    "inCommitTimestampEnablementVersion": (VALUE, ("x",)),
    "requireCheckpointProtectionBeforeVersion": (VALUE, ("-1", "x")),
    "randomPrefixLength": (VALUE, ("0",)),
    "enableIcebergCompatV2": (VALUE, ("x", "")),
    "columnMapping.maxColumnId": ("DELTA_CANNOT_MODIFY_TABLE_PROPERTY", ("5",)),
    "targetFileSize": ("DELTA_UNKNOWN_CONFIGURATION", ("1",)),
}


@each_row(("key", "value"), [(k, v) for k, values in TAKEN.items() for v in values])
def test_taken(key: str, value: str) -> None:
    assert validate_properties({f"delta.{key}": value}) is None


@each_row(
    ("key", "value", "error"), [(k, v, error) for k, (error, vs) in REFUSED.items() for v in vs]
)
def test_refused(key: str, value: str, error: str) -> None:
    refusal = validate_properties({f"delta.{key}": value})
    assert refusal is not None
    assert refusal.error == error
    assert f"delta.{key}" in refusal.message
    assert refusal.remedy


@pytest.mark.parametrize(
    ("log", "files", "good"),
    [
        ("0 days", None, False),
        ("interval 1 day 2 hours", None, False),
        (None, "31 days", False),
        ("1 day", "1 day", True),
        ("1 day", "25 hours", False),
    ],
)
def test_the_log_is_kept_as_long_as_deleted_files(
    log: str | None, files: str | None, good: bool
) -> None:
    keys = ("delta.logRetentionDuration", "delta.deletedFileRetentionDuration")
    asked = {key: value for key, value in zip(keys, (log, files), strict=True) if value}
    assert (validate_properties(asked) is None) is good
    assert validate_properties(asked, Engine(EngineName.DELTA_SPARK, "4.0.1")) is None


def test_what_is_meant_is_written_as_delta_wants_it() -> None:
    asked = {"DELTA.columnmapping.MODE": "NONE", "delta.MINreaderversion": "3", "Team": "A"}
    assert normalize_properties(asked) == {
        "delta.columnMapping.mode": "none",
        "delta.minReaderVersion": "3",
        "Team": "A",
    }


@given(st.text(), st.text())
def test_no_text_is_an_error(key: str, value: str) -> None:
    validate_properties(
        {key: value, f"delta.{key}": value, canonical_name("DELTA.LOGRETENTIONDURATION"): value}
    )


@pytest.mark.parametrize("key", ["targetFileSize", "tuneFileSizesForRewrites"])
def test_what_databricks_documents_is_taken_there(key: str) -> None:
    assert validate_properties({f"delta.{key}": "1"}, Engine(EngineName.DATABRICKS, "16.4")) is None


@pytest.mark.parametrize(
    ("key", "since"),
    [
        ("enableInCommitTimestamps", "3.3"),
        ("enableVariantShredding", "4.0"),
        ("ROWTRACKINGSUSPENDED", "4.1"),
        ("enableIcebergCompatV3", "4.3"),
    ],
)
def test_an_older_release_does_not_know_every_property(key: str, since: str) -> None:
    for version in ("3.1.0", "3.2.1", "3.3.3", "4.0.1", "4.1.0", "4.2.0", "4.3.1", "4.4.0"):
        engine = Engine(EngineName.DELTA_SPARK, version)
        refusal = validate_properties({f"delta.{key}": "true"}, engine)
        assert (refusal is None) is engine.at_least(since), version
        assert refusal is None or refusal.error == "DELTA_UNKNOWN_CONFIGURATION"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("delta.apendOnly", "did you mean delta.appendOnly?"),
        ("delta.nosuch", "check the spelling, or use a prefix other than delta."),
    ],
)
def test_a_misspelled_property_is_suggested(key: str, hint: str) -> None:
    refusal = validate_properties({key: "true"})
    assert refusal is not None
    assert refusal.remedy == hint


@pytest.mark.parametrize(("version", "error"), [("3.3.3", ""), ("4.0.0", VALUE), ("4.4.0", VALUE)])
def test_spark_3_names_no_error_for_a_value(version: str, error: str) -> None:
    engine = Engine(EngineName.DELTA_SPARK, version)
    refusal = validate_properties({"delta.appendOnly": "perhaps"}, engine)
    assert refusal is not None
    assert refusal.error == error


def test_a_script_is_judged_by_the_rules_of_its_engine() -> None:
    (each,) = parse_script(
        "alter table t set tblproperties ('delta.logRetentionDuration' = '1 day')"
    )
    table = Table(protocol=Protocol(1, 2))
    older, newer = (
        each.statement.outcome(table, Engine(EngineName.DELTA_SPARK, version)).refusal
        for version in ("3.3.2", "4.4.0")
    )
    assert older is None
    assert newer is not None
    assert newer.error == VALUE


# Stored as `foo` by hand, then SET of another property, and UNSET of this one: True if Delta Spark
# 4.4.0 did it.
STORED = {
    "appendOnly": (False, True),
    "enableDeletionVectors": (False, True),
    "enableVariantShredding": (False, True),
    "autoOptimize.optimizeWrite": (True, True),
    "checkpoint.writeStatsAsJson": (False, False),
    "checkpoint.writeStatsAsStruct": (True, True),
    "compatibility.symlinkFormatManifest.enabled": (False, True),
    "enableChangeDataCapture": (False, True),
    "enableChangeDataFeed": (False, True),
    "enableRowTracking": (False, True),
    "rowTrackingSuspended": (True, True),
    "enableTypeWidening": (False, True),
    "enableInCommitTimestamps": (False, False),
    "enableMaterializePartitionColumnsFeature": (False, True),
    "writePartitionColumnsToParquet": (True, True),
    "enableIcebergCompatV1": (False, False),
    "enableIcebergCompatV2": (False, False),
    "enableIcebergCompatV3": (False, False),
    "logRetentionDuration": (True, True),
    "sampleRetentionDuration": (True, True),
    "deletedFileRetentionDuration": (False, False),
    "setTransactionRetentionDuration": (False, False),
    "coordinatedCommits.commitCoordinatorConf-preview": (False, False),
    "coordinatedCommits.tableConf-preview": (False, False),
    "checkpointInterval": (False, True),
    "checkpointPolicy": (False, True),
    "columnMapping.mode": (False, False),
    "isolationLevel": (False, True),
    "inCommitTimestampEnablementVersion": (True, True),
    "parquet.format.version": (True, True),
    "randomPrefixLength": (True, True),
    "requireCheckpointProtectionBeforeVersion": (True, True),
    "dataSkippingStringPrefixLength": (True, True),
}


@each_row(("key", "can_set", "can_unset"), [(key, *can) for key, can in STORED.items()])
def test_what_delta_cannot_parse_keeps_a_table_from_being_changed(
    key: str, can_set: bool, can_unset: bool
) -> None:
    table = Table(Protocol(1, 2), {f"delta.{key}": "foo"})
    other = predict_statement(SetProperties({"k": "v"}), table, Engine())
    assert (other.refusal is None) is can_set
    own = predict_statement(UnsetProperties((f"delta.{key}",)), table, Engine())
    assert (own.refusal is None) is can_unset


def test_rows_of_a_table_with_a_strange_value_are_not_promised() -> None:
    (each,) = parse_script("insert into t values (1)")
    table = Table(Protocol(1, 2), {"delta.randomizeFilePrefixes": "yes"})
    said = predict_statement(each.statement, table, Engine())
    assert said.refusal is None
    assert said.fewest == 0
    assert any("delta.randomizeFilePrefixes = yes" in warning for warning in said.warnings)


COORDINATOR, SETTINGS, OWN = (
    f"delta.coordinatedCommits.{name}-preview"
    for name in ("commitCoordinator", "commitCoordinatorConf", "tableConf")
)
TIMESTAMPS = "delta.enableInCommitTimestamps"
NAMED = {COORDINATOR: "dynamodb", SETTINGS: "{}"}


@pytest.mark.parametrize(
    ("stored", "keys", "set_error", "unset_error"),
    [
        ({}, {"a"}, None, None),
        ({}, {TIMESTAMPS}, None, None),
        ({}, {COORDINATOR}, "DELTA_MUST_SET_ALL_COORDINATED_COMMITS_CONFS_IN_COMMAND", None),
        ({}, {SETTINGS}, "DELTA_MUST_SET_ALL_COORDINATED_COMMITS_CONFS_IN_COMMAND", None),
        ({}, {*NAMED}, "", None),
        ({}, {*NAMED, OWN}, "DELTA_CONF_OVERRIDE_NOT_SUPPORTED_IN_COMMAND", None),
        (
            {},
            {*NAMED, TIMESTAMPS},
            "DELTA_CANNOT_SET_COORDINATED_COMMITS_DEPENDENCIES",
            None,
        ),
        (NAMED, {"a"}, None, None),
        (
            NAMED,
            {TIMESTAMPS, "a"},
            "DELTA_CANNOT_MODIFY_COORDINATED_COMMITS_DEPENDENCIES",
            "DELTA_CANNOT_MODIFY_COORDINATED_COMMITS_DEPENDENCIES",
        ),
        (
            {OWN: "{}"},
            {COORDINATOR},
            "DELTA_CANNOT_OVERRIDE_COORDINATED_COMMITS_CONFS",
            "DELTA_CANNOT_UNSET_COORDINATED_COMMITS_CONFS",
        ),
    ],
)
def test_a_commit_coordinator_guards_its_properties(
    stored: dict[str, str], keys: set[str], set_error: str | None, unset_error: str | None
) -> None:
    """The error classes of Delta Spark's `CoordinatedCommitsUtils`."""
    errors = [
        refusal and refusal.error
        for refusal in (
            coordinated.validate_set(stored, keys),
            coordinated.validate_unset(stored, keys),
        )
    ]
    assert errors == [set_error, unset_error]
