"""Finds tables on an object store with few requests.

A folder's `_delta_log/` is listed first: if it is not empty, the folder is a table. The reader
needs only this listing. The logs of many neighboring small tables are listed together; the
data files of large ones are never listed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError, no_tables_error
from deltaproto.fleet.discovered import (
    DiscoveredTable,
    FolderSelection,
    PlaceKind,
    SkippedPlaces,
    UnreadablePlace,
)
from deltaproto.fleet.log_listings import list_logs, lists_in_order
from deltaproto.fleet.workers import StoreHealth, with_retries
from deltaproto.interrupts import defer_signals, reader_pool, wait_for_first
from deltaproto.policy.document import normalize_location
from deltaproto.tables.storage.interface import Deadline
from deltaproto.tables.storage.objects import ObjectLogStore, translate_store_errors
from deltaproto.tables.storage.opening import open_store

_AHEAD = 4
_SECONDS = 60.0
_TOGETHER = 100
"""number of folders whose logs are listed together"""
_FEW = 8
"""number of folders that are listed one by one"""
_COMMON = 8
"""common listings at the same time; each result has the listings of many logs"""


def tables_under(
    root: str,
    options: Mapping[str, str],
    selection: FolderSelection,
    parallel: int,
    apart: Collection[str] = (),
    own: str | None = None,
    skipped: SkippedPlaces | None = None,
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Find every table at or below the URI `root`, with `parallel` requests at a time.

    The places `apart` (from `normalize_location`) are skipped. Tables are not searched for other
    tables, because this would list their data files; a root that is a table is searched except for
    its partitions. `skipped` counts the tables that were not searched, and hidden folders. A root
    without tables is an error. Tables below `own`, the inventory's place with a slash, do not
    count.

    Raises:
        StoreGoneError: when several folders in a row fail because the store does not answer.
    """
    walk = _Walk(root, options, selection, apart, SkippedPlaces() if skipped is None else skipped)
    taken = False
    with reader_pool(parallel) as pool:
        waiting: set[Future[_Answers]] = set()
        while (tasks := walk.tasks(parallel * _AHEAD - len(waiting))) or waiting:
            with defer_signals():
                waiting |= {pool.submit(task) for task in tasks}
            done = wait_for_first(waiting)
            waiting -= done
            for future in done:
                for found in walk.add(future.result()):
                    taken = taken or not found.inside(own)
                    yield found
    if not walk.found_something:
        yield UnreadablePlace(
            root,
            TableError(
                ErrorCode.NOT_FOUND,
                f"{root} is empty or does not exist",
                "check the bucket and the path; object stores have no empty folders",
            ),
        )
    elif not (taken or walk.left_to_another):
        yield UnreadablePlace(root, no_tables_error(root))


class _Folder(NamedTuple):
    """A folder to search."""

    below: str
    """its path below the root"""
    in_table: bool = False
    """whether it is the root's table or a partition of that"""


_Answer = DiscoveredTable | UnreadablePlace | list[str]
_Answers = dict[_Folder, _Answer | None]
"""None: not known, so the folder must be listed alone"""


