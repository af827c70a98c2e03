"""The gates at which `apply` would refuse the plans: shown before everything else."""

from __future__ import annotations

from collections.abc import Iterator

from deltaproto.execution.preflight import GateResult
from deltaproto.render.document import Block, Bullets, Callout, Code, Line, Tone
from deltaproto.render.runbook.book import Book, RunbookEntry, names
from deltaproto.render.runbook.groups import Group
from deltaproto.render.runbook.phrases import Phrases, when


def of_all(book: Book, say: Phrases) -> Iterator[Block]:
    """Yield every failed gate, with the tables of the plans that it refuses."""
    refused = {gates: each for gates, each in book.refusals.items() if each[0].blocking}
    only_flag = {gates: each for gates, each in book.refusals.items() if not each[0].blocking}
    if refused:
        count = say.count("plans", sum(map(len, refused.values())))
        said = say.line(
            "gates.refused", command=applying(book), count=count, start=when(book.start)
        )
        yield Callout(Tone.DANGER, said)
        yield _listed(refused, say)
    if only_flag:
        yield Callout(Tone.WARNING, say.line("gates.flag", command=applying(book)))
        yield _listed(only_flag, say)


def of_chapter(book: Book, group: Group[RunbookEntry], say: Phrases) -> Iterator[Block]:
    """Yield every failed gate for the plans of one chapter."""
    entry = group.first
    # The reasons why a plan is blocked, and their remedies, come before this.
    failed = [gate for gate in _failed(entry) if not (entry.plan.blocked and gate.name == "plan")]
    if not failed:
        return
    if entry.blocking:
        said = say.line("gates.plan", command=applying(book), start=when(book.start))
        yield Callout(Tone.DANGER, said)
    else:
        yield Callout(Tone.WARNING, say.line("gates.flag", command=applying(book)))
    yield Bullets([_gate("gates.gate", gate, say) for gate in failed])


def passed(entry: RunbookEntry, say: Phrases) -> Line | None:
    """Return the gates that a plan passes; None if no gate was evaluated."""
    found = [gate.name for gate in entry.gates or () if gate.passed]
    return say.line("gates.engine", gates=", ".join(found)) if found else None


def applying(book: Book) -> Code:
    """Return the command that evaluates these gates."""
    policy = f" … --policy {book.policy}" if book.policy else ""
    return Code(f"deltaproto apply{policy}")


def _listed(refused: dict[tuple[GateResult, ...], list[RunbookEntry]], say: Phrases) -> Bullets:
    return Bullets(
        [
            _gate("gates.failed", gate, say, tables=names(entries, say))
            for gates, entries in refused.items()
            for gate in gates
        ]
    )


def _gate(phrase: str, gate: GateResult, say: Phrases, **tables: Line) -> Line:
    line = say.line(phrase, gate=gate.name, message=gate.message, **tables)
    return (*line, *say.line("gates.hint", hint=gate.hint)) if gate.hint else line


def _failed(entry: RunbookEntry) -> tuple[GateResult, ...]:
    return () if entry.gates is None else entry.failed
