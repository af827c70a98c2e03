"""Numbers of tables with the first names, for outputs that group many tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltaproto.counts import counted
from deltaproto.render.document.blocks import Block, Paragraph

GROUPED_FROM = 6
"""number of tables from which tables are shown in groups"""
_NAMES = 3
"""maximum number of tables named for a group"""


class NamedCount:
    """A number of tables, with the names of the first ones."""

    def __init__(self, hint: str = "") -> None:
        self.tables = 0
        self.names: list[str] = []
        self.hint = hint
        """the hint for the first table; hints contain commands for one table"""

    def add(self, table: str) -> None:
        """Count one table."""
        self.tables += 1
        if len(self.names) < _NAMES:
            self.names.append(table)

    def shown(self, skip: int) -> str:
        """Return the names without their first `skip` characters, and how many more there are."""
        more = self.tables - len(self.names)
        text = ", ".join(name[skip:] for name in self.names)
        return f"{text} and {more:,} more" if more else text


class SharedFolder:
    """The folder that contains all tables whose names were added."""

    def __init__(self) -> None:
        self._parts: list[str] | None = None

    def add(self, table: str) -> None:
        """Add the name of one table."""
        parts = table[: table.rfind("/") + 1].split("/")[:-1]
        if self._parts is None:
            self._parts = parts
        elif parts[: len(self._parts)] != self._parts:
            pairs = zip(self._parts, parts, strict=False)
            same = next((n for n, (one, other) in enumerate(pairs) if one != other), None)
            self._parts = self._parts[: min(len(self._parts), len(parts)) if same is None else same]

    def __str__(self) -> str:
        return "".join(f"{part}/" for part in self._parts or ())


def groups_title(groups: Sequence[NamedCount]) -> str:
    """Return how many tables are in how many groups."""
    tables = sum(found.tables for found in groups)
    return f"{counted(tables, 'table')} in {counted(len(groups), 'group')}"


def folder_note(folder: SharedFolder) -> Iterator[Block]:
    """Yield the folder that the names are relative to, if all tables are in one folder."""
    if where := str(folder):
        yield Paragraph((f"names are relative to {where}",), muted=True)


def group_notes(groups: Sequence[NamedCount], shown: int, folder: SharedFolder) -> Iterator[Block]:
    """Yield the notes below the table of groups: the folder of the names, and omitted groups.

    Args:
        shown: number of groups in the table.
    """
    yield from folder_note(folder)
    if shown < len(groups):
        tables = sum(found.tables for found in groups[shown:])
        rest = f"and {counted(tables, 'table')} in {counted(len(groups) - shown, 'more group')}"
        yield Paragraph((f"{rest}: --limit 0 shows all groups",))
