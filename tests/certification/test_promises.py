"""What a writer owes the protocol, from commits alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaproto.certification.observe import find_violations
from deltaproto.clients.measurement import ResultColumn
from tests.certification.made import seen

TRACKED = {
    "minReaderVersion": 1,
    "minWriterVersion": 7,
    "writerFeatures": ["domainMetadata", "rowTracking"],
}


def added(**more: Any) -> dict[str, Any]:
    stats = json.dumps({"numRecords": 2})
    return {"add": {"path": "x", "stats": stats, **more}}


def told(
    before: Any, after: Any, *actions: Any, operation: ResultColumn = ResultColumn.APPEND
) -> str:
    return "; ".join(find_violations(operation, before, after, [list(actions)] if actions else []))


def test_nothing_is_owed_by_who_changes_nothing() -> None:
    assert told(seen(), seen(version=3), added()) == ""


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, "the protocol changed"),
        ({"table_id": "2"}, "id changed"),
        ({"schema": {"fields": [{}]}}, "the schema changed"),
        ({"partition_columns": ("a",)}, "the partition columns changed"),
        ({"domains": {}}, "the metadata domain mine was removed"),
        ({"domains": {"mine": "2"}}, "the metadata domain mine changed from 1 to 2"),
        ({"configuration": {}}, "the property a is None instead of '1'"),
        ({"configuration": {"a": "1", "b": "2"}}, "the property b is '2' instead of None"),
    ],
)
def test_what_is_lost_or_changed_is_told(after: dict[str, Any], fault: str) -> None:
    before = {"domains": {"mine": "1"}, "configuration": {"a": "1"}}
    assert told(seen(**before), seen(**before)) == ""
    assert fault in told(seen(**before), seen(**{**before, **after}))


def test_what_a_protocol_lost_is_named() -> None:
    lost = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}
    assert "without rowTracking" in told(seen(protocol=TRACKED), seen(protocol=lost))
    gained = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["variantType"],
        "writerFeatures": ["domainMetadata", "rowTracking", "variantType"],
    }
    text = told(seen(protocol=TRACKED), seen(protocol=gained))
    assert "with variantType; now for readers: variantType" in text


def test_a_property_that_was_to_be_set_is_missed() -> None:
    assert "delta.logRetentionDuration" in told(seen(), seen(), operation=ResultColumn.CONFIGURE)
    done = seen(configuration={"delta.logRetentionDuration": "interval 60 days"})
    assert told(seen(), done, operation=ResultColumn.CONFIGURE) == ""


def test_row_ids() -> None:
    def mark(number: int) -> dict[str, str]:
        return {"delta.rowTracking": json.dumps({"rowIdHighWaterMark": number})}

    before = seen(protocol=TRACKED, domains=mark(19))
    ids = {"baseRowId": 20, "defaultRowCommitVersion": 3}
    after = seen(protocol=TRACKED, domains=mark(21))
    assert told(before, after, added(**ids)) == ""
    assert told(before, after, added()) == "files were added without row ids"
    assert told(before, after, added(baseRowId=20)) == "files were added without row ids"
    low = seen(protocol=TRACKED, domains=mark(20))
    assert told(before, low, added(**ids)) == "the high-water mark of row ids was not raised"
    assert "was removed" in told(before, seen(protocol=TRACKED), added(**ids))


def test_commit_times() -> None:
    timed = seen(configuration={"delta.enableInCommitTimestamps": "true"})
    right = {"commitInfo": {"inCommitTimestamp": 5}}
    assert told(timed, timed, right, added()) == ""
    assert told(timed, timed, added(), right) == "a commit has no in-commit timestamp"
    assert told(timed, timed, {"commitInfo": {}}) == "a commit has no in-commit timestamp"
    assert told(timed, timed) == ""


@pytest.mark.parametrize("version", [1, 2, 3])
def test_iceberg(version: int) -> None:
    compatible = seen(configuration={f"delta.enableIcebergCompatV{version}": "true"})
    assert told(compatible, compatible, added()) == ""
    without = told(compatible, compatible, {"add": {"path": "x"}})
    assert without == "files were added without their number of rows"
    damaged = told(compatible, compatible, added(stats="{"))
    assert damaged == without
    vectors = told(compatible, compatible, added(deletionVector={"storageType": "u"}))
    assert ("deletion vectors" in vectors) == (version != 3)
