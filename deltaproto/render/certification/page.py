"""A measurement as a document, with the same content in Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.clients.measurement import MeasuredOutcome
from deltaproto.render.certification.words import (
    MEANINGS,
    TONES,
    Certified,
    asked,
    by_case,
    counts,
    surroundings,
    told,
)
from deltaproto.render.document import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
    listed,
)


def certification_document(certified: Certified) -> Document:
    """Return the whole report as a document."""
    measured = certified.measured
    sections = [
        Section("summary", "Summary", list(_summary(certified))),
        Section("wrong", "Wrong answers and broken promises", list(_wrong(certified))),
        Section("reads", "Reading", list(_grid(certified, reads=True))),
        Section("writes", "Writing", list(_grid(certified, reads=False))),
        Section("reasons", "What refusals say", list(_reasons(certified))),
        Section("catalogue", "Where the catalogue says otherwise", list(_differences(certified))),
        Section("how", "How it was measured", list(_how(certified))),
    ]
    return Document(f"{measured.name}, measured", (told(measured.cells),), sections)


def _summary(certified: Certified) -> Iterator[Block]:
    cells = certified.measured.cells
    if certified.wrong:
        tables = len({cell.case for cell in certified.wrong})
        text = f"{len(certified.wrong):,} operations on {tables:,} tables went wrong silently."
        yield Callout(Tone.DANGER, (text,))
    else:
        yield Callout(Tone.GOOD, ("Nothing went wrong silently.",))
    yield TableBlock(
        ("Outcome", "Cells", "Meaning"),
        [
            ((str(outcome),), (f"{number:,}",), (MEANINGS[outcome],))
            for outcome, number in counts(cells).items()
        ],
        tones=[TONES[outcome] for outcome in counts(cells)],
    )


def _wrong(certified: Certified) -> Iterator[Block]:
    if not certified.wrong:
        yield Paragraph(("None.",))
    for name, found in by_case(certified.wrong).items():
        case = certified.cases[name]
        blocks: list[Block] = [Paragraph((case.about,))]
        blocks.append(
            Bullets([(Strong(str(cell.operation)), f": {cell.why}") for cell in found.values()])
        )
        commands = "\n".join(certified.command(cell) for cell in found.values())
        blocks.append(CodeBlock(commands, "shell", "Each of these shows it again"))
        yield Section(f"wrong-{name}", name, blocks)


def _grid(certified: Certified, *, reads: bool) -> Iterator[Block]:
    operations = asked(certified.measured.cells, reads=reads)
    if not operations:
        yield Paragraph((f"It was not asked to {'read' if reads else 'write'}, or cannot.",))
        return
    rows: list[list[Line]] = []
    tones: list[list[Tone | None]] = []
    for name, found in by_case(certified.measured.cells).items():
        cells = [found.get(operation) for operation in operations]
        if any(cells):
            texts = ["" if cell is None else _short(cell.outcome) for cell in cells]
            rows.append([(Code(name),), *((text,) for text in texts)])
            tones.append([None, *(None if c is None else TONES[c.outcome] for c in cells)])
    yield TableBlock(("Table", *map(str, operations)), rows, cells=tones)


def _short(outcome: MeasuredOutcome) -> str:
    return "" if outcome is MeasuredOutcome.NOT_OFFERED else str(outcome)


def _reasons(certified: Certified) -> Iterator[Block]:
    found: dict[str, list[str]] = {}
    for cell in certified.measured.cells:
        if cell.outcome in (
            MeasuredOutcome.REFUSED,
            MeasuredOutcome.CRASHED,
            MeasuredOutcome.TIMED_OUT,
        ):
            names = found.setdefault(cell.why or "it does not say", [])
            if cell.case not in names:
                names.append(cell.case)
    if not found:
        yield Paragraph(("Nothing was refused.",))
        return
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    yield TableBlock(
        ("What it says", "Tables"),
        [((why,), listed(names, 6, " and {} more")) for why, names in ordered],
    )


def _differences(certified: Certified) -> Iterator[Block]:
    if not certified.differences:
        yield Paragraph(("Nowhere: it says what was measured.",))
        return
    yield TableBlock(
        ("Table", "Access", "Catalogue", "Measured", "Why"),
        [
            ((Code(d.case),), (str(d.access),), (str(d.verdict),), (str(d.outcome),), (d.why,))
            for d in certified.differences
        ],
        tones=[Tone.DANGER if d.looser else None for d in certified.differences],
    )


def _how(certified: Certified) -> Iterator[Block]:
    yield FactList([(name, (text,)) for name, text in surroundings(certified.measured)])
    yield Paragraph(
        (
            "Each table was made by Spark, with rows that are known. What the client answers is "
            "compared with them. What it writes is written to a copy, which Spark and deltaproto's "
            "own log reader look at afterwards.",
        )
    )
