"""The result of `catalogs test`: a document and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from deltaproto.fleet.catalog_check import CatalogReport, CheckStatus
from deltaproto.render.document.blocks import Block, Code, Document, Line, TableBlock
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import Format, json_text

_HEADINGS = ("Step", "Result", "Details")


def write_catalog_report(
    report: CatalogReport, format_: Format, file: IO[str], *, color: bool
) -> None:
    """Write each step, its result, and what to do if it failed."""
    if format_ in (Format.JSON, Format.JSONL):
        payload = {"catalog": report.url, "checks": [each._asdict() for each in report.checks]}
        line = format_ is Format.JSONL
        file.write(json_text("catalogs", payload, line=line, complete=report.ok))
        return
    document = Document("Catalog", (Code(report.url),), list(_blocks(report)))
    write_document(document, format_, file, color=color)


def _blocks(report: CatalogReport) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for check in report.checks:
        rows.append([(check.name,), (str(check.status),), (check.detail,)])
        if check.status is CheckStatus.FAILED and check.hint:
            rows.append([("",), ("hint",), (check.hint,)])
    yield TableBlock(_HEADINGS, rows)
