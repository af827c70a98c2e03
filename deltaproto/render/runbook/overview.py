"""The first chapters: what changes, and who gains or loses access."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.execution.preflight import GateResult
from deltaproto.planning.impact import is_better, is_worse
from deltaproto.planning.plan import Plan
from deltaproto.planning.statement import Action
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    Code,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.plan_words import concurrency_lines
from deltaproto.render.runbook.book import Book, RunbookEntry, as_code, join_names
from deltaproto.render.runbook.groups import Group
from deltaproto.render.runbook.phrases import Phrases, when


class AccessChange(NamedTuple):
    """The same change for a client on several tables."""

    client: str
    label: str | None
    before: Verdict
    after: Verdict
    worse: bool
    access: dict[str, None]
    because: dict[str, None]
    tables: dict[str, None]


_TONES = {True: Tone.DANGER, False: Tone.GOOD}


def summary(book: Book, say: Phrases) -> Section:
    """Return what changes, and why."""
    return Section("summary", say.text("summary"), list(_summary(book, say)))


def _summary(book: Book, say: Phrases) -> Iterator[Block]:
    yield from of_all(book, say)
    blocked = [entry for entry in book.entries if entry.plan.blocked]
    if blocked:
        count = say.count("tables", len(blocked))
        blocked_line = say.line("summary.blocked", count=count, tables=book.names(blocked, say))
        yield Callout(Tone.DANGER, blocked_line)
    unmet = [entry for entry in book.entries if entry.plan.unmet]
    if unmet:
        count = say.count("tables", len(unmet))
        line = say.line("summary.unmet", count=count, tables=book.names(unmet, say))
        yield Callout(Tone.WARNING, line)
    unplanned: dict[str, list[str]] = {}
    for each in book.unplanned:
        unplanned.setdefault(each.message, []).append(each.table)
    for message, tables in unplanned.items():
        line = say.line(
            "summary.unplanned", table=join_names(as_code(tables), say), message=message
        )
        yield Callout(Tone.DANGER, line)
    yield Paragraph(say.line("summary.intro"))
    if book.irreversible:
        yield Callout(Tone.WARNING, say.line("summary.irreversible"))
    elif any(entry.lasting_changes for entry in book.changing):
        yield Callout(Tone.WARNING, say.line("summary.partly"))
    elif book.changing:
        yield Callout(Tone.GOOD, say.line("summary.reversible"))
    heads = ("table", "goal", "before", "after", "gone", "new", "steps", "return")
    rows = [_row(book, each, say) for each in book.groups]
    yield TableBlock([say.text(f"head.{head}") for head in heads], rows)


def _row(book: Book, group: Group[RunbookEntry], say: Phrases) -> list[Line]:
    plan = group.plan
    before, after = plan.protocol_before, plan.protocol_after
    waits = sum(step.action is Action.WAIT for step in plan.steps)
    done = not (plan.blocked or plan.unmet)
    steps = say.text("nothing_to_do") if done else say.text("nothing")
    if plan.steps:
        steps = say.count("statements", len(plan.steps) - waits)
        if waits:
            steps = say.text("steps.waits", statements=steps, waits=say.count("waits", waits))
    point = plan.point_of_no_return
    return [
        book.names(group.entries, say),
        (plan.goal_text,),
        (str(before),),
        (str(after),),
        join_names(as_code(plan.features_removed), say),
        join_names(as_code(plan.features_added), say),
        (steps,),
        (point or say.text("nothing"),),
    ]


def concurrency(plan: Plan, say: Phrases) -> Iterator[tuple[str, Line]]:
    """Yield the isolation level and row-level concurrency, then each change of conflicts."""
    if plan.concurrency is not None:
        isolation, rows, *changes = map(": ".join, concurrency_lines(plan.concurrency))
        yield say.text("table.concurrency"), (f"{isolation}; {rows}",)
        for change in changes:
            yield say.text("table.conflicts"), (change,)


def clients(book: Book, say: Phrases) -> Section:
    """Return who gains access, who loses it, and who to notify."""
    return Section("clients", say.text("clients"), list(_clients(book, say)))


def _clients(book: Book, say: Phrases) -> Iterator[Block]:
    checked = sum(len(entry.clients) for entry in book.entries)
    changes = client_changes(book.changing)
    undeclared = [entry for entry in book.changing if not entry.clients]
    blocked = [entry for entry in book.entries if entry.plan.blocked and entry.clients]
    from_log = [entry for entry in book.changing if entry.plan.everybody]
    if not checked:
        yield Callout(Tone.WARNING, say.line("clients.unseen" if from_log else "clients.none"))
    elif from_log:
        seen = dict.fromkeys(each.client for entry in from_log for each in entry.clients)
        yield Callout(
            Tone.WARNING, say.line("clients.seen", clients=join_names(as_code(seen), say))
        )
    if checked and undeclared:
        line = say.line("clients.unasked", tables=book.names(undeclared, say))
        yield Callout(Tone.WARNING, line)
    elif checked and not changes:
        yield Paragraph(say.line("clients.same", count=checked))
    if blocked:
        yield Paragraph(say.line("clients.blocked", tables=book.names(blocked, say)))
    losing = [change for change in changes if change.worse]
    if losing:
        yield Paragraph(say.line("clients.tell"))
        yield Checks([change_line(book, change, say) for change in losing])
    if changes:
        heads = ("client", "access", "now", "then", "because", "tables")
        yield TableBlock(
            [say.text(f"head.{head}") for head in heads],
            [_row_of(book, change, say) for change in changes],
            [_TONES[change.worse] for change in changes],
        )
    rulings = dict.fromkeys(each.text for entry in book.changing for each in entry.rulings)
    if rulings:
        yield Paragraph(say.line("clients.approvals"))
        yield Bullets([(text,) for text in rulings])
    yield Bullets([say.line("clients.others")])


def client_changes(entries: Iterable[RunbookEntry]) -> list[AccessChange]:
    """Return what changes for clients, losses first; equal changes of several tables are merged.

    Args:
        entries: plans that change something; a blocked one changes nothing.
    """
    found: dict[tuple[Any, ...], AccessChange] = {}
    for entry in entries:
        one: dict[tuple[str, str | None, Verdict, Verdict, bool], AccessChange] = {}
        for each in entry.clients:
            if not is_worse(each) and not is_better(each):
                continue
            key = (each.client, each.label, each.before, each.after, is_worse(each))
            change = one.setdefault(key, AccessChange(*key, {}, {}, {}))
            change.access[str(each.access)] = None
            change.because.update(dict.fromkeys(each.because))
            change.tables[entry.plan.table] = None
        for key, change in one.items():
            # Merge only tables with the same change for the same accesses.
            known = found.setdefault((*key, *change.access), change)
            known.because.update(change.because)
            known.tables.update(change.tables)
    return sorted(found.values(), key=lambda change: (not change.worse, change.client))


def change_line(book: Book, change: AccessChange, say: Phrases) -> Line:
    """Return who to notify about a change, as a line with a checkbox."""
    return say.line(
        "clients.told",
        client=_client(change, say),
        access=", ".join(change.access),
        tables=book.tables(change.tables, say),
        before=str(change.before),
        after=str(change.after),
    )


def _row_of(book: Book, change: AccessChange, say: Phrases) -> list[Line]:
    return [
        _client(change, say),
        (", ".join(change.access),),
        (str(change.before),),
        (str(change.after),),
        join_names(as_code(change.because), say),
        book.tables(change.tables, say),
    ]


def _client(change: AccessChange, say: Phrases) -> Line:
    name = Code(change.client)
    if change.label is None:
        return (name,)
    return say.line("clients.labeled", client=name, label=change.label)


def of_all(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield every failed gate, with the tables of the plans that it refuses."""
    refused = {gates: each for gates, each in book.refusals.items() if each[0].blocking}
    only_flag = {gates: each for gates, each in book.refusals.items() if not each[0].blocking}
    if refused:
        count = say.count("plans", sum(map(len, refused.values())))
        line = say.line(
            "gates.refused", command=applying(book), count=count, start=when(book.start)
        )
        yield Callout(Tone.DANGER, line)
        yield _listed(book, refused, say)
    if only_flag:
        yield Callout(Tone.WARNING, say.line("gates.flag", command=applying(book)))
        yield _listed(book, only_flag, say)


