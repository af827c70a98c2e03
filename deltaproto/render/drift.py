"""The output of `drift` in each format: one change after another, with the counts at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any, NamedTuple, assert_never

from deltaproto.fleet.drift.diff import SEVERITY, ChangeKind, Difference
from deltaproto.fleet.scan_history import PastScan, ScanPair
from deltaproto.inspection.age import format_age, format_time
from deltaproto.policy.finding import Severity
from deltaproto.render.interface import NOTICES, Format, dump_json, envelope, format_timestamp
from deltaproto.render.json_stream import JsonArraySpool, open_envelope
from deltaproto.render.markdown import escape, table
from deltaproto.render.terminal import BOLD, DIM, GREEN, SEVERITIES, YELLOW, Painter

_SHOWN = 5
_NOT_ALIKE = (
    "the two scans looked at different roots: which tables are new or gone is not told",
    "scan the same roots, with the same --include and --exclude, to be told",
)


class _Group(NamedTuple):
    kind: ChangeKind
    feature: str | None


class DriftCounts:
    """The number of occurrences of each change, and the first tables of each."""

    def __init__(self) -> None:
        self.groups: Counter[_Group] = Counter()
        self.first: dict[_Group, list[Difference]] = {}
        self.tables = 0
        self._last: str | None = None

    def watched(self, changes: Iterable[Difference]) -> Iterator[Difference]:
        """Yield the changes and count them; changes of one table must be adjacent."""
        for change in changes:
            group = _Group(change.kind, change.feature)
            self.groups[group] += 1
            first = self.first.setdefault(group, [])
            if len(first) < _SHOWN:
                first.append(change)
            if change.location != self._last:
                self.tables, self._last = self.tables + 1, change.location
            yield change

    def take(self, changes: Iterable[Difference]) -> None:
        """Count all changes."""
        for _ in self.watched(changes):
            pass

    @property
    def severities(self) -> frozenset[Severity]:
        """Return the severities of the counted changes."""
        return frozenset(SEVERITY[group.kind] for group in self.groups)

    def ordered(self) -> list[tuple[_Group, int]]:
        """Return the groups by severity, then by frequency."""
        ranks = {kind: rank for rank, kind in enumerate(ChangeKind)}
        return sorted(
            self.groups.items(),
            key=lambda each: (ranks[each[0].kind], -each[1], each[0].feature or ""),
        )


def write_drift(
    pair: ScanPair,
    changes: Iterable[Difference],
    counts: DriftCounts,
    format_: Format,
    file: IO[str],
    now: datetime,
    *,
    color: bool,
) -> None:
    """Write all `changes`, and count them in `counts`.

    Args:
        now: the time relative to which the ages of the scans are shown.
    """
    match format_:
        case Format.JSON:
            _json(pair, counts.watched(changes), counts, file, now)
        case Format.JSONL:
            head = _scans(pair, now)
            for change in counts.watched(changes):
                line = envelope("drift", {**head, **change_fields(change)}, complete=whole(pair))
                file.write(dump_json(line, indent=None) + "\n")
        case Format.MARKDOWN:
            counts.take(changes)
            _markdown(pair, counts, file, now)
            file.writelines(f"\n**Warning**: {escape(notice)}\n" for notice in NOTICES)
        case Format.TEXT:
            counts.take(changes)
            out = Painter(file, color=color)
            _text(pair, counts, out, now)
            for notice in NOTICES:
                out.folded(f"warning: {notice}", YELLOW)
        case _:
            assert_never(format_)


def whole(pair: ScanPair) -> bool:
    """Return True if both scans completely read the same roots."""
    return pair.alike and not any(_unknown(scan) for scan in pair)


def missing(pair: ScanPair) -> Iterator[str]:
    """Yield one sentence for each reason why changes may be missing."""
    if not pair.alike:
        yield "; ".join(_NOT_ALIKE)
    for which, scan in (("earlier", pair.before), ("later", pair.now)):
        if unknown := _unknown(scan):
            yield f"{unknown} in the {which} scan: what changed there is not known"


def _unknown(scan: PastScan) -> str:
    """Describe which tables of a scan are unknown; empty if none."""
    if scan.errors:
        return f"{scan.errors:,} could not be read"
    return "" if scan.complete else "some may have newer commits that only their catalog knows"


def _json(
    pair: ScanPair, changes: Iterable[Difference], counts: DriftCounts, file: IO[str], now: datetime
) -> None:
    spool = JsonArraySpool()
    for change in changes:
        spool.add(json.dumps(change_fields(change)))
    file.write(open_envelope("drift", complete=whole(pair)))
    told = {
        **_scans(pair, now),
        "same_roots": pair.alike,
        "changed_tables": counts.tables,
        "counts": counts_fields(counts),
    }
    for name, value in told.items():
        file.write(f',\n  "{name}": {dump_json(value, indent=None)}')
    spool.close("changes", file)
    file.write("\n}\n")


def counts_fields(counts: DriftCounts) -> list[dict[str, Any]]:
    """Return the number of occurrences of each change as JSON."""
    return [
        {
            "change": str(group.kind),
            "severity": str(SEVERITY[group.kind]),
            "feature": group.feature,
            "tables": count,
        }
        for group, count in counts.ordered()
    ]


def _scans(pair: ScanPair, now: datetime) -> dict[str, Any]:
    return {"since": _scan(pair.before, now), "until": _scan(pair.now, now)}


def _scan(scan: PastScan, now: datetime) -> dict[str, Any]:
    return {
        "scan_id": scan.scan_id,
        "started_at": f"{scan.started_at:%Y-%m-%dT%H:%M:%SZ}",
        "ended_at": f"{scan.ended_at:%Y-%m-%dT%H:%M:%SZ}",
        "age_days": (now - scan.ended_at).days,
        "tables": scan.tables,
        "errors": scan.errors,
    }


def change_fields(change: Difference) -> dict[str, Any]:
    """Return one change as JSON."""
    commit = change.culprit
    return {
        "table": change.table,
        "location": change.location,
        "change": str(change.kind),
        "severity": str(change.severity),
        "feature": change.feature,
        "before": change.before,
        "after": change.after,
        "version_before": change.version_before,
        "version_after": change.version_after,
        "commit": None
        if commit is None
        else {
            "version": commit.version,
            "timestamp": format_timestamp(commit.timestamp),
            "operation": commit.operation,
            "engine": commit.engine,
            "user": commit.user,
        },
    }


def _span(pair: ScanPair) -> str:
    return f"{pair.before.started_at:%Y-%m-%d %H:%M}Z to {pair.now.started_at:%Y-%m-%d %H:%M}Z"


def _total(pair: ScanPair, counts: DriftCounts) -> str:
    many = f"{counts.tables:,} of {pair.now.tables:,} tables changed"
    return many if counts.tables else "nothing changed"


def _how(change: Difference) -> str:
    """Return a one-line description of one table's change."""
    if change.before is None:
        parts = [f"{change.after}"]
    elif change.after is None:
        parts = [f"was {change.before}"]
    elif change.before == change.after:
        parts = [change.after]
    else:
        parts = [f"{change.before} -> {change.after}"]
    versions = [v for v in (change.version_before, change.version_after) if v is not None]
    if versions:
        parts.append("version " + " to ".join(map(str, dict.fromkeys(versions))))
    commit = change.culprit
    if commit is not None:
        told = [f"commit {commit.version}", format_timestamp(commit.timestamp)]
        told += [None if commit.operation == "unknown" else commit.operation, commit.engine]
        told.append(f"by {commit.user}" if commit.user else None)
        parts.append(", ".join(filter(None, told)))
    return "; ".join(parts)


