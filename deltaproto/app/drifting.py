"""Differences between two scans as results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deltaproto.app.result import Result, Rows, show_in_notebooks
from deltaproto.counts import counted
from deltaproto.errors import DeltaprotoError, ExitCode, ResultError
from deltaproto.fleet.drift.diff import Difference
from deltaproto.fleet.scan_history import PastScan, ScanPair
from deltaproto.policy.finding import FailOn, Severity, exit_code_for

if TYPE_CHECKING:
    from deltaproto.render.document.blocks import Document
    from deltaproto.render.drift import DriftCounts


show_in_notebooks(Difference, PastScan)


@dataclass(frozen=True, repr=False)
class Drift(Result):
    """What changed between two scans."""

    pair: ScanPair
    """the earlier and the later scan, as records"""
    changes: tuple[Difference, ...]
    """the changes, by location"""
    not_compared: tuple[str, ...] = ()
    """scans of other roots, and stopped ones, that the comparison does not include"""

    @property
    def since(self) -> PastScan:
        """The earlier scan; the later one itself if it is the first of its roots."""
        return self.pair.before

    @property
    def until(self) -> PastScan:
        """The later scan."""
        return self.pair.now

    @property
    def complete(self) -> bool:
        """True if both scans completely read the same roots, and no other scan is newer."""
        from deltaproto.render.drift import is_complete

        return is_complete(self.pair) and not self.not_compared

    def rows(self) -> Rows:
        """Return one row for each change."""
        import pyarrow as pa

        text, number = pa.string(), pa.int64()
        names = ("table", "location", "change", "severity", "feature", "before", "after")
        columns = {
            **dict.fromkeys(names, text),
            **dict.fromkeys(("version_before", "version_after"), number),
            "moved_from": text,
        }
        return Rows.of(
            (
                {
                    **{name: getattr(each, name, None) for name in columns},
                    "change": str(each.kind),
                    "severity": str(each.severity),
                }
                for each in self.changes
            ),
            columns,
        )

    def _failure(self) -> DeltaprotoError | None:
        from deltaproto.render.drift import incomplete_reasons

        if not self.complete:
            reasons = (*incomplete_reasons(self.pair), *self.not_compared)
            return ResultError(
                self, ExitCode.UNREADABLE, "; ".join(reasons), "see `since`, `until`"
            )
        severities = {each.severity for each in self.changes}
        if exit_code_for(severities, FailOn.ERROR) is ExitCode.OK:
            return None
        first = next(each for each in self.changes if each.severity is Severity.ERROR)
        tables = len({each.location for each in self.changes})
        what = f"{first.kind} {first.feature}" if first.feature else str(first.kind)
        message = f"{counted(tables, 'table')} changed; {first.table}: {what}"
        return ResultError(self, ExitCode.FINDINGS, message, "see `changes`")

    def _counts(self) -> DriftCounts:
        from deltaproto.render.drift import DriftCounts

        counts = DriftCounts()
        counts.add(self.changes)
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of `drift`."""
        from deltaproto.render.drift import change_fields, drift_fields

        fields = drift_fields(self.pair, self._counts(), datetime.now(UTC))
        return {**fields, "changes": [change_fields(each) for each in self.changes]}

    def _document(self) -> Document:
        from deltaproto.render.drift import drift_document

        return drift_document(self.pair, self._counts(), datetime.now(UTC))

    def __repr__(self) -> str:
        changes = counted(len(self.changes), "change")
        return f"<Drift {self.since.scan_id} to {self.until.scan_id}: {changes}>"
