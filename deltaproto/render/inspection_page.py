"""Inspections as sections of a document: the same in Markdown and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.clients.model import Access
from deltaproto.errors import TableError
from deltaproto.inspection import Inspection, Unreadable
from deltaproto.inspection.least_versions import least_versions
from deltaproto.policy.finding import Severity
from deltaproto.protocol.layers import reasons
from deltaproto.render import words
from deltaproto.render.document import (
    Block,
    Bullets,
    Callout,
    Code,
    Document,
    FactList,
    Line,
    Paragraph,
    Section,
    TableBlock,
    Tone,
)
from deltaproto.render.interface import NOTICES

SEVERITIES = {
    Severity.ERROR: Tone.DANGER,
    Severity.WARNING: Tone.WARNING,
    Severity.INFO: Tone.NOTE,
}
_FEATURES = ("Feature", "Kind", "How", "Enabled", "Present", "Pulled in by", "Droppable since")


def inspection_document(results: Sequence[Inspection | Unreadable]) -> Document:
    """Every table with a section of its own."""
    names = [r.table if isinstance(r, Unreadable) else r.state.table for r in results]
    title = names[0] if len(names) == 1 else f"{len(names):,} tables"
    unread = sum(isinstance(result, Unreadable) for result in results)
    told = f"{unread:,} could not be read" if unread else "protocol, features and findings"
    sections = [section(result, f"table-{place}") for place, result in enumerate(results, 1)]
    return Document(title, (told, *(f"Warning: {notice}" for notice in NOTICES)), sections)


def section(result: Inspection | Unreadable, anchor: str) -> Section:
    """One table."""
    if isinstance(result, Unreadable):
        error = result.error
        blocks: list[Block] = [Callout(Tone.DANGER, (f"{error.code}: {error.message}",))]
        if error.hint:
            blocks.append(Paragraph((f"Hint: {error.hint}",)))
        return Section(anchor, result.table, blocks)
    return Section(anchor, result.state.table, list(_blocks(result)))


def _blocks(result: Inspection) -> Iterator[Block]:
    if not result.complete:
        yield Callout(Tone.WARNING, ("The answer is not complete: see the findings.",))
    yield FactList([(name, line) for name, line in _facts(result)])
    features = [
        (
            feature.name,
            str(feature.kind),
            words.source(feature),
            words.YES_NO[feature.enabled],
            words.YES_NO[feature.present],
            ", ".join(feature.required_by),
            words.droppable(feature.feature, feature.kept_by),
        )
        for feature in result.subject.features
    ]
    if features:
        yield TableBlock(_FEATURES, plain(features))
        shown = " ".join(row[-1] for row in features)
        marks = [text for mark, text in words.DROP_MARKS.items() if mark in shown]
        if marks:
            yield Paragraph(("; ".join(marks),))
    if result.activity is not None:
        yield from _activity(result)
    if result.findings:
        yield TableBlock(
            ("Severity", "Rule", "Finding", "Hint"),
            plain([(str(f.severity), f.rule, f.message, f.hint) for f in result.findings]),
            [SEVERITIES[finding.severity] for finding in result.findings],
        )


def _facts(result: Inspection) -> Iterator[tuple[str, Line]]:
    state = result.state
    yield "Location", (Code(state.location),)
    yield "Version", (f"{state.version}, read by {state.reader}",)
    yield "Protocol", (f"{state.protocol}: {words.scheme(state.protocol)}",)
    yield "Why", ("; ".join(reasons(state.protocol)),)
    yield "Lowest protocol", (words.lowest(result),)
    yield "Isolation", (words.isolation(result.isolation),)
    yield "Row-level concurrency", (f"{result.row_level.databricks}: {result.row_level.reason}",)
    least = [*least_versions(result)]
    yield "To read", (words.at_least(least, Access.READ),)
    yield "To append", (words.at_least(least, Access.APPEND),)
    yield "Partition columns", (words.columns(state.metadata.partition_columns),)
    yield "Clustering columns", (words.columns(state.clustering_columns),)


def _activity(result: Inspection) -> Iterator[Block]:
    from deltaproto.render.activity import sentences, writer_rows

    assert result.activity is not None
    if not isinstance(result.activity, TableError):
        rows = writer_rows(result.activity)
        yield TableBlock(("Writer", "Operation", "Commits", "Every", "Last"), plain(rows))
    yield Bullets([(text,) for text in sentences(result.activity)])


def plain(rows: Sequence[Sequence[str]]) -> list[list[Line]]:
    """Cells that are text alone."""
    return [[(cell,) for cell in row] for row in rows]
