"""The results of `inspect` for people: one section for each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from deltaproto.clients.model import Access
from deltaproto.counts import counted, first_names
from deltaproto.errors import TableError
from deltaproto.inspection import Inspection, Unreadable
from deltaproto.inspection.facts import least_versions
from deltaproto.policy.finding import Severity
from deltaproto.protocol.feature import FeatureKind
from deltaproto.protocol.layers import FeatureState, explain_versions
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import ReaderName, TableState
from deltaproto.render import words
from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
)
from deltaproto.render.findings import finding_block, problem_block
from deltaproto.render.interface import NOTICES

if TYPE_CHECKING:
    from deltaproto.inspection.activity import Activity

_MOST_FEATURES = 200
"""maximum number of features shown for one table; no known writer lists that many"""
_FEATURES = ("Feature", "Needed by", "How", "Enabled", "Present", "Droppable")
_SHORT_FEATURES = ("Feature", "For", "How", "On", "In use", "Drop")
_READERS = ("Reader", "Version", "Protocol", "Features or reason")
_WRITERS = ("Writer", "Operation", "Commits", "Every", "Last")


def inspection_document(results: Sequence[Inspection | Unreadable]) -> Document:
    """Return the sections of all tables on one page."""
    names = [r.table if isinstance(r, Unreadable) else r.state.table for r in results]
    title = names[0] if len(names) == 1 else counted(len(names), "table")
    unread = sum(isinstance(result, Unreadable) for result in results)
    subtitle = (
        f"{counted(unread, 'table')} could not be read"
        if unread
        else "protocol, features and findings"
    )
    blocks: list[Block] = [Callout(Tone.WARNING, (notice,)) for notice in NOTICES]
    blocks += [inspection_section(each, f"table-{place}") for place, each in enumerate(results, 1)]
    if len(results) > 1:
        blocks.append(_summary(results))
    return Document(title, (subtitle,), blocks)


def closing_blocks(results: Sequence[Inspection | Unreadable], *, summary: bool) -> Iterator[Block]:
    """Yield the blocks after the sections of all tables: the summary, if there are several, and
    notices.
    """
    if summary and len(results) > 1:
        yield _summary(results)
    yield from (Callout(Tone.WARNING, (notice,)) for notice in NOTICES)


def inspection_section(result: Inspection | Unreadable, anchor: str) -> Section:
    """Return the section for one table."""
    if isinstance(result, Inspection):
        return Section(anchor, result.state.table, list(_blocks(result)))
    problem = problem_block(result.error, complete=False)
    blocks: list[Block] = [] if problem is None else [problem]
    if result.readers is not None:
        blocks.append(_readers(result.readers))
    if result.findings:
        blocks.append(finding_block(result.findings))
    return Section(anchor, result.table, blocks)


def activity_blocks(activity: Activity | TableError, *, every: bool = False) -> Iterator[Block]:
    """Yield the writers of a table, how often they commit, and the idle hours.

    Args:
        every: every writer and stream, not only the most frequent ones.
    """
    from deltaproto.render.activity import sentences, writer_rows

    if not isinstance(activity, TableError) and activity.writers:
        rows = writer_rows(activity, None) if every else writer_rows(activity)
        yield TableBlock(_WRITERS, _plain(rows), lead=2)
    lines = sentences(activity, None) if every else sentences(activity)
    yield Bullets([(text,) for text in lines])


def _blocks(result: Inspection) -> Iterator[Block]:
    problem = problem_block(None, complete=result.complete)
    if problem is not None:
        yield problem
    yield FactList(list(_facts(result)))
    if result.subject.features:
        yield _features(result.subject.features)
        yield from (Paragraph((note,), muted=True) for note in _notes(result))
    if result.readers is not None:
        yield _readers(result.readers)
    if result.findings:
        yield finding_block(result.findings)
    if result.activity is not None:
        yield Section("", "Activity", list(activity_blocks(result.activity)))


def _facts(result: Inspection) -> Iterator[tuple[str, Line]]:
    state, protocol = result.state, result.state.protocol
    yield "Location", (Code(state.location),)
    yield "Version", (f"{state.version}, read by {state.reader}",)
    yield "Protocol", (f"{protocol}: {words.scheme(protocol)}",)
    for reason in explain_versions(protocol):
        yield "Why", (reason,)
    yield "Lowest", (words.lowest(result),)
    yield "Isolation", (words.isolation(result.isolation),)
    yield "Row-level", (f"{result.row_level.databricks} on Databricks: {result.row_level.reason}",)
    least = least_versions(result)
    yield "To read", (words.at_least(least, Access.READ),)
    yield "To append", (words.at_least(least, Access.APPEND),)
    if state.metadata.partition_columns:
        yield "Partitions", (words.columns(state.metadata.partition_columns),)
    if state.clustering_columns:
        yield "Clustering", (words.columns(state.clustering_columns),)


def _features(states: Sequence[FeatureState]) -> TableBlock:
    rows: list[list[Line]] = [
        [
            (Code(state.name),),
            ("writers" if state.kind is FeatureKind.WRITER else "everyone",),
            (words.source(state),),
            (words.YES_NO[state.enabled],),
            (words.YES_NO[state.present],),
            (words.droppable(state.feature, state.kept_by),),
        ]
        for state in states[:_MOST_FEATURES]
    ]
    return TableBlock(_FEATURES, rows, short=_SHORT_FEATURES)


def _notes(result: Inspection) -> Iterator[str]:
    states = result.subject.features
    if (more := len(states) - _MOST_FEATURES) > 0:
        yield f"and {counted(more, 'more feature')}; --format json has all of them"
    for state in states:
        if state.required_by:
            yield f"{state.name} is required by {', '.join(state.required_by)}"
    if any(state.present is None or state.enabled is None for state in states):
        deeper = result.state.reader is ReaderName.LOG
        look = "; --look-in-files searches" if deeper else ""
        yield f"? = not searched, or unknown to this reader{look}"
    drops = [words.droppable(state.feature, state.kept_by) for state in states]
    for mark, text in words.DROP_MARKS.items():
        if any(mark in drop for drop in drops):
            yield text


def _readers(answers: Mapping[ReaderName, TableState | TableError]) -> TableBlock:
    rows: list[tuple[str, ...]] = []
    tones: list[Tone | None] = []
    shown: Protocol | None = None
    for name, answer in answers.items():
        tones.append(Tone.WARNING if isinstance(answer, TableError) else None)
        if isinstance(answer, TableError):
            rows.append((name, "", str(answer.code), answer.message))
            continue
        protocol = answer.protocol
        listed = first_names(sorted(protocol.listed), _MOST_FEATURES) or "no lists"
        same = shown is not None and shown.listed == protocol.listed
        features = "the same features" if same else listed
        rows.append((name, str(answer.version), str(protocol), features))
        shown = shown or protocol
    return TableBlock(_READERS, _plain(rows), tones, below=True)


def _summary(results: Sequence[Inspection | Unreadable]) -> Paragraph:
    unreadable = sum(isinstance(result, Unreadable) for result in results)
    counts = dict.fromkeys(Severity, 0)
    for result in results:
        if isinstance(result, Inspection):
            for finding in result.findings:
                counts[finding.severity] += 1
    found = ", ".join(f"{n:,} {severity}" for severity, n in counts.items())
    return Paragraph(
        (Strong(f"{counted(len(results), 'table')}, {unreadable:,} unreadable; findings: {found}"),)
    )


def _plain(rows: Sequence[Sequence[str]]) -> list[list[Line]]:
    return [[(cell,) for cell in row] for row in rows]
