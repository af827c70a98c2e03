"""A check of many tables, grouped: tables with the same protocol, verdicts and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.counts import all_names, counted, tables_such_as
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.finding import SEVERITY_RANKS, Finding, Severity
from deltaproto.policy.table_check import TableCheck
from deltaproto.render.document.blocks import (
    Block,
    FindingLine,
    FindingList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.findings import SEVERITY_TONES, Problem, problem
from deltaproto.render.named_tables import (
    NamedCount,
    SharedFolder,
    group_notes,
    groups_title,
)

_CLIENTS = 4
"""maximum number of clients named for a group"""
_MOST_MESSAGES = 5_000
"""maximum number of different findings to remember"""
_UNREAD, _FINE = -1, len(SEVERITY_RANKS)


class TableGroup(NamedTuple):
    """The common parts of the tables in a group."""

    rank: int
    """-1 if unreadable or incomplete, else the place of the worst new severity"""
    protocol: str
    clients: str
    """the accesses that are not ok, or a note that all are"""
    findings: tuple[tuple[Severity | None, str, bool], ...]
    """severity, rule or error code, and whether the baseline has it; worst first"""


class _Message(NamedTuple):
    severity: Severity | None
    rule: str
    known: bool
    text: str


class CheckGroups:
    """Groups tables as they arrive. Memory depends on the groups, not on the tables."""

    def __init__(self, *, show_suppressed: bool, limit: int) -> None:
        """`limit`: groups and findings to show; 0: all."""
        self._show_suppressed = show_suppressed
        self._limit = limit
        self._groups: dict[TableGroup, NamedCount] = {}
        self._messages: dict[_Message, NamedCount] = {}
        self._unnamed: Counter[Severity | None] = Counter()
        self._folder = SharedFolder()

    def add(self, checked: TableCheck) -> None:
        """Add one table."""
        trouble = problem(checked.error, complete=checked.complete)
        key = TableGroup(
            _rank(checked, trouble),
            "" if checked.protocol is None else str(checked.protocol),
            _clients(checked.verdicts),
            _rules(checked.findings, trouble),
        )
        self._groups.setdefault(key, NamedCount()).add(checked.table)
        self._folder.add(checked.table)
        for message, hint in self._messages_of(checked, trouble):
            found = self._messages.get(message)
            if found is None:
                if len(self._messages) >= _MOST_MESSAGES:
                    self._unnamed[message.severity] += 1
                    continue
                found = self._messages[message] = NamedCount(hint)
            found.add(checked.table)

    def sections(self) -> Iterator[Section]:
        """Yield the groups, the worst first, and each finding once."""
        if not self._groups:
            return
        groups = sorted(self._groups.items(), key=lambda each: (each[0].rank, -each[1].tables))
        counts = [found for _, found in groups]
        shown = groups[: self._limit or None]
        table = _group_table(shown, len(str(self._folder)))
        notes = group_notes(counts, len(shown), self._folder)
        yield Section("groups", groups_title(counts), [table, *notes])
        if blocks := list(self._finding_blocks()):
            yield Section("findings", "Findings", blocks)

    def _messages_of(
        self, checked: TableCheck, trouble: Problem | None
    ) -> Iterator[tuple[_Message, str]]:
        """Yield the error, findings and verdicts of one table, each with its hint."""
        if trouble is not None:
            severity = Severity.WARNING if checked.error is None else Severity.ERROR
            yield _Message(severity, trouble.code, False, trouble.message), trouble.hint
        for each in checked.findings:
            yield _Message(each.severity, each.rule, each.known, each.message), each.hint
        for waived in checked.suppressed if self._show_suppressed else ():
            text = f"{waived.finding.message} ({waived.reason}, until {waived.expires})"
            yield _Message(None, waived.finding.rule, False, text), ""

    def _finding_blocks(self) -> Iterator[Block]:
        ordered = sorted(
            self._messages.items(),
            key=lambda each: (each[0].known, _order(each[0].severity), -each[1].tables),
        )
        shown, skip = ordered[: self._limit or None], len(str(self._folder))
        if shown:
            yield FindingList([_finding_line(*each, skip) for each in shown])
        left = len(ordered) - len(shown) + self._unnamed.total()
        if left:
            yield Paragraph(
                (f"and {counted(left, 'more finding')}: --limit 0 or --details shows all",)
            )


def _rank(checked: TableCheck, trouble: Problem | None) -> int:
    if trouble is not None:
        return _UNREAD
    return min((SEVERITY_RANKS[f.severity] for f in checked.findings if not f.known), default=_FINE)


def _rules(
    findings: Iterable[Finding], trouble: Problem | None
) -> tuple[tuple[Severity | None, str, bool], ...]:
    found = {(each.severity, each.rule, each.known): None for each in findings}
    return ((None, trouble.code, False), *found) if trouble is not None else tuple(found)


# Tables with equal requirements share one tuple of verdicts.
@cache_by_identity(4096)
def _clients(verdicts: tuple[DeclaredVerdict, ...]) -> str:
    bad: dict[str, dict[Verdict, list[str]]] = {}
    for each in verdicts:
        if each.verdict.verdict is not Verdict.OK:
            client = each.declared.label or each.verdict.named
            accesses = bad.setdefault(client, {}).setdefault(each.verdict.verdict, [])
            if str(each.verdict.access) not in accesses:
                accesses.append(str(each.verdict.access))
    if not bad:
        return "all ok" if verdicts else ""
    texts = [
        f"{client}: "
        + ", ".join(f"{all_names(accesses)} {verdict.upper()}" for verdict, accesses in of.items())
        for client, of in bad.items()
    ]
    more = len(texts) - _CLIENTS
    return "; ".join([*texts[:_CLIENTS], *([counted(more, "more client")] if more > 0 else [])])


def _group_table(groups: Sequence[tuple[TableGroup, NamedCount]], skip: int) -> TableBlock:
    rows: list[list[Line]] = []
    tones: list[Tone | None] = []
    for group, found in groups:
        rules = ", ".join(f"{rule} (known)" if known else rule for _, rule, known in group.findings)
        cells = (f"{found.tables:,}", group.protocol, group.clients, rules, found.shown(skip))
        rows.append([(cell,) if cell else () for cell in cells])
        tones.append(_tone(group.rank))
    headings = ("Tables", "Protocol", "Clients", "Findings", "Names")
    return TableBlock(headings, rows, tones, below=True)


def _tone(rank: int) -> Tone | None:
    if rank in (_UNREAD, SEVERITY_RANKS[Severity.ERROR]):
        return Tone.DANGER
    return Tone.WARNING if rank == SEVERITY_RANKS[Severity.WARNING] else None


def _finding_line(message: _Message, found: NamedCount, skip: int) -> FindingLine:
    severity = "waived" if message.severity is None else str(message.severity)
    first = found.names[0][skip:]
    tables = tables_such_as(found.tables, first)
    return FindingLine(
        None if message.known or message.severity is None else SEVERITY_TONES[message.severity],
        f"{severity} (known)" if message.known else severity,
        message.rule,
        message.text,
        found.hint,
        tables,
    )


def _order(severity: Severity | None) -> int:
    return len(SEVERITY_RANKS) if severity is None else SEVERITY_RANKS[severity]
