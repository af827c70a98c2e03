"""The report's chapters that need no script: the same in HTML and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from deltaproto.fleet.drift.change import SEVERITY
from deltaproto.fleet.overview import Overview, Past
from deltaproto.policy.finding import Severity
from deltaproto.protocol import catalogue
from deltaproto.report.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Details,
    Document,
    Facts,
    Figure,
    Inline,
    Line,
    Link,
    Paragraph,
    Section,
    Table,
    Tone,
)
from deltaproto.report.interface import visible
from deltaproto.report.overview.chart import COLOURS, bars, columns
from deltaproto.report.overview.numbers import Cell, Fix, Numbers, command

_SEVERITIES = {
    str(Severity.ERROR): Tone.DANGER,
    str(Severity.WARNING): Tone.WARNING,
    str(Severity.INFO): None,
}
_MOST_FEATURES = 40
_MOST_UNREAD = 200
_MOST_CHANGES = 200


def document(
    overview: Overview, numbers: Numbers, policy: str | None, most: int | None = None
) -> Document:
    """Everything but the list of all tables, of which that has the first `most`."""
    scan = overview.scan
    sections = [
        Section("glance", "The fleet at a glance", list(_glance(overview, numbers, policy))),
        Section("first", "Tables to fix first", list(_first(overview, numbers, policy, most))),
        Section("clients", "Clients", list(_clients(numbers))),
        Section("features", "Features", list(_features(overview, numbers))),
        Section("drift", "Over time", list(_drift(overview))),
        Section("findings", "Findings", list(_findings(numbers))),
        Section("unread", "What could not be read", list(_unread(overview))),
    ]
    roots = ", ".join(scan.roots) or "named tables"
    return Document(
        "Delta protocols of the fleet",
        (f"Scan {scan.scan_id}, ended {scan.ended_at:%Y-%m-%d %H:%M} UTC, of ", Code(roots)),
        sections,
    )


def _glance(overview: Overview, numbers: Numbers, policy: str | None) -> Iterator[Block]:
    read, unread = len(overview.tables), len(overview.unread)
    if unread:
        told = f"{unread:,} could not be read: the picture is not complete."
        yield Callout(Tone.DANGER, (told,))
    held = f"by the policy {policy}" if policy else "by every client of the catalogue"
    if policy is None:
        yield Callout(
            Tone.NOTE,
            (
                "No policy was given: tables are held against the newest known version of every "
                "client. With ",
                Code("--policy"),
                " only the clients that you declare count.",
            ),
        )
    incomplete = sum(not row.complete for row in overview.tables)
    errors = sum(count for (_, severity), count in numbers.rules.items() if severity == "error")
    yield Facts(
        [
            ("Tables", (f"{read:,}",)),
            ("Not read", (f"{unread:,}",)),
            ("Not seen whole", (f"{incomplete:,}",)),
            (f"Usable {held}", (f"{numbers.compliant:,} of {read:,}",)),
            ("Findings", (f"{numbers.rules.total():,}",)),
            ("Errors among them", (f"{errors:,}",)),
        ]
    )
    protocols = sorted(numbers.protocols.items())
    rows = [(_versions(versions), count) for versions, count in protocols]
    yield Figure(
        bars("Tables by protocol version", rows),
        "Protocols",
        Table(
            ("Protocol", "Tables"),
            [[(Link(name, _query(protocol=name)),), (f"{count:,}",)] for name, count in rows],
        ),
    )
    levels = numbers.isolation.most_common()
    yield Figure(
        bars("Tables by declared isolation level", levels),
        "Isolation",
        Table(
            ("Isolation level", "Tables"), [[(name,), (f"{count:,}",)] for name, count in levels]
        ),
    )


def _first(
    overview: Overview, numbers: Numbers, policy: str | None, most: int | None
) -> Iterator[Block]:
    if not numbers.fixes:
        if numbers.compliant == len(overview.tables) > 0 and not overview.unread:
            yield Callout(Tone.GOOD, ("Nothing to fix: every client can use every table.",))
        else:
            told = "Nothing is known to need a fix, but not everything could be seen."
            yield Callout(Tone.WARNING, (told,))
        return
    yield Paragraph(
        (
            "Tables that the same clients cannot use stand together. What hinders most clients on "
            "most tables comes first; a client that would read wrongly weighs most.",
        )
    )
    yield Table(
        ("Tables", "Clients hindered", "Because of", "Findings", "Plan for the first"),
        [_fix(fix, policy, most) for fix in numbers.fixes],
    )


def _fix(fix: Fix, policy: str | None, most: int | None) -> list[Line]:
    next_ = command(fix, policy)
    return [
        _tables(fix, most),
        (f"{len(fix.hindered)}: {_some(fix.hindered, 4)}" if fix.hindered else "none",),
        _codes(fix.because, 6),
        (_some(fix.rules, 6),),
        ("its name cannot be shown",) if next_ is None else (Code(next_),),
    ]


def _tone(cell: Cell) -> Tone:
    if cell.wrong or cell.refused:
        return Tone.DANGER
    return Tone.WARNING if cell.unknown else Tone.GOOD


def _tables(fix: Fix, most: int | None) -> Line:
    one = fix.tables == 1
    text = fix.row.table if one else f"{fix.tables:,} like {fix.row.table}"
    if most is not None and fix.place >= most:
        # The list does not have it.
        return (text,)
    return (Link(text, _query(**{"table" if one else "alike": str(fix.place)})),)


def _clients(numbers: Numbers) -> Iterator[Block]:
    if not numbers.clients:
        told = "No table was read." if numbers.protocols.total() == 0 else "No client was declared."
        yield Paragraph((told,))
        return
    yield Paragraph(
        (
            "How many tables a client cannot use, of all that it was asked about: refused, read or "
            "written wrongly, or not known.",
        )
    )
    ranked = sorted(numbers.clients.items(), key=lambda each: (-each[1].bad, each[0]))
    hindered = [each for each in ranked if each[1].bad]
    if hindered:
        yield Table(
            ("Client", "Access", "Wrong", "Refused", "Unknown", "Ok"),
            [
                [
                    (Link(client, _query(client=client, access=access)),),
                    (access,),
                    *((f"{n:,}",) for n in (cell.wrong, cell.refused, cell.unknown, cell.ok)),
                ]
                for (client, access), cell in hindered
            ],
            [_tone(cell) for _, cell in hindered],
        )
    fine: dict[str, list[str]] = {}
    for (client, access), cell in ranked:
        if not cell.bad:
            fine.setdefault(client, []).append(access)
    if fine:
        lines: list[Line] = [
            (Code(client), f": {', '.join(accesses)}") for client, accesses in sorted(fine.items())
        ]
        yield Details(f"On every table ({len(fine)})", [Bullets(lines)])
    bad = Counter[str]()
    for (client, _), cell in numbers.clients.items():
        bad[client] += cell.bad
    troubled = [client for client, count in bad.most_common() if count]
    if troubled:
        yield Section("client-feature", "By feature", [_by_feature(numbers, troubled)])
        yield Section("client-group", "By folder", [_by_group(numbers, troubled)])


def _by_feature(numbers: Numbers, clients: Sequence[str]) -> Block:
    total = Counter[str]()
    for (_, feature), count in numbers.blocking.items():
        total[feature] += count
    features = [feature for feature, _ in total.most_common(_MOST_FEATURES)]
    rows: list[list[Line]] = []
    cells: list[list[Tone | None]] = []
    for client in clients:
        counts = [numbers.blocking[client, feature] for feature in features]
        rows.append(
            [
                (client,),
                *(
                    (Link(f"{count:,}", _query(client=client, feature=feature)),)
                    if count
                    else ("",)
                    for feature, count in zip(features, counts, strict=True)
                ),
            ]
        )
        cells.append([None, *(Tone.DANGER if count else None for count in counts)])
    return Table(("Tables that it cannot use because of", *features), rows, cells=cells)


def _by_group(numbers: Numbers, clients: Sequence[str]) -> Block:
    groups = sorted(set(numbers.groups))
    rows: list[list[Line]] = []
    cells: list[list[Tone | None]] = []
    for client in clients:
        found = [numbers.by_group.get((client, group), Cell()) for group in groups]
        rows.append(
            [
                (client,),
                *(
                    (
                        Link(
                            f"{cell.bad:,} of {cell.total:,}",
                            _query(client=client, group=group),
                        ),
                    )
                    if cell.total
                    else ("",)
                    for group, cell in zip(groups, found, strict=True)
                ),
            ]
        )
        cells.append([None, *(_tone(cell) if cell.total else None for cell in found)])
    heads = [group.rpartition("/")[2] or group for group in groups]
    if len(set(heads)) < len(heads):
        heads = groups
    return Table(("Tables that it cannot use in", *heads), rows, cells=cells)


def _features(overview: Overview, numbers: Numbers) -> Iterator[Block]:
    if not numbers.features:
        yield Paragraph(("No table has a feature.",))
        return
    first = overview.past[0].features if len(overview.past) > 1 else {}
    heads = ["Feature", "Needed by", "Supported", "Enabled", "Present"]
    rows: list[list[Line]] = []
    for name, count in numbers.features.most_common(_MOST_FEATURES):
        row: list[Line] = [
            (Link(name, _query(feature=name)),),
            ("everyone" if str(catalogue.record(name).kind) != "writer" else "writers",),
            *((f"{n:,}",) for n in (count, numbers.enabled[name], numbers.present[name])),
        ]
        if first:
            row.append((f"{count - first.get(name, 0):+,}",))
        rows.append(row)
    if first:
        heads.append(f"Since {overview.past[0].scan.ended_at:%Y-%m-%d}")
    top = numbers.features.most_common(12)
    yield Figure(
        bars("Tables that support a feature", top), "The most frequent", Table(heads, rows)
    )


def _drift(overview: Overview) -> Iterator[Block]:
    if len(overview.past) < 2:
        yield Paragraph(("There is one scan of these roots; the next one shows what changed.",))
        return
    yield _timeline(overview.past)
    pair = overview.pair
    assert pair is not None
    title = f"Since the scan of {pair.before.ended_at:%Y-%m-%d %H:%M} UTC"
    if not overview.changes:
        yield Section("changes", title, [Callout(Tone.GOOD, ("Nothing changed.",))])
        return
    shown = overview.changes[:_MOST_CHANGES]
    blocks: list[Block] = [
        Table(
            ("Table", "Change", "Feature", "Before", "Now"),
            [
                [
                    (Code(change.table),),
                    (str(change.kind),),
                    (Code(change.feature),) if change.feature else ("",),
                    (change.before or "",),
                    (change.after or "",),
                ]
                for change in shown
            ],
            [_SEVERITIES[str(SEVERITY[change.kind])] for change in shown],
        )
    ]
    more = len(overview.changes) - len(shown)
    if more:
        told = f"and {more:,} more: "
        blocks.append(Paragraph((told, Code("deltaproto drift INVENTORY"), " lists all.")))
    yield Section("changes", title, blocks)


def _timeline(past: Sequence[Past]) -> Block:
    total = Counter[tuple[int, int]]()
    for each in past:
        total.update(each.protocols)
    named = sorted(versions for versions, _ in total.most_common(COLOURS - 1))
    series = [
        (_versions(versions), [each.protocols.get(versions, 0) for each in past])
        for versions in named
    ]
    if len(total) > len(named):
        others = [
            sum(each.protocols.values()) - sum(each.protocols.get(v, 0) for v in named)
            for each in past
        ]
        series.append(("others", others))
    marks = [f"{each.scan.ended_at:%m-%d %H:%M}" for each in past]
    return Figure(
        columns("Tables by protocol, scan by scan", marks, series),
        "Protocols, scan by scan",
        Table(
            ("Scan", *(name for name, _ in series)),
            [
                [(mark,), *((f"{values[place]:,}",) for _, values in series)]
                for place, mark in enumerate(marks)
            ],
        ),
    )


def _findings(numbers: Numbers) -> Iterator[Block]:
    if not numbers.rules:
        yield Callout(Tone.GOOD, ("None.",))
        return
    ranks = {str(severity): rank for rank, severity in enumerate(Severity)}
    ordered = sorted(numbers.rules.items(), key=lambda each: (ranks[each[0][1]], -each[1]))
    yield Table(
        ("Rule", "Severity", "Findings"),
        [
            [(Link(rule, _query(rule=rule)),), (severity,), (f"{count:,}",)]
            for (rule, severity), count in ordered
        ],
        [_SEVERITIES[severity] for (_, severity), _ in ordered],
    )
    yield Paragraph((Code("deltaproto explain RULE"), " tells what a rule means."))


def _unread(overview: Overview) -> Iterator[Block]:
    if not overview.unread:
        yield Callout(Tone.GOOD, ("Everything could be read.",))
        return
    shown = overview.unread[:_MOST_UNREAD]
    yield Table(
        ("Table", "Code", "Cause"),
        [[(Code(each.table),), (each.code,), (each.message,)] for each in shown],
    )
    more = len(overview.unread) - len(shown)
    if more:
        yield Paragraph((f"and {more:,} more",))


def _versions(versions: tuple[int, int]) -> str:
    return f"({versions[0]},{versions[1]})"


def _query(**values: str) -> str:
    return "tables?" + urlencode({name: visible(value) for name, value in values.items()})


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _codes(names: Sequence[str], most: int) -> Line:
    found: list[Inline] = []
    for name in names[:most]:
        found += [", ", Code(name)] if found else [Code(name)]
    if len(names) > most:
        found.append(f" and {len(names) - most} more")
    return tuple(found) if found else ("",)
