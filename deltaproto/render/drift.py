"""The output of `drift` in each format: one change after another, with the counts at the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any, NamedTuple, assert_never

from deltaproto.counts import counted, tables_such_as
from deltaproto.fleet.drift.diff import SEVERITY, ChangeKind, Difference
from deltaproto.fleet.scan_history import MAY_BE_BEHIND, PastScan, ScanPair
from deltaproto.inspection.age import format_age, format_time
from deltaproto.location import locate
from deltaproto.policy.finding import Severity
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import UNFOLDED, write_document
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.interface import (
    NOTICES,
    Format,
    JsonArraySpool,
    dump_json,
    envelope,
    format_timestamp,
    open_envelope,
)
from deltaproto.render.terminal import largest_first, single_line

_SHOWN = 5
_MESSAGE_LINES = 10
"""kinds of changes in a message"""
_MOST_CULPRITS = 1000
"""different culprits of one change that are counted"""
_NOT_ALIKE = (
    "the two scans cover different roots: new and removed tables are unknown",
    "scan the same roots with the same --include and --exclude to see them",
)


class _Group(NamedTuple):
    kind: ChangeKind
    feature: str | None


class DriftCounts:
    """The number of occurrences of each change, and the first tables of each."""

    def __init__(self) -> None:
        self.groups: Counter[_Group] = Counter()
        self.first: dict[_Group, list[Difference]] = {}
        self.culprits: dict[_Group, Counter[str]] = {}
        """number of changes by the engine, user and job that committed them, or by `apply`, if the
        log still shows them; of moved tables, by the folders from and to which they were moved
        """
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
            self._blame(group, change)
            if change.location != self._last:
                self.tables, self._last = self.tables + 1, change.location
            yield change

    def _blame(self, group: _Group, change: Difference) -> None:
        culprit = None
        if change.kind is ChangeKind.TABLE_MOVED:
            culprit = " to ".join(_moved_folders(change))
        elif change.culprit is not None and change.culprit.engine:
            commit = change.culprit
            job = f"job {commit.job}" if commit.job else None
            applied = None if commit.plan is None else "deltaproto apply"
            culprit = ", ".join(filter(None, (commit.engine, commit.user, job, applied)))
        if culprit is not None:
            known = self.culprits.setdefault(group, Counter())
            if culprit in known or len(known) < _MOST_CULPRITS:
                known[culprit] += 1

    def add(self, changes: Iterable[Difference]) -> None:
        """Count all changes."""
        for _ in self.watched(changes):
            pass

    @property
    def severities(self) -> frozenset[Severity]:
        """The severities of the counted changes."""
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
                line = envelope(
                    "drift", {**head, **change_fields(change)}, complete=is_complete(pair)
                )
                file.write(dump_json(line, indent=None) + "\n")
        case Format.MARKDOWN | Format.TEXT:
            counts.add(changes)
            document = drift_document(pair, counts, now)
            write_document(document, format_, file, color=color, piped_width=UNFOLDED)
        case _:
            assert_never(format_)


def is_complete(pair: ScanPair) -> bool:
    """Return True if both scans completely read the same roots."""
    return pair.same_roots and not any(_unknown(scan) for scan in pair)


def incomplete_reasons(pair: ScanPair) -> Iterator[str]:
    """Yield one sentence for each reason why changes may be missing."""
    if not pair.same_roots:
        yield "; ".join(_NOT_ALIKE)
    if pair.before == pair.now:
        if unknown := _unknown(pair.now):
            yield f"{unknown} in this scan: what changes there will not be known"
        return
    for which, scan in (("earlier", pair.before), ("later", pair.now)):
        if unknown := _unknown(scan):
            yield f"{unknown} in the {which} scan: what changed there is not known"


def _unknown(scan: PastScan) -> str:
    """Describe which tables of a scan are unknown; empty if none."""
    if scan.errors:
        return f"{counted(scan.errors, 'table or place', 'tables or places')} could not be read"
    return "" if scan.complete else f"some {MAY_BE_BEHIND}"


def _json(
    pair: ScanPair, changes: Iterable[Difference], counts: DriftCounts, file: IO[str], now: datetime
) -> None:
    spool = JsonArraySpool()
    for change in changes:
        spool.add(json.dumps(change_fields(change)))
    file.write(open_envelope("drift", complete=is_complete(pair)))
    for name, value in drift_fields(pair, counts, now).items():
        file.write(f',\n  "{name}": {dump_json(value, indent=None)}')
    spool.close("changes", file)
    file.write("\n}\n")


def drift_fields(pair: ScanPair, counts: DriftCounts, now: datetime) -> dict[str, Any]:
    """Return the scans and the counts as JSON; the changes come after them."""
    return {
        **_scans(pair, now),
        "same_roots": pair.same_roots,
        "changed_tables": counts.tables,
        "counts": counts_fields(counts),
    }


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
        "not_searched": unsearched_fields(scan),
    }


def unsearched_fields(scan: PastScan) -> dict[str, int] | None:
    """Return how many places of each kind a scan did not search, as JSON; None if unknown."""
    places = scan.not_searched
    return None if places is None else {each.kind: each.number for each in places}


def change_fields(change: Difference) -> dict[str, Any]:
    """Return one change as JSON."""
    commit = change.culprit
    return {
        "table": change.table,
        "location": change.location,
        "moved_from": change.moved_from,
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
            "job": commit.job,
            "plan": commit.plan,
        },
    }


def drift_document(pair: ScanPair, counts: DriftCounts, now: datetime) -> Document:
    """Return what changed between two scans, the most severe changes first."""
    total = f"{counted(counts.tables, 'table')} changed"
    none = "nothing changed" if pair.before != pair.now else "nothing to compare yet"
    return Document(
        total if counts.tables else none,
        (_span(pair),),
        list(_blocks(pair, counts, now)),
    )


def drift_message(inventory: str, pair: ScanPair, counts: DriftCounts) -> str:
    """Return what changed as a few lines of text for a chat."""
    lines = [f"deltaproto: {counted(counts.tables, 'table')} changed in {inventory}, {_span(pair)}"]
    ordered = counts.ordered()
    for group, count in ordered[:_MESSAGE_LINES]:
        what = f"{group.kind} {group.feature}" if group.feature else str(group.kind)
        culprits = counts.culprits.get(group)
        blamed = f", {_blamed(group.kind, culprits)}" if culprits else ""
        first = counts.first[group][0].table
        tables = tables_such_as(count, first)
        lines.append(f"- {SEVERITY[group.kind]}: {what}: {tables}{blamed}")
    if len(ordered) > _MESSAGE_LINES:
        more = counted(len(ordered) - _MESSAGE_LINES, "more kind", "more kinds")
        lines.append(f"and {more} of changes")
    lines += [f"not complete: {each}" for each in incomplete_reasons(pair)]
    return "\n".join(map(single_line, lines))


def drift_table(counts: DriftCounts) -> TableBlock:
    """Return the number of tables with each change."""
    ordered = counts.ordered()
    rows: list[list[Line]] = [
        [(str(SEVERITY[kind]),), (str(kind),), (Code(feature),) if feature else (), (f"{count:,}",)]
        for (kind, feature), count in ordered
    ]
    tones = [[SEVERITY_TONES[SEVERITY[group.kind]], None, None, None] for group, _ in ordered]
    return TableBlock(("Severity", "Change", "Feature", "Tables"), rows, cells=tones, lead=3)


def _blocks(pair: ScanPair, counts: DriftCounts, now: datetime) -> Iterator[Block]:
    yield FactList(
        [
            ("Scans", (f"{pair.before.scan_id} to {pair.now.scan_id}",)),
            ("Tables", (f"{pair.before.tables:,} before, {pair.now.tables:,} now",)),
            (
                "Ended",
                (f"{format_time(pair.now.ended_at)} ({format_age(now - pair.now.ended_at)})",),
            ),
        ]
    )
    yield from (Callout(Tone.WARNING, (each,)) for each in (*incomplete_reasons(pair), *NOTICES))
    if counts.groups:
        yield drift_table(counts)
    for number, (group, count) in enumerate(counts.ordered(), 1):
        title = f"{group.kind} {group.feature}" if group.feature else str(group.kind)
        lines: list[Line] = [
            (Code(change.table), f": {_describe(change)}") for change in counts.first[group]
        ]
        title += f": {counted(count, 'table')}"
        blocks: list[Block] = [Bullets(lines)]
        if count > 1 and (culprits := counts.culprits.get(group)):
            blocks.insert(0, Paragraph((_blamed(group.kind, culprits),)))
        if count > _SHOWN:
            more = f"and {count - _SHOWN:,} more: --format jsonl lists all of them"
            blocks.append(Paragraph((more,), muted=True))
        tone = SEVERITY_TONES[SEVERITY[group.kind]]
        yield Section(f"change-{number}", title, blocks, tone)


def _span(pair: ScanPair) -> str:
    """Return when the scans started, precisely enough to tell them apart."""
    seconds = [f"{scan.started_at:%Y-%m-%d %H:%M:%S}" for scan in pair]
    if pair.before != pair.now and seconds[0] == seconds[1]:
        seconds = [f"{scan.started_at:%Y-%m-%d %H:%M:%S.%f}" for scan in pair]
    return " to ".join(f"{each}Z" for each in seconds)


def _moved_folders(change: Difference) -> tuple[str, str]:
    """Return from where to where a table was moved, without the folders that both end with."""
    old, new = (locate(place or "?").path_or_uri for place in (change.before, change.after))
    left, right = old.split("/"), new.split("/")
    while left[-1] == right[-1] and len(left) > 2 and len(right) > 2:
        left.pop()
        right.pop()
    return "/".join(left), "/".join(right)


def _blamed(kind: ChangeKind, culprits: Counter[str]) -> str:
    """Return who made most of the changes, or the folders between which most tables moved."""
    named = [f"{culprit} ({count:,})" for culprit, count in largest_first(culprits, _SHOWN)]
    more = len(culprits) - len(named)
    by = "from " if kind is ChangeKind.TABLE_MOVED else "by "
    return by + "; ".join([*named, *([counted(more, "other")] if more else [])])


def _describe(change: Difference) -> str:
    """Return a one-line description of one table's change."""
    if change.kind is ChangeKind.TABLE_MOVED:
        old, new = (locate(place or "?").path_or_uri for place in (change.before, change.after))
        parts = [f"moved from {old}" + (f" to {new}" if new != change.table else "")]
    elif change.before is None:
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
        origin = [f"commit {commit.version}", format_timestamp(commit.timestamp)]
        origin += [None if commit.operation == "unknown" else commit.operation, commit.engine]
        origin.append(f"by {commit.user}" if commit.user else None)
        origin.append(f"job {commit.job}" if commit.job else None)
        origin.append(f"plan {commit.plan}" if commit.plan else None)
        parts.append(", ".join(filter(None, origin)))
    return "; ".join(parts)
