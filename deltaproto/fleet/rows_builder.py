"""Builds rows of the inventory column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from deltaproto.caches import IdentityKey
from deltaproto.errors import DeltaprotoError
from deltaproto.fleet.discovered import UnreadablePlace
from deltaproto.fleet.evaluate import SharedEvaluation
from deltaproto.fleet.schemas import (
    CATALOG_COLUMNS,
    KEYS,
    LOG_DIGEST,
    OTHER_NAMES,
    Inventory,
    inventory_schema,
    staged_schema,
)
from deltaproto.policy.finding import Finding
from deltaproto.protocol.isolation import WriterEngine
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import TableState, UnsupportedProtocol
from deltaproto.protocol.writers import name_writer

if TYPE_CHECKING:
    import pyarrow as pa


def stored_digest(digest: str, features: int, findings: int) -> str:
    """Return the column `log_digest`: the log's digest, and the number of rows of the table."""
    return f"{digest}-{features}-{findings}"


class RowsBuilder:
    """Collects the results of some tables; `batch` converts them to Arrow.

    Args:
        scan_id: value of this column in every row.
    """

    def __init__(self, scan_id: str) -> None:
        self._scan_id = scan_id
        self._own: dict[str, list[Any]] = {name: [] for name in _OWN}
        self._errors: list[dict[str, Any] | None] = []
        # Values shared by a group of tables are built once, and rows refer to them.
        self._kinds: list[Mapping[str, Any]] = [_NO_ROWS]
        self._known: dict[IdentityKey[SharedEvaluation], int] = {}
        self._rows: list[int] = []
        """group of each row; 0 = error row without details"""

    def __len__(self) -> int:
        return len(self._errors)

    def add(
        self,
        state: TableState,
        evaluation: SharedEvaluation,
        digest: str | None = None,
        catalog: tuple[str | None, str | None, str | None] = (None, None, None),
    ) -> None:
        """Add one table that was read.

        Args:
            digest: the digest of its log before it was read.
            catalog: the values of `CATALOG_COLUMNS`.
        """
        counts = len(evaluation.features), len(evaluation.findings)
        metadata, commit = state.metadata, state.last_commit or {}
        values = (
            state.location,
            state.table,
            state.version,
            metadata.id,
            metadata.name,
            state.clustering_columns,
            sorted(metadata.configuration.items()),
            _microseconds(commit),
            _text(commit.get("operation")),
            _text(name_writer(commit)),
            stored_digest(digest, *counts) if digest and evaluation.complete else None,
            *catalog,
        )
        for column, value in zip(self._own.values(), values, strict=True):
            column.append(value)
        self._rows.append(self._kind(evaluation))
        self._errors.append(None)

    def add_error(self, table: str, location: str, error: DeltaprotoError) -> None:
        """Add a table that could not be read, or a place where tables may be."""
        row: dict[str, Any] = {
            "code": str(error.code),
            "message": error.message,
            "hint": error.hint,
        }
        if isinstance(error, UnsupportedProtocol):
            row |= {"version": error.version, **_protocol_columns(error.protocol)}
        for column in self._own.values():
            column.append(None)
        self._own["location"][-1], self._own["table"][-1] = location, table
        self._rows.append(0)
        self._errors.append(row)

    def batch(self) -> pa.RecordBatch:
        """Return all rows, with the columns of `staged_schema`."""
        import pyarrow as pa

        schema = staged_schema()
        arrays: list[pa.Array] = []
        for field in schema:
            if field.name == "scan_id":
                # Without a type, Arrow would import a calendar library to find one.
                arrays.append(pa.repeat(pa.scalar(self._scan_id, field.type), len(self)))
            elif field.name == "error":
                arrays.append(arrow_array(self._errors, field.type))
            elif field.name in self._own:
                arrays.append(arrow_array(self._own[field.name], field.type))
            elif field.name == OTHER_NAMES:
                # Known only after all catalogs are listed; see `catalog_rows`.
                arrays.append(pa.nulls(len(self), field.type))
            elif field.name in ("features", "findings"):
                arrays.append(take_rows(self._list(field), self._rows))
            else:
                values = [kind.get(field.name) for kind in self._kinds]
                arrays.append(take_rows(arrow_array(values, field.type), self._rows))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _list(self, field: pa.Field) -> pa.Array:
        import pyarrow as pa

        columns, members = list(field.type.value_type), [kind[field.name] for kind in self._kinds]
        inner = [
            arrow_array([v for each in members for v in each[c.name]], c.type) for c in columns
        ]
        lengths = [len(each[columns[0].name]) for each in members]
        ends = pa.array([0, *accumulate(lengths)], pa.int32())
        values = pa.StructArray.from_arrays(inner, fields=columns)
        return pa.ListArray.from_arrays(ends, values, type=field.type)

    def _kind(self, evaluation: SharedEvaluation) -> int:
        # Evaluations are shared by a group.
        key = IdentityKey(evaluation)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self._kinds)
            self._kinds.append(_evaluation_columns(evaluation))
        return known


_OWN = (
    "location",
    "table",
    "version",
    "id",
    "name",
    "clustering_columns",
    "configuration",
    "last_commit_at",
    "last_operation",
    "last_engine",
    LOG_DIGEST,
    *CATALOG_COLUMNS,
)
"""columns with a separate value for each table"""


def unreadable_place_rows(scan_id: str, unseen: Iterable[UnreadablePlace]) -> pa.RecordBatch:
    """Return the staged rows of places that could not be searched."""
    gathered = RowsBuilder(scan_id)
    for each in unseen:
        gathered.add_error(each.place, each.uri, each.error)
    return gathered.batch()


