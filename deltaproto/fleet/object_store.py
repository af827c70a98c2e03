"""Finding tables on an object store, with as few requests as that takes.

A folder's `_delta_log/` is listed first: where it holds something the folder is a table, that
listing is all that the reader needs, and the table's data files are never listed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from deltaproto.errors import ErrorCode, TableError, no_tables
from deltaproto.fleet.found import Found, Selection, Unseen
from deltaproto.fleet.patience import patiently
from deltaproto.policy.document import place
from deltaproto.tables.storage.deadline import Deadline
from deltaproto.tables.storage.objects import ObjectLogStore, failures
from deltaproto.tables.storage.opening import opened

_AHEAD = 4
_SECONDS = 60.0


def tables_under(
    root: str,
    options: Mapping[str, str],
    selection: Selection,
    parallel: int,
    apart: Collection[str] = (),
    own: str | None = None,
) -> Iterator[Found | Unseen]:
    """Every table at or below the URI `root`, as they are found, `parallel` requests at a time.

    What lies at the places `apart`, as `place` makes them of URIs, is left out. A root without
    tables is an error; tables below `own`, the inventory's place with a slash, do not count.
    """
    found_something = taken = False
    with ThreadPoolExecutor(parallel) as pool:
        waiting: dict[Future[Found | Unseen | list[str]], str] = {}
        pending = [""]
        while pending or waiting:
            while pending and len(waiting) < parallel * _AHEAD:
                below = pending.pop()
                waiting[pool.submit(_look_into, root, below, options)] = below
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                below = waiting.pop(future)
                seen = future.result()
                if isinstance(seen, list):
                    inside = f"{below}/" if below else ""
                    names = (inside + name for name in sorted(seen, reverse=True))
                    entered = [name for name in names if selection.enters(name)]
                    own_walk = [name for name in entered if place(_uri(root, name)) in apart]
                    taken |= bool(own_walk)
                    pending += [name for name in entered if name not in own_walk]
                    found_something |= bool(seen) or bool(below)
                    continue
                found_something = True
                if isinstance(seen, Unseen) or selection.takes(below):
                    taken = taken or not seen.inside(own)
                    yield seen
    if not found_something:
        yield Unseen(
            root,
            TableError(
                ErrorCode.NOT_FOUND,
                f"nothing lies at {root}",
                "check the bucket and the path; object stores have no empty folders",
            ),
        )
    elif not taken:
        yield Unseen(root, no_tables(root))


def _uri(root: str, below: str) -> str:
    return f"{root.rstrip('/')}/{below}" if below else root.rstrip("/")


def _look_into(root: str, below: str, options: Mapping[str, str]) -> Found | Unseen | list[str]:
    """The table that a folder is, or the names of its folders."""
    import obstore

    uri = _uri(root, below)

    def look(_: int) -> Found | list[str]:
        try:
            return Found(uri, uri, tuple(ObjectLogStore(uri, options).list()))
        except TableError as error:
            if error.code is not ErrorCode.NOT_A_DELTA_TABLE:
                raise
        with failures(uri, options):
            store, key = opened(uri, options)
            listed = obstore.list_with_delimiter(store, f"{key}/" if key else None)
        return [path.rstrip("/").rsplit("/", 1)[-1] for path in listed["common_prefixes"]]

    try:
        return patiently(look, Deadline(_SECONDS))
    except TableError as error:
        return Unseen(uri, error)
