"""The chapters on the work after the statements."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from deltaproto.inspection.activity import Activity, Writer
from deltaproto.planning.plan import StreamEffect
from deltaproto.render.activity import span
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
    Tone,
)
from deltaproto.render.runbook.book import Book, RunbookEntry, as_code, join_names
from deltaproto.render.runbook.groups import Group
from deltaproto.render.runbook.phrases import Phrases

_ROLES = ("prepared", "reviewed", "approved", "executed", "verified")
_OF_ROWS = ("WRITE", "STREAMING UPDATE", "MERGE", "UPDATE", "DELETE", "COPY INTO", "TRUNCATE")
"""operations that change rows, named as in DESCRIBE HISTORY"""


def undo(book: Book, say: Phrases) -> Section:
    """Return the chapter on undo: what it can and cannot restore."""
    return Section("undo", say.text("undo"), list(_undo(book, say)))


def _undo(book: Book, say: Phrases) -> Iterator[Block]:
    yield Callout(Tone.WARNING, say.line("undo.restore"))
    if book.applicable:
        yield Paragraph(say.line("undo.command"))
        yield CodeBlock(book.command("apply", "--undo"), "shell")
    lines: list[Line] = []
    for group in book.changing_groups:
        tables, stays = book.names(group.entries, say), group.first.lasting_changes
        point = group.plan.point_of_no_return
        if point is not None:
            lines.append(say.line("undo.none", table=tables, step=point))
        if stays:
            features = join_names(as_code(stays), say)
            lines.append(say.line("undo.partly", table=tables, features=features))
        elif point is None:
            lines.append(say.line("undo.full", table=tables))
        for step in group.plan.steps:
            for loss in step.losses:
                lines.append(say.line("undo.lost", table=tables, step=step.id, loss=loss))
            if step.truncates:
                lines.append(say.line("undo.history", table=tables, step=step.id))
    yield Bullets(lines)
    if book.irreversible or any(entry.lasting_changes for entry in book.changing):
        yield Paragraph(say.line("undo.copy"))


def burn_in(book: Book, say: Phrases) -> Section:
    """Return the conditions under which the change counts as complete."""
    boxes = [say.line("burn_in.jobs")]
    rarest = _rarest(book)
    if rarest is not None:
        writer = say.text("burn_in.writer", engine=rarest.engine, operation=rarest.operation)
        gap = rarest.typical_gap
        text = (
            say.line("burn_in.once", writer=writer)
            if gap is None
            else say.line("burn_in.rarest", writer=writer, every=span(gap))
        )
        boxes[0] = (*boxes[0], ": ", *text)
    later = {
        "clients": any(entry.clients for entry in book.changing),
        "maintenance": True,
        "checkpoint": any(
            entry.plan.protocol_before != entry.plan.protocol_after for entry in book.changing
        ),
    }
    boxes += [say.line(f"burn_in.{name}") for name, applies in later.items() if applies]
    copied = any(entry.needs_backup for entry in book.changing)
    dropped = any(entry.plan.features_removed for entry in book.changing)
    blocks: list[Block] = [
        Paragraph(say.line("burn_in.intro" if copied else "burn_in.wait")),
        Checks([*boxes, say.line("burn_in.drift" if dropped else "burn_in.stays")]),
        CodeBlock(book.on_tables("inspect"), "shell"),
    ]
    return Section("burn-in", say.text("burn_in"), blocks)


def _rarest(book: Book) -> Writer | None:
    """Return the rarest writer of rows; a writer seen only once comes first."""
    writers = [
        writer
        for entry in book.changing
        if isinstance(entry.activity, Activity)
        for writer in entry.activity.writers
        if writer.operation in _OF_ROWS
    ]
    return max(writers, key=lambda w: inf if w.typical_gap is None else w.typical_gap, default=None)


def restart(book: Book, say: Phrases) -> Section:
    """Return who to restart, in order."""
    hit = any(each.hits for _, each in book.warned)
    boxes = [say.line("restart.writers")] if hit else []
    effects = {
        (stream.reads, stream.effect)
        for entry in book.changing
        for step in entry.plan.steps
        for stream in step.streams
        if stream.effect is not StreamEffect.CONTINUES
    }
    for reads, effect in sorted(effects):
        text = say.text(f"effect.{effect}")
        boxes.append(say.line("restart.stream", reads=reads, effect=text))
    for entry in book.changing:
        if isinstance(entry.activity, Activity):
            boxes += [
                say.line("restart.known", stream=Code(stream.app_id), batch=str(stream.last_batch))
                for stream in entry.activity.streams
            ]
    if not boxes:
        return Section("restart", say.text("restart"), [Paragraph(say.line("restart.none"))])
    boxes.append(say.line("restart.readers"))
    blocks: list[Block] = [Paragraph(say.line("restart.intro")), Checks(boxes)]
    if any(effect is StreamEffect.ENDS for _, effect in effects):
        blocks.append(Callout(Tone.WARNING, say.line("restart.new_checkpoint")))
    return Section("restart", say.text("restart"), blocks)


def verification(book: Book, say: Phrases) -> Section:
    """Return the checks that verify the final state."""
    blocks: list[Block] = [
        Paragraph(say.line("verification.intro")),
        CodeBlock(book.on_tables("inspect", "--reader", "all"), "shell"),
        Bullets([_ending(book, group, say) for group in book.changing_groups]),
    ]
    if book.policy:
        blocks += [
            Paragraph(say.line("verification.policy")),
            CodeBlock(book.on_tables("check", *book.judging), "shell"),
        ]
    return Section("verification", say.text("verification"), blocks)


def _ending(book: Book, group: Group[RunbookEntry], say: Phrases) -> Line:
    after = group.plan.protocol_after
    listed = sorted(after.supported) if after.uses_table_features else []
    features = (
        join_names(as_code(listed), say) if listed else (say.text("verification.no_features"),)
    )
    line = say.line("verification.expected", protocol=str(after), features=features)
    return (*book.names(group.entries, say), ": ", *line)


def sign_off(say: Phrases) -> Section:
    """Return the sign-off table."""
    boxes = [say.line("sign_off.box", role=say.text(f"role.{role}")) for role in _ROLES]
    return Section("sign-off", say.text("sign_off"), [Checks(boxes)])
