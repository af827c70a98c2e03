"""The client catalogue in each format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, assert_never

from deltaproto.clients.candidate import Candidate
from deltaproto.clients.capability import Access, Client, Gate, Path, Range
from deltaproto.clients.matrix import Row, matrix
from deltaproto.report.clients_json import candidate_fields, client_fields
from deltaproto.report.interface import Format, json_text

HEADINGS = ("Client", "Name", "Versions known", "Newest: reads", "Newest: writes")
RANGE_HEADINGS = ("Versions", "Reads", "Writes", "Offers", "Known from")
MATRIX_HEADINGS = ("Feature", "Needed by", "Read", "Write")


def write_clients(
    clients: Iterable[Client], format_: Format, file: IO[str], *, color: bool
) -> None:
    """All clients, a line each."""
    if format_ is Format.JSON or format_ is Format.JSONL:
        _write_json(format_, file, [client_fields(client) for client in clients])
        return
    rows = [_row(client) for client in clients]
    if format_ is Format.MARKDOWN:
        from deltaproto.report.markdown import table

        file.write(table(HEADINGS, rows) + "\n")
        return
    from deltaproto.report.clients_text import print_clients
    from deltaproto.report.console import DataConsole

    print_clients(DataConsole(file, color=color), rows)


def write_client(client: Client, format_: Format, file: IO[str], *, color: bool) -> None:
    """One client with all its versions."""
    if format_ is Format.JSON or format_ is Format.JSONL:
        _write_json(format_, file, [client_fields(client)])
        return
    if format_ is Format.MARKDOWN:
        from deltaproto.report.markdown import escape, table

        parts = [f"## {escape(client.name)}", "", table(RANGE_HEADINGS, range_rows(client)), ""]
        for each in client.ranges:
            parts += [f"- {escape(label)}: {escape(text)}" for label, text in range_facts(each)]
        if client.measured:
            parts.append(f"- measured: {escape(measured_versions(client))}")
        file.write("\n".join([*parts, ""]))
        return
    from deltaproto.report.clients_text import print_client
    from deltaproto.report.console import DataConsole

    print_client(DataConsole(file, color=color), client)


def write_candidate(candidate: Candidate, format_: Format, file: IO[str], *, color: bool) -> None:
    """One version of a client against every feature."""
    match format_:
        case Format.JSON | Format.JSONL:
            _write_json(format_, file, [candidate_fields(candidate)])
        case Format.MARKDOWN:
            file.write(_candidate_markdown(candidate))
        case Format.TEXT:
            from deltaproto.report.clients_text import print_candidate
            from deltaproto.report.console import DataConsole

            print_candidate(DataConsole(file, color=color), candidate)
        case _:
            assert_never(format_)


def span(each: Range) -> str:
    """The versions of a range, in words."""
    if each.exact and each.start is not None:
        return each.start
    if each.start is None and each.end is None:
        return "all"
    if each.start is None:
        return f"before {each.end}"
    return f"{each.start} and later" if each.end is None else f"{each.start} to before {each.end}"


def gate_text(gate: Gate | None) -> str:
    """What a gate takes, in words."""
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
    parts += [f"{feature} by {' or '.join(sorted(modes))}" for feature, modes in gate.modes.items()]
    if gate.readers is not None:
        parts.append(f"reader versions {', '.join(str(n) for n in sorted(gate.readers))}")
    return "; ".join(parts) or "nothing"


def offers(path: Path) -> str:
    """What a path offers, in words."""
    return ", ".join(access for access in Access if access in path.access)


def range_rows(client: Client) -> list[tuple[str, ...]]:
    """A row for each range and path."""
    return [
        (
            span(each) + (f", {path.name}" if path.name else ""),
            gate_text(path.read),
            gate_text(path.write),
            offers(path),
            str(each.confidence),
        )
        for each in client.ranges
        for path in each.paths
    ]


def range_facts(each: Range) -> list[tuple[str, str]]:
    """What else is known of a range: limits, what goes wrong, and the evidence."""
    facts = [(span(each), each.note)] if each.note else []
    if each.newest:
        facts.append((span(each), f"newest known version: {each.newest}"))
    if each.partial:
        facts.append((span(each), "a feature that is not listed is not known to be refused"))
    if each.whole:
        facts.append((span(each), "a listed feature without the one it requires is refused"))
    if each.catalog_only:
        names = ", ".join(sorted(each.catalog_only))
        facts.append((span(each), f"by catalog name only: {names}"))
    for path in each.paths:
        for bad in path.known_bad:
            names = ", ".join(sorted(bad.features))
            kind = "unknown" if bad.disputed else "fails" if bad.fails else "WRONG"
            facts.append((span(each), f"{kind} with {names}: {bad.what} ({bad.reference})"))
    for proof in each.evidence:
        dated = f", {proof.date}" if proof.date else ""
        facts.append((f"{proof.kind}{dated}", proof.reference))
    return facts


def measured_versions(client: Client) -> str:
    """The versions that were measured one by one, with their paths."""
    found: dict[str, list[str]] = {}
    for each in client.measured:
        paths = found.setdefault(each.start or "its service", [])
        paths += [path.name for path in each.paths if path.name]
    return ", ".join(v + (f" ({', '.join(paths)})" if paths else "") for v, paths in found.items())


def matrix_rows(candidate: Candidate) -> list[tuple[Path, tuple[Row, ...]]]:
    """Every path of the version with its matrix."""
    return [(path, matrix(path)) for path in candidate.paths]


def _row(client: Client) -> tuple[str, ...]:
    newest = client.newest
    first = (client.ranges or client.measured)[0].start
    versions = span(Range(first, newest.end, (), newest.confidence, ()))
    path = newest.paths[0]
    return (client.id, client.name, versions, _brief(path.read), _brief(path.write))


def _brief(gate: Gate | None) -> str:
    if gate is None:
        return "no"
    highest = max(gate.legacy, default=0)
    if gate.features is None:
        return f"up to version {highest}"
    return f"{len(gate.features)} features"


def _candidate_markdown(candidate: Candidate) -> str:
    from deltaproto.report.markdown import escape, table

    parts = [f"## {escape(str(candidate.reference))}", "", escape(candidate.client.name), ""]
    if candidate.range is None:
        return "\n".join([*parts, f"**unknown**: {escape(candidate.unknown)}", ""])
    for path, rows in matrix_rows(candidate):
        if path.name:
            parts += [f"### {escape(path.name)}", ""]
        parts += [
            f"- reads: {escape(gate_text(path.read))}",
            f"- writes: {escape(gate_text(path.write))}",
            f"- offers: {escape(offers(path))}",
            "",
            table(MATRIX_HEADINGS, [row_text(row) for row in rows]),
            "",
        ]
    facts = [("known from", str(candidate.range.confidence)), *range_facts(candidate.range)]
    parts += [f"- {escape(label)}: {escape(text)}" for label, text in facts]
    return "\n".join([*parts, ""])


def row_text(row: Row) -> tuple[str, ...]:
    """One feature of a matrix as cells."""
    return (row.feature, str(row.kind), str(row.read or "-"), str(row.write or "-"))


def _write_json(format_: Format, file: IO[str], clients: list[dict[str, Any]]) -> None:
    if format_ is Format.JSON:
        file.write(json_text("clients", {"clients": clients}, line=False))
        return
    for client in clients:
        file.write(json_text("clients", {"clients": [client]}, line=True))
