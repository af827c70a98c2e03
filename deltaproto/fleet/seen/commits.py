"""The clients that wrote a table, from the commits in its log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltaproto.clients.model import Access
from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.seen.uses import Client, Mark, Name, PrincipalKind, SeenUses, shorten
from deltaproto.protocol.writers import Confidence, Principal, identify_writer
from deltaproto.tables.engine_errors import contain_table_errors
from deltaproto.tables.log.catalog_managed import has_every_commit
from deltaproto.tables.log.commits import Commit, read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.log.snapshot import no_commits_error
from deltaproto.tables.open import OpenedLog

_OLD_IN_A_ROW = 100
"""number of consecutive older commits after which reading stops: clocks of writers differ"""
_NAMES = (
    (PrincipalKind.USER, "user"),
    (PrincipalKind.JOB, "job"),
    (PrincipalKind.NOTEBOOK, "notebook"),
    (PrincipalKind.CLUSTER, "cluster"),
    (PrincipalKind.STREAM, "stream"),
    (PrincipalKind.QUERY, "query"),
)
PRIVATE_MARKS = ("commitInfo.clusterId", "commitInfo.txn")
"""members of a commit that show the client, but also on whose behalf it wrote"""
_UNNAMED = "no mark"

_APPENDING = frozenset(
    {
        *("WRITE", "STREAMING UPDATE", "COPY INTO", "CREATE TABLE AS SELECT", "CLONE", "CONVERT"),
        "delta-go.Write",
    }
)
_CHANGING = frozenset(
    {
        *("UPDATE", "DELETE", "MERGE", "TRUNCATE", "RESTORE", "REPLACE TABLE"),
        *("REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE"),
        "CREATE OR REPLACE TABLE AS SELECT",
    }
)
# First words of operations that change files, layout or metadata, but no rows.
_MAINTAINING = frozenset(
    {
        *("OPTIMIZE", "VACUUM", "REORG", "FSCK", "SET", "UNSET", "ADD", "DROP", "ALTER", "CHANGE"),
        *("RENAME", "UPGRADE", "CREATE", "COMPUTE", "CLUSTER", "UPDATE", "ROW"),
    }
)
_REPLACING_MODES = ("overwrite", "complete")


class ReadUpTo(NamedTuple):
    """The newest commit of a table that an earlier run counted."""

    table_id: str | None
    """id of the table's metadata; a new table at the same place has another one"""
    version: int


class ReadLog(NamedTuple):
    """The commits that were read from one table's log."""

    commits: int = 0
    """within the period"""
    identified: int = 0
    """commits whose writer is a client of the catalog"""
    unreadable: int = 0
    """commits that cannot be read"""
    oldest_version: int | None = None
    """the oldest version that was read"""
    newest_version: int | None = None
    """the newest version that was read"""
    table_id: str | None = None
    """id of the table's metadata; None if its state cannot be read"""
    problem: TableError | None = None
    """why commits are missing; None: there are no others"""


def add_commits(
    table: str,
    opened: OpenedLog,
    options: Mapping[str, str],
    since: int | None,
    uses: SeenUses,
    counted: ReadUpTo | None = None,
) -> ReadLog:
    """Add the writers of one table.

    Args:
        since: skip commits before this time, in milliseconds since the epoch; None: read all.
        counted: skip commits up to this one, unless the table was replaced. Returns: The number of
        commits, and whether none is missing.

    Raises:
        TableError: when the log cannot be listed, or is not one.
    """
    with contain_table_errors():
        listing = build_listing(opened.store.list())
        if listing.newest is None:
            raise no_commits_error()
        table_id, problem = _read_state(opened, options)
        done = ReadLog(table_id=table_id)
        first = 0
        if counted is not None and counted.table_id == (table_id or counted.table_id):
            first = counted.version + 1 if counted.version <= listing.newest else 0
        for commit in _recent(read_commits(opened.store, listing), since):
            if commit.version < first:
                break
            newest = commit.version if done.newest_version is None else done.newest_version
            done = done._replace(oldest_version=commit.version, newest_version=newest)
            if commit.problem is not None:
                why = done.problem or commit.problem
                done = done._replace(unreadable=done.unreadable + 1, problem=why)
                continue
            known = _add_commit(table, commit, uses)
            done = done._replace(commits=done.commits + 1, identified=done.identified + known)
        return done._replace(problem=done.problem or problem)


def _read_state(
    opened: OpenedLog, options: Mapping[str, str]
) -> tuple[str | None, TableError | None]:
    """Return the table's id, and why the log may lack some of the table's commits."""
    try:
        state = LogReader(options).read_from(opened.location, opened.store)
    except TableError as error:
        return None, error
    if has_every_commit(opened.store, state.protocol):
        return state.metadata.id, None
    return state.metadata.id, TableError(
        ErrorCode.CATALOG_MANAGED,
        "a catalog manages this table: newer commits may not be in its log",
        "read the table by its catalog name",
    )


def _recent(commits: Iterator[Commit], since: int | None) -> Iterator[Commit]:
    old = 0
    for commit in commits:
        if since is not None and commit.timestamp is not None and commit.timestamp < since:
            old += 1
            if old == _OLD_IN_A_ROW:
                return
            continue
        old = 0
        yield commit


def _add_commit(table: str, commit: Commit, uses: SeenUses) -> bool:
    """Add one commit. Return True if its writer is a client of the catalog."""
    found = identify_writer(commit.info, commit.transactions)
    known = found.client is not None and not found.could_be
    if known:
        seen = uses.client(Client(found.client, found.version), found.confidence)
    else:
        unnamed = Client(None, None, shorten(found.build or _UNNAMED))
        seen = uses.client(unnamed, Confidence.UNKNOWN)
        seen.could_be = found.could_be
    marks = [_show(Mark(f"commitInfo.{field}", text), uses) for field, text in found.evidence]
    if found.client is None and not marks and found.build is not None:
        field = "engineInfo" if commit.info.get("engineInfo") == found.build else "clientVersion"
        marks = [Mark(f"commitInfo.{field}", shorten(found.build))]
    seen.add(table, commit.timestamp, access_of(commit), _names(found.principal, uses), marks)
    return known


def _show(mark: Mark, uses: SeenUses) -> Mark:
    text = uses.hide(mark.text) if mark.field in PRIVATE_MARKS else shorten(mark.text)
    return mark._replace(text=text)


def _names(principal: Principal, uses: SeenUses) -> list[Name]:
    found = ((kind, getattr(principal, member)) for kind, member in _NAMES)
    return [uses.name(kind, text) for kind, text in found if text is not None]


def access_of(commit: Commit) -> Access | None:
    """Return the access to the table that a commit shows; None for an unknown operation.

    A commit never shows whether its writer also reads the table, with or without a stream.
    """
    operation = commit.operation
    if operation in _CHANGING:
        return Access.DML
    if operation in _APPENDING:
        parameters = commit.info.get("operationParameters")
        members = parameters if isinstance(parameters, dict) else {}
        modes = (str(members.get(name)).strip('"').lower() for name in ("mode", "outputMode"))
        return Access.DML if any(mode in _REPLACING_MODES for mode in modes) else Access.APPEND
    first = operation.partition(" ")[0]
    return Access.MAINTAIN if first in _MAINTAINING else None
