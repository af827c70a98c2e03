"""A table's history as text for people."""

from __future__ import annotations

from rich.text import Text

from deltaproto.history import Event, History
from deltaproto.report.console import DataConsole, pairs
from deltaproto.report.history import changes, moment, protocols, remarks, who


def print_history(console: DataConsole, table: str, history: History) -> None:
    """The events as a list, newest first."""
    console.print(Text(table, style="bold"), "")
    for event in history.events:
        head = Text("  ")
        head.append(f"version {event.version}", style="bold")
        head.append(f"  {moment(event.timestamp) or 'time unknown'}  {event.operation}")
        console.print(head)
        console.print(pairs(_facts(event)), indent=4)
        console.print("")
    if not history.events:
        console.print(Text("  no commit in the log changed protocol, features or isolation"), "")
    for line in remarks(history):
        console.print(Text(f"  {line}", style="yellow"))


def _facts(event: Event) -> list[tuple[str, str]]:
    facts = [("protocol", protocols(event)), ("changes", ", ".join(changes(event)))]
    reasons = event.cause.split("; ")
    facts += [("cause" if number == 0 else "", text) for number, text in enumerate(reasons)]
    if by := who(event):
        facts.append(("by", by))
    return facts
