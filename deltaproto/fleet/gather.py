"""Rows of the inventory, gathered column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from deltaproto.errors import DeltaprotoError
from deltaproto.fleet.found import Unseen
from deltaproto.fleet.judge import Judgement
from deltaproto.fleet.schemas import staged
from deltaproto.policy.finding import Finding
from deltaproto.protocol.isolation import Engine
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.interface import TableState, UnsupportedProtocol

if TYPE_CHECKING:
    import pyarrow as pa


class Gathered:
    """What was learnt of some tables; `batch` makes Arrow of it.

    Args:
        scan_id: stands in every row.
    """

    def __init__(self, scan_id: str) -> None:
        self._scan_id = scan_id
        schema = staged()
        self._nested = {name: schema.field(name).type for name in ("features", "findings")}
        self._error = schema.field("error").type
        names = [n for n in schema.names if n not in (*self._nested, "error", "scan_id")]
        self._columns: dict[str, list[Any]] = {name: [] for name in names}
        self._errors: list[dict[str, Any] | None] = []
        # Few kinds of tables: what is told of each kind is made once, and rows point to it.
        self._kinds: dict[str, list[Mapping[str, list[Any]]]] = {
            name: [{field.name: [] for field in kind.value_type}]
            for name, kind in self._nested.items()
        }
        self._known: dict[int, tuple[Judgement, int]] = {}
        self._rows: list[int] = []
        """of each row its kind; 0 is that of errors, which tells nothing"""

    def __len__(self) -> int:
        return len(self._errors)

    def add(self, state: TableState, judgement: Judgement) -> None:
        """One table that was read."""
        protocol, metadata, commit = state.protocol, state.metadata, state.last_commit
        lowest, effective = judgement.lowest, judgement.isolation.effective
        columns = self._columns
        values = (
            state.location,
            state.table,
            state.version,
            metadata.id,
            metadata.name,
            str(state.reader),
            protocol.min_reader_version,
            protocol.min_writer_version,
            _sorted(protocol.reader_features),
            _sorted(protocol.writer_features),
            None if lowest is None else lowest.min_reader_version,
            None if lowest is None else lowest.min_writer_version,
            judgement.isolation.declared,
            effective[Engine.DELTA_SPARK],
            effective[Engine.DATABRICKS],
            effective[Engine.DELTA_RS],
            str(judgement.row_level.databricks),
            metadata.partition_columns,
            state.clustering_columns,
            sorted(metadata.configuration.items()),
            _microseconds(commit),
            _text(commit.get("operation")),
            _text(commit.get("engineInfo")),
            judgement.complete,
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        self._rows.append(self._kind(judgement))
        self._errors.append(None)

    def add_error(self, table: str, location: str, error: DeltaprotoError) -> None:
        """One table, or a place where tables may be, that could not be read."""
        columns = self._columns
        for column in columns.values():
            column.append(None)
        columns["location"][-1], columns["table"][-1] = location, table
        self._rows.append(0)
        told: dict[str, Any] = {
            "code": str(error.code),
            "message": error.message,
            "hint": error.hint,
        }
        if isinstance(error, UnsupportedProtocol):
            told |= {"version": error.version, **_protocol(error.protocol)}
        self._errors.append(told)

    def batch(self) -> pa.RecordBatch:
        """All rows, as `staged` has them."""
        import pyarrow as pa

        schema = staged()
        count = len(self)
        arrays: list[pa.Array] = []
        for field in schema:
            if field.name == "scan_id":
                arrays.append(pa.repeat(pa.scalar(self._scan_id), count))
            elif field.name == "error":
                arrays.append(array(self._errors, self._error))
            elif field.name in self._nested:
                arrays.append(self._list(field.name))
            else:
                arrays.append(array(self._columns[field.name], field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _list(self, name: str) -> pa.Array:
        import pyarrow as pa

        kind, told = self._nested[name], self._kinds[name]
        inner = [
            array([value for each in told for value in each[f.name]], f.type)
            for f in kind.value_type
        ]
        lengths = [len(each[kind.value_type[0].name]) for each in told]
        ends = pa.array([0, *accumulate(lengths)], pa.int32())
        values = pa.StructArray.from_arrays(inner, fields=list(kind.value_type))
        lists = pa.ListArray.from_arrays(ends, values, type=kind)
        return lists.take(pa.array(self._rows, pa.int32()))

    def _kind(self, judgement: Judgement) -> int:
        # Judgements are shared by all tables of a kind; holding one keeps its id from being reused.
        known = self._known.get(id(judgement))
        if known is None:
            self._kinds["features"].append(_feature_columns(judgement.features))
            self._kinds["findings"].append(_told(judgement.findings))
            known = self._known[id(judgement)] = (judgement, len(self._kinds["features"]) - 1)
        return known[1]


def unseen_rows(scan_id: str, unseen: Iterable[Unseen]) -> pa.RecordBatch:
    """The staged rows of places that could not be looked into."""
    gathered = Gathered(scan_id)
    for each in unseen:
        gathered.add_error(each.place, each.uri, each.error)
    return gathered.batch()


def _feature_columns(states: Iterable[FeatureState]) -> dict[str, list[Any]]:
    states = tuple(states)
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


def _told(findings: Iterable[Finding]) -> dict[str, list[Any]]:
    findings = tuple(findings)
    return {
        **{name: [_text(getattr(finding, name)) for finding in findings] for name in _FINDING},
        "number": list(range(len(findings))),
    }


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of what was read.

    Logs may hold what no Arrow array can: half a surrogate pair appears as an escape, a number
    that is too large as null.
    """
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except (UnicodeEncodeError, OverflowError, pa.ArrowInvalid):
        return pa.array([_tame(value) for value in values], kind)


def _tame(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else None
    if isinstance(value, list):
        return [_tame(each) for each in value]
    if isinstance(value, tuple):
        return tuple(_tame(each) for each in value)
    if isinstance(value, dict):
        return {key: _tame(each) for key, each in value.items()}
    return value


def _protocol(protocol: Protocol) -> dict[str, Any]:
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
    """A time of a log as a column of times holds it; None where no reader could show it."""
    if isinstance(milliseconds, int) and abs(milliseconds) < _LATEST_MS:
        return milliseconds * 1000
    return None


_LARGEST = 2**31
# Beyond the year 9999 a timestamp is damage, and many readers fail on it.
_LATEST_MS = 253_402_300_800_000
