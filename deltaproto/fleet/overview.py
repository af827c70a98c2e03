"""A whole fleet as one scan saw it, for a report: tables, verdicts, and the scans before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from deltaproto.checking.check import Checked, Checker, unreadable
from deltaproto.clients.capability import Access
from deltaproto.clients.judgement import Verdict
from deltaproto.fleet.checks import check_row
from deltaproto.fleet.drift.change import Change
from deltaproto.fleet.drift.local import drift
from deltaproto.fleet.kept import error_of, errors, tables
from deltaproto.fleet.newest import NewestState
from deltaproto.fleet.past import LocalQuestions, Pair, PastScan, literal
from deltaproto.fleet.schemas import Inventory
from deltaproto.policy.case import Judged
from deltaproto.policy.finding import Finding

_MORE = ("isolation_level", "last_commit_at", "last_operation", "last_engine")
_SCANS = 30
"""of the past that are looked at"""


class Said(NamedTuple):
    """What one client can do with one table."""

    client: str
    """as people write it, with version and path"""
    access: Access
    verdict: Verdict
    because: tuple[str, ...]


class TableRow(NamedTuple):
    """One table."""

    table: str
    location: str
    version: int
    protocol: tuple[int, int]
    """reader and writer version"""
    features: tuple[tuple[str, bool | None, bool | None], ...]
    """name, whether enabled, whether present"""
    isolation: str | None
    """as declared"""
    last_commit: datetime | None
    last_operation: str | None
    last_engine: str | None
    findings: tuple[Finding, ...]
    verdicts: tuple[Said, ...]
    complete: bool


class Unread(NamedTuple):
    """A table that could not be read."""

    table: str
    location: str
    code: str
    message: str


class Past(NamedTuple):
    """One scan in figures."""

    scan: PastScan
    protocols: Mapping[tuple[int, int], int]
    """tables by reader and writer version"""
    features: Mapping[str, int]
    """tables that support the feature"""


class Overview(NamedTuple):
    """Everything that a report tells."""

    scan: PastScan
    """the newest"""
    sources: Sequence[PastScan]
    """the scans that tables come from, newest first"""
    tables: Sequence[TableRow]
    unread: Sequence[Unread]
    past: Sequence[Past]
    """scans of the same extent up to this one, the oldest first"""
    pair: Pair | None
    """this scan and the last of the same extent before it"""
    changes: Sequence[Change]
    """between the two"""
    of_policy: tuple[Finding, ...] = ()
    """findings on the policy itself"""
    waived: int = 0
    """findings that the policy waives"""
    off: int = 0
    """findings of rules that the policy switches off"""


def overview(questions: LocalQuestions, state: NewestState, checker: Checker) -> Overview:
    """Look at the newest state of all tables, and at the scans before the newest one.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    scan = state.scans[0]
    known = [each for each in questions.scans() if each.extent == scan.extent]
    until = known[: known.index(scan) + 1][-_SCANS:]
    pair = Pair(until[-2], scan) if len(until) > 1 else None
    found = _Rows(checker)
    for part in state.contributing:
        for row in tables(questions, part, more=_MORE):
            if state.holds(part, row["location"]):
                found.add(row, check_row(row, checker))
        for row in errors(questions, part):
            if state.holds(part, row["location"]):
                found.add(row, unreadable(row["table"], error_of(row)))
    of_policy = checker.of_policy()
    return Overview(
        scan,
        state.contributing,
        found.tables,
        found.unread,
        _past(questions, until),
        pair,
        tuple(drift(questions, pair, None)) if pair else (),
        of_policy.findings if of_policy else (),
        found.waived,
        found.off + (of_policy.silenced if of_policy else 0),
    )


class _Rows:
    """The tables of a fleet, and those that could not be read, as they come."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.tables: list[TableRow] = []
        self.unread: list[Unread] = []
        self.waived = self.off = 0
        # Tables of equal needs share their verdicts, here as in the checker; holding them keeps
        # their identity from being reused.
        self._known: dict[int, tuple[tuple[Judged, ...], tuple[Said, ...]]] = {}

    def add(self, row: Mapping[str, Any], checked: Checked) -> None:
        """Add a row of the inventory and its check."""
        self._checker.observe(checked)
        self.waived += len(checked.suppressed)
        self.off += checked.silenced
        if checked.error is not None:
            told = str(checked.error.code), checked.error.message
            self.unread.append(Unread(row["table"], row["location"], *told))
            return
        verdicts = checked.verdicts
        if id(verdicts) not in self._known:
            self._known[id(verdicts)] = verdicts, _said(verdicts)
        self.tables.append(_row(row, checked, self._known[id(verdicts)][1]))


def _said(verdicts: Iterable[Judged]) -> tuple[Said, ...]:
    return tuple(
        Said(
            judged.verdict.named,
            judged.verdict.access,
            judged.verdict.verdict,
            judged.verdict.because,
        )
        for judged in verdicts
    )


def _row(row: Mapping[str, Any], checked: Checked, said: tuple[Said, ...]) -> TableRow:
    return TableRow(
        row["table"],
        row["location"],
        row["version"],
        (row["min_reader_version"], row["min_writer_version"]),
        tuple(
            sorted((each["feature"], each["enabled"], each["present"]) for each in row["features"])
            if row["features"]
            else ()
        ),
        row["isolation_level"],
        row["last_commit_at"],
        row["last_operation"],
        row["last_engine"],
        checked.findings,
        said,
        checked.complete,
    )


def _past(questions: LocalQuestions, scans: Sequence[PastScan]) -> list[Past]:
    wanted = ", ".join(literal(scan.scan_id) for scan in scans)
    protocols: dict[str, Counter[tuple[int, int]]] = {}
    asked = (
        "SELECT scan_id, min_reader_version AS reader, min_writer_version AS writer, "  # noqa: S608
        f"count(*) AS tables FROM tables WHERE scan_id IN ({wanted}) "
        "GROUP BY scan_id, min_reader_version, min_writer_version"
    )
    for row in _rows(questions, asked, Inventory.TABLES):
        versions = (row["reader"], row["writer"])
        protocols.setdefault(row["scan_id"], Counter())[versions] = row["tables"]
    features: dict[str, Counter[str]] = {}
    asked = (
        "SELECT scan_id, feature, count(*) AS tables FROM features "  # noqa: S608
        f"WHERE scan_id IN ({wanted}) GROUP BY scan_id, feature"
    )
    for row in _rows(questions, asked, Inventory.FEATURES):
        features.setdefault(row["scan_id"], Counter())[row["feature"]] = row["tables"]
    return [
        Past(scan, protocols.get(scan.scan_id, {}), features.get(scan.scan_id, {}))
        for scan in scans
    ]


def _rows(questions: LocalQuestions, asked: str, name: Inventory) -> Iterator[Mapping[str, Any]]:
    for batch in questions.ask(asked, (name,)):
        yield from batch.to_pylist()
