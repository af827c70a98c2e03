"""Inspections, the feature catalogue and tables in general as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deltaproto.errors import TableError
from deltaproto.inspection import Inspection, Unreadable
from deltaproto.protocol.reasons import reasons
from deltaproto.report import words
from deltaproto.report.interface import visible


def inspection_markdown(result: Inspection | Unreadable) -> str:
    """One table's inspection as a section."""
    if isinstance(result, Unreadable):
        error = result.error
        lines = [f"## {escape(result.table)}", "", f"**{error.code}**: {escape(error.message)}"]
        return "\n".join([*lines, *(["", f"Hint: {escape(error.hint)}"] if error.hint else []), ""])
    state = result.state
    facts = [
        ("Location", state.location),
        ("Version", f"{state.version}, read by {state.reader}"),
        ("Protocol", f"{state.protocol}: {words.scheme(state.protocol)}"),
        ("Why", "; ".join(reasons(state.protocol))),
        ("Lowest protocol", words.lowest(result)),
        ("Isolation", words.isolation(result)),
        ("Row-level concurrency", f"{result.row_level.databricks}: {result.row_level.reason}"),
        ("Partition columns", words.columns(state.metadata.partition_columns)),
        ("Clustering columns", words.columns(state.clustering_columns)),
    ]
    if not result.complete:
        facts.append(("Complete", "no, see findings"))
    features = [
        (
            feature.name,
            str(feature.kind),
            words.source(feature),
            words.YES_NO[feature.enabled],
            words.YES_NO[feature.present],
            ", ".join(feature.required_by),
            words.droppable(feature.feature),
        )
        for feature in result.subject.features
    ]
    heads = ("Feature", "Kind", "How", "Enabled", "Present", "Pulled in by", "Droppable since")
    parts = [f"## {escape(state.table)}", "", table(("", ""), facts)]
    if features:
        parts += ["", table(heads, features)]
        shown = " ".join(row[-1] for row in features)
        marks = [text for mark, text in words.DROP_MARKS.items() if mark in shown]
        parts += ["", "; ".join(marks)] if marks else []
    if result.activity is not None:
        from deltaproto.report.activity import sentences, writer_rows

        if not isinstance(result.activity, TableError):
            rows = writer_rows(result.activity)
            parts += ["", table(("Writer", "Operation", "Commits", "Every", "Last"), rows)]
        parts += ["", *(f"- {escape(line)}" for line in sentences(result.activity))]
    if result.findings:
        rows = [(str(f.severity), f.rule, f.message, f.hint) for f in result.findings]
        parts += ["", table(("Severity", "Rule", "Finding", "Hint"), rows)]
    return "\n".join([*parts, ""])


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are escaped."""
    lines = [_row(headings), _row(["---"] * len(headings))]
    lines.extend(_row([escape(cell) for cell in row]) for row in rows)
    return "\n".join(lines)


def escape(text: str) -> str:
    """`text` on one line, with nothing in it that Markdown would read as markup."""
    flat = visible(" ".join(text.split()))
    for character in "\\`*_[]<>|#~&":
        flat = flat.replace(character, f"\\{character}")
    return flat


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
