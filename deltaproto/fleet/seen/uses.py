"""Who used which tables, how often and on whose behalf: sums over commits and requests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.clients.model import Access
from deltaproto.fleet.seen.times import Times
from deltaproto.protocol.stored_secrets import hide_in_name
from deltaproto.protocol.writers import Confidence

OTHERS = "other programs"
"""mark of the programs beyond the first thousands"""
_MOST_CLIENTS = 5000
"""different versions and marks: a hostile program can invent them"""
_MOST_PRINCIPALS = 2000
"""of one client; those seen last are kept"""
_MOST_OF_TABLE = 50
"""principals of one client on one table"""
_MOST_EVIDENCE = 20
"""different marks of one client"""
_PARTIAL = 10
"""factor for the number of clients and marks in partial sums: the end decides which ones stay"""
_LONGEST = 200
"""characters of a mark or a name"""
_LONGEST_READ = 16_384
_CUT = "…"


class PrincipalKind(StrEnum):
    """On whose behalf something was done."""

    USER = "user"
    JOB = "job"
    NOTEBOOK = "notebook"
    CLUSTER = "cluster"
    PIPELINE = "pipeline"
    DASHBOARD = "dashboard"
    STREAM = "stream"
    QUERY = "query"
    ADDRESS = "address"


class Name(NamedTuple):
    """One principal."""

    kind: PrincipalKind
    text: str


class Mark(NamedTuple):
    """What identified a client: a member of a commit, or a user agent."""

    field: str
    text: str


class Client(NamedTuple):
    """A client of the catalog, or an unidentified program named by its mark."""

    id: str | None
    version: str | None
    mark: str | None = None
    """None for a client of the catalog, and for a program without any mark"""

    @property
    def label(self) -> str:
        """`ID@VERSION` or `ID` of a client of the catalog; else the mark, which may be empty."""
        if self.id is None:
            return self.mark or ""
        return self.id if self.version is None else f"{self.id}@{self.version}"


class Usage:
    """Commit and request counts of one client, principal or table, with the access they show."""

    __slots__ = ("access", "commits", "files", "requests")

    def __init__(self) -> None:
        self.commits, self.requests = Times(), Times()
        self.files: Times | None = None
        """data files whose commits are no longer in the log; None: none were read"""
        self.access: set[Access] = set()

    def add_use(self, time: int | None, access: Access | None, *, request: bool) -> None:
        """Count one commit, or one request."""
        (self.requests if request else self.commits).add(time)
        if access is not None:
            self.access.add(access)

    @property
    def all(self) -> Times:
        """Commits and requests together, and data files."""
        both = self.commits.merged(self.requests)
        if self.files is not None:
            both.include(self.files)
        return both

    @property
    def data_files(self) -> Times:
        """The data files, to add to."""
        if self.files is None:
            self.files = Times()
        return self.files

    def include(self, other: Usage) -> None:
        """Add counts from another part."""
        self.commits.include(other.commits)
        self.requests.include(other.requests)
        if other.files is not None:
            self.data_files.include(other.files)
        self.access |= other.access


class SeenTable(Usage):
    """What was seen of one client on one table."""

    __slots__ = ("principals",)

    def __init__(self) -> None:
        super().__init__()
        self.principals: dict[Name, Usage] = {}
        """without queries; those seen last, if there are many"""

    def include(self, other: Usage) -> None:
        """Add other counts of the same client and table."""
        super().include(other)
        if isinstance(other, SeenTable):
            for name, usage in other.principals.items():
                self.principal(name).include(usage)

    def principal(self, name: Name) -> Usage:
        """Return the sums of a principal, to add to."""
        return _principal(self.principals, name, _MOST_OF_TABLE)[0]


class SeenClient(Usage):
    """Everything that was seen of one client."""

    __slots__ = (
        "confidence",
        "could_be",
        "evidence",
        "forgotten",
        "most_marks",
        "principals",
        "setting",
        "tables",
    )

    def __init__(self, confidence: Confidence, most_marks: int = _MOST_EVIDENCE) -> None:
        super().__init__()
        self.confidence, self.most_marks = confidence, most_marks
        self.tables: dict[str, SeenTable] = {}
        """by the table's name"""
        self.principals: dict[Name, Usage] = {}
        self.forgotten = 0
        """number of principals that are not listed because there were too many"""
        self.evidence: dict[Mark, int] = {}
        """how often each mark was seen; not every mark of a client with many"""
        self.could_be: tuple[str, ...] = ()
        """ids of the clients that leave the mark of an unidentified program"""
        self.setting: str | None = None
        """what makes an unidentified program identify itself"""

    def _principal(self, name: Name) -> Usage:
        usage, forgotten = _principal(self.principals, name, _MOST_PRINCIPALS)
        self.forgotten += forgotten
        return usage

    def add(
        self,
        table: str,
        time: int | None,
        access: Access | None,
        names: Sequence[Name],
        marks: Iterable[Mark],
        *,
        request: bool = False,
    ) -> None:
        """Count one commit, or one request."""
        used = self.tables.get(table)
        if used is None:
            used = self.tables[table] = SeenTable()
        self.add_use(time, access, request=request)
        used.add_use(time, access, request=request)
        for name in names:
            self._principal(name).add_use(time, access, request=request)
            if name.kind is not PrincipalKind.QUERY:
                used.principal(name).add_use(time, access, request=request)
        for mark in marks:
            self._count(mark, 1)

    def add_file(self, table: str, time: int, mark: Mark) -> None:
        """Count one data file."""
        for usage in (self, self.tables.setdefault(table, SeenTable())):
            usage.data_files.add(time)
        self._count(mark, 1)

    @property
    def marks(self) -> list[tuple[Mark, int]]:
        """The evidence, most frequent first."""
        return sorted(self.evidence.items(), key=lambda each: (-each[1], each[0]))

    def _count(self, mark: Mark, times: int) -> None:
        if mark in self.evidence or len(self.evidence) < self.most_marks:
            self.evidence[mark] = self.evidence.get(mark, 0) + times

    def include(self, other: Usage) -> None:
        """Add other counts of the same client."""
        super().include(other)
        if not isinstance(other, SeenClient):
            return
        for table, usage in other.tables.items():
            self.tables.setdefault(table, SeenTable()).include(usage)
        for name, used in other.principals.items():
            self._principal(name).include(used)
        for mark, times in other.evidence.items():
            self._count(mark, times)
        self.forgotten += other.forgotten