def _evaluation_columns(evaluation: SharedEvaluation) -> dict[str, Any]:
    lowest, effective = evaluation.lowest, evaluation.isolation.effective
    return {
        "reader": str(evaluation.reader),
        **_protocol_columns(evaluation.protocol),
        "lowest_reader_version": None if lowest is None else lowest.min_reader_version,
        "lowest_writer_version": None if lowest is None else lowest.min_writer_version,
        "isolation_level": evaluation.isolation.declared,
        "isolation_delta_spark": effective[WriterEngine.DELTA_SPARK],
        "isolation_databricks": effective[WriterEngine.DATABRICKS],
        "isolation_delta_rs": effective[WriterEngine.DELTA_RS],
        "row_level_concurrency": str(evaluation.row_level.databricks),
        "partition_columns": evaluation.partition_columns,
        "complete": evaluation.complete,
        "features": _feature_columns(evaluation.features),
        "findings": _finding_columns(evaluation.findings),
    }


def _feature_columns(states: Sequence[FeatureState]) -> dict[str, list[Any]]:
    return {
        "feature": [state.name for state in states],
        "kind": [str(state.kind) for state in states],
        "status": [str(state.feature.status) for state in states],
        "listed": [state.listed for state in states],
        "implied": [state.implied for state in states],
        "enabled": [state.enabled for state in states],
        "present": [state.present for state in states],
        "required_by": [state.required_by for state in states],
        "evidence": [state.evidence or None for state in states],
    }


_FINDING = ("rule", "severity", "message", "hint", "feature", "client", "evidence")


def _finding_columns(findings: Sequence[Finding]) -> dict[str, list[Any]]:
    return {
        **{name: [_text(getattr(finding, name)) for finding in findings] for name in _FINDING},
        "number": list(range(len(findings))),
    }


_NO_ROWS = {"features": _feature_columns(()), "findings": _finding_columns(())}


def arrow_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Convert values to an Arrow array.

    Logs may contain values that Arrow cannot store: an unpaired surrogate is escaped, a number that
    is too large becomes null.
    """
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return pa.array([_sanitize(value) for value in values], kind)


def _sanitize(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else None
    if isinstance(value, list):
        return [_sanitize(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_sanitize(each) for each in value)
    if isinstance(value, dict):
        return {key: _sanitize(each) for key, each in value.items()}
    return value


def _protocol_columns(protocol: Protocol) -> dict[str, Any]:
    return {
        "min_reader_version": protocol.min_reader_version,
        "min_writer_version": protocol.min_writer_version,
        "reader_features": _sorted(protocol.reader_features),
        "writer_features": _sorted(protocol.writer_features),
    }


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _microseconds(commit: Mapping[str, Any]) -> int | None:
    return microseconds(commit.get("inCommitTimestamp", commit.get("timestamp")))


def microseconds(milliseconds: object) -> int | None:
    """Convert a timestamp to microseconds; None if it is out of range for readers."""
    if isinstance(milliseconds, int) and abs(milliseconds) < _LATEST_MS:
        return milliseconds * 1000
    return None


_FEW = 200
"""number of rows for which to import Arrow's functions takes too long: a tenth of a small scan"""
_LARGEST = 2**31
# A timestamp beyond the year 9999 is corrupt, and many readers fail on it.
_LATEST_MS = 253_402_300_800_000


def unnest_rows(batch: pa.RecordBatch, name: Inventory) -> pa.RecordBatch:
    """Return the rows of a staged batch for one of the tables, except `scans`."""
    import pyarrow as pa

    wanted = inventory_schema(name)
    if name in (Inventory.TABLES, Inventory.ERRORS):
        failed = name is Inventory.ERRORS
        errors = batch.column("error").to_pylist()
        rows = [n for n, error in enumerate(errors) if (error is not None) is failed]
        if failed:
            # Null is what scans of older releases have, which stored no names.
            names = [each or [] for each in batch.column(OTHER_NAMES).to_pylist()]
            other_names = pa.array(names, wanted.field(OTHER_NAMES).type)
            error = batch.column("error").flatten()
            columns = [*batch.select(KEYS).columns, *error, other_names]
        else:
            columns = batch.select(wanted.names).columns
        return pa.RecordBatch.from_arrays(
            [take_rows(each, rows) for each in columns], schema=wanted
        )
    nested = batch.column(str(name))
    offsets = nested.offsets.to_pylist()
    rows = [n for n, (start, end) in enumerate(pairwise(offsets)) for _ in range(start, end)]
    keys = [take_rows(each, rows) for each in batch.select(KEYS).columns]
    return pa.RecordBatch.from_arrays([*keys, *flatten_lists(nested).flatten()], schema=wanted)


def flatten_lists(lists: pa.ListArray) -> pa.Array:
    """Return the elements of all lists, like Arrow's function, which is only imported for nulls."""
    if lists.null_count:
        return lists.flatten()
    offsets = lists.offsets
    start = offsets[0].as_py()
    return lists.values.slice(start, offsets[-1].as_py() - start)


def take_rows(values: pa.Array, rows: list[int]) -> pa.Array:
    """Return the values of some rows, in this order."""
    import pyarrow as pa

    start = rows[0] if rows else 0
    if rows == list(range(start, start + len(rows))):
        return values.slice(start, len(rows))
    if len(rows) < _FEW:
        return pa.concat_arrays([values.slice(n, 1) for n in rows])
    return values.take(pa.array(rows, pa.int32()))
