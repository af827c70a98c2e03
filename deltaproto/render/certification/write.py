"""Write a measurement in the requested format."""

from __future__ import annotations

from typing import IO, assert_never

from deltaproto.render.certification.words import Certified
from deltaproto.render.interface import NOTICES, PageFormat, json_text


def write_certified(
    certified: Certified, format_: PageFormat, file: IO[str], *, color: bool
) -> None:
    """Write the report on one client."""
    match format_:
        case PageFormat.JSON | PageFormat.JSONL:
            from deltaproto.render.certification.fields import certified_fields

            line = format_ is PageFormat.JSONL
            file.write(json_text("certify", certified_fields(certified), line=line))
        case PageFormat.MARKDOWN | PageFormat.HTML:
            from deltaproto.render.certification.page import certification_document
            from deltaproto.render.document.render import document_text

            html = format_ is PageFormat.HTML
            file.write(document_text(certification_document(certified), html=html))
        case PageFormat.TEXT:
            from deltaproto.render.certification.text import print_certified
            from deltaproto.render.console import DataConsole

            print_certified(DataConsole(file, color=color), certified)
            file.writelines(f"warning: {notice}\n" for notice in NOTICES)
        case _:
            assert_never(format_)
