"""The report's chapters that need no script, with the same content in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from deltaproto.counts import counted, first_names
from deltaproto.fleet.last_writers import LastWriters
from deltaproto.fleet.overview import Overview
from deltaproto.fleet.scan_history import PastScan
from deltaproto.inspection.age import format_age, format_time
from deltaproto.policy.finding import SEVERITY_RANKS, Severity, describe_hidden
from deltaproto.render.discover import client_tables
from deltaproto.render.document.blocks import (
    Block,
    Callout,
    Code,
    Document,
    FactList,
    Figure,
    Line,
    Link,
    Paragraph,
    Section,
    TableBlock,
    Tone,
    listed,
)
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.interface import NOTICES
from deltaproto.render.overview.chart import bars, query, versions
from deltaproto.render.overview.numbers import Fix, FleetSummary, command, plain_location
from deltaproto.render.overview.past import clients, drift, features
from deltaproto.render.terminal import largest_first

_MOST_UNREAD = 200
_CLIENTS_NAMED = 5


def document(
    overview: Overview,
    numbers: FleetSummary,
    policy: str | None,
    now: datetime,
    most: int | None = None,
) -> Document:
    """Return the report without the list of all tables, which shows the first `most` tables."""
    sections = [
        Section("glance", "The fleet at a glance", list(_glance(overview, numbers, policy))),
        Section("first", "Tables to fix first", list(_first(overview, numbers, policy, most))),
        Section("clients", "Clients", list(clients(numbers))),
        *_stored(overview),
        Section("features", "Features", list(features(overview, numbers))),
        Section("drift", "Over time", list(drift(overview))),
        Section("findings", "Findings", list(_findings(overview, numbers))),
        Section("unread", "What could not be read", list(_unread(overview))),
    ]
    return Document(
        "Delta protocols of the fleet",
        (
            *(part for scan in overview.sources for part in _scan(scan, now)),
            *(("Policy ", Code(policy), ".") if policy else ()),
        ),
        sections,
    )


def _stored(overview: Overview) -> Iterator[Section]:
    """Yield the chapter on the clients that `discover` counted."""
    if overview.clients_seen is None:
        return
    ran = format_time(overview.counted_at)
    text = f"Counted by discover from commits and access logs, last on {ran}."
    yield Section(
        "seen", "Clients seen", [Paragraph((text,)), *client_tables(overview.clients_seen)]
    )


def _scan(scan: PastScan, now: datetime) -> Line:
    ended = f"ended {format_time(scan.ended_at)} ({format_age(now - scan.ended_at)})"
    roots = ", ".join(map(plain_location, scan.roots)) or "named tables"
    limits: Line = (", limited by ", Code(scan.limits)) if scan.limits else ()
    return (f"Scan {scan.scan_id}, {ended}, of ", Code(roots), *limits, ". ")


def _glance(overview: Overview, numbers: FleetSummary, policy: str | None) -> Iterator[Block]:
    yield from (Callout(Tone.WARNING, (notice,)) for notice in NOTICES)
    read, unread = len(overview.tables), len(overview.unread)
    if unread:
        text = f"{counted(unread, 'table or place', 'tables or places')} could not be read"
        yield Callout(Tone.DANGER, (f"{text}: the report is incomplete.",))
    whose = "the policy's clients" if policy else "the clients that wrote last"
    if overview.last_writers is not None:
        yield _last_writers(overview.last_writers)
    incomplete = sum(not row.complete for row in overview.tables)
    errors = sum(count for (_, severity), count in numbers.rules.items() if severity == "error")
    yield FactList(
        [
            ("Tables", (f"{read:,}",)),
            ("Not read", (f"{unread:,}",)),
            ("Incomplete", (f"{incomplete:,}",)),
            *(
                [(f"Usable by {whose}", (f"{numbers.compliant:,} of {read:,}",))]
                if numbers.clients or policy
                else []
            ),
            ("Findings", (f"{numbers.rules.total():,}",)),
            ("Of these, errors", (f"{errors:,}",)),
        ]
    )
    protocols = sorted(numbers.protocols.items())
    rows = [(versions(pair), count) for pair, count in protocols]
    yield Figure(
        bars("Tables by protocol version", rows),
        "Protocols",
        TableBlock(
            ("Protocol", "Tables"),
            [[(Link(name, query(protocol=name)),), (f"{count:,}",)] for name, count in rows],
        ),
    )
    levels = largest_first(numbers.isolation)
    yield Figure(
        bars("Tables by declared isolation level", levels),
        "Isolation",
        TableBlock(
            ("Isolation level", "Tables"), [[(name,), (f"{count:,}",)] for name, count in levels]
        ),
    )


def _last_writers(writers: LastWriters) -> Callout:
    """Name the clients that the report evaluates instead of a policy's."""
    if not writers.clients:
        why = "No policy was given, and no commit names a client: no client was checked."
        return Callout(Tone.WARNING, (f"{why} Declare clients with ", Code("--policy"), "."))
    names = sorted(writers.clients, key=lambda name: (-writers.clients[name], name))
    named = first_names(names, _CLIENTS_NAMED)
    unknown = (
        f" Tables whose last writer is not known: {writers.unknown:,}." if writers.unknown else ""
    )
    return Callout(
        Tone.NOTE,
        (
            "No policy was given: tables are checked against the clients that made the newest "
            f"commits ({named}). Clients that only read are not known: declare them with ",
            Code("--policy"),
            f".{unknown}",
        ),
    )


