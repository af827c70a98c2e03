"""The chapter on the preparations before the first statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from deltaproto.errors import DeltaprotoError
from deltaproto.location import locate
from deltaproto.planning.enable import find_disabled
from deltaproto.planning.engine import EngineName
from deltaproto.planning.plan import StreamImpact
from deltaproto.policy.document.windows import is_open, next_opening
from deltaproto.render.activity import quietest, sentences, writer_rows
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    Code,
    CodeBlock,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.named_tables import GROUPED_FROM
from deltaproto.render.runbook.book import Book, RunbookEntry, as_code, join_names
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.shell import command, is_plain

_SOURCES = ("workspace", "catalog", "session", "code", "services")


def before(book: Book, say: Phrases) -> Section:
    """Return the preparations before the first statement."""
    sections = [
        Section("source", say.text("source"), list(_source(book, say))),
        Section("backup", say.text("backup"), list(backup(book, say))),
        Section("stop", say.text("stop"), list(stop(book, say))),
        Section("streams", say.text("streams"), list(streams(book, say))),
        Section("activity", say.text("activity"), list(_activity(book, say))),
        Section("window", say.text("window"), list(_window(book, say))),
        Section("ready", say.text("ready"), list(_ready(book, say))),
    ]
    return Section("before", say.text("before"), sections)


def _source(book: Book, say: Phrases) -> Iterator[Block]:
    plans = [entry.plan for entry in book.changing]
    if not any(plan.features_removed or find_disabled(plan) for plan in plans):
        yield Paragraph(say.line("source.upgrade"))
        return
    yield Paragraph(say.line("source.intro"))
    known = dict.fromkeys(note for _, each in book.warned for note in each.sources)
    yield Checks(
        [
            *(say.line("source.known", text=note) for note in known),
            *(say.line(f"source.{source}") for source in _SOURCES),
        ]
    )


def stop(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield the transactions that may fail, and those that may make a step fail."""
    clashes = False
    for loser, title in (("writer", "stop.writers"), ("step", "stop.steps")):
        found: dict[tuple[str, str, tuple[str, ...]], dict[str, list[str]]] = {}
        for entry, each in book.warned:
            for hit in each.hits:
                if hit.loser == loser:
                    where = found.setdefault((hit.engine, hit.who, hit.exceptions), {})
                    steps = where.setdefault(entry.plan.table, [])
                    steps += [step for step in hit.steps if step not in steps]
        if not found:
            continue
        if not clashes:
            yield Callout(Tone.DANGER, say.line("stop.intro"))
        clashes = True
        heads = ("engine", "who", "exception", "where")
        yield Section(
            f"stop-{loser}",
            say.text(title),
            [
                TableBlock(
                    [say.text(f"head.{head}") for head in heads],
                    [
                        [
                            (engine,),
                            (who,),
                            join_names(as_code(exceptions), say),
                            book.steps_of_tables(where, say),
                        ]
                        for (engine, who, exceptions), where in found.items()
                    ],
                )
            ],
        )
    if not clashes:
        yield Paragraph(say.line("stop.none"))
    notes = dict.fromkeys(note for _, each in book.warned for note in each.notes)
    if notes:
        yield Bullets([(note,) for note in notes])


