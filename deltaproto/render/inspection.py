"""`inspect`'s output in each format, table by table where the format allows it."""

from __future__ import annotations

from typing import IO, Any, assert_never

from deltaproto.inspection import Inspection, Unreadable
from deltaproto.render.interface import NOTICES, PageFormat, json_text


class InspectionReport:
    """Takes one result after the other; JSON and HTML have to wait for the last one."""

    def __init__(
        self,
        format_: PageFormat,
        file: IO[str],
        *,
        color: bool,
        summary: bool,
        total: int | None = None,
    ) -> None:
        self._total = total
        self._format = format_
        self._file = file
        self._color = color
        self._summary = summary
        self._results: list[Inspection | Unreadable] = []

    def add(self, result: Inspection | Unreadable) -> None:
        """Render `result`, or keep it until `close`."""
        self._results.append(result)
        match self._format:
            case PageFormat.JSON | PageFormat.HTML:
                pass
            case PageFormat.JSONL:
                from deltaproto.render.inspection_json import table_fields

                fields: dict[str, Any] = {"tables": [table_fields(result)]}
                if self._total is not None:
                    # A file that is cut between two lines is still lines of JSON.
                    fields["part"] = {"number": len(self._results), "of": self._total}
                line = json_text("inspect", fields, line=True, complete=_complete(result))
                self._file.write(line)
            case PageFormat.MARKDOWN:
                from deltaproto.render.document.markdown import blocks_markdown
                from deltaproto.render.inspection_page import section

                self._file.write(blocks_markdown([section(result, "")]))
            case PageFormat.TEXT:
                from deltaproto.render.console import DataConsole
                from deltaproto.render.inspection_text import print_table

                print_table(DataConsole(self._file, color=self._color), result)
            case _:
                assert_never(self._format)

    def close(self) -> None:
        """Render what had to wait, and the summary of several tables."""
        if self._format is PageFormat.JSON:
            from deltaproto.render.inspection_json import table_fields

            complete = all(_complete(result) for result in self._results)
            tables = [table_fields(result) for result in self._results]
            text = json_text("inspect", {"tables": tables}, line=False, complete=complete)
            self._file.write(text)
        if self._format is PageFormat.MARKDOWN:
            from deltaproto.render.document.blocks import Paragraph
            from deltaproto.render.document.markdown import blocks_markdown

            for notice in NOTICES:
                self._file.write(blocks_markdown([Paragraph((f"Warning: {notice}",))]))
        if self._format is PageFormat.HTML:
            from deltaproto.render.document.render import document_text
            from deltaproto.render.inspection_page import inspection_document

            self._file.write(document_text(inspection_document(self._results), html=True))
        if self._format is PageFormat.TEXT and self._summary and len(self._results) > 1:
            from deltaproto.render.console import DataConsole
            from deltaproto.render.inspection_text import print_summary

            print_summary(DataConsole(self._file, color=self._color), self._results)
        if self._format is PageFormat.TEXT:
            self._file.writelines(f"warning: {notice}\n" for notice in NOTICES)


def _complete(result: Inspection | Unreadable) -> bool:
    return isinstance(result, Inspection) and result.complete
