"""The results of `clients`: documents and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from deltaproto.clients.feature_matrix import FeatureAnswer, FeatureRow, feature_rows
from deltaproto.clients.model import Access, Client, Path, ProtocolGate, Range, Verdict
from deltaproto.clients.resolve import ClientAtVersion, latest_version
from deltaproto.counts import any_name, counted
from deltaproto.render.clients_matrix import candidate_fields, client_fields
from deltaproto.render.document.blocks import (
    Block,
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
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import Format, json_text

_HEADINGS = ("Client", "Name", "Versions known", "Newest: reads", "Newest: writes")
_NAME = 1
_MATRIX_HEADINGS = ("Feature", "Needed by", "Read", "Write")
_TONES = {
    str(FeatureAnswer.YES): Tone.GOOD,
    str(FeatureAnswer.UNKNOWN): Tone.WARNING,
    str(FeatureAnswer.UNUSED): Tone.WARNING,
    str(FeatureAnswer.UNCHECKED): Tone.DANGER,
    str(FeatureAnswer.WRONG): Tone.DANGER,
    str(FeatureAnswer.NO): Tone.DANGER,
}


def write_clients(
    clients: Sequence[Client], format_: Format, file: IO[str], *, color: bool
) -> None:
    """Write all clients, one row each."""
    if not _is_json(format_, file, [client_fields(client) for client in clients]):
        write_document(_clients_document(clients), format_, file, color=color)


def write_client(client: Client, format_: Format, file: IO[str], *, color: bool) -> None:
    """Write one client with all its versions."""
    if not _is_json(format_, file, [client_fields(client)]):
        write_document(_client_document(client), format_, file, color=color)


def write_candidate(
    candidate: ClientAtVersion, format_: Format, file: IO[str], *, color: bool
) -> None:
    """Write one version of a client against every feature."""
    if not _is_json(format_, file, [candidate_fields(candidate)]):
        write_document(_candidate_document(candidate), format_, file, color=color)


def _clients_document(clients: Iterable[Client]) -> Document:
    rows: list[list[Line]] = []
    for client in clients:
        first, *rest = _row(client)
        rows.append([(Code(first),), *((cell,) for cell in rest)])
    intro = ("The oldest and newest known version of each, and what the newest accepts.",)
    hint = Paragraph((Code("deltaproto clients ID"), " shows all details."))
    return Document("Clients", intro, [TableBlock(_HEADINGS, rows, spare=frozenset({_NAME})), hint])


def _client_document(client: Client) -> Document:
    blocks: list[Block] = [
        Section(f"range-{number}", _span(each), list(_range_blocks(each)))
        for number, each in enumerate(client.ranges)
    ]
    if client.measured:
        blocks.append(FactList([("measured", (_measured_versions(client),))]))
    newest = latest_version(client.newest, client)
    example = f"{client.id}@{newest}" if newest else client.id
    blocks.append(Paragraph((Code(f"deltaproto clients {example}"), " shows every feature.")))
    return Document(client.id, (client.name,), blocks)


def _range_blocks(each: Range) -> Iterator[Block]:
    known: list[tuple[str, Line]] = [(label, (text,)) for label, text in _range_facts(each)]
    for path in each.paths:
        if path.name:
            yield Section(path.name, f"path {path.name}", [FactList(_path_facts(path))])
        else:
            known = [*_path_facts(path), *known]
    yield FactList(known)


def _path_facts(path: Path) -> list[tuple[str, Line]]:
    return [
        ("reads", (_gate_text(path.read),)),
        ("writes", (_gate_text(path.write),)),
        ("offers", (_offers(path),)),
    ]


def _candidate_document(candidate: ClientAtVersion) -> Document:
    title, name = str(candidate.reference), (candidate.client.name,)
    if candidate.range is None:
        unknown = Callout(Tone.DANGER, (f"unknown: {candidate.unknown}",))
        return Document(title, name, [unknown])
    blocks: list[Block] = []
    for path in candidate.paths:
        inner: list[Block] = [FactList(_path_facts(path)), _matrix_table(feature_rows(path))]
        blocks += [Section(path.name, f"path {path.name}", inner)] if path.name else inner
    known = [(label, (text,)) for label, text in _range_facts(candidate.range)]
    return Document(title, name, [*blocks, FactList(known)])


def _matrix_table(rows: Sequence[FeatureRow]) -> TableBlock:
    cells = [[str(row.kind), str(row.read or "-"), str(row.write or "-")] for row in rows]
    return TableBlock(
        _MATRIX_HEADINGS,
        [
            [(Code(row.feature),), *((cell,) for cell in each)]
            for row, each in zip(rows, cells, strict=True)
        ],
        cells=[[None, None, *(_TONES.get(answer) for answer in each[1:])] for each in cells],
    )


def _span(each: Range) -> str:
    """Describe the versions of a range."""
    if each.exact and each.start is not None:
        return each.start
    if each.start is None and each.end is None:
        return "all"
    if each.start is None:
        return f"before {each.end}"
    return f"{each.start} and later" if each.end is None else f"{each.start} to before {each.end}"


def _gate_text(gate: ProtocolGate | None) -> str:
    """Describe the protocols that a gate accepts."""
    if gate is None:
        return "-"
    if gate.unchecked is None:
        return "everything, unchecked"
    legacy = ", ".join(str(number) for number in sorted(gate.legacy))
    parts = [f"versions {legacy}"] if legacy else []
    if gate.features is not None:
        parts.append("lists of " + (", ".join(sorted(gate.features)) or "no feature"))
    if gate.unused:
        parts.append(f"only unused: {', '.join(sorted(gate.unused))}")
    if gate.legacy_unused:
        implied = ", ".join(sorted(gate.legacy_unused))
        parts.append(f"only implied by versions and unused: {implied}")
    if gate.unchecked:
        parts.append(f"not checked: {', '.join(sorted(gate.unchecked))}")
    parts += [f"{feature} by {any_name(sorted(modes))}" for feature, modes in gate.modes.items()]
    if gate.readers is not None:
        parts.append(f"reader versions {', '.join(str(n) for n in sorted(gate.readers))}")
    return "; ".join(parts) or "nothing"


def _offers(path: Path) -> str:
    """List the kinds of access that a path supports."""
    return ", ".join(access for access in Access if access in path.access)


def _range_facts(each: Range) -> list[tuple[str, str]]:
    """Return the other facts about a range: limits, known defects, and evidence."""
    facts = [("confidence", str(each.confidence))]
    if each.note:
        facts.append(("note", each.note))
    if each.newest:
        facts.append(("newest", each.newest))
    if each.partial:
        facts.append(("note", "unlisted features are not known to be refused"))
    if each.whole:
        facts.append(("note", "a listed feature is refused if one that it requires is missing"))
    if each.catalog_only:
        facts.append(("by name only", ", ".join(sorted(each.catalog_only))))
    for path in each.paths:
        for bad in path.known_bad:
            names = ", ".join(sorted(bad.features))
            kind = "unknown" if bad.disputed else "fails" if bad.fails else "wrong"
            if bad.pairs:
                names = ", ".join(f"({r},{w})" for r, w in sorted(bad.pairs))
            reference = f" ({bad.reference})" if bad.reference else ""
            facts.append((kind, f"with {names}: {bad.what}{reference}"))
        facts += _hazard_facts(path)
    for proof in each.evidence:
        dated = f", {proof.date}" if proof.date else ""
        facts.append((f"{proof.kind}{dated}", proof.reference))
    return facts


def _hazard_facts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield for each verdict what the path cannot handle in a table's layout or contents."""
    found: dict[Verdict, dict[str, list[str]]] = {}
    for (hazard, access), handling in sorted(path.hazards.items()):
        if handling.verdict is not Verdict.OK:
            found.setdefault(handling.verdict, {}).setdefault(hazard, []).append(access)
    for verdict, hazards in found.items():
        each = ", ".join(f"{hazard} ({' '.join(on)})" for hazard, on in hazards.items())
        yield str(verdict), f"with {each}"


