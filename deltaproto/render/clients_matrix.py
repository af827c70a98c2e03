"""The matrix of clients and features in each format. Measured cells are marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, assert_never

from deltaproto.clients.feature_matrix import (
    FeatureAnswer,
    MatrixColumn,
    feature_answer,
    feature_names,
    feature_rows,
)
from deltaproto.clients.model import Access, Client, ProtocolGate, Range
from deltaproto.clients.resolve import ClientAtVersion
from deltaproto.counts import counted
from deltaproto.render.document.blocks import (
    Block,
    Code,
    Document,
    FactList,
    MatrixBlock,
    MatrixCell,
    Paragraph,
    Section,
    Tone,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import PageFormat, json_text


def client_fields(client: Client) -> dict[str, Any]:
    """Return one client as JSON."""
    return {
        "id": client.id,
        "name": client.name,
        "aliases": list(client.aliases),
        "versions": client.versions,
        "ranges": [_range_fields(each) for each in client.ranges],
        "measured": [
            {"version": each.start, "paths": [path.name for path in each.paths]}
            for each in client.measured
        ],
    }


def candidate_fields(candidate: ClientAtVersion) -> dict[str, Any]:
    """Return one version of a client as JSON."""
    fields = client_fields(candidate.client)
    each = candidate.range
    fields["ranges"] = [] if each is None else [_range_fields(each)]
    fields["version"] = candidate.reference.version
    fields["known"] = each is not None
    fields["matrix"] = [
        {
            "path": path.name,
            "feature": row.feature,
            "kind": str(row.kind),
            "read": None if row.read is None else str(row.read),
            "write": None if row.write is None else str(row.write),
        }
        for path in candidate.paths
        for row in feature_rows(path)
    ]
    return fields


def _range_fields(each: Range) -> dict[str, Any]:
    return {
        "from": each.start,
        "before": each.end,
        "newest": each.newest,
        "paths": [
            {
                "name": path.name,
                "read": _gate_fields(path.read),
                "write": _gate_fields(path.write),
                "access": [str(access) for access in Access if access in path.access],
                "known_bad": [
                    {
                        "features": sorted(bad.features),
                        "access": sorted(bad.access),
                        "what": bad.what,
                        "reference": bad.reference,
                        "fails": bad.fails,
                        "where": str(bad.where),
                        "ungated": bad.ungated,
                        "pairs": [list(pair) for pair in sorted(bad.pairs)],
                        "disputed": bad.disputed,
                    }
                    for bad in path.known_bad
                ],
                "hazards": [
                    {
                        "hazard": hazard,
                        "access": str(access),
                        "verdict": str(handling.verdict),
                        "what": handling.what or None,
                        "reference": handling.reference or None,
                    }
                    for (hazard, access), handling in sorted(path.hazards.items())
                ],
            }
            for path in each.paths
        ],
        "requires_complete_protocols": each.whole,
        "partial": each.partial,
        "catalog_only": sorted(each.catalog_only),
        "confidence": str(each.confidence),
        "evidence": [proof._asdict() for proof in each.evidence],
        "note": each.note or None,
    }


def _gate_fields(gate: ProtocolGate | None) -> dict[str, Any] | None:
    if gate is None:
        return None
    return {
        "legacy_versions": sorted(gate.legacy),
        "features": None if gate.features is None else sorted(gate.features),
        "only_unused": sorted(gate.unused),
        "only_implied_and_unused": sorted(gate.legacy_unused),
        "unchecked": "all" if gate.unchecked is None else sorted(gate.unchecked),
        "modes": {feature: sorted(modes) for feature, modes in gate.modes.items()},
        "reader_versions": None if gate.readers is None else sorted(gate.readers),
        "reader_features": None if gate.reader_features is None else sorted(gate.reader_features),
    }


_MEASURED = "*"
_SYMBOLS: Mapping[FeatureAnswer, tuple[str, Tone | None]] = {
    FeatureAnswer.YES: ("+", Tone.GOOD),
    FeatureAnswer.UNKNOWN: ("~", Tone.WARNING),
    FeatureAnswer.UNCHECKED: ("?", Tone.WARNING),
    FeatureAnswer.WRONG: ("X", Tone.DANGER),
    FeatureAnswer.UNUSED: ("u", Tone.NOTE),
    FeatureAnswer.NO: ("-", None),
}
_MEANINGS = {
    FeatureAnswer.YES: "accepts tables that list the feature, whether it is used or not",
    FeatureAnswer.UNKNOWN: "two sources disagree",
    FeatureAnswer.UNCHECKED: "accepts the feature without supporting it",
    FeatureAnswer.WRONG: "accepts the feature and returns wrong results where it is used",
    FeatureAnswer.UNUSED: "accepts the feature only while nothing in the table uses it",
    FeatureAnswer.NO: "refuses the table",
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
        case PageFormat.MARKDOWN | PageFormat.HTML | PageFormat.TEXT:
            write_document(matrix_document(columns), format_, file, color=color)
        case _:
            assert_never(format_)


def matrix_document(columns: Sequence[MatrixColumn]) -> Document:
    """Return the matrix as a document of tables."""
    clients = len({column.reference.id for column in columns})
    measured = sum(column.measured for column in columns)
    shown = counted(len(columns), "version and path", "versions and paths")
    counts = f"{shown} of {counted(clients, 'client')}, {measured:,} of them measured"
    sections: list[Block] = [Section("meaning", "Cell values", list(_legend()))]
    for read, title in _SIDES:
        sections.append(Section(title.lower(), title, [_matrix(columns, read=read)]))
    return Document("Clients and features", (counts,), sections)


def _legend() -> Iterator[Block]:
    yield FactList([(str(each), (text,)) for each, text in _MEANINGS.items()])
    yield Paragraph(
        (
            f"Cells with {_MEASURED} were measured on tables with known contents. The others come "
            "from source code and documentation: ",
            Code("deltaproto clients ID@VERSION"),
            " lists the sources. A cell is empty if the client has no such path.",
        )
    )


def _matrix(columns: Sequence[MatrixColumn], *, read: bool) -> MatrixBlock:
    shown = [c for c in columns if (c.path.read if read else c.path.write) is not None]
    rows = [
        (name, [_cell(feature_answer(c, name, read=read), measured=c.measured) for c in shown])
        for name in feature_names(list(columns))
    ]
    return MatrixBlock("Feature", [str(c.reference) for c in shown], rows, f"{_MEASURED} measured")


def _cell(answer: FeatureAnswer | None, *, measured: bool) -> MatrixCell | None:
    if answer is None:
        return None
    return MatrixCell(str(answer), *_SYMBOLS[answer], mark=_MEASURED if measured else "")


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