def _principal(principals: dict[Name, Usage], name: Name, most: int) -> tuple[Usage, int]:
    """Return the sums of a principal, and how many others were dropped to make room for it."""
    found = principals.get(name)
    forgotten = 0
    if found is None:
        if len(principals) >= most:
            by_time = sorted(principals, key=lambda each: principals[each].all.last or 0)
            for each in by_time[: most // 2]:
                del principals[each]
            forgotten = most // 2
        found = principals[name] = Usage()
    return found, forgotten


class SeenUses:
    """The sums for every client.

    Args:
        pseudonymize: replace the names of principals by hashes.
        partial: whether these sums will be included in others, which keep the first clients and
        marks.
    """

    def __init__(self, *, pseudonymize: bool = False, partial: bool = False) -> None:
        self.clients: dict[Client, SeenClient] = {}
        self.pseudonymize, self.partial = pseudonymize, partial
        self._more = _PARTIAL if partial else 1

    def client(self, client: Client, confidence: Confidence) -> SeenClient:
        """Return the sums of a client, to add to."""
        found = self.clients.get(client)
        if found is None and len(self.clients) >= _MOST_CLIENTS * self._more:
            client = Client(client.id, None, None if client.id is not None else OTHERS)
            found = self.clients.get(client)
        if found is None:
            most_marks = _MOST_EVIDENCE * self._more
            found = self.clients[client] = SeenClient(confidence, most_marks)
        return found

    def include(self, other: SeenUses) -> None:
        """Add counts from another part."""
        for client, seen in other.clients.items():
            mine = self.client(client, seen.confidence)
            mine.could_be, mine.setting = seen.could_be, seen.setting
            mine.include(seen)

    def rename_tables(self, names: Mapping[str, str]) -> None:
        """Rename tables; tables missing from `names` keep their names."""
        for seen in self.clients.values():
            renamed: dict[str, SeenTable] = {}
            for table, usage in seen.tables.items():
                renamed.setdefault(names.get(table, table), SeenTable()).include(usage)
            seen.tables = renamed

    def name(self, kind: PrincipalKind, text: str) -> Name:
        """Return a principal as outputs show it: without credentials, short, perhaps hashed."""
        return Name(kind, self.hide(text))

    def hide(self, text: str) -> str:
        """Return the hash of a name, the same in every run; the name itself if hashing is off."""
        if not self.pseudonymize:
            return shorten(text)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"sha256:{digest[:16]}"

    @property
    def identified(self) -> list[tuple[Client, SeenClient]]:
        """The clients of the catalog, most active first."""
        return self._sorted(known=True)

    @property
    def unidentified(self) -> list[tuple[Client, SeenClient]]:
        """The other programs, most active first."""
        return self._sorted(known=False)

    def _sorted(self, *, known: bool) -> list[tuple[Client, SeenClient]]:
        found = [each for each in self.clients.items() if (each[0].id is not None) is known]
        return sorted(
            found,
            key=lambda each: (
                -each[1].commits.count,
                -each[1].requests.count,
                *(part or "" for part in each[0]),
            ),
        )


def shorten(text: str) -> str:
    """Return a mark or a name without credentials, cut if it is too long for an output."""
    if len(text) > _LONGEST_READ:
        return f"({len(text):,} characters)"
    # The whole text: the end of a credential may be what shows that it is one.
    shown = hide_in_name(text)
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + _CUT
