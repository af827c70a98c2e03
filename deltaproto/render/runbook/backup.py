"""The backups that are useful before a protocol change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.location import locate
from deltaproto.planning.engine import EngineName
from deltaproto.render.document import (
    Block,
    Bullets,
    Callout,
    Checks,
    Code,
    CodeBlock,
    Paragraph,
    Tone,
)
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import Phrases
from deltaproto.render.runbook.shell import command, is_plain


def backup(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield what to copy first, and with which command; nothing if every step is reversible."""
    needed = [entry for entry in book.changing if entry.needs_backup]
    if not needed:
        yield Paragraph(say.line("backup.unneeded"))
    else:
        yield Callout(Tone.WARNING, say.line("backup.why"))
        yield from _copies(needed, say)
    yield Paragraph(say.line("backup.note"))
    yield Checks(
        [
            say.line(
                "backup.version", table=entry.name, version=str(entry.plan.fingerprint.version)
            )
            for entry in book.changing
        ]
    )


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
