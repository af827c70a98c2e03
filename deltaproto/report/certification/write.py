"""One format or another."""

from __future__ import annotations

from typing import IO, assert_never

from deltaproto.report.certification.words import Certified
from deltaproto.report.interface import PageFormat, dumps, envelope


def write_certified(
    certified: Certified, format_: PageFormat, file: IO[str], *, color: bool
) -> None:
    """The report on one client."""
    match format_:
        case PageFormat.JSON | PageFormat.JSONL:
            from deltaproto.report.certification.fields import certified_fields

            indent = 2 if format_ is PageFormat.JSON else None
            file.write(
                dumps(envelope("certify", certified_fields(certified)), indent=indent) + "\n"
            )
        case PageFormat.MARKDOWN | PageFormat.HTML:
            from deltaproto.report.certification.page import certification_document
            from deltaproto.report.document.render import document_text

            html = format_ is PageFormat.HTML
            file.write(document_text(certification_document(certified), html=html))
        case PageFormat.TEXT:
            from deltaproto.report.certification.text import print_certified
            from deltaproto.report.console import DataConsole

            print_certified(DataConsole(file, color=color), certified)
        case _:
            assert_never(format_)
