"""Where a table's log lies: a local disk or an object store."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.location import Location
from deltaproto.tables.storage.interface import FolderEntry, LogStore
from deltaproto.tables.storage.local import LocalLogStore

__all__ = ["LogStore", "open_log"]


def open_log(
    location: Location, options: Mapping[str, str], listed: tuple[FolderEntry, ...] | None = None
) -> LogStore:
    """The log of the table at `location`; `options` are those that deltalake takes too.

    `listed` is what its folder holds on an object store, where somebody listed it just now.

    Raises:
        TableError: when the scheme is unknown or the store cannot be set up.
    """
    if location.path is not None:
        return LocalLogStore(location.path)
    from deltaproto.tables.storage.objects import ObjectLogStore

    return ObjectLogStore(location.uri, options, listed)
