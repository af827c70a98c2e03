"""One table's check as a section of a document: verdicts, policy, findings, waived findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from deltaproto.caches import cache_by_identity
from deltaproto.clients.model import Verdict
from deltaproto.clients.usability import Usability
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document.merging import LISTS, Decision
from deltaproto.policy.finding import Suppression
from deltaproto.policy.table_check import TableCheck
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Code,
    FactList,
    Line,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.findings import finding_block, problem_block
from deltaproto.render.usability import rows

VERDICT_TONES = {
    Verdict.OK: Tone.GOOD,
    Verdict.REFUSED: Tone.DANGER,
    Verdict.UNKNOWN: Tone.WARNING,
    Verdict.WRONG: Tone.DANGER,
}
_NEWEST = frozenset({1})


def check_section(
    checked: TableCheck, *, show_suppressed: bool = False, every_version: bool = False
) -> Section:
    """Return the section for one table."""
    blocks = _blocks(checked, show_suppressed=show_suppressed, every_version=every_version)
    return Section("", checked.table, list(blocks))


def _blocks(checked: TableCheck, *, show_suppressed: bool, every_version: bool) -> Iterator[Block]:
    problem = problem_block(checked.error, complete=checked.complete)
    if problem is not None:
        yield problem
    if checked.verdicts:
        yield _verdict_table(checked.verdicts)
    if checked.usability:
        yield _usability_table(checked.usability, every_version=every_version)
    policy: list[tuple[str, Line]] = [("Policy", (line,)) for line in _policy(checked.decisions)]
    if policy:
        yield FactList(policy)
    if checked.findings:
        yield finding_block(checked.findings)
    if show_suppressed and checked.suppressed:
        yield Bullets([(_waived(each),) for each in checked.suppressed])


# Tables with equal needs share one tuple of verdicts.
@cache_by_identity(4096)
def _verdict_table(verdicts: tuple[DeclaredVerdict, ...]) -> TableBlock:
    accesses: dict[str, None] = {}
    clients: dict[str, dict[str, Verdict]] = {}
    for each in verdicts:
        access, label = str(each.verdict.access), each.declared.label
        accesses.setdefault(access)
        named = each.verdict.named + (f" ({label})" if label else "")
        clients.setdefault(named, {})[access] = each.verdict.verdict
    table: list[list[Line]] = []
    tones: list[list[Tone | None]] = []
    for client, found in clients.items():
        answers = [found.get(access) for access in accesses]
        table.append([(Code(client),), *((_shout(answer),) for answer in answers)])
        tones.append([None, *(None if each is None else VERDICT_TONES[each] for each in answers)])
    return TableBlock(("Client", *map(str.capitalize, accesses)), table, cells=tones)


def _shout(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    return str(verdict) if verdict is Verdict.OK else str(verdict).upper()


def _usability_table(usability: tuple[Usability, ...], *, every_version: bool) -> TableBlock:
    headings, found = rows(usability, every_version=every_version)
    table: list[list[Line]] = [[(cell,) for cell in row] for row in found]
    spare = frozenset[int]() if every_version else _NEWEST
    # A verdict such as "ok >= 1.4" stays on one line, so that each client takes one if possible.
    last = len(headings) - 1
    whole = frozenset[int]() if every_version else frozenset(range(last))
    names = [each.capitalize() for each in headings]
    return TableBlock(names, table, spare=spare, below=True, whole=whole)


def _policy(decisions: Iterable[Decision]) -> Iterator[str]:
    """Yield each policy pattern that determined a setting, with its settings."""
    patterns: dict[tuple[str, str | None], Counter[str]] = {}
    values = {}
    for each in decisions:
        if each.pattern is not None:
            source = each.pattern, each.profile
            patterns.setdefault(source, Counter())[each.setting] += 1
            values[source, each.setting] = each.value
    for source, named in patterns.items():
        settings = (
            f"{name} ({count})" if name in LISTS else f"{name} {values[source, name]}"
            for name, count in named.items()
        )
        pattern, profile = source
        inherited = "" if profile is None else f" (profile {profile})"
        yield f'"{pattern}"{inherited}: {", ".join(settings)}'


def _waived(each: Suppression) -> str:
    """Return a waived finding with its reason and last day."""
    until = f", until {each.expires}" if each.expires else ""
    finding = each.finding
    word = "waived" if each.approver is None else f"approved by {each.approver}"
    ticket = f", {each.ticket}" if each.ticket else ""
    hint = f"; hint: {finding.hint}" if finding.hint else ""
    return f"{word}: {finding.rule} {finding.message} ({each.reason}{ticket}{until}){hint}"
