"""The summary at the end of a scan: counts, updated batch by batch."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


_FIRST = 10
_READ = ("min_reader_version", "min_writer_version", "isolation_level", "complete")


class Tally:
    """Counts over staged rows."""

    def __init__(self) -> None:
        self.tables = 0
        self.incomplete = 0
        """tables that the log alone does not show completely"""
        self.errors: Counter[str] = Counter()
        """counts by error code"""
        self.first_errors: list[tuple[str, str, str]] = []
        """table, message and hint of the first errors"""
        self.findings: Counter[str] = Counter()
        """counts by severity"""
        self.rules: Counter[tuple[str, str]] = Counter()
        """counts by rule and severity"""
        self.protocols: Counter[tuple[int, int]] = Counter()
        self.features: Counter[str] = Counter()
        """number of tables that support each feature"""
        self.enabled: Counter[str] = Counter()
        """number of tables on which each is enabled"""
        self.isolation: Counter[str | None] = Counter()
        """counts by declared level; None: not declared"""

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of one batch."""
        import pyarrow.compute as pc

        error, read = batch.column("error"), batch.select(_READ)
        if error.null_count < batch.num_rows:
            self._add_errors(batch.filter(pc.is_valid(error)))
            read = read.filter(pc.is_null(error))
        self.tables += read.num_rows
        self.incomplete += read.num_rows - (pc.sum(read.column("complete")).as_py() or 0)
        findings = pc.list_flatten(batch.column("findings"))
        _count(self.findings, pc.struct_field(findings, "severity"))
        # Arrow's grouping functions and scalars would import pandas, which takes half a second.
        rules = (pc.struct_field(findings, name).to_pylist() for name in ("rule", "severity"))
        self.rules.update(zip(*rules, strict=True))
        versions = (read.column(f"min_{name}_version").to_pylist() for name in ("reader", "writer"))
        self.protocols.update(zip(*versions, strict=True))
        features = pc.list_flatten(batch.column("features"))
        names = pc.struct_field(features, "feature")
        _count(self.features, names)
        _count(self.enabled, names.filter(pc.struct_field(features, "enabled")))
        _count(self.isolation, read.column("isolation_level"))

    def _add_errors(self, failed: pa.RecordBatch) -> None:
        import pyarrow.compute as pc

        _count(self.errors, pc.struct_field(failed.column("error"), "code"))
        room = _FIRST - len(self.first_errors)
        for each in failed.slice(0, room).to_pylist():
            told = each["error"]
            self.first_errors.append((each["table"], told["message"], told["hint"]))

    def dumped(self) -> str:
        """Return the counts as text, for `merge` in another process."""
        return json.dumps(
            {
                name: [[key, count] for key, count in value.items()]
                if isinstance(value, Counter)
                else value
                for name, value in vars(self).items()
            }
        )

    def merge(self, dumped: str) -> None:
        """Add the counts of another tally."""
        for name, value in json.loads(dumped).items():
            mine = getattr(self, name)
            if isinstance(mine, int):
                setattr(self, name, mine + value)
            elif isinstance(mine, Counter):
                for key, count in value:
                    mine[tuple(key) if isinstance(key, list) else key] += count
            else:
                mine += map(tuple, value[: _FIRST - len(mine)])


def _count(counter: Counter[str] | Counter[str | None], values: pa.Array) -> None:
    for each in values.value_counts().to_pylist():
        counter[each["values"]] += each["counts"]
