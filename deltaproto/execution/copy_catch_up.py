"""Copies the commits that were made to a table after its copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deltaproto.errors import EngineError
from deltaproto.execution.copy_state import CommitEffect, NamedTable, PendingCommit
from deltaproto.execution.runner import StatementRunner
from deltaproto.sql.quoting import quote_literal
from deltaproto.tables.log.commits import commit_tag_of

_MOST_FILES = 1000
"""files whose names one statement lists, unless one commit has more"""


class AppendGroup(NamedTuple):
    """Consecutive commits that only add files."""

    commits: tuple[PendingCommit, ...]

    @property
    def condition(self) -> str:
        """A condition that is true for the rows of their files."""
        names = (name for commit in self.commits for name in commit.files)
        return f"_metadata.file_name IN ({', '.join(map(quote_literal, names))})"

    @property
    def rows(self) -> int | None:
        """Their rows; None: unknown."""
        counts = [commit.rows for commit in self.commits]
        return None if None in counts else sum(count or 0 for count in counts)


def group_appends(pending: Sequence[PendingCommit]) -> Iterator[AppendGroup]:
    """Yield groups of appends; commits between two groups may rewrite the files of the first."""
    group: list[PendingCommit] = []
    for commit in pending:
        files = sum(len(each.files) for each in group)
        full = group and files + len(commit.files) > _MOST_FILES
        if group and (full or commit.effect is not CommitEffect.APPEND):
            yield AppendGroup(tuple(group))
            group = []
        if commit.effect is CommitEffect.APPEND:
            group.append(commit)
    if group:
        yield AppendGroup(tuple(group))


def count_rows(runner: StatementRunner, table: str, group: AppendGroup) -> int | None:
    """Return the number of rows in a group's files.

    None if selecting by file name does not find exactly these files with the rows that their
    statistics show.

    Args:
        table: name and version; every file of the group is live in it.
    """
    count = sum(len(commit.files) for commit in group.commits)
    try:
        ((rows, files),), _ = runner.query(
            "SELECT count(*), count(DISTINCT _metadata.file_path) "  # noqa: S608
            f"FROM {table} WHERE {group.condition}"
        )
    except EngineError:
        return None
    return int(rows) if files == count and group.rows in (None, rows) else None


def rows_of_commit(new: NamedTable, owner: str, version: int) -> int | None:
    """Return the number of rows that the plan wrote for a version of the old table; 0 without a
    commit, None if the commit does not record it.
    """
    for commit in reversed(new.commits()):
        tag = commit_tag_of(commit)
        if tag is not None and (tag.plan, tag.copied) == (owner, version):
            rows = str((commit.info.get("operationMetrics") or {}).get("numOutputRows"))
            return int(rows) if rows.isdecimal() else None
    return 0
