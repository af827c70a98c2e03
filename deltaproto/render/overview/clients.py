"""The chapter on clients: which tables each client cannot use, by feature and by folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from deltaproto.render.document import (
    Block,
    Bullets,
    Code,
    Details,
    Line,
    Link,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.overview.chart import query
from deltaproto.render.overview.numbers import FleetSummary, VerdictCounts

_MOST_FEATURES = 40


def clients(numbers: FleetSummary) -> Iterator[Block]:
    """Yield the clients, those with the most blocked tables first."""
    if not numbers.clients:
        told = "No table was read." if numbers.protocols.total() == 0 else "No client was declared."
        yield Paragraph((told,))
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
        yield Details(f"On every table ({len(fine)})", [Bullets(lines)])
    bad = Counter[str]()
    for (client, _), cell in numbers.clients.items():
        bad[client] += cell.bad
    troubled = [client for client, count in bad.most_common() if count]
    if troubled:
        yield Section("client-feature", "By feature", [_by_feature(numbers, troubled)])
        yield Section("client-group", "By folder", [_by_group(numbers, troubled)])


def _by_feature(numbers: FleetSummary, clients: Sequence[str]) -> Block:
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
    heads = [group.rpartition("/")[2] or group for group in groups]
    if len(set(heads)) < len(heads):
        heads = groups
    return TableBlock(("Unusable tables in", *heads), rows, cells=cells)


def _tone(cell: VerdictCounts) -> Tone:
    if cell.wrong or cell.refused:
        return Tone.DANGER
    return Tone.WARNING if cell.unknown else Tone.GOOD