def _measured_versions(client: Client) -> str:
    """List the individually measured versions with their paths."""
    found: dict[str, list[str]] = {}
    for each in client.measured:
        paths = found.setdefault(each.start or "its service", [])
        paths += [path.name for path in each.paths if path.name]
    return ", ".join(v + (f" ({', '.join(paths)})" if paths else "") for v, paths in found.items())


def _row(client: Client) -> tuple[str, ...]:
    newest = client.newest
    first = (client.ranges or client.measured)[0].start
    versions = _span(Range(first, newest.end, (), newest.confidence, ()))
    path = newest.paths[0]
    return (client.id, client.name, versions, _brief(path.read), _brief(path.write))


def _brief(gate: ProtocolGate | None) -> str:
    if gate is None:
        return "no"
    if gate.accepts_nothing:
        return "only its own"
    highest = max(gate.legacy, default=0)
    if gate.features is None:
        return f"up to version {highest}"
    return counted(len(gate.features), "feature")


def _is_json(format_: Format, file: IO[str], clients: list[dict[str, Any]]) -> bool:
    """Write JSON if requested; return True if it was written."""
    match format_:
        case Format.JSON:
            file.write(json_text("clients", {"clients": clients}, line=False))
        case Format.JSONL:
            for client in clients:
                file.write(json_text("clients", {"clients": [client]}, line=True))
        case _:
            return False
    return True
