"""The findings of a forecast, each once, with the number of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.counts import counted
from deltaproto.fleet.forecast.records import Forecast, UpgradeForecast, severity_of
from deltaproto.fleet.forecast.upgrades import RUNTIME
from deltaproto.planning.plan import ClientChange
from deltaproto.policy.finding import SEVERITY_RANKS, Severity
from deltaproto.render.document.blocks import Block, FindingLine, FindingList, Paragraph
from deltaproto.render.findings import SEVERITY_TONES
from deltaproto.render.named_tables import NamedCount

_HINT = "upgrade the client first, or keep the feature off: see Statements"
_NO_PROPERTY = "upgrade the client first: no property keeps the feature off"
_DELAYS = "upgrade it first: it delays the feature only while it comes back within {} days"


class _Message(NamedTuple):
    severity: Severity
    rule: str
    text: str
    hint: str


def finding_blocks(found: Forecast, limit: int) -> Iterator[Block]:
    """Yield each finding once, with the number of its tables."""
    messages: dict[_Message, NamedCount] = {}
    for table in found.tables:
        for upgrade in table.upgrades:
            for message in _messages(upgrade, declared=found.declared):
                messages.setdefault(message, NamedCount()).add(table.table)
    ordered = sorted(
        messages.items(), key=lambda each: (SEVERITY_RANKS[each[0].severity], -each[1].tables)
    )
    shown = ordered[: limit or None]
    if shown:
        yield FindingList([_line(*each) for each in shown])
    if left := len(ordered) - len(shown):
        yield Paragraph((f"and {counted(left, 'more finding')}: --limit 0 shows all",))


def _messages(upgrade: UpgradeForecast, *, declared: bool) -> Iterator[_Message]:
    rule = upgrade.rule
    severity = severity_of(rule)
    for each in upgrade.blocked if declared else ():
        delays = each.client.startswith(f"{RUNTIME}@")
        hint = _NO_PROPERTY if upgrade.statement is None else _HINT
        if delays:
            hint = _DELAYS.format(rule.window.days)
        yield _Message(severity, rule.id, f"with {rule.feature}, {_loss(each)}", hint)
    for text in upgrade.not_judged:
        hint = "declare a known version, or identify the program: discover --how-to-identify"
        known = f"with {rule.feature}, it is not known whether {text} still works"
        yield _Message(Severity.WARNING, rule.id, known, hint)
    for text in upgrade.missed:
        hint = "notify its owner; automatic upgrades do not wait for it"
        window = counted(rule.window.days, "day")
        seldom = f"{text} comes back less often than the window of {window}"
        yield _Message(Severity.INFO, rule.id, seldom, hint)
    for text in upgrade.approved:
        yield _Message(Severity.INFO, rule.id, text, "the policy approves it")


def _loss(change: ClientChange) -> str:
    label = f" ({change.label})" if change.label else ""
    if change.after is Verdict.WRONG:
        what = f"may return or write wrong rows ({change.access})"
    else:
        what = f"could not {change.access}"
    return f"{change.client}{label} {what}: {change.reason}"


def _line(message: _Message, names: NamedCount) -> FindingLine:
    tables = names.shown(0)
    if names.tables > 1:
        tables = f"{counted(names.tables, 'table')}: {tables}"
    tone = SEVERITY_TONES[message.severity]
    return FindingLine(
        tone, str(message.severity), message.rule, message.text, message.hint, tables
    )
