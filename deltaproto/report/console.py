"""The rich console for data: readable in colour, without it, at 80 columns and in a pipe."""

from __future__ import annotations

import os
from io import StringIO
from typing import IO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

PIPED_WIDTH = 80


class DataConsole:
    """Prints to one file; what it prints to a pipe has no padding at the ends of lines."""

    def __init__(self, file: IO[str], *, color: bool) -> None:
        self._file = file
        self._buffer = StringIO()
        self._console = _console(file, self._buffer, color=color)

    def print(self, *parts: RenderableType, indent: int = 0) -> None:
        """Each part as a block of its own; text flows on without wrapping."""
        for part in parts:
            block = Padding(part, (0, 0, 0, indent)) if indent else part
            self._console.print(block, soft_wrap=isinstance(part, Text | str))
        lines = self._buffer.getvalue().split("\n")
        self._buffer.seek(0)
        self._buffer.truncate()
        self._file.write("\n".join(line.rstrip() for line in lines))


def _console(file: IO[str], buffer: IO[str], *, color: bool) -> Console:
    # Colour only on terminals, and never when NO_COLOR is set (https://no-color.org).
    terminal = file.isatty()
    plain = not color or "NO_COLOR" in os.environ
    width = None if terminal else int(os.environ.get("COLUMNS") or PIPED_WIDTH)
    return Console(
        file=buffer,
        width=width,
        no_color=plain,
        color_system="auto" if terminal and not plain else None,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