def _first(
    overview: Overview, numbers: FleetSummary, policy: str | None, most: int | None
) -> Iterator[Block]:
    if not numbers.fixes:
        if not (numbers.clients or policy):
            yield Callout(Tone.NOTE, ("No client was checked.",))
        elif numbers.compliant == len(overview.tables) > 0 and not overview.unread:
            every = "Nothing to fix: every checked client can use every table."
            yield Callout(Tone.GOOD, (every,))
        else:
            text = "Nothing is known to need a fix, but the results are incomplete."
            yield Callout(Tone.WARNING, (text,))
        return
    yield Paragraph(
        (
            "Tables that the same clients cannot use are grouped. Groups that affect the most "
            "clients and tables come first; clients that would return wrong results weigh the "
            "most.",
        )
    )
    yield TableBlock(
        ("Tables", "Affected clients", "Because of", "Findings", "Command for the first"),
        [_fix(fix, policy, most) for fix in numbers.fixes],
    )


def _fix(fix: Fix, policy: str | None, most: int | None) -> list[Line]:
    next_ = command(fix, policy)
    return [
        _tables(fix, most),
        (f"{len(fix.hindered)}: {', '.join(fix.hindered)}" if fix.hindered else "none",),
        listed([Code(name) for name in fix.because], 6, " and {} more"),
        (first_names(fix.rules, 6),),
        ("its name cannot be shown",) if next_ is None else (Code(next_),),
    ]


def _tables(fix: Fix, most: int | None) -> Line:
    one = fix.tables == 1
    text = fix.row.table if one else f"{fix.tables:,} like {fix.row.table}"
    if most is not None and fix.place >= most:
        # The list omits it.
        return (text,)
    return (Link(text, query(**{"table" if one else "alike": str(fix.place)})),)


def _findings(overview: Overview, numbers: FleetSummary) -> Iterator[Block]:
    yield from _of_policy(overview)
    if not numbers.rules:
        yield Callout(Tone.GOOD, ("None.",))
        return
    ordered = sorted(numbers.rules.items(), key=lambda each: (SEVERITY_RANKS[each[0][1]], -each[1]))
    yield TableBlock(
        ("Rule", "Severity", "Findings"),
        [
            [(Link(rule, query(rule=rule)),), (severity,), (f"{count:,}",)]
            for (rule, severity), count in ordered
        ],
        [SEVERITY_TONES[Severity(severity)] for (_, severity), _ in ordered],
    )
    yield Paragraph((Code("deltaproto explain RULE"), " explains a rule."))


def _of_policy(overview: Overview) -> Iterator[Block]:
    if text := describe_hidden(overview.waived, overview.off):
        yield Paragraph((f"Not shown: {text}.",))
    if overview.of_policy:
        found = overview.of_policy
        yield TableBlock(
            ("Rule", "Severity", "On the policy itself", "Hint"),
            [[(f.rule,), (str(f.severity),), (f.message,), (f.hint,)] for f in found],
            [SEVERITY_TONES[finding.severity] for finding in found],
        )


def _unread(overview: Overview) -> Iterator[Block]:
    if not overview.unread:
        yield Callout(Tone.GOOD, ("Everything could be read.",))
        return
    shown = overview.unread[:_MOST_UNREAD]
    yield TableBlock(
        ("Table", "Code", "Cause"),
        [
            [
                (Code(each.table),),
                (each.code,),
                (" ".join((each.message, *(f"{f.rule}: {f.message}." for f in each.findings))),),
            ]
            for each in shown
        ],
    )
    more = len(overview.unread) - len(shown)
    if more:
        yield Paragraph((f"and {more:,} more",))
