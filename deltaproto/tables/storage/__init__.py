"""Stores of table logs: local disks and object stores."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.location import Location
from deltaproto.tables.storage.interface import FolderEntry, LogStore
from deltaproto.tables.storage.local import LocalLogStore

__all__ = ["LogStore", "open_log"]


def open_log(
    location: Location,
    options: Mapping[str, str],
    listed: tuple[FolderEntry, ...] | None = None,
    *,
    read_ahead: bool = False,
) -> LogStore:
    """Open the log of the table at `location`; `options` are storage options as in deltalake.

    Args:
        listed: the result of the store's `list`, if the folder was listed just now.
        read_ahead: on an object store, keep small files and fetch commits before they are read;
            for one thread, and not for scans, which read one or two files of a log.

    Raises:
        TableError: when the scheme is unknown or the store cannot be set up.
    """
    if location.path is not None:
        return LocalLogStore(location.path, listed)
    from deltaproto.tables.storage.objects import ObjectLogStore

    return ObjectLogStore(location.uri, options, listed, read_ahead=read_ahead)
