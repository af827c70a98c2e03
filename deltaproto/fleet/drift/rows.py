"""Changes as rows of an Arrow table, the same for every engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from deltaproto.fleet.drift.diff import CausingCommit, ChangeKind, Difference
from deltaproto.fleet.rows_builder import arrow_array, microseconds

if TYPE_CHECKING:
    import pyarrow as pa


@cache
def drift_schema() -> pa.Schema:
    """Return the columns of a table of changes."""
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            pa.field("location", text, nullable=False),
            pa.field("table", text, nullable=False),
            pa.field("change", text, nullable=False),
            pa.field("severity", text, nullable=False),
            pa.field("feature", text),
            pa.field("before", text),
            pa.field("after", text),
            pa.field("version_before", number),
            pa.field("version_after", number),
            pa.field("commit_version", number),
            pa.field("commit_at", pa.timestamp("us", tz="UTC")),
            pa.field("commit_operation", text),
            pa.field("commit_engine", text),
            pa.field("commit_user", text),
            pa.field("commit_job", text),
        ]
    )


def differences_batch(changes: Iterable[Difference]) -> pa.RecordBatch:
    """Return the rows of some changes."""
    import pyarrow as pa

    columns: list[list[Any]] = [[] for _ in drift_schema()]
    for change in changes:
        commit = change.culprit
        values = (
            change.location,
            change.table,
            str(change.kind),
            str(change.severity),
            change.feature,
            change.before,
            change.after,
            change.version_before,
            change.version_after,
            *(
                (None,) * 6
                if commit is None
                else (
                    commit.version,
                    microseconds(commit.timestamp),
                    commit.operation,
                    commit.engine,
                    commit.user,
                    commit.job,
                )
            ),
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    arrays = [
        arrow_array(values, field.type)
        for values, field in zip(columns, drift_schema(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=drift_schema())


def parse_difference(row: Mapping[str, Any]) -> Difference:
    """Convert a row to a change."""
    version = row["commit_version"]
    return Difference(
        row["location"],
        row["table"],
        ChangeKind(row["change"]),
        row["feature"],
        row["before"],
        row["after"],
        row["version_before"],
        row["version_after"],
        None
        if version is None
        else CausingCommit(
            version,
            _milliseconds(row["commit_at"]),
            row["commit_operation"],
            row["commit_engine"],
            row["commit_user"],
            row["commit_job"],
        ),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
