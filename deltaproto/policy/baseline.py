"""The tables of a saved inspection, found again wherever they lie now."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from deltaproto.errors import ErrorCode, SavedError, TableError
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import place


class Baseline:
    """Tables as they were saved.

    A table is found by its location, else by its id, else by the relative path or catalog name it
    was given by: another checkout or mount has other locations.
    """

    def __init__(self, tables: Iterable[TableFacts | SavedError]) -> None:
        entries = list(tables)
        saved = [each for each in entries if isinstance(each, TableFacts)]
        self._unread = {
            _known_as(each.table): each for each in entries if isinstance(each, SavedError)
        }
        self._met_unread: dict[str, SavedError] = {}
        self._by_place = {place(each.location): each for each in saved}
        self._by_id = _unique((each.id, each) for each in saved if each.id)
        self._by_name = _unique(
            (relative_name(each.table), each) for each in saved if relative_name(each.table)
        )
        self._met: set[str] = set()

    def find(self, table: str, location: str, id: str | None) -> TableFacts | None:
        """The saved state of a table, or None; it then counts as checked."""
        found = (
            self._by_place.get(place(location))
            or self._by_id.get(id or "")
            or self._by_name.get(relative_name(table))
        )
        if found is not None:
            self._met.add(place(found.location))
            return found
        for key in (_known_as(table), place(location)):
            if key in self._unread:
                self._met_unread[key] = self._unread[key]
        return None

    def unread(self) -> list[SavedError]:
        """The errors of checked tables that could not be read when the baseline was saved."""
        return [
            SavedError(
                each.table,
                ErrorCode(each.code),
                f"it could not be read when the baseline was saved: {each.message}",
                "save a new baseline",
            )
            for each in self._met_unread.values()
        ]

    def left(self) -> tuple[list[TableFacts], list[TableFacts]]:
        """The saved tables that were not found: those that are gone, and those not checked."""
        gone: list[TableFacts] = []
        unchecked: list[TableFacts] = []
        for where, each in self._by_place.items():
            if where not in self._met:
                exists = not where.startswith("/") or os.path.lexists(f"{where}/_delta_log")
                (unchecked if exists else gone).append(each)
        return gone, unchecked

    def unmatched(self) -> TableError | None:
        """The error of a baseline that holds none of the checked tables."""
        if self._met or self._met_unread:
            return None
        return uncompared()


def uncompared() -> TableError:
    """The error of a baseline that holds none of the checked tables."""
    return TableError(
        ErrorCode.NO_TABLES,
        "the baseline holds none of the checked tables, so nothing was compared",
        "save it from the same tables; they match by location, table id or relative path",
    )


def _known_as(table: str) -> str:
    """A local path as an absolute one; other names as they are."""
    return place(table if "://" in table else os.path.abspath(table))


def relative_name(table: str) -> str:
    """A relative path or catalog name; empty for an absolute path or a URI."""
    if "://" in table or table.startswith(("/", "file:")):
        return ""
    return os.path.normpath(table)


def _unique(named: Iterable[tuple[str, TableFacts]]) -> dict[str, TableFacts]:
    given = list(named)
    counts = Counter(name for name, _ in given)
    return {name: facts for name, facts in given if counts[name] == 1}
