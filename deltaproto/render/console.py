"""The rich console for data: readable with and without color, at 80 columns and in a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import StringIO
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from deltaproto.render.interface import escape_control_chars, neutralize_lines

PIPED_WIDTH = 80


class DataConsole:
    """Prints to one file; lines printed to a pipe have no trailing padding."""

    def __init__(self, file: IO[str], *, color: bool) -> None:
        self._file = file
        self._buffer = _Buffer(getattr(file, "encoding", None))
        self._console = _console(file, self._buffer, color=color)

    @property
    def width(self) -> int:
        """Return the columns of the terminal or the pipe."""
        return self._console.width

    def print(self, *parts: RenderableType, indent: int = 0) -> None:
        """Print each part as a separate block; text continues without wrapping."""
        for part in map(_one_line, parts):
            block = Padding(part, (0, 0, 0, indent)) if indent else part
            self._console.print(_Inert(block), soft_wrap=isinstance(part, Text | str))
        lines = self._buffer.getvalue().split("\n")
        self._buffer.seek(0)
        self._buffer.truncate()
        self._file.write(neutralize_lines("\n".join(line.rstrip() for line in lines)))


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Return labels and texts in two columns; long texts are wrapped."""
    found = Table.grid(padding=(0, 2))
    found.add_column(style="dim", no_wrap=True)
    found.add_column(overflow="fold")
    for label, text in rows:
        found.add_row(label, Text(text))
    return found


class _Buffer(StringIO):
    """A buffer with the target file's encoding, so that rich uses only encodable characters."""

    def __init__(self, encoding: str | None) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._encoding


class _Inert:
    """A block whose text is shown literally: names in a log can contain terminal commands."""

    def __init__(self, block: RenderableType) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._block, options):
            yield Segment(escape_control_chars(segment.text), segment.style, segment.control)


def _one_line(part: RenderableType) -> RenderableType:
    """Return a text, or a table's cells, with line feeds as `\\n`, so that each stays on one line.

    Otherwise a line feed in a name or a message could begin a line that CI systems interpret.
    """
    if isinstance(part, Table):
        for column in part.columns:
            column._cells = [_one_line(cell) for cell in column._cells]
    elif isinstance(part, str):
        return part.replace("\n", "\\n")
    elif isinstance(part, Text) and "\n" in part.plain:
        return Text("\\n").join(part.split("\n", allow_blank=True))
    return part


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) > 0 else PIPED_WIDTH


def _console(file: IO[str], buffer: IO[str], *, color: bool) -> Console:
    # Color only on terminals, and never if NO_COLOR is set (https://no-color.org).
    terminal = file.isatty()
    plain = not color or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=buffer,
        width=None if terminal else _width(),
        no_color=plain,
        color_system="auto" if terminal and not plain else None,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
