"""Finds tables on an object store with few requests.

A folder's `_delta_log/` is listed first: if it is not empty, the folder is a table. The reader
needs only this listing, and the table's data files are never listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from deltaproto.errors import ErrorCode, TableError, no_tables_error
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderSelection,
    PlaceKind,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.fleet.workers import StoreHealth, with_retries
from deltaproto.policy.document import normalize_location
from deltaproto.tables.storage.interface import Deadline
from deltaproto.tables.storage.objects import ObjectLogStore, translate_store_errors
from deltaproto.tables.storage.opening import open_store

_AHEAD = 4
_SECONDS = 60.0


def tables_under(
    root: str,
    options: Mapping[str, str],
    selection: FolderSelection,
    parallel: int,
    apart: Collection[str] = (),
    own: str | None = None,
    passed: SkippedPlaces | None = None,
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Find every table at or below the URI `root`, with `parallel` requests at a time.

    The places `apart` (from `normalize_location`) are skipped. Tables are not searched for other
    tables, because this would list their data files; a root that is a table is searched except for
    its partitions. `passed` counts the tables that were not searched, and hidden folders. A root
    without tables is an error. Tables below `own`, the inventory's place with a slash, do not
    count.

    Raises:
        StoreGoneError: when several folders in a row fail because the store does not answer.
    """
    found_something = taken = root_is_table = False
    listing = partial(_list_with_retries, root, options, StoreHealth())
    passed = SkippedPlaces() if passed is None else passed
    with ThreadPoolExecutor(parallel) as pool:
        # With each folder: whether it is the root's table or a partition of that.
        waiting: dict[Future[_Answer], tuple[str, bool]] = {}
        pending = [("", False)]
        while pending or waiting:
            while pending and len(waiting) < parallel * _AHEAD:
                below, in_table = pending.pop()
                waiting[pool.submit(listing, below, _look_into)] = below, in_table
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                below, in_table = waiting.pop(future)
                seen = future.result()
                if isinstance(seen, list):
                    inside = f"{below}/" if below else ""
                    for name in (inside + name for name in sorted(seen, reverse=True)):
                        uri = _uri(root, name)
                        if not selection.enters(name, in_table=in_table):
                            if selection.hides(name, in_table=root_is_table):
                                passed.add(PlaceKind.HIDDEN, uri)
                            elif not selection.hides(name) and not selection.excludes(name):
                                passed.add_partition(_uri(root, ""), uri)
                        elif normalize_location(uri) in apart:
                            taken = True
                        else:
                            pending.append((name, in_table and "=" in name.rpartition("/")[2]))
                    found_something |= bool(seen) or bool(below)
                    continue
                found_something = True
                if isinstance(seen, DiscoveredTable) and not below:
                    root_is_table = True
                    waiting[pool.submit(listing, below, _folders)] = below, True
                elif isinstance(seen, DiscoveredTable):
                    passed.add(PlaceKind.INSIDE, seen.location)
                if isinstance(seen, UnreadablePlace) or selection.takes(below):
                    taken = taken or not seen.inside(own)
                    yield seen
    if not found_something:
        yield UnreadablePlace(
            root,
            TableError(
                ErrorCode.NOT_FOUND,
                f"{root} is empty or does not exist",
                "check the bucket and the path; object stores have no empty folders",
            ),
        )
    elif not taken:
        yield UnreadablePlace(root, no_tables_error(root))


def _uri(root: str, below: str) -> str:
    return f"{root.rstrip('/')}/{below}" if below else root.rstrip("/")


_Answer = DiscoveredTable | UnreadablePlace | list[str]


def _list_with_retries(
    root: str,
    options: Mapping[str, str],
    health: StoreHealth,
    below: str,
    look: Callable[[str, Mapping[str, str]], DiscoveredTable | list[str]],
) -> _Answer:
    """Call `look` on the folder, with retries."""
    uri = _uri(root, below)
    try:
        return with_retries(lambda _: look(uri, options), Deadline(_SECONDS), health)
    except TableError as error:
        return UnreadablePlace(uri, error)


def _look_into(uri: str, options: Mapping[str, str]) -> DiscoveredTable | list[str]:
    """Return the table if the folder is one, else the names of its subfolders."""
    try:
        return DiscoveredTable(uri, uri, tuple(ObjectLogStore(uri, options).list()))
    except TableError as error:
        if error.code is not ErrorCode.NOT_A_DELTA_TABLE:
            raise
    return _folders(uri, options)


def _folders(uri: str, options: Mapping[str, str]) -> list[str]:
    """Return the names of a folder's subfolders."""
    import obstore

    with translate_store_errors(uri, options):
        store, key = open_store(uri, options)
        listed = obstore.list_with_delimiter(store, f"{key}/" if key else None)
    return [path.rstrip("/").rsplit("/", 1)[-1] for path in listed["common_prefixes"]]
