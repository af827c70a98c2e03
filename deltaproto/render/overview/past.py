"""The chapters on features and on changes over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from deltaproto.fleet.drift.diff import SEVERITY
from deltaproto.fleet.overview import Overview, ScanFigures
from deltaproto.inspection.age import format_time
from deltaproto.protocol import feature_catalog
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Details,
    Figure,
    Line,
    Link,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.drift import incomplete_reasons
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.overview.chart import COLOURS, bars, columns, query, versions
from deltaproto.render.overview.numbers import FleetSummary, VerdictCounts, plain_location
from deltaproto.render.terminal import largest_first

_MOST_BLOCKING = 40


def clients(numbers: FleetSummary) -> Iterator[Block]:
    """Yield the clients, those with the most blocked tables first."""
    if not numbers.clients:
        text = "No table was read." if numbers.protocols.total() == 0 else "No client was declared."
        yield Paragraph((text,))
        return
    yield Paragraph(
        (
            "Number of tables that each client cannot use, of all checked tables: refused, wrong "
            "results, or unknown.",
        )
    )
    ranked = sorted(numbers.clients.items(), key=lambda each: (-each[1].bad, each[0]))
    hindered = [each for each in ranked if each[1].bad]
    if hindered:
        yield TableBlock(
            ("Client", "Access", "Wrong", "Refused", "Unknown", "Ok"),
            [
                [
                    (Link(client, query(client=client, access=access)),),
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
        yield Details(f"Clients that can use every table ({len(fine)})", [Bullets(lines)])
    bad = Counter[str]()
    for (client, _), cell in numbers.clients.items():
        bad[client] += cell.bad
    troubled = [client for client, count in largest_first(bad) if count]
    if troubled:
        yield Section("client-feature", "By feature", [_by_feature(numbers, troubled)])
        yield Section("client-group", "By folder", [_by_group(numbers, troubled)])


def _by_feature(numbers: FleetSummary, clients: Sequence[str]) -> Block:
    total = Counter[str]()
    for (_, feature), count in numbers.blocking.items():
        total[feature] += count
    features = [feature for feature, _ in largest_first(total, _MOST_BLOCKING)]
    rows: list[list[Line]] = []
    cells: list[list[Tone | None]] = []
    for client in clients:
        counts = [numbers.blocking[client, feature] for feature in features]
        rows.append(
            [
                (client,),
                *(
                    (Link(f"{count:,}", query(client=client, feature=feature)),) if count else ("",)
                    for feature, count in zip(features, counts, strict=True)
                ),
            ]
        )
        cells.append([None, *(Tone.DANGER if count else None for count in counts)])
    return TableBlock(("Unusable tables because of", *features), rows, cells=cells)


def _by_group(numbers: FleetSummary, clients: Sequence[str]) -> Block:
    groups = sorted(set(numbers.groups))
    rows: list[list[Line]] = []
    cells: list[list[Tone | None]] = []
    for client in clients:
        found = [numbers.by_group.get((client, group), VerdictCounts()) for group in groups]
        rows.append(
            [
                (client,),
                *(
                    (
                        Link(
                            f"{cell.bad:,} of {cell.total:,}",
                            query(client=client, group=group),
                        ),
                    )
                    if cell.total
                    else ("",)
                    for group, cell in zip(groups, found, strict=True)
                ),
            ]
        )
        cells.append([None, *(_tone(cell) if cell.total else None for cell in found)])
    heads = [plain_location(group).rpartition("/")[2] or group for group in groups]
    if len(set(heads)) < len(heads):
        heads = groups
    return TableBlock(("Unusable tables in", *heads), rows, cells=cells)


def _tone(cell: VerdictCounts) -> Tone:
    if cell.wrong or cell.refused:
        return Tone.DANGER
    return Tone.WARNING if cell.unknown else Tone.GOOD


_MOST_FEATURES = 40
_MOST_CHANGES = 200


def _present(numbers: FleetSummary, name: str) -> str:
    unknown = numbers.present_unknown[name]
    return f"{numbers.present[name]:,}" + (f", {unknown:,} unknown" if unknown else "")


def features(overview: Overview, numbers: FleetSummary) -> Iterator[Block]:
    """Yield the features that are supported, enabled and used, and how their counts changed."""
    if not numbers.features:
        yield Paragraph(("No table has a feature.",))
        return
    first = overview.past[0].features if len(overview.past) > 1 else {}
    heads = ["Feature", "Needed by", "Supported", "Enabled", "Present"]
    rows: list[list[Line]] = []
    for name, count in largest_first(numbers.features, _MOST_FEATURES):
        row: list[Line] = [
            (Link(name, query(feature=name)),),
            (
                "everyone"
                if str(feature_catalog.feature_record(name).kind) != "writer"
                else "writers",
            ),
            *((f"{n:,}",) for n in (count, numbers.enabled[name])),
            (_present(numbers, name),),
        ]
        if first:
            row.append((f"{count - first.get(name, 0):+,}",))
        rows.append(row)
    if first:
        heads.append(f"Since {overview.past[0].scan.ended_at:%Y-%m-%d}")
    top = largest_first(numbers.features, 12)
    yield Figure(
        bars("Tables that support a feature", top), "The most frequent", TableBlock(heads, rows)
    )


def drift(overview: Overview) -> Iterator[Block]:
    """Yield the protocols in each scan, and the changes since the previous one."""
    if len(overview.past) > 1:
        yield _timeline(overview.past)
    if not overview.pairs:
        yield Paragraph(("There is one scan of these roots; the next one shows what changed.",))
        return
    since = ", ".join(format_time(pair.before.ended_at) for pair in overview.pairs)
    title = f"Since the scan{'s' * (len(overview.pairs) > 1)} of {since}"
    if len(overview.pairs) < len(overview.sources):
        yield Paragraph(("Roots with one scan are not compared.",))
    reasons = dict.fromkeys(r for pair in overview.pairs for r in incomplete_reasons(pair))
    doubts: list[Block] = [Callout(Tone.WARNING, (f"{reason}.",)) for reason in reasons]
    if not overview.changes:
        nothing: Block = Callout(Tone.GOOD, ("Nothing changed.",))
        if doubts:
            nothing = Paragraph(("No change was found.",))
        yield Section("changes", title, [*doubts, nothing])
        return
    shown = overview.changes[:_MOST_CHANGES]
    blocks: list[Block] = [
        *doubts,
        TableBlock(
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
            [SEVERITY_TONES[SEVERITY[change.kind]] for change in shown],
        ),
    ]
    more = len(overview.changes) - len(shown)
    if more:
        text = f"and {more:,} more: "
        blocks.append(Paragraph((text, Code("deltaproto drift INVENTORY"), " lists all.")))
    yield Section("changes", title, blocks)


def _timeline(past: Sequence[ScanFigures]) -> Block:
    total = Counter[tuple[int, int]]()
    for each in past:
        total.update(each.protocols)
    named = sorted(pair for pair, _ in largest_first(total, COLOURS - 1))
    series = [(versions(pair), [each.protocols.get(pair, 0) for each in past]) for pair in named]
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
        TableBlock(
            ("Scan", *(name for name, _ in series)),
            [
                [(mark,), *((f"{values[place]:,}",) for _, values in series)]
                for place, mark in enumerate(marks)
            ],
        ),
    )