def streams(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield the effects on streaming reads."""
    found: dict[StreamImpact, dict[str, list[str]]] = {}
    for entry, each in book.warned:
        for step, stream in each.streams:
            found.setdefault(stream, {}).setdefault(entry.plan.table, []).append(step)
    if not found:
        yield Paragraph(say.line("streams.none"))
        return
    yield TableBlock(
        [say.text(f"head.{head}") for head in ("stream", "effect", "why", "where")],
        [
            [
                (stream.reads,),
                say.line(f"effect.{stream.effect}"),
                (stream.why,),
                book.steps_of_tables(where, say),
            ]
            for stream, where in found.items()
        ],
    )


def _activity(book: Book, say: Phrases) -> Iterator[Block]:
    looked = [entry for entry in book.changing if entry.activity is not None]
    if not looked:
        yield Paragraph(say.line("activity.not_looked"))
    heads = ("table", "engine", "operation", "commits", "every", "last")
    rows: list[list[Line]] = []
    unread: dict[str, list[RunbookEntry]] = {}
    idle: list[RunbookEntry] = []
    by_sentence: dict[str, list[RunbookEntry]] = {}
    for entry in looked:
        found = entry.activity
        if isinstance(found, DeltaprotoError):
            unread.setdefault(found.message, []).append(entry)
            continue
        assert found is not None
        written: list[list[Line]] = [
            [(entry.name,), *((cell,) for cell in row)] for row in writer_rows(found, None)
        ]
        rows += written
        if not written:
            idle.append(entry)
            continue
        for text in sentences(found, None):
            by_sentence.setdefault(text, []).append(entry)
    for message, entries in unread.items():
        line = say.line("activity.none", table=book.names(entries, say), message=message)
        yield Callout(Tone.WARNING, line)
    if rows:
        yield TableBlock([say.text(f"head.{head}") for head in heads], rows)
        yield Bullets(
            [(*book.names(entries, say), ": ", text) for text, entries in by_sentence.items()]
        )
    if idle:
        yield Paragraph((*book.names(idle, say), ": ", *say.line("activity.idle")))


def _window(book: Book, say: Phrases) -> Iterator[Block]:
    openings: dict[tuple[str, str | None], list[RunbookEntry]] = {}
    hours: dict[str, list[RunbookEntry]] = {}
    for entry in book.changing:
        if entry.windows is not None:
            moment = datetime.fromtimestamp(book.start_of(entry), UTC)
            coming = next_opening(entry.windows, moment)
            state = say.text("window.open" if is_open(entry.windows, moment) else "window.closed")
            then = None if coming is None else f"{coming:%Y-%m-%d %H:%M} UTC"
            openings.setdefault((state, then), []).append(entry)
        if (hour := _hour(entry)) is not None:
            hours.setdefault(hour, []).append(entry)
    lines = [
        say.line("window.never", table=book.names(entries, say))
        if then is None
        else say.line("window.next", table=book.names(entries, say), state=state, next=then)
        for (state, then), entries in openings.items()
    ]
    lines += [(*book.names(entries, say), f": {hour}") for hour, entries in hours.items()]
    if lines:
        yield Bullets(lines)
    if not hours:
        yield Paragraph(say.line("window.unknown"))


def _hour(entry: RunbookEntry) -> str | None:
    found = entry.activity
    return None if found is None or isinstance(found, DeltaprotoError) else quietest(found)


def _ready(book: Book, say: Phrases) -> Iterator[Block]:
    if book.applicable:
        yield Paragraph(say.line("ready.rehearse"))
        yield CodeBlock(book.command("rehearse"), "shell")
        yield Paragraph(say.line("ready.dry"))
        yield CodeBlock(book.apply("--dry-run"), "shell")
    # Only items from the chapters above: a line that cannot be ticked is not a check.
    boxes = {
        "people": any(entry.loses_access for entry in book.changing),
        "stopped": book.stops_writers,
        "source": any(entry.plan.features_removed for entry in book.changing),
        "backup": any(entry.needs_backup for entry in book.changing),
        "window": book.stops_writers or any(entry.windows is not None for entry in book.changing),
    }
    if any(boxes.values()):
        yield Checks([say.line(f"ready.{box}") for box, applies in boxes.items() if applies])


def backup(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield the tables to copy first, with the commands; nothing if every step is reversible."""
    needed = [entry for entry in book.changing if entry.needs_backup]
    if not needed:
        yield Paragraph(say.line("backup.unneeded"))
    else:
        yield Callout(Tone.WARNING, say.line("backup.why"))
        yield from _copies(needed, say)
    yield Paragraph(say.line("backup.note"))
    yield Checks(_versions(book, say))


def _versions(book: Book, say: Phrases) -> list[Line]:
    if len(book.changing) < GROUPED_FROM:
        return [
            say.line(
                "backup.version", table=entry.name, version=str(entry.plan.fingerprint.version)
            )
            for entry in book.changing
        ]
    found: dict[int, list[RunbookEntry]] = {}
    for entry in book.changing:
        found.setdefault(entry.plan.fingerprint.version, []).append(entry)
    return [
        say.line("backup.versions", tables=book.names(entries, say), version=str(version))
        for version, entries in found.items()
    ]


def _copies(entries: Sequence[RunbookEntry], say: Phrases) -> Iterator[Block]:
    """Yield one listing for each type of command, with its tables."""
    clones, copies, others = dict[str, None](), dict[str, None](), dict[str, None]()
    for plan in (entry.plan for entry in entries):
        if plan.engine.name is EngineName.DATABRICKS and not plan.sql_name.startswith("delta.`"):
            quoted = plan.sql_name.endswith("`")
            backup = f"{plan.sql_name[:-1]}_backup`" if quoted else f"{plan.sql_name}_backup"
            clone = f"CREATE TABLE {backup} DEEP CLONE {plan.sql_name};"
            (clones if is_plain(clone) else others)[clone if is_plain(clone) else plan.location] = (
                None
            )
            continue
        copy = _copy(plan.location.rstrip("/"))
        if copy is None:
            others[plan.location] = None
        else:
            copies[copy] = None
    if clones:
        yield CodeBlock("\n".join(clones), "sql", say.text("backup.copy"))
    if copies:
        yield CodeBlock("\n".join(copies), "shell", say.text("backup.copy"))
    if others:
        yield Paragraph(say.line("backup.other"))
        yield Bullets([(Code(location),) for location in others])


def _copy(source: str) -> str | None:
    """Return the command that copies a table's folder; None if no tool is known."""
    scheme, _, rest = source.partition("://")
    target = f"{source}.backup"
    match scheme.lower():
        case "file":
            path = locate(source).path or source
            backup = f"{path}.backup"
            # If the target exists, mkdir fails and nothing is written into it.
            make = command("mkdir", "--", backup)
            return f"{make} && {command('cp', '-a', '--', f'{path}/.', backup)}"
        case "s3" | "s3a":
            return command("aws", "s3", "cp", "--recursive", f"s3://{rest}", f"s3://{rest}.backup")
        case "gs":
            return command("gcloud", "storage", "rsync", "--recursive", source, target)
        case "abfss" | "abfs":
            container, at, path = rest.partition("@")
            account, _, path = path.partition("/")
            if not at:
                return None
            url = f"https://{account}/{container}/{path}"
            return command(
                "azcopy", "copy", url, f"{url}.backup", "--recursive", "--as-subdir=false"
            )
    return None
