"""The final output of `scan` in each format."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import IO, Any, NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.counts import counted
from deltaproto.fleet.discovered import DiscoveredTable, UnreadablePlace
from deltaproto.fleet.evaluate import PolicyTally
from deltaproto.fleet.scan import ScanResult, Tally
from deltaproto.fleet.scan_history import MAY_BE_BEHIND, ScanPair, limits_in_words
from deltaproto.policy.finding import SEVERITY_RANKS, Severity, describe_hidden
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    FindingLine,
    FindingList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import UNFOLDED, write_document
from deltaproto.render.drift import DriftCounts, counts_fields, drift_table
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.interface import (
    NOTICES,
    JsonArraySpool,
    dump_json,
    envelope,
    error_fields,
    open_envelope,
)
from deltaproto.render.terminal import largest_first, single_line

_BAR = 30
_MOST_FEATURES = 25
_LONG = 160


class ScanFormat(StrEnum):
    """Values of `--format` of `scan`."""

    TEXT = "text"
    JSON = "json"


class Afterwards(NamedTuple):
    """Facts read from the inventory after the scan was added."""

    policy: PolicyTally | None = None
    pair: ScanPair | None = None
    drift: DriftCounts | None = None
    """changes since the previous scan of the same roots; None if there is no such scan"""
    forgotten: Sequence[str] = ()
    """ids of old scans that were deleted from the inventory"""


def write_scan(
    scan: ScanResult,
    after: Afterwards,
    inventory: str | None,
    format_: ScanFormat,
    file: IO[str],
    *,
    color: bool,
) -> None:
    """Write the summary of one scan."""
    if format_ is ScanFormat.JSON:
        complete = not scan.tally.errors and not scan.tally.incomplete
        fields = envelope("scan", scan_fields(scan, after, inventory), complete=complete)
        file.write(dump_json(fields) + "\n")
        return
    document = scan_document(scan, after, inventory)
    write_document(document, format_, file, color=color, piped_width=UNFOLDED)


def scan_fields(scan: ScanResult, after: Afterwards, inventory: str | None) -> dict[str, Any]:
    """Return the counts of a scan as JSON."""
    tally = scan.tally
    return {
        "scan_id": scan.scan_id,
        "tables": tally.tables,
        "errors": tally.errors.total(),
        "findings": tally.findings.total(),
        "incomplete": tally.incomplete,
        "resumed": scan.resumed,
        "unchanged": scan.unchanged,
        "included": list(scan.selection.include),
        "excluded": list(scan.selection.exclude),
        "not_searched": {str(kind): count for kind, count in scan.not_searched.items()},
        "seconds": round(scan.seconds, 3),
        "inventory": inventory,
        "by_severity": {str(each): tally.findings[each] for each in Severity},
        "by_error": dict(sorted(tally.errors.items())),
        "first_errors": [
            {"table": table, "message": message, "hint": hint}
            for table, message, hint in tally.first_errors
        ],
        "by_rule": [
            {"rule": rule, "severity": severity, "findings": count}
            for (rule, severity), count in sorted(tally.rules.items())
        ],
        "protocols": [
            {"min_reader_version": reader, "min_writer_version": writer, "tables": count}
            for (reader, writer), count in sorted(tally.protocols.items())
        ],
        "features": [
            {"name": name, "tables": count, "enabled": tally.enabled[name]}
            for name, count in largest_first(tally.features)
        ],
        "isolation": [
            {"declared": level, "tables": count} for level, count in largest_first(tally.isolation)
        ],
        "forgotten": list(after.forgotten),
        "notes": list(scan.notes),
        "policy": after.policy and _policy_fields(after.policy),
        "drift": after.drift
        and after.pair
        and {
            "since": after.pair.before.scan_id,
            "changed_tables": after.drift.tables,
            "counts": counts_fields(after.drift),
        },
    }


def _policy_fields(tally: PolicyTally) -> dict[str, Any]:
    return {
        "verdicts": [
            {"client": client, "access": access, "verdict": verdict, "tables": count}
            for (client, access, verdict), count in sorted(tally.verdicts.items())
        ],
        "by_rule": [
            {"rule": rule, "severity": severity, "findings": count}
            for (rule, severity), count in sorted(tally.rules.items())
        ],
        "first_errors": [
            {"table": table, "rule": rule, "message": message}
            for table, rule, message in tally.first
        ],
        "waived": tally.waived,
        "off": tally.off,
    }


def scan_document(scan: ScanResult, after: Afterwards, inventory: str | None) -> Document:
    """Return the summary of one scan."""
    tally = scan.tally
    seen = tally.tables + tally.errors.total()
    rate = (seen - scan.resumed) / scan.seconds if scan.seconds else 0.0
    speed = f", {rate:,.0f} per second" if tally.tables else ""
    return Document(
        counted(tally.tables, "table"),
        (f"in {scan.seconds:,.1f} s{speed}",),
        list(_blocks(scan, after, inventory)),
    )


def _blocks(scan: ScanResult, after: Afterwards, inventory: str | None) -> Iterator[Block]:
    tally = scan.tally
    if scan.resumed:
        read = counted(scan.resumed, "of them was read", "of them were read")
        yield Paragraph((f"{read} by an earlier run",))
    if scan.unchanged:
        same = counted(scan.unchanged, "of them is unchanged", "of them are unchanged")
        yield Paragraph((f"{same} since the last scan; --full reads all",))
    if limits := limits_in_words(*scan.selection):
        yield Paragraph((f"the search was limited by {limits}",))
    yield from _errors(scan, saved=inventory is not None)
    yield from (Callout(Tone.WARNING, (text,)) for text in (*scan.notes, *NOTICES))
    if tally.protocols:
        rows = {f"({r},{w})": count for (r, w), count in sorted(tally.protocols.items())}
        yield Section("protocols", "Protocols", [_bars("Protocol", rows, tally.tables)])
    if tally.features:
        yield Section("features", "Features", list(_features(tally)))
    if after.policy is None:
        yield from _findings("Findings", tally.rules)
    else:
        yield from _clients(after.policy)
        yield from _examples(after.policy)
        yield from _findings("Policy findings", after.policy.rules)
        if hidden := describe_hidden(after.policy.waived, after.policy.off):
            yield Paragraph((hidden,))
    if after.pair is not None and after.drift is not None:
        yield _drift(after.pair, after.drift)
    if after.forgotten:
        yield Paragraph((f"{counted(len(after.forgotten), 'old scan')} deleted",), muted=True)
    saved = f"scan {scan.scan_id} is in {inventory}"
    yield Paragraph((saved if inventory else "nothing was saved: pass --inventory",), muted=True)


def _errors(scan: ScanResult, *, saved: bool) -> Iterator[Block]:
    tally = scan.tally
    if tally.errors:
        codes = ", ".join(f"{count:,} {code}" for code, count in largest_first(tally.errors))
        lines = [
            FindingLine(Tone.DANGER, "error", table, message.removeprefix(f"{table}: "), hint)
            for table, message, hint in tally.first_errors
        ]
        blocks: list[Block] = [FindingList(lines)]
        more = tally.errors.total() - len(tally.first_errors)
        if more:
            where = ", in the table errors of the inventory" if saved else "; --inventory saves all"
            text = f"and {more:,} more{where}"
            blocks.append(Paragraph((text,), muted=True))
        unread = counted(tally.errors.total(), "table or place", "tables or places")
        title = f"{unread} could not be read: {codes}"
        yield Section("errors", title, blocks, Tone.DANGER)
    if tally.incomplete:
        tables = counted(tally.incomplete, "table")
        text = f"{tables} {MAY_BE_BEHIND}"
        yield Callout(Tone.WARNING, (text,))


def _features(tally: Tally) -> Iterator[Block]:
    shown = dict(largest_first(tally.features)[:_MOST_FEATURES])
    yield _bars("Feature", shown, tally.tables, tally.enabled)
    more = len(tally.features) - len(shown)
    if more > 0:
        yield Paragraph((f"and {more} more: --format json lists all of them",), muted=True)


def _bars(
    name: str, counts: Mapping[str, int], total: int, enabled: Counter[str] | None = None
) -> TableBlock:
    """Return counts as a table with a bar for the share of each."""
    rows: list[list[Line]] = [
        [(Code(key),), (_bar(count, total),), (f"{count:,}",)] for key, count in counts.items()
    ]
    headings = [name, "", "Tables"]
    if enabled is not None:
        headings.append("Enabled")
        rows = [[*row, (f"{enabled[key]:,}",)] for row, key in zip(rows, counts, strict=True)]
    return TableBlock(headings, rows, cells=_green(rows, 1), spare=frozenset({1}))


def _bar(count: int, total: int) -> str:
    full = round(_BAR * count / total) if total else 0
    return "█" * full + "·" * (_BAR - full)


def _green(rows: Sequence[Sequence[Line]], column: int) -> list[list[Tone | None]]:
    return [[Tone.GOOD if place == column else None for place in range(len(row))] for row in rows]


def _findings(title: str, rules: Counter[tuple[str, str]]) -> Iterator[Block]:
    """Yield the number of findings of each rule, the most severe first."""
    if not rules:
        return
    ordered = sorted(
        rules.items(), key=lambda each: (SEVERITY_RANKS[each[0][1]], -each[1], each[0])
    )
    rows: list[list[Line]] = [
        [(severity,), (Code(rule),), (f"{count:,}",)] for (rule, severity), count in ordered
    ]
    cells = [[SEVERITY_TONES[Severity(severity)], None, None] for (_, severity), _ in ordered]
    hint = Paragraph((Code("deltaproto explain RULE"), " explains a rule"), muted=True)
    table = TableBlock(("Severity", "Rule", "Findings"), rows, cells=cells, lead=2)
    yield Section("findings", title, [table, hint])


def _clients(tally: PolicyTally) -> Iterator[Block]:
    """Yield the number of tables that each client can use, by access."""
    by_use: dict[tuple[str, str], Counter[str]] = {}
    for (client, access, verdict), count in tally.verdicts.items():
        by_use.setdefault((client, access), Counter())[verdict] += count
    rows: list[list[Line]] = []
    for (client, access), verdicts in sorted(by_use.items()):
        fine = verdicts[str(Verdict.OK)]
        others = [f"{verdicts[v]:,} {v}" for v in reversed(Verdict) if v != "ok" and verdicts[v]]
        rows.append(
            [
                (Code(client),),
                (access,),
                (_bar(fine, verdicts.total()),),
                (f"{fine:,}",),
                (", ".join(others),),
            ]
        )
    if rows:
        headings = ("Client", "Access", "", "Usable tables", "Others")
        table = TableBlock(headings, rows, cells=_green(rows, 2), lead=2, spare=frozenset({2}))
        yield Section("clients", "Clients", [table])


def _examples(tally: PolicyTally) -> Iterator[Block]:
    """Yield the first error of each rule, and its first finding on the policy itself."""
    lines: list[Line] = []
    for table, rule, message in tally.first:
        # The message of a finding on the policy already contains its location.
        short = message
        if table not in message:
            short = f"{table}: {textwrap.shorten(message, _LONG, placeholder=' …')}"
        lines.append((Code(rule), f" {short}"))
    if lines:
        yield Section("examples", "First finding of each rule", [Bullets(lines)])


def _drift(pair: ScanPair, counts: DriftCounts) -> Section:
    title = f"Drift since {pair.before.started_at:%Y-%m-%d %H:%M:%S} UTC"
    if not counts.groups:
        return Section("drift", title, [Paragraph(("nothing changed",))])
    hint = Paragraph((Code("deltaproto drift"), " lists the tables"), muted=True)
    return Section("drift", title, [drift_table(counts), hint])


def _entry(found: DiscoveredTable) -> dict[str, Any]:
    """Return how the catalog describes the table."""
    if found.entry is None or not found.entry.type:
        return {}
    entry = found.entry
    described = {"type": entry.type, "provider": entry.provider}
    return {"catalog_entry": {**described, "owner": entry.owner, "id": entry.id}}


def write_table_list(
    found: Iterable[DiscoveredTable | UnreadablePlace],
    format_: ScanFormat,
    file: IO[str],
    several: Iterable[tuple[str, tuple[str, ...]]] = (),
) -> list[UnreadablePlace]:
    """Write each table on a line, or as JSON. Return the places that could not be searched.

    Args:
        several: location and names of the tables with several names; read after all tables.
    """
    tables, shared, errors = JsonArraySpool(), JsonArraySpool(), JsonArraySpool()
    unseen = list[UnreadablePlace]()
    for each in found:
        if isinstance(each, UnreadablePlace):
            unseen.append(each)
            errors.add(json.dumps({"place": each.place, "error": error_fields(each.error)}))
        elif format_ is ScanFormat.TEXT:
            file.write(f"{single_line(each.table)}\n")
        else:
            tables.add(json.dumps({"table": each.table, "location": each.uri, **_entry(each)}))
    if format_ is ScanFormat.JSON:
        file.write(open_envelope("scan", complete=not unseen))
        tables.close("listed", file)
        for location, names in several:
            shared.add(json.dumps({"location": location, "names": list(names)}))
        shared.close("several_names", file)
        errors.close("errors", file)
        file.write("\n}\n")
    return unseen
