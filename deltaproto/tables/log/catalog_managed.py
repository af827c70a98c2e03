"""The log of a catalog-managed table, including staged commits that its catalog has ratified.

Source: PROTOCOL.md, "Catalog-managed tables": a commit is first written to
`_delta_log/_staged_commits/<version>.<uuid>.json`, becomes valid when the catalog ratifies it, and
published as `_delta_log/<version>.json` later. Several may be staged for one version. DESCRIBE
HISTORY shows the ratified ones by their in-commit timestamps (measured with delta-spark 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import IO

from deltaproto.errors import TableError
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.files import commit_info, read_actions
from deltaproto.tables.storage.interface import STAGED_COMMITS, FolderEntry, LogStore

# Compiled when first used: only for catalog-managed tables.
_STAGED = r"(?a)(\d{20})\.[0-9A-Za-z-]{8,}\.json"
_PUBLISHED = r"(?a)(\d{20})\.json"


class RatifiedLog:
    """A log store that presents ratified staged commits under the names of published ones.

    Each listing queries the catalog again.

    Args:
        ratified: returns the catalog's newest versions with their in-commit timestamps in
            milliseconds, or raises TableError or EngineError.
    """

    def __init__(self, store: LogStore, ratified: Callable[[], Mapping[int, int]]) -> None:
        self._store, self._ratified = store, ratified
        self._staged: dict[str, str] = {}
        self.confirmed: int | None = None
        """the newest version, if the last listing included all of the catalog's commits"""

    @property
    def unpublished(self) -> bool:
        """True if the newest commits of the last listing are only staged."""
        return bool(self._staged)

    def list(self) -> list[FolderEntry]:
        return [*self._all(self._store.list)]

    def list_dated(self) -> tuple[FolderEntry, ...]:
        return self._all(self._store.list_dated)

    def list_staged(self) -> tuple[FolderEntry, ...]:
        return self._store.list_staged()

    def open(self, name: str) -> IO[bytes]:
        return self._store.open(self._staged.get(name, name))

    def _all(self, listed: Callable[[], Iterable[FolderEntry]]) -> tuple[FolderEntry, ...]:
        self._staged, self.confirmed = {}, None
        # A commit that the catalog has stays staged until it is published: query before listing.
        ratified = self._ratified()
        entries = tuple(listed())
        newest = _newest_published(entries)
        wanted = range(newest + 1, max(ratified, default=-1) + 1)
        staged = self._store.list_staged() if wanted else ()
        # Published between the two listings.
        published = {each.name for each in entries}
        for version in wanted:
            found = self._only(version, ratified.get(version), staged)
            if found is None:
                return entries
            name = f"{version:020d}.json"
            self._staged[name] = found.name
            if name not in published:
                entries += (found._replace(name=name),)
        self.confirmed = max(newest, wanted.stop - 1)
        return entries

    def _only(
        self, version: int, time: int | None, staged: Iterable[FolderEntry]
    ) -> FolderEntry | None:
        """Return the only staged file of the version with this in-commit timestamp."""
        found = [
            entry
            for entry in staged
            if (match := re.fullmatch(_STAGED, entry.name.removeprefix(STAGED_COMMITS)))
            and int(match[1]) == version
            and self._time(entry.name) == time
        ]
        return found[0] if len(found) == 1 and time is not None else None

    def _time(self, name: str) -> int | None:
        try:
            with self._store.open(name) as file:
                info = commit_info(read_actions(name, file))
        except TableError:
            return None
        time = info.get("inCommitTimestamp")
        return time if isinstance(time, int) and not isinstance(time, bool) else None


def has_every_commit(store: LogStore, protocol: Protocol) -> bool:
    """Return True if the last listing included every commit of a table with this protocol."""
    managed = bool(CATALOG_MANAGED & protocol.supported)
    return not managed or (isinstance(store, RatifiedLog) and store.confirmed is not None)


def has_unpublished_commits(store: LogStore) -> bool:
    """Return True if the newest commits of the last listing are staged, not yet published."""
    return isinstance(store, RatifiedLog) and store.unpublished


def _newest_published(entries: Iterable[FolderEntry]) -> int:
    found = (re.fullmatch(_PUBLISHED, entry.name) for entry in entries)
    return max((int(match[1]) for match in found if match is not None), default=-1)