class _Walk:
    """The folders below a root that are still to be searched."""

    def __init__(
        self,
        root: str,
        options: Mapping[str, str],
        selection: FolderSelection,
        apart: Collection[str],
        skipped: SkippedPlaces,
    ) -> None:
        self._root, self._options, self._selection = root, options, selection
        self._apart, self._skipped = apart, skipped
        self._health = StoreHealth()
        self._pending = [_Folder("")]
        self._groups: list[list[_Folder]] = []
        """folders in one folder, whose logs are listed together"""
        self._common = 0
        """common listings that have not ended"""
        self._unhelpful: set[str] = set()
        """folders where common listings show few logs"""
        self._root_is_table = False
        self._of_root: list[_Folder] = []
        """the root, if it is a table with folders left to list"""
        self.found_something = self.left_to_another = False

    def tasks(self, most: int) -> list[Callable[[], _Answers]]:
        """Return up to `most` listings that may run at the same time."""
        found: list[Callable[[], _Answers]] = []
        while len(found) < most:
            if self._of_root:
                found.append(partial(self._ask, self._of_root.pop(), _folders))
            elif self._pending:
                found.append(partial(self._ask, self._pending.pop(), _look_into))
            elif self._groups and self._common < _COMMON:
                group = self._groups.pop()
                if _parent(group[0]) in self._unhelpful:
                    self._pending += reversed(group)
                else:
                    self._common += 1
                    found.append(partial(self._ask_together, group))
            else:
                break
        return found

    def add(self, answers: _Answers) -> Iterator[DiscoveredTable | UnreadablePlace]:
        """Add the result of one task, and yield the tables and failures."""
        # Only a common listing covers several folders.
        if len(answers) > 1:
            self._common -= 1
        for folder, seen in answers.items():
            if seen is None:
                self._pending.append(folder)
                continue
            if isinstance(seen, list):
                self._enter(folder, seen)
                self.found_something |= bool(seen) or bool(folder.below)
                continue
            self.found_something = True
            if isinstance(seen, DiscoveredTable) and not folder.below:
                self._root_is_table = True
                self._of_root.append(_Folder("", in_table=True))
            elif isinstance(seen, DiscoveredTable):
                self._skipped.add(PlaceKind.INSIDE, seen.location)
            if isinstance(seen, UnreadablePlace) or self._selection.includes(folder.below):
                yield seen

    def _enter(self, parent: _Folder, names: list[str]) -> None:
        """Add the subfolders to search."""
        selection, entered = self._selection, list[_Folder]()
        inside = f"{parent.below}/" if parent.below else ""
        for name in (inside + name for name in sorted(names)):
            uri = _uri(self._root, name)
            if not selection.enters(name, in_table=parent.in_table):
                if selection.hides(name, in_table=self._root_is_table):
                    self._skipped.add(PlaceKind.HIDDEN, uri)
                elif not selection.hides(name) and not selection.excludes(name):
                    self._skipped.add_partition(_uri(self._root, ""), uri)
            elif normalize_location(uri) in self._apart:
                self.left_to_another = True
            else:
                partition = parent.in_table and "=" in name.rpartition("/")[2]
                entered.append(_Folder(name, partition))
        groups: list[list[_Folder]] = []
        if not parent.in_table and lists_in_order(self._root):
            groups = [entered[n : n + _TOGETHER] for n in range(0, len(entered), _TOGETHER)]
            # Small groups are not worth it: their folders are listed alone.
            groups = [group for group in groups if len(group) >= _FEW]
        self._groups += reversed(groups)
        self._pending += reversed(entered[sum(map(len, groups)) :])

    def _ask(
        self,
        folder: _Folder,
        look: Callable[[str, Mapping[str, str]], DiscoveredTable | list[str]],
    ) -> _Answers:
        """Call `look` on the folder, with retries."""
        uri = _uri(self._root, folder.below)
        try:
            seen = with_retries(
                lambda _: look(uri, self._options), Deadline(_SECONDS), self._health
            )
        except TableError as error:
            return {folder: UnreadablePlace(uri, error)}
        return {folder: seen}

    def _ask_together(self, group: list[_Folder]) -> _Answers:
        """Return the tables that common listings show; the other folders are not known."""
        self._health.check()
        parent = _parent(group[0])
        names = {folder.below.rpartition("/")[2]: folder for folder in group}
        try:
            logs = list_logs(_uri(self._root, parent), names, self._options, Deadline(_SECONDS))
        except TableError:
            # Listing each folder alone shows what is wrong.
            logs = {}
        if len(logs) < len(group) // 2:
            self._unhelpful.add(parent)
        answers: _Answers = {}
        for name, folder in names.items():
            uri = _uri(self._root, folder.below)
            answers[folder] = DiscoveredTable(uri, uri, logs[name]) if name in logs else None
        return answers


def _parent(folder: _Folder) -> str:
    return folder.below.rpartition("/")[0]


def _uri(root: str, below: str) -> str:
    return f"{root.rstrip('/')}/{below}" if below else root.rstrip("/")


def _look_into(uri: str, options: Mapping[str, str]) -> DiscoveredTable | list[str]:
    """Return the table, if the folder is a table; otherwise the names of its subfolders."""
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
