"""The final output of `scan` in each format."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import IO, Any, NamedTuple

from deltaproto.clients.matching import Verdict
from deltaproto.fleet.drift.diff import SEVERITY
from deltaproto.fleet.evaluate import PolicyTally
from deltaproto.fleet.scan import ScanResult
from deltaproto.fleet.scan_history import ScanPair
from deltaproto.policy.finding import Severity, describe_hidden
from deltaproto.render.drift import DriftCounts, counts_fields
from deltaproto.render.interface import NOTICES, dump_json, envelope
from deltaproto.render.terminal import BOLD, DIM, GREEN, LOUD, SEVERITIES, YELLOW, Painter

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
        document = envelope("scan", scan_fields(scan, after, inventory), complete=complete)
        file.write(dump_json(document) + "\n")
        return
    out = Painter(file, color=color)
    _text(scan, after, inventory, out)
    for notice in NOTICES:
        out.folded(f"warning: {notice}", YELLOW)


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
            for name, count in _most(tally.features)
        ],
        "isolation": [
            {"declared": level, "tables": count} for level, count in _most(tally.isolation)
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


def _most(counter: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counter.items(), key=lambda each: (-each[1], str(each[0])))


def _text(scan: ScanResult, after: Afterwards, inventory: str | None, out: Painter) -> None:
    tally = scan.tally
    looked = tally.tables + tally.errors.total()
    rate = (looked - scan.resumed) / scan.seconds if scan.seconds else 0.0
    out.line(
        out.paint(f"{tally.tables:,} tables", BOLD)
        + out.paint(f" in {scan.seconds:,.1f} s, {rate:,.0f} per second", DIM)
    )
    if scan.resumed:
        out.line(f"  {scan.resumed:,} of them by an earlier run, which this one went on with")
    _errors(scan, out)
    if tally.protocols:
        out.line()
        out.line(out.paint("protocols", BOLD))
        pairs = {f"({r},{w})": count for (r, w), count in sorted(tally.protocols.items())}
        _bars(pairs, tally.tables, out)
    if tally.features:
        out.line()
        out.line(out.paint("features", BOLD) + out.paint("  tables, and where it is enabled", DIM))
        shown = dict(_most(tally.features)[:_MOST_FEATURES])
        _bars(shown, tally.tables, out, tally.enabled)
        more = len(tally.features) - len(shown)
        if more > 0:
            out.line(f"  … and {more} more; --format json has all of them")
    if after.policy is None:
        _findings("findings", scan.tally.rules, out)
    else:
        _clients(after.policy, out)
        _examples(after.policy, out)
        _findings("findings of the policy", after.policy.rules, out)
        if said := describe_hidden(after.policy.waived, after.policy.off):
            out.line(f"  {said}")
    if after.pair is not None and after.drift is not None:
        _drift(after.pair, after.drift, out)
    out.line()
    if after.forgotten:
        old = (
            "1 old scan is"
            if len(after.forgotten) == 1
            else f"{len(after.forgotten)} old scans are"
        )
        out.line(out.paint(f"{old} forgotten", DIM))
    kept = (
        f"scan {scan.scan_id} is in {inventory}"
        if inventory
        else "nothing was kept: give --inventory"
    )
    out.line(out.paint(kept, DIM))


def _errors(scan: ScanResult, out: Painter) -> None:
    tally = scan.tally
    if tally.errors:
        told = ", ".join(f"{count:,} {code}" for code, count in _most(tally.errors))
        out.folded(f"{tally.errors.total():,} could not be read: {told}", LOUD, first="  ")
        for table, message, hint in tally.first_errors:
            out.folded(f"{table}: {message}" if table not in message else message, first="    ")
            if hint:
                out.folded(hint, DIM, first="      ")
        more = tally.errors.total() - len(tally.first_errors)
        if more:
            out.line(f"    … and {more:,} more, in the inventory's table errors")
    if tally.incomplete:
        said = f"{tally.incomplete:,} may have newer commits that only their catalog knows"
        out.folded(said, YELLOW, first="  ")
    for note in scan.notes:
        out.folded(note, YELLOW, first="  ")


def _bars(
    counts: dict[str, int], total: int, out: Painter, enabled: Counter[str] | None = None
) -> None:
    width = max(map(len, counts))
    for name, count in counts.items():
        full = round(_BAR * count / total) if total else 0
        on = "" if enabled is None else f"  {enabled[name]:>9,}"
        bar = out.paint("█" * full, GREEN) + out.paint("·" * (_BAR - full), DIM)
        out.line(f"  {out.paint(name.ljust(width))}  {bar}  {count:>9,}{on}")


def _findings(title: str, rules: Counter[tuple[str, str]], out: Painter) -> None:
    if not rules:
        return
    out.line()
    out.line(out.paint(title, BOLD) + out.paint("  deltaproto explain RULE tells more", DIM))
    ranks = {str(severity): rank for rank, severity in enumerate(Severity)}
    for (rule, severity), count in sorted(
        rules.items(), key=lambda each: (ranks[each[0][1]], -each[1], each[0])
    ):
        painted = out.paint(f"{severity:<7}", SEVERITIES[Severity(severity)])
        out.line(f"  {painted}  {out.paint(rule)}  {count:>9,}")


def _clients(tally: PolicyTally, out: Painter) -> None:
    """Print the number of tables that each client can use, with one bar per client and access."""
    by_use: dict[tuple[str, str], Counter[str]] = {}
    for (client, access, verdict), count in tally.verdicts.items():
        by_use.setdefault((client, access), Counter())[verdict] += count
    if not by_use:
        return
    out.line()
    out.line(out.paint("clients", BOLD) + out.paint("  tables that they can use", DIM))
    widths = [max(map(len, column)) for column in zip(*by_use, strict=True)]
    for (client, access), verdicts in sorted(by_use.items()):
        total, fine = verdicts.total(), verdicts[str(Verdict.OK)]
        full = round(_BAR * fine / total)
        bar = out.paint("█" * full, GREEN) + out.paint("·" * (_BAR - full), DIM)
        wrong = [f"{verdicts[v]:,} {v}" for v in reversed(Verdict) if v != "ok" and verdicts[v]]
        told = f"  {', '.join(wrong)}" if wrong else ""
        name = "  ".join(map(str.ljust, (client, access), widths))
        out.line(f"  {out.paint(name)}  {bar}  {fine:>9,}{out.paint(told, YELLOW)}")


def _examples(tally: PolicyTally, out: Painter) -> None:
    """Print the first error of each rule, and its first finding on the policy itself."""
    for table, rule, message in tally.first:
        # The message of a finding on the policy already contains its location.
        said = message
        if table not in message:
            said = f"{table}: {textwrap.shorten(message, _LONG, placeholder=' …')}"
        out.folded(f"{rule}  {said}", DIM, first="    ", rest="           ")


def _drift(pair: ScanPair, counts: DriftCounts, out: Painter) -> None:
    out.line()
    since = f"  since {pair.before.started_at:%Y-%m-%d %H:%M} UTC; `deltaproto drift` tells more"
    out.line(out.paint("drift", BOLD) + out.paint(since, DIM))
    if not counts.groups:
        out.line("  nothing changed")
    for group, count in counts.ordered():
        severity = SEVERITY[group.kind]
        painted = out.paint(f"{severity:<7}", SEVERITIES[severity])
        feature = f"  {out.paint(group.feature)}" if group.feature else ""
        out.line(f"  {painted}  {count:>9,}  {group.kind}{feature}")
