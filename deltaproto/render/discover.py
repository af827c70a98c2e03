"""The clients that were seen to use tables, in every format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import IO, Any

from deltaproto.clients.model import Access
from deltaproto.counts import any_name, counted, shorten
from deltaproto.errors import TableError
from deltaproto.fleet.seen.collect import INVENTORY_SOURCE, Discovery, Source
from deltaproto.fleet.seen.times import Times
from deltaproto.fleet.seen.uses import Client, PrincipalKind, SeenClient, SeenUses, Usage
from deltaproto.policy.finding import Finding
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
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
from deltaproto.render.findings import finding_block
from deltaproto.render.inspection_json import finding_fields
from deltaproto.render.interface import (
    DEFAULT_LIMIT,
    PageFormat,
    error_fields,
    format_timestamp,
    json_text,
)
from deltaproto.render.named_tables import GROUPED_FROM

_FILES = "parquet"
_MOST_NAMES = 8
"""principals of one client, and tables of one client, that documents name"""
_NO_CLIENT = "No client of the catalog was seen."
_LONGEST_LABEL = 30
"""characters of a mark in a table of many clients"""
_PLURALS = {PrincipalKind.QUERY: "queries", PrincipalKind.ADDRESS: "addresses"}
_SPARE = frozenset({2, 3, 5})
"""commits, requests and the longest pause"""
_HEADINGS = ("Client", "Access", "Tables", "Commits", "Requests", "Last seen", "Longest pause")
_NEVER_READERS = (
    "Logs of tables show who writes, never who only reads. Commits do not show whether their "
    "writer also reads the table."
)


def write_discovery(
    found: Discovery,
    format_: PageFormat,
    file: IO[str],
    *,
    color: bool,
    details: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> None:
    """Write the clients and the principals behind them.

    Args:
        details, limit: as in `discovery_document`.
    """
    if format_ in (PageFormat.JSON, PageFormat.JSONL):
        line = format_ is PageFormat.JSONL
        file.write(
            json_text("discover", discovery_fields(found), line=line, complete=found.complete)
        )
        return
    document = discovery_document(found, details=details, limit=limit)
    write_document(document, format_, file, color=color)


def notices(found: Discovery) -> list[str]:
    """Return notices about what may be missing even if everything was read."""
    texts = []
    for source in found.sources:
        if source.is_access_log and source.unparsed:
            lines = counted(source.lines, "line")
            texts.append(
                f"{source.name}: {source.unparsed:,} of {lines} not understood; a client may be "
                "missing"
            )
        if source.undated:
            requests = counted(source.undated, "request has a time", "requests have times")
            texts.append(
                f"{source.name}: {requests} in an unknown format, such as "
                f'"{source.undated_example}"; they count in every period, without a date: export '
                "the log with times such as 2026-11-24T18:53:50Z"
            )
    return texts


def discovery_fields(found: Discovery) -> dict[str, Any]:
    """Return the clients as JSON."""
    return {
        "since": format_timestamp(found.since),
        "tables": found.tables,
        "clients": [
            {"client": client.id, "version": client.version, **_fields(seen)}
            for client, seen in found.uses.identified
        ],
        "unidentified": [
            {
                "mark": client.mark,
                "could_be": list(seen.could_be),
                "setting": seen.setting,
                **_fields(seen),
            }
            for client, seen in found.uses.unidentified
        ],
        "findings": [finding_fields(finding) for finding in found.findings],
        "sources": [source._asdict() for source in found.sources],
        "errors": [
            {"table": failed.table, "error": error_fields(failed.error)} for failed in found.failed
        ],
    }


def _fields(seen: SeenClient) -> dict[str, Any]:
    return {
        **_usage_fields(seen),
        "tables": len(seen.tables),
        "frequency": {
            "active_days": seen.all.active_days,
            "longest_gap_hours": seen.all.longest_gap_hours,
        },
        "principals": [
            {
                "kind": str(name.kind),
                "name": name.text,
                **_usage_fields(usage),
                "longest_gap_hours": usage.all.longest_gap_hours,
            }
            for name, usage in _principals(seen)
        ],
        "unlisted_principals": seen.forgotten,
        "confidence": str(seen.confidence),
        "evidence": [
            {"field": mark.field, "value": mark.text, "count": count} for mark, count in seen.marks
        ],
        "by_table": [
            {"table": table, **_usage_fields(usage)} for table, usage in sorted(seen.tables.items())
        ],
    }


def _usage_fields(usage: Usage) -> dict[str, Any]:
    both = usage.all
    return {
        "access": [str(access) for access in Access if access in usage.access],
        "commits": usage.commits.count,
        "requests": usage.requests.count,
        **({} if usage.files is None else {"data_files": usage.files.count}),
        "first_seen": format_timestamp(both.first),
        "last_seen": format_timestamp(both.last),
    }


def _principals(seen: SeenClient) -> list[tuple[Any, Usage]]:
    """Return the principals, by kind, most active first."""
    return sorted(
        seen.principals.items(),
        key=lambda each: (each[0].kind, -each[1].all.count, each[0].text),
    )


def discovery_document(
    found: Discovery, *, details: bool = False, limit: int = DEFAULT_LIMIT
) -> Document:
    """Return the clients as a document.

    Args:
        details: show the principals, tables and evidence of each client, however many tables were
            read.
        limit: the most clients, findings and errors for many tables; 0: all.
    """
    period = f" since {format_timestamp(found.since)}" if found.since is not None else ""
    clients = counted(len(found.uses.identified), "client")
    summary = f"{clients} in {counted(found.tables, 'table')}{period}"
    grouped = found.tables >= GROUPED_FROM and not details
    most = (limit or None) if grouped else None
    blocks = [
        *_finding_sections(found.findings, most),
        *(_client_lines(found.uses, most) if grouped else _client_sections(found.uses)),
        *_source_blocks(found, most),
    ]
    return Document("Clients seen", (summary,), blocks)


def _finding_sections(findings: Sequence[Finding], most: int | None) -> Iterator[Block]:
    if not findings:
        return
    blocks: list[Block] = []
    for table, few in groupby(
        sorted(findings, key=lambda each: each.table)[:most], lambda each: each.table
    ):
        blocks += [Paragraph((Code(table),)), finding_block(few)]
    blocks += _more(len(findings), most, "finding")
    yield Section("findings", "Principals that read deleted or stale rows", blocks)


def _more(count: int, most: int | None, noun: str) -> Iterator[Block]:
    if most is not None and count > most:
        more = counted(count - most, f"more {noun}")
        yield Paragraph((f"and {more}: --limit 0 or --details shows all",))


def _client_lines(uses: SeenUses, most: int | None) -> Iterator[Block]:
    """Yield a row for each client, with the number of its principals of each kind."""
    if uses.identified:
        yield _line_table("Client", uses.identified[:most])
        yield from _more(len(uses.identified), most, "client")
    else:
        yield Paragraph((_NO_CLIENT,))
    if uses.unidentified:
        programs = [
            _line_table("Mark", uses.unidentified[:most]),
            *_more(len(uses.unidentified), most, "program"),
        ]
        yield Section("unidentified", "Unidentified", programs)
    hint = "--details shows the users, jobs, tables and evidence of each client"
    yield Paragraph((hint,), muted=True)


def _line_table(heading: str, seen: Sequence[tuple[Client, SeenClient]]) -> TableBlock:
    headings = (heading, *_HEADINGS[2:], "Access")
    rows = []
    for client, each in seen:
        label, access, *numbers = _row(shorten(client.label, _LONGEST_LABEL), each)
        rows.append([label, *numbers, (f"{access[0]} by {_who(each)}",)])
    return TableBlock(headings, rows, below=True, spare=_SPARE)


def _who(seen: SeenClient) -> str:
    """Return how many principals of each kind there are, with the most active one."""
    kinds: dict[PrincipalKind, list[str]] = {}
    for name, _ in _principals(seen):
        kinds.setdefault(name.kind, []).append(name.text)
    texts = [
        f"{kind} {names[0]}"
        if len(names) == 1
        else f"{counted(len(names), kind, _PLURALS.get(kind))}, such as {names[0]}"
        for kind in PrincipalKind
        if (names := kinds.get(kind))
    ]
    if seen.forgotten:
        texts.append(f"{seen.forgotten:,} more")
    if seen.could_be:
        texts.append(f"could be {any_name(seen.could_be)}")
    return "; ".join(texts) if texts else "unknown principals"


def _client_sections(uses: SeenUses) -> Iterator[Block]:
    yield from client_tables(uses)
    for client, seen in (*uses.identified, *uses.unidentified):
        if facts := _facts(seen):
            yield Section("", client.label, [FactList(facts)])


def _source_blocks(found: Discovery, most: int | None) -> Iterator[Block]:
    clients = (*found.uses.identified, *found.uses.unidentified)
    yield Section("sources", "Sources", [Bullets([_source(each) for each in found.sources])])
    logs = any(source.is_access_log for source in found.sources)
    if not (logs or any(seen.requests.count for _, seen in clients)):
        yield Paragraph((_NEVER_READERS,), muted=True)
    if found.failed:
        yield Callout(Tone.DANGER, ("Incomplete: not every table and log could be read.",))
        failed = found.failed[:most]
        yield Bullets([(Code(each.table), f": {_problem(each.error)}") for each in failed])
        yield from _more(len(found.failed), most, "error")


def _problem(error: TableError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def client_tables(uses: SeenUses) -> Iterator[Block]:
    """Yield a table of the clients seen, and one of the unidentified programs."""
    if uses.identified:
        rows = [_row(client.label, seen) for client, seen in uses.identified]
        yield TableBlock(_HEADINGS, rows)
    else:
        yield Paragraph((_NO_CLIENT,))
    if uses.unidentified:
        rows = [_row(client.label, seen) for client, seen in uses.unidentified]
        programs: list[Block] = [TableBlock(("Mark", *_HEADINGS[1:]), rows)]
        yield Section("unidentified", "Unidentified", programs)


def client_summary(uses: SeenUses) -> list[dict[str, Any]]:
    """Return one JSON object for each client and each unidentified program."""
    return [
        {
            "client": client.id,
            "version": client.version,
            "mark": client.mark,
            **_usage_fields(seen),
            "tables": len(seen.tables),
        }
        for client, seen in (*uses.identified, *uses.unidentified)
    ]


def _row(label: str, seen: SeenClient) -> list[Line]:
    both = seen.all
    return [
        (Code(label),),
        (", ".join(access for access in Access if access in seen.access) or "unknown",),
        (f"{len(seen.tables):,}",),
        (f"{seen.commits.count:,}",),
        (f"{seen.requests.count:,}",),
        (format_timestamp(both.last) or "time unknown",),
        (_pause(both),),
    ]


def _pause(times: Times) -> str:
    hours = times.longest_gap_hours
    if hours is None:
        return "-"
    return counted(hours, "hour") if hours < 48 else counted(hours // 24, "day")


def _facts(seen: SeenClient) -> list[tuple[str, Line]]:
    """Return the principals by kind, the tables, the evidence, and how to identify a program."""
    facts: list[tuple[str, Line]] = []
    kinds: dict[str, list[str]] = {}
    for name, usage in _principals(seen):
        last = format_timestamp(usage.all.last) or "time unknown"
        kinds.setdefault(str(name.kind), []).append(
            f"{name.text} ({usage.all.count:,}, last {last})"
        )
    for kind, names in kinds.items():
        facts += [(kind, (text,)) for text in _few(names)]
    facts += [("table", (text,)) for text in _few(sorted(seen.tables))]
    shown = [f"{mark.field} = {mark.text} ({count:,})" for mark, count in seen.marks]
    facts += [("evidence", (text,)) for text in _few(shown)]
    if seen.files is not None:
        facts.append(("data files", (f"{seen.files.count:,}",)))
    facts.append(("confidence", (str(seen.confidence),)))
    if seen.could_be:
        facts.append(("could be", (", ".join(seen.could_be),)))
    if seen.setting:
        facts.append(("to identify it", (seen.setting,)))
    return facts


def _few(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _MOST_NAMES
    return [*texts[:_MOST_NAMES], *([f"and {more:,} more"] if more > 0 else [])]


def _source(source: Source) -> Line:
    if source.format == INVENTORY_SOURCE:
        return (
            f"{source.name}: {counted(source.lines, 'commit or request', 'commits and requests')} "
            "counted by earlier runs, "
            f"{source.matched:,} of identified clients",
        )
    if source.format == _FILES:
        return (
            f"{source.name}: {source.lines:,} from commits that the logs no longer have, "
            f"{source.matched:,} of identified clients, {source.unparsed:,} cannot be read",
        )
    if source.format == "delta":
        what = f"{counted(source.lines, 'commit')}, {source.matched:,} of identified clients"
        unread = f", {source.unparsed:,} cannot be read" if source.unparsed else ""
    else:
        what = (
            f"{source.format}, {counted(source.lines, 'line')}, "
            f"{counted(source.matched, 'request')} to these tables"
        )
        unread = f", {source.unparsed:,} not understood" if source.unparsed else ""
        if source.known_files:
            unread += f", {counted(source.known_files, 'file')} counted earlier"
    return (f"{source.name}: {what}{unread}",)
