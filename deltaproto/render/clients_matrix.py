"""The matrix of clients and features in each format. Measured cells are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, assert_never

from deltaproto.clients.feature_matrix import (
    FeatureAnswer,
    MatrixColumn,
    feature_answer,
    feature_names,
)
from deltaproto.render.document import (
    Block,
    Code,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.interface import PageFormat, json_text

_MEASURED = "*"
_SYMBOLS: Mapping[FeatureAnswer | None, tuple[str, str]] = {
    FeatureAnswer.YES: ("+", "green"),
    FeatureAnswer.UNKNOWN: ("~", "yellow"),
    FeatureAnswer.UNCHECKED: ("?", "yellow"),
    FeatureAnswer.WRONG: ("X", "bold red"),
    FeatureAnswer.UNUSED: ("u", "yellow"),
    FeatureAnswer.NO: ("-", "dim"),
    None: (" ", ""),
}
_TONES: Mapping[FeatureAnswer | None, Tone | None] = {
    FeatureAnswer.YES: Tone.GOOD,
    FeatureAnswer.UNKNOWN: Tone.WARNING,
    FeatureAnswer.UNCHECKED: Tone.WARNING,
    FeatureAnswer.WRONG: Tone.DANGER,
    FeatureAnswer.UNUSED: Tone.NOTE,
    FeatureAnswer.NO: None,
    None: None,
}
_MEANINGS = {
    FeatureAnswer.YES: "it takes tables that list the feature, used or not",
    FeatureAnswer.UNKNOWN: "two sources disagree on it",
    FeatureAnswer.UNCHECKED: "it lets the feature through without understanding it",
    FeatureAnswer.WRONG: "it lets the feature through, and goes wrong where it is used",
    FeatureAnswer.UNUSED: "only while nothing on the table uses the feature",
    FeatureAnswer.NO: "it refuses the table",
}
_SIDES = ((True, "Reading"), (False, "Writing"))


def write_matrix(
    columns: Sequence[MatrixColumn], format_: PageFormat, file: IO[str], *, color: bool
) -> None:
    """Write every feature against every column, with separate tables for reads and writes."""
    match format_:
        case PageFormat.JSON | PageFormat.JSONL:
            payload = {"clients": [], "matrix": list(_fields(columns))}
            file.write(json_text("clients", payload, line=format_ is PageFormat.JSONL))
        case PageFormat.MARKDOWN | PageFormat.HTML:
            from deltaproto.render.document.render import document_text

            html = format_ is PageFormat.HTML
            file.write(document_text(matrix_document(columns), html=html))
        case PageFormat.TEXT:
            from deltaproto.render.console import DataConsole

            _print(DataConsole(file, color=color), columns)
        case _:
            assert_never(format_)


def matrix_document(columns: Sequence[MatrixColumn]) -> Document:
    """Return the matrix as a document of tables."""
    clients = len({column.reference.id for column in columns})
    measured = sum(column.measured for column in columns)
    told = f"{len(columns)} versions and paths of {clients} clients, {measured} of them measured"
    sections: list[Block] = [Section("meaning", "What the cells say", list(_legend()))]
    for read, title in _SIDES:
        sections.append(Section(title.lower(), title, [_table(columns, read=read)]))
    return Document("Clients and features", (told,), sections)


def _legend() -> Iterator[Block]:
    yield FactList([(str(each), (text,)) for each, text in _MEANINGS.items()])
    yield Paragraph(
        (
            f"A cell with {_MEASURED} was measured on tables with known answers. The others are "
            "known from source code and documents: ",
            Code("deltaproto clients ID@VERSION"),
            " shows from which. An empty cell is a path that does not do it at all.",
        )
    )


def _table(columns: Sequence[MatrixColumn], *, read: bool) -> TableBlock:
    shown = [c for c in columns if (c.path.read if read else c.path.write) is not None]
    rows: list[list[Line]] = []
    tones: list[list[Tone | None]] = []
    for name in feature_names(list(columns)):
        found = [feature_answer(column, name, read=read) for column in shown]
        marks = [_MEASURED if column.measured else "" for column in shown]
        cells: list[Line] = [
            (f"{each}{mark}" if each else "",) for each, mark in zip(found, marks, strict=True)
        ]
        rows.append([(Code(name),), *cells])
        tones.append([None, *(_TONES[each] for each in found)])
    return TableBlock(("Feature", *(str(c.reference) for c in shown)), rows, cells=tones)


def _fields(columns: Sequence[MatrixColumn]) -> Iterator[dict[str, Any]]:
    for column in columns:
        for name, row in column.rows.items():
            yield {
                "client": column.reference.id,
                "path": column.path.name,
                "version": column.reference.version,
                "feature": name,
                "kind": str(row.kind),
                "read": None if row.read is None else str(row.read),
                "write": None if row.write is None else str(row.write),
                "measured": column.measured,
            }


def _print(console: Any, columns: Sequence[MatrixColumn]) -> None:
    from rich.text import Text

    names = feature_names(list(columns))
    first = max(map(len, names)) + 1
    room = max(1, (console.width - first) // 3)
    for read, title in _SIDES:
        shown = [c for c in columns if (c.path.read if read else c.path.write) is not None]
        for start in range(0, len(shown), room):
            part = shown[start : start + room]
            console.print(Text(title, style="bold"))
            console.print(*_upright([str(column.reference) for column in part], first))
            for name in names:
                line = Text(name.ljust(first))
                for column in part:
                    symbol, style = _SYMBOLS[feature_answer(column, name, read=read)]
                    mark = _MEASURED if column.measured and symbol.strip() else " "
                    line.append(symbol, style)
                    line.append(f"{mark} ", "dim")
                console.print(line)
            console.print("")
    told = ", ".join(f"{_SYMBOLS[each][0]} {each}" for each in _MEANINGS)
    console.print(Text(f"{told}; {_MEASURED} measured", style="dim"))


def _upright(headings: list[str], first: int) -> Iterator[Any]:
    """Yield the headings written top to bottom, each above its column."""
    from rich.text import Text

    height = max(map(len, headings))
    for line in range(height):
        letters = [heading.rjust(height)[line] for heading in headings]
        yield Text(" " * first + "".join(f"{letter}  " for letter in letters), style="dim")
