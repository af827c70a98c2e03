"""The forecast of automatic upgrades, in every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import IO, NamedTuple

from deltaproto.counts import counted
from deltaproto.fleet.forecast.records import Affected, Forecast, TableForecast, has_no_client
from deltaproto.planning.plan import ClientChange
from deltaproto.protocol.automatic_upgrades import (
    CONDITIONS,
    RULES,
    AutomaticUpgrade,
    TableAge,
)
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    CodeBlock,
    Document,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.document.render import write_document
from deltaproto.render.forecast_findings import finding_blocks
from deltaproto.render.forecast_json import streamed_fields
from deltaproto.render.interface import NOTICES, PageFormat, write_json
from deltaproto.render.named_tables import NamedCount, SharedFolder, group_notes, groups_title

_NAMES = 3
_CLIENTS = 4
"""maximum number of clients named in a row"""
_OPT_OUT = (
    "The documents do not state how to opt out. These statements set the property that turns the "
    "feature off. It is not known whether automatic upgrades respect it, so scan again "
    "afterwards. Each is a metadata change, which can abort concurrent writers."
)

_IDLE = (
    "idle: no access in the last 30 days is known, and Databricks skips such tables until the next "
    "access"
)


def write_forecast(
    found: Forecast, format_: PageFormat, file: IO[str], *, color: bool, limit: int
) -> None:
    """Write the forecast.

    Args:
        limit: groups, findings and statements to show, except in JSON; 0: all.
    """
    if format_ in (PageFormat.JSON, PageFormat.JSONL):
        line = format_ is PageFormat.JSONL
        write_json("forecast", streamed_fields(found), file, line=line, complete=found.complete)
        return
    write_document(forecast_document(found, limit), format_, file, color=color)


def forecast_document(found: Forecast, limit: int = 0) -> Document:
    """Return the forecast as a document."""
    read_on = max(rule.document.read_on for rule in RULES)
    affected = sum(each.affected is Affected.YES for each in found.tables)
    unknown = sum(each.affected is Affected.UNKNOWN for each in found.tables)
    subtitle = (
        f"{affected:,} of {counted(len(found.tables), 'table')} affected"
        + (f", {unknown:,} not known" if unknown else "")
        + f"; as documented by Databricks, read {read_on}; none of it is measured"
    )
    return Document("Automatic upgrades", (subtitle,), list(_blocks(found, limit)))


def _blocks(found: Forecast, limit: int) -> Iterator[Block]:
    yield from (Callout(Tone.WARNING, (each,)) for each in (*NOTICES, *_unknown(found)))
    if any(each.affected is not Affected.NO and each.error is None for each in found.tables):
        yield _features(found)
        yield from _groups(found, limit)
    if lines := list(finding_blocks(found, limit)):
        yield Section("findings", "Findings", lines)
    if not found.declared and (rows := list(_known_clients(found))):
        table = TableBlock(("Client", "Feature", "Access", "Tables"), rows, lead=2)
        yield Section("clients", "Known clients that would be blocked", [table])
    yield from _new_tables(found)
    yield from _statements(found, limit)
    yield Section("rules", "Rules", [Bullets([(each,) for each in CONDITIONS]), _documents()])


def _unknown(found: Forecast) -> Iterator[str]:
    """Yield the facts that are unknown, with the number of tables and the name of the first one."""
    read = [each for each in found.tables if each.error is None]
    if unread := [each for each in found.tables if each.error is not None]:
        error = unread[0].error
        assert error is not None
        pronoun, first = ("it", ": ") if len(unread) == 1 else ("they", "; the first: ")
        named = f"{_few(unread)}{first}{error.message}"
        yield f"no forecast, because {pronoun} could not be read: {named}"
    if unknown := [each for each in read if each.affected is Affected.UNKNOWN]:
        one = len(unknown) == 1
        which = "this is a managed table" if one else "these are managed tables"
        yield (
            f"not known whether {which} of Unity Catalog: {_few(unknown)}; the forecast holds if "
            f"{'it is' if one else 'they are'}. Scan the catalog (uc://HOST/CATALOG) to find out"
        )
    if partly := [each for each in read if not each.complete]:
        yield f"there may be newer commits, which only the catalog knows: {_few(partly)}"
    may = [each for each in read if each.affected is not Affected.NO]
    if may and not found.declared:
        yield (
            "no client is declared, and discover has counted none: the clients below are all known "
            "ones at their newest versions"
        )
        return
    if none := [each for each in may if has_no_client(each)]:
        yield f"no client is declared or was seen: {_few(none)}"
    if uncounted := [each for each in may if each.clients and not each.counted]:
        yield (
            f"discover has not counted who uses {_few(uncounted)}; clients other than the "
            "declared ones may be blocked"
        )


def _few(tables: Sequence[TableForecast]) -> str:
    if len(tables) == 1:
        return tables[0].table
    names = ", ".join(each.table for each in tables[:_NAMES])
    more = len(tables) - _NAMES
    rest = f" and {more:,} more" if more > 0 else ""
    return f"{counted(len(tables), 'table')} ({names}{rest})"


def _features(found: Forecast) -> TableBlock:
    rows: list[list[Line]] = []
    for rule in RULES:
        if rule.tables is not TableAge.EXISTING:
            continue
        mine = [each for table in found.tables for each in table.upgrades if each.rule is rule]
        until = [each.hold.until for each in mine if each.hold is not None]
        rows.append(
            [
                (Code(rule.feature),),
                (f"{len(mine):,}",),
                (_when(rule),),
                (_delayed(until),),
                (f"{rule.stage}, runtime {rule.runtime}, {counted(rule.window.days, 'day')}",),
            ]
        )
    headings = ("Feature", "Tables", "From", "Delayed", "Rule")
    return TableBlock(headings, rows, below=True)


def _when(rule: AutomaticUpgrade) -> str:
    if rule.start is None:
        return "no date documented"
    return f"{rule.start:%B %Y}, for all by {rule.rolled_out:%B %Y}"


def _delayed(until: Sequence[date]) -> str:
    if not until:
        return "no"
    span = " to ".join(dict.fromkeys((min(until).isoformat(), max(until).isoformat())))
    return f"{counted(len(until), 'table')} until {span}, if the catalog saw the accesses"


class _Group(NamedTuple):
    """The common parts of the tables in a group."""

    fails: tuple[str, ...]
    not_judged: tuple[str, ...]
    affected: Affected
    features: tuple[str, ...]
    idle: bool


def _groups(found: Forecast, limit: int) -> Iterator[Block]:
    groups: dict[_Group, NamedCount] = {}
    folder = SharedFolder()
    for table in found.tables:
        if table.error is None:
            groups.setdefault(_group(table), NamedCount()).add(table.table)
            folder.add(table.table)
    ordered = sorted(
        groups.items(),
        key=lambda each: (not each[0].fails, not each[0].not_judged, -each[1].tables),
    )
    shown = ordered[: limit or None]
    rows: list[list[Line]] = []
    for group, names in shown:
        cells = (
            f"{names.tables:,}",
            str(group.affected),
            ", ".join(group.features) or "nothing",
            _few_clients(group.fails),
            ", ".join(group.not_judged) or "-",
            names.shown(len(str(folder))) + (" (idle)" if group.idle else ""),
        )
        rows.append([(cell,) for cell in cells])
    tones = [
        Tone.DANGER if group.fails else Tone.WARNING if group.not_judged else None
        for group, _ in shown
    ]
    headings = ("Tables", "Affected", "May get", "Blocks", "May block", "Names")
    counts = [names for _, names in ordered]
    notes = group_notes(counts, len(shown), folder)
    blocks: list[Block] = [TableBlock(headings, rows, tones, below=True), *notes]
    if any(group.idle for group, _ in ordered):
        blocks.append(Paragraph((_IDLE,), True))
    yield Section("groups", groups_title(counts), blocks)


def _few_clients(clients: Sequence[str]) -> str:
    more = len(clients) - _CLIENTS
    rest = (f"{counted(more, 'more client')}",) if more > 0 else ()
    return "; ".join((*clients[:_CLIENTS], *rest)) or "nobody"


def _group(table: TableForecast) -> _Group:
    fails: dict[str, dict[str, None]] = {}
    for upgrade in table.upgrades:
        for each in upgrade.blocked:
            fails.setdefault(each.client, {}).setdefault(upgrade.rule.feature)
    return _Group(
        tuple(f"{client} ({', '.join(features)})" for client, features in fails.items()),
        tuple(dict.fromkeys(one for each in table.upgrades for one in each.not_judged)),
        table.affected,
        tuple(each.rule.feature for each in table.upgrades),
        table.idle_days is not None,
    )


def _known_clients(found: Forecast) -> Iterator[list[Line]]:
    """Yield a row for each client and feature, with the number of tables."""
    tables: Counter[tuple[str, str, str]] = Counter()
    for table in found.tables:
        for upgrade in table.upgrades:
            for client, of in _accesses(upgrade.blocked).items():
                tables[client, upgrade.rule.feature, ", ".join(sorted(of))] += 1
    for (client, feature, access), count in sorted(tables.items()):
        yield [(Code(client),), (Code(feature),), (access,), (f"{count:,}",)]


def _new_tables(found: Forecast) -> Iterator[Block]:
    if not found.new_tables:
        return
    rows: list[list[Line]] = [
        [
            (Code(each.rule.feature),),
            (f"{each.rule.start}",),
            (
                _few_clients(
                    [f"{name} ({', '.join(of)})" for name, of in _accesses(each.blocked).items()]
                ),
            ),
            (", ".join(each.not_judged) or "-",),
        ]
        for each in found.new_tables
    ]
    table = TableBlock(("Feature", "From", "Blocks", "May block"), rows, below=True)
    note = "in new schemas at once; in existing ones if only verified workloads use the schema"
    yield Section("new", "New managed tables", [table, Paragraph((note,), muted=True)])


def _accesses(changes: Iterable[ClientChange]) -> dict[str, list[str]]:
    """Return the accesses by client."""
    found: dict[str, list[str]] = {}
    for each in changes:
        found.setdefault(each.client, []).append(str(each.access))
    return found


def _statements(found: Forecast, limit: int) -> Iterator[Block]:
    """Yield the statements for tables with a blocked client; with no client, for all tables."""
    wanted = [
        (upgrade.rule.feature, upgrade.statement)
        for table in found.tables
        for upgrade in table.upgrades
        if upgrade.blocked or upgrade.not_judged or not (found.declared and table.clients)
    ]
    known = [statement for _, statement in wanted if statement is not None]
    without = sorted({feature for feature, statement in wanted if statement is None})
    if not wanted:
        return
    shown = known[: limit or None]
    blocks: list[Block] = []
    if shown:
        statements = "\n".join(f"{each};" for each in shown)
        blocks += [Paragraph((_OPT_OUT,)), CodeBlock(statements, "sql")]
    if left := len(known) - len(shown):
        blocks.append(Paragraph((f"and {left:,} more: --limit 0 or --format json shows them",)))
    if without:
        blocks.append(Paragraph((f"No property keeps {', '.join(without)} off.",)))
    yield Section("statements", "Statements", blocks)


def _documents() -> Bullets:
    documents = dict.fromkeys(rule.document for rule in RULES)
    return Bullets(
        [
            (
                f"{each.title}, read {each.read_on}: ",
                Code(each.url),
                " ("
                + ", ".join(dict.fromkeys(r.feature for r in RULES if r.document is each))
                + ")",
            )
            for each in documents
        ]
    )