def _ended(pair: ScanPair, now: datetime) -> str:
    return (
        f"the later scan ended {format_time(pair.now.ended_at)} "
        f"({format_age(now - pair.now.ended_at)})"
    )


def _text(pair: ScanPair, counts: DriftCounts, out: Painter, now: datetime) -> None:
    out.line(out.paint(_total(pair, counts), BOLD) + out.paint(f"  {_span(pair)}", DIM))
    out.line(out.paint(f"  {pair.before.scan_id} to {pair.now.scan_id}", DIM))
    out.line(out.paint(f"  {_ended(pair, now)}", DIM))
    for said in missing(pair):
        out.folded(said, YELLOW, first="  ")
    for group, count in counts.ordered():
        severity = SEVERITY[group.kind]
        feature = f"  {out.paint(group.feature, BOLD)}" if group.feature else ""
        out.line()
        out.line(
            out.paint(f"{severity:<7}", SEVERITIES[severity])
            + f"  {group.kind}{feature}  "
            + out.paint(f"{count:,} table{'' if count == 1 else 's'}", GREEN)
        )
        for change in counts.first[group]:
            out.line(f"  {out.paint(change.table)}")
            out.folded(_how(change), DIM, first="      ")
        if count > _SHOWN:
            out.line(out.paint(f"  … and {count - _SHOWN:,} more; --format jsonl has all", DIM))


def _markdown(pair: ScanPair, counts: DriftCounts, file: IO[str], now: datetime) -> None:
    file.write(f"## Drift, {_span(pair)}\n\n**{_total(pair, counts)}**; {_ended(pair, now)}\n\n")
    file.writelines(f"{escape(said)}\n\n" for said in missing(pair))
    rows = [
        (
            str(SEVERITY[group.kind]),
            f"{group.kind}{f': {group.feature}' if group.feature else ''}",
            f"{count:,}",
            "; ".join(change.table for change in counts.first[group])
            + ("; …" if count > _SHOWN else ""),
        )
        for group, count in counts.ordered()
    ]
    if rows:
        file.write(table(("Severity", "Change", "Tables", "Which"), rows) + "\n")
