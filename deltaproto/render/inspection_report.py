"""The report of `inspect`: it writes the results in one of the formats."""

from __future__ import annotations

from typing import IO, Any

from deltaproto.inspection import Inspection, Unreadable
from deltaproto.render.interface import PageFormat, json_text


class InspectionReport:
    """Writes results as they arrive; JSON and HTML are written after the last one."""

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
        self._summary = summary
        self._results: list[Inspection | Unreadable] = []
        self._writer = None
        if format_ in (PageFormat.TEXT, PageFormat.MARKDOWN):
            from deltaproto.render.document.render import BlockWriter

            self._writer = BlockWriter(format_, file, color=color)

    def add(self, result: Inspection | Unreadable) -> None:
        """Render `result`, or keep it until `close`."""
        self._results.append(result)
        if self._writer is not None:
            from deltaproto.render.inspection import inspection_section

            self._writer.write(inspection_section(result, ""))
        elif self._format is PageFormat.JSONL:
            from deltaproto.render.inspection_json import table_fields

            fields: dict[str, Any] = {"tables": [table_fields(result)]}
            if self._total is not None:
                # A file that is cut off between two lines is still valid JSON lines.
                fields["part"] = {"number": len(self._results), "of": self._total}
            line = json_text("inspect", fields, line=True, complete=_complete(result))
            self._file.write(line)

    def close(self) -> None:
        """Render the deferred results, and the summary of several tables."""
        if self._writer is not None:
            from deltaproto.render.inspection import closing_blocks

            for block in closing_blocks(self._results, summary=self._summary):
                self._writer.write(block)
        elif self._format is PageFormat.JSON:
            from deltaproto.render.inspection_json import table_fields

            complete = all(_complete(result) for result in self._results)
            tables = [table_fields(result) for result in self._results]
            text = json_text("inspect", {"tables": tables}, line=False, complete=complete)
            self._file.write(text)
        elif self._format is PageFormat.HTML:
            from deltaproto.render.document.render import document_text
            from deltaproto.render.inspection import inspection_document

            self._file.write(document_text(inspection_document(self._results), html=True))


def _complete(result: Inspection | Unreadable) -> bool:
    return isinstance(result, Inspection) and result.complete
