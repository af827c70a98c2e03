"""Inspections as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from deltaproto.clients.model import Access
from deltaproto.errors import TableError
from deltaproto.inspection import Inspection, Unreadable
from deltaproto.inspection.least_versions import least_versions
from deltaproto.policy.finding import Finding, Severity
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.layers import FeatureState, reasons
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from deltaproto.render import words
from deltaproto.render.console import DataConsole, pairs

_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def print_table(console: DataConsole, result: Inspection | Unreadable) -> None:
    """One table's inspection."""
    if isinstance(result, Unreadable):
        _unreadable(console, result)
        return
    state = result.state
    console.print(Text(state.table, style="bold"))
    console.print(pairs(_facts(result)), indent=2)
    if result.subject.features:
        console.print("")
        console.print(_features(result.subject.features), indent=2)
        console.print(*(Text(f"  {note}", style="dim") for note in _legend(result)))
    if result.readers is not None:
        console.print("")
        console.print(_readers(result.readers), indent=2)
    _findings(console, result.findings)
    if result.activity is not None:
        from deltaproto.render.activity import print_activity

        print_activity(console, result.activity)
    console.print("")


def print_summary(console: DataConsole, results: list[Inspection | Unreadable]) -> None:
    """One line over all tables of a call."""
    unreadable = sum(isinstance(result, Unreadable) for result in results)
    counts = dict.fromkeys(Severity, 0)
    for result in results:
        if isinstance(result, Inspection):
            for finding in result.findings:
                counts[finding.severity] += 1
    found = ", ".join(f"{n} {severity}" for severity, n in counts.items())
    console.print(
        Text(f"{len(results)} tables, {unreadable} unreadable; findings: {found}", style="bold"),
    )


def _facts(result: Inspection) -> list[tuple[str, str]]:
    state, protocol = result.state, result.state.protocol
    version = f"{state.version}, read by {state.reader}"
    facts = [
        ("location", state.location),
        ("version", version if result.complete else f"{version}; NOT COMPLETE, see findings"),
        ("protocol", f"{protocol}: {words.scheme(protocol)}"),
        *(("" if number else "why", reason) for number, reason in enumerate(reasons(protocol))),
        ("lowest", words.lowest(result)),
        ("isolation", words.isolation(result.isolation)),
        ("row-level", f"{result.row_level.databricks} on Databricks: {result.row_level.reason}"),
    ]
    least = [*least_versions(result)]
    facts += [
        ("to read", words.at_least(least, Access.READ)),
        ("to append", words.at_least(least, Access.APPEND)),
    ]
    if state.metadata.partition_columns:
        facts.append(("partitions", words.columns(state.metadata.partition_columns)))
    if state.clustering_columns:
        facts.append(("clustering", words.columns(state.clustering_columns)))
    return facts


def _features(states: tuple[FeatureState, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("feature", no_wrap=True)
    for heading in ("needed by", "how", "enabled", "present"):
        table.add_column(heading, no_wrap=True)
    table.add_column("droppable", overflow="fold")
    for state in states:
        table.add_row(
            Text(state.name, style="" if state.enabled or state.present else "dim"),
            "writers" if state.kind is FeatureKind.WRITER else "everyone",
            words.source(state),
            words.YES_NO[state.enabled],
            words.YES_NO[state.present],
            words.droppable(state.feature, state.kept_by),
        )
    return table


def _legend(result: Inspection) -> list[str]:
    states = result.subject.features
    notes = [
        f"{state.name} is pulled in by {', '.join(state.required_by)}"
        for state in states
        if state.required_by
    ]
    if any(state.present is None or state.enabled is None for state in states):
        deeper = result.state.reader is ReaderName.LOG
        look = "; --look-in-files looks" if deeper else ""
        notes.append(f"? = not looked, or this reader cannot tell{look}")
    drops = [words.droppable(state.feature, state.kept_by) for state in states]
    notes.extend(text for mark, text in words.DROP_MARKS.items() if any(mark in d for d in drops))
    return notes


def _readers(answers: Mapping[ReaderName, TableState | TableError]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for heading in ("reader", "version", "protocol", "features or reason"):
        table.add_column(heading, overflow="fold")
    shown: Protocol | None = None
    for name, answer in answers.items():
        if isinstance(answer, TableError):
            table.add_row(name, "", str(answer.code), Text(answer.message))
            continue
        protocol = answer.protocol
        listed = ", ".join(sorted(protocol.listed)) or "no lists"
        same = shown is not None and shown.listed == protocol.listed
        table.add_row(
            name, str(answer.version), str(protocol), "the same features" if same else listed
        )
        shown = shown or protocol
    return table


def _findings(console: DataConsole, findings: tuple[Finding, ...]) -> None:
    if not findings:
        return
    console.print("")
    for finding in findings:
        head = Text("  ")
        head.append(f"{finding.severity} {finding.rule}", style=_STYLE[finding.severity])
        head.append(f" {finding.message}")
        console.print(head)
        if finding.hint:
            console.print(Text(f"    hint: {finding.hint}", style="dim"))


def _unreadable(console: DataConsole, result: Unreadable) -> None:
    head = Text(result.table, style="bold")
    console.print(head)
    line = Text("  ")
    line.append(f"cannot be read ({result.error.code})", style="bold red")
    line.append(f": {result.error.message}")
    console.print(line)
    if result.error.hint:
        console.print(Text(f"  hint: {result.error.hint}", style="dim"))
    if result.readers is not None:
        console.print("")
        console.print(_readers(result.readers), indent=2)
    console.print("")