def of_chapter(book: Book, group: Group[RunbookEntry], say: Phrases) -> Iterator[Block]:
    """Yield every failed gate for the plans of one chapter."""
    entry = group.first
    # The reasons why a plan is blocked, and their remedies, come before this.
    failed = [gate for gate in _failed(entry) if not (entry.plan.blocked and gate.name == "plan")]
    if not failed:
        return
    if entry.blocking:
        line = say.line("gates.plan", command=applying(book), start=when(book.start))
        yield Callout(Tone.DANGER, line)
    else:
        yield Callout(Tone.WARNING, say.line("gates.flag", command=applying(book)))
    yield Bullets([_gate("gates.gate", gate, say) for gate in failed])


def passed_gates(entry: RunbookEntry, say: Phrases) -> Line | None:
    """Return the gates that a plan passes; None if no gate was evaluated."""
    found = [gate.name for gate in entry.gates or () if gate.passed]
    return say.line("gates.engine", gates=", ".join(found)) if found else None


def applying(book: Book) -> Code:
    """Return the command that evaluates these gates."""
    policy = f" … --policy {book.policy}" if book.policy else ""
    return Code(f"deltaproto apply{policy}")


def _listed(
    book: Book, refused: dict[tuple[GateResult, ...], list[RunbookEntry]], say: Phrases
) -> Bullets:
    """Return the failed gates, grouped so that each set of tables is named once."""
    lines = []
    for (first, *others), entries in refused.items():
        line = _gate("gates.failed", first, say, tables=book.names(entries, say))
        for gate in others:
            line = (*line, "; ", *_gate("gates.gate", gate, say))
        lines.append(line)
    return Bullets(lines)


def _gate(phrase: str, gate: GateResult, say: Phrases, **tables: Line) -> Line:
    line = say.line(phrase, gate=gate.name, message=gate.message, **tables)
    return (*line, *say.line("gates.hint", hint=gate.hint)) if gate.hint else line


def _failed(entry: RunbookEntry) -> tuple[GateResult, ...]:
    return () if entry.gates is None else entry.failed
