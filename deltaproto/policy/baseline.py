"""The tables of a saved inspection, matched to the tables that are checked now."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from deltaproto.errors import ErrorCode, SavedError, TableError
from deltaproto.policy.context import TableFacts
from deltaproto.policy.document import normalize_location


class Baseline:
    """The saved tables of a baseline.

    A table is found by its location, then by its id, then by the relative path or catalog name that
    was given for it. Locations differ between checkouts and mounts.
    """

    def __init__(self, tables: Iterable[TableFacts | SavedError]) -> None:
        entries = list(tables)
        saved = [each for each in entries if isinstance(each, TableFacts)]
        self._unread = {
            _normalize_table(each.table): each for each in entries if isinstance(each, SavedError)
        }
        self._met_unread: dict[str, SavedError] = {}
        self._by_place = {normalize_location(each.location): each for each in saved}
        self._by_id = _index_unique((each.id, each) for each in saved if each.id)
        self._by_name = _index_unique(
            (relative_name(each.table), each) for each in saved if relative_name(each.table)
        )
        self._met: set[str] = set()

    def find(self, table: str, location: str, id: str | None) -> TableFacts | None:
        """Return the saved state of a table, or None. Mark the saved table as checked."""
        found = (
            self._by_place.get(normalize_location(location))
            or self._by_id.get(id or "")
            or self._by_name.get(relative_name(table))
        )
        if found is not None:
            self._met.add(normalize_location(found.location))
            return found
        for key in (_normalize_table(table), normalize_location(location)):
            if key in self._unread:
                self._met_unread[key] = self._unread[key]
        return None

    def unread(self) -> list[SavedError]:
        """Return errors for checked tables that were unreadable when the baseline was saved."""
        return [
            SavedError(
                each.table,
                ErrorCode(each.code),
                f"it could not be read when the baseline was saved: {each.message}",
                "save a new baseline",
            )
            for each in self._met_unread.values()
        ]

    def remaining(self) -> tuple[list[TableFacts], list[TableFacts]]:
        """Return the saved tables that no longer exist, and those that were not checked."""
        missing: list[TableFacts] = []
        unchecked: list[TableFacts] = []
        for where, each in self._by_place.items():
            if where not in self._met:
                exists = not where.startswith("/") or os.path.lexists(f"{where}/_delta_log")
                (unchecked if exists else missing).append(each)
        return missing, unchecked

    def unmatched(self) -> TableError | None:
        """Return an error if the baseline contains none of the checked tables."""
        if self._met or self._met_unread:
            return None
        return nothing_compared_error()


def nothing_compared_error() -> TableError:
    """Return the error for a baseline that contains none of the checked tables."""
    return TableError(
        ErrorCode.NO_TABLES,
        "the baseline contains none of the checked tables, so nothing was compared",
        "save a baseline of these tables; tables match by location, table id or relative path",
    )


def _normalize_table(table: str) -> str:
    """Make a local path absolute; return other names unchanged."""
    return normalize_location(table if "://" in table else os.path.abspath(table))


def relative_name(table: str) -> str:
    """Return a relative path or catalog name; empty for an absolute path or a URI."""
    if "://" in table or table.startswith(("/", "file:")):
        return ""
    return os.path.normpath(table)


def _index_unique(named: Iterable[tuple[str, TableFacts]]) -> dict[str, TableFacts]:
    pairs = list(named)
    counts = Counter(name for name, _ in pairs)
    return {name: facts for name, facts in pairs if counts[name] == 1}
