"""The clients that read tables, from the requests in access logs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from deltaproto.clients.model import Access
from deltaproto.errors import TableError
from deltaproto.fleet.seen.find_logs import FailedTable
from deltaproto.fleet.seen.log_files import CountedFile, find_files, read_requests
from deltaproto.fleet.seen.log_formats import Place, Request, RequestKind, Store
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.user_agents import NO_AGENT, identify_agent, product_of
from deltaproto.fleet.seen.uses import Client, Mark, PrincipalKind, SeenUses, shorten

_SCHEMES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), Store.S3),
    **dict.fromkeys(("gs", "gcs"), Store.GCS),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"), Store.AZURE),
}
_ACCOUNTS = ("azure_storage_account_name", "account_name")
_AZURE_HOSTS = (".blob.", ".dfs.")
AGENT_MARK = "user-agent"
_RECENT = 2 * 86_400
"""seconds"""


class TableMatcher:
    """Finds the table of a request by the tables' locations.

    Args:
        options: storage options; a location `az://container/path` has its account there.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        named = (value for key, value in options.items() if key.lower() in _ACCOUNTS)
        self._account = next(named, "")
        self._tables: dict[tuple[Store, str], dict[str, str]] = {}
        self._find = lru_cache(maxsize=65_536)(self._find_folder)

    def add(self, table: str, uri: str) -> None:
        """Add a table; one that is on no object store has no requests."""
        place = self._place(uri)
        if place is not None:
            self._tables.setdefault(place[:2], {})[place.key] = table
            self._find.cache_clear()

    def find(self, place: Place) -> tuple[str, str] | None:
        """Return the table of an object or a prefix, and the path below the table."""
        if place[:2] not in self._tables and not self._without_account(place):
            return None
        key = place.key
        while True:
            folder, slash, name = key.rpartition("/")
            found = self._find(place.store, place.bucket, folder if slash else "")
            if found is not None:
                table, below = found
                return table, f"{below}/{name}".lstrip("/")
            # S3 encodes keys in its logs, and encodes them again in some.
            decoded = unquote(key)
            if decoded == key:
                return None
            key = decoded

    def _find_folder(self, store: Store, bucket: str, folder: str) -> tuple[str, str] | None:
        tables = self._tables.get((store, bucket)) or self._tables.get(
            (store, f"/{bucket.partition('/')[2]}"), {}
        )
        below = ""
        while True:
            table = tables.get(folder)
            if table is not None:
                return table, below.rstrip("/")
            if not folder:
                return None
            folder, _, name = folder.rpartition("/")
            below = f"{name}/{below}"

    def _without_account(self, place: Place) -> bool:
        other = f"/{place.bucket.partition('/')[2]}"
        return place.store is Store.AZURE and (place.store, other) in self._tables

    def _place(self, uri: str) -> Place | None:
        scheme, separator, rest = uri.partition("://")
        authority, _, key = rest.partition("/")
        store, key = _SCHEMES.get(scheme.lower()), key.strip("/")
        if not separator:
            return None
        if store is Store.AZURE:
            container, at, host = authority.partition("@")
            account = host.partition(".")[0] if at else self._account
            return Place(store, f"{account}/{container}", key)
        host = urlsplit(uri).hostname or "" if store is None else ""
        if any(part in host for part in _AZURE_HOSTS):
            container, _, key = key.partition("/")
            return Place(Store.AZURE, f"{host.partition('.')[0]}/{container}", key)
        return None if store is None else Place(store, authority, key)


class LogCounts(NamedTuple):
    """What was read of one access log."""

    format: str | None
    """the format of most of its lines; None: no line was understood"""
    lines: int
    matched: int
    unparsed: int
    failed: tuple[FailedTable, ...]
    files: tuple[CountedFile, ...]
    """the files that were read to their end"""
    known: int
    """number of files that an earlier run counted"""


def add_access_log(
    name: str,
    options: Mapping[str, str],
    matcher: TableMatcher,
    uses: SeenUses,
    traces: ReadTraces,
    since: int | None,
    seen: Callable[[int], None] = lambda _: None,
    counted: Collection[CountedFile] = (),
) -> LogCounts:
    """Add the requests of one access log: a file, or all files below a folder or URI.

    Args:
        since: skip requests before this time, in milliseconds since the epoch.
        seen: called with the number of lines read, for progress.
        counted: files whose requests are not to be counted again. Those of the last two days are
            read for `traces`: who reads without deletion vectors shows over many files.
    """
    formats: Counter[str] = Counter()
    lines = matched = unparsed = known = 0
    failed: list[FailedTable] = []
    files: list[CountedFile] = []
    recent = time.time() - _RECENT
    try:
        for file in find_files(name, options):
            again = file.key in counted
            known += again
            if again and file.modified < recent:
                continue
            try:
                for parsed in read_requests(file):
                    lines += 1
                    seen(lines)
                    if parsed is None:
                        unparsed += 1
                        continue
                    formats[parsed[0]] += 1
                    matched += _add_request(
                        parsed[1], matcher, uses, traces, since, count=not again
                    )
                files += () if again else (file.key,)
            except TableError as error:
                failed.append(FailedTable(file.name, error))
    except TableError as error:
        failed.append(FailedTable(name, error))
    most = formats.most_common(1)
    format_ = most[0][0] if most else None
    return LogCounts(format_, lines, matched, unparsed, tuple(failed), tuple(files), known)


def _add_request(
    request: Request,
    matcher: TableMatcher,
    uses: SeenUses,
    traces: ReadTraces,
    since: int | None,
    *,
    count: bool,
) -> bool:
    """Add one request. Return True if it was counted: a success, on a table, in the period."""
    if since is not None and request.time is not None and request.time < since:
        return False
    found = None if request.place is None else matcher.find(request.place)
    traces.note(request, None if found is None else found[0])
    if found is None:
        return False
    text = request.agent or NO_AGENT
    # The end of an agent may name a cluster.
    shown = product_of(text) if uses.pseudonymize else _shown(text)
    traces.add(*found, request, shown)
    if not (request.ok and count):
        return False
    agent = identify_agent(request.agent)
    client = Client(agent.client, agent.version, agent.mark)
    seen = uses.client(client, agent.confidence)
    seen.could_be, seen.setting = agent.could_be, agent.setting
    names = []
    if request.user is not None:
        names.append(uses.name(PrincipalKind.USER, request.user))
    elif request.address is not None:
        names.append(uses.name(PrincipalKind.ADDRESS, request.address))
    access = Access.READ if request.kind is RequestKind.READ else None
    marks = []
    if request.agent is not None:
        marks.append(Mark(AGENT_MARK, shown))
    seen.add(found[0], request.time, access, names, marks, request=True)
    return True


@lru_cache(maxsize=4096)
def _shown(agent: str) -> str:
    return shorten(agent)
