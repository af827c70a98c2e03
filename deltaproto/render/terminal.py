"""Plain text with some color, without rich: for outputs of thousands of tables."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import IO, TypeVar

from deltaproto.render.interface import escape_control_chars, neutralize_lines

BOLD, DIM, RED, GREEN, YELLOW, CYAN, LOUD = "1", "2", "31", "32", "33", "36", "1;31"
T = TypeVar("T")
_WIDTH = 100
_NARROWEST = 20


class Painter:
    """Writes lines to one file, in color only on a terminal.

    `width` is the number of columns of wrapped texts. `folds` is True if a terminal or COLUMNS sets
    the width. Lines that are not wrapped can be searched.
    """

    def __init__(self, file: IO[str], *, color: bool, piped_width: int = _WIDTH) -> None:
        self._file = file
        self._recorded: list[str] | None = None
        terminal = file.isatty()
        self._paints = color and terminal and not os.environ.get("NO_COLOR")
        columns = shutil.get_terminal_size((0, 0)).columns if terminal else _columns()
        self.folds = columns > _NARROWEST
        self.width = columns if self.folds else piped_width

    def paint(self, text: str, *codes: str) -> str:
        """Return `text` in color, with control characters escaped first."""
        safe = single_line(text)
        return f"\033[{';'.join(codes)}m{safe}\033[0m" if self._paints and codes else safe

    def line(self, text: str = "") -> None:
        """Write a line that already contains its colors."""
        shown = neutralize_lines(text) + "\n"
        if self._recorded is not None:
            self._recorded.append(shown)
        self._file.write(shown)

    def recorded(self, write: Callable[[], None]) -> str:
        """Record the lines that `write` writes, so that `again` can repeat them."""
        self._recorded = []
        write()
        lines, self._recorded = self._recorded, None
        return "".join(lines)

    def again(self, lines: str) -> None:
        """Write lines that were written before."""
        self._file.write(lines)

    def folded(
        self,
        text: str,
        *codes: str,
        first: str = "",
        rest: str | None = None,
        lead: int | None = None,
        whole_words: bool = False,
    ) -> None:
        """Write a text wrapped at the width; `first` and `rest` are the prefixes of its lines.

        Args:
            lead: columns that `first` occupies, if more than `rest`.
            whole_words: whether names may exceed the width, so that they can be copied; otherwise
                they are cut, after a separator if possible.
        """
        indent = " " * len(first) if rest is None else rest
        more = 0 if lead is None else max(lead - len(indent), 0)
        width, shown = max(self.width - len(indent), 20), single_line(text)
        lead_in = "x" * (more - 1) + " " if more else ""
        lines = wrap(lead_in + shown, width, Overlong.KEEP if whole_words else Overlong.CUT)
        if more:
            lines[0] = lines[0][more:]
        for number, each in enumerate(lines):
            begin = indent if number else first
            self.line(f"{begin}{self.paint(each, *codes)}" if each else begin.rstrip())


def width_of(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


class Overlong(Enum):
    """The handling of a word that is longer than a line."""

    KEEP = "keep"
    """it exceeds the width"""
    CUT = "cut"
    """it is cut, after a separator if possible, and begins on a line of its own"""
    FILL = "fill"
    """it is cut where the line ends"""


_MAYBE_WIDE = re.compile(
    "[\u1100-\u115f\u231a-\u23ff\u25fd\u25fe\u2600-\u27bf\u2b00-\u2bff\u2e80-\uffe6\U00016fe0-\U0003ffff]"
)
"""matches every wide character, but no ellipsis and no bar of a chart: rich is imported late"""
_SECOND = "\ue000"
"""placeholder for the second column of a wide character while lines are measured"""


def wrap(text: str, width: int, overlong: Overlong) -> list[str]:
    """Return the lines of a text, at least one, none wider than `width` columns."""
    wide = _MAYBE_WIDE.search(text) is not None and _SECOND not in text
    measured = "".join(map(_as_columns, text)) if wide else text
    # textwrap itself could cut a wide character in two.
    cutting = (Overlong.CUT, Overlong.FILL) if wide else (Overlong.CUT,)
    lines = textwrap.wrap(
        cut(measured, width) if overlong in cutting else measured,
        width=width,
        break_long_words=overlong is Overlong.FILL,
        break_on_hyphens=False,
    )
    return [line.replace(_SECOND, "") if wide else line for line in lines] or [""]


def _as_columns(character: str) -> str:
    return character + _SECOND * (width_of(character) - 1)


def cut(text: str, width: int) -> str:
    """Return the text with spaces in words that are too long, after a separator if possible."""
    words = text.split(" ")
    if max(map(len, words)) <= width:
        return text
    # A wide character and its second column stay together.
    end = f"(?!{_SECOND})"
    part = rf".{{1,{width}}}$|.{{1,{width}}}(?<=[./_,:=]){end}|.{{1,{width}}}{end}"
    return " ".join(
        " ".join(re.findall(part, word)) if len(word) > width else word for word in words
    )


def _columns() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() else 0


def single_line(text: str) -> str:
    """Return one line that terminals and CI systems show without interpreting it."""
    return neutralize_lines(escape_control_chars(text.replace("\n", "\\n")))


def largest_first(counts: Mapping[T, int], most: int | None = None) -> list[tuple[T, int]]:
    """Return the largest counts first, equal ones by name; at most `most` of them."""
    return sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))[:most]


def run_length(items: Iterable[str]) -> str:
    """Merge equal adjacent items: `A, 3 x B, C`."""
    found: list[tuple[str, int]] = []
    for item in items:
        if found and found[-1][0] == item:
            found[-1] = item, found[-1][1] + 1
        else:
            found.append((item, 1))
    return ", ".join(f"{count:,} x {item}" if count > 1 else item for item, count in found)


def duration(hours: float) -> str:
    """Return hours as text, rounded up to a minute: `24 h`, `3 h 20 min`, `30 d`."""
    minutes = -(-round(hours * 3600) // 60)
    days, rest = divmod(minutes, 24 * 60)
    if days > 2:
        return f"{days} d" + (f" {rest // 60} h" if rest >= 60 else "")
    whole, left = divmod(minutes, 60)
    parts = [f"{whole} h"] if whole else []
    return " ".join([*parts, f"{left} min"]) if left or not whole else parts[0]
