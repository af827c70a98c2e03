"""What one statement does: commits with the protocol after each, or a refusal."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol

REMOVE_MAPPING = "REMOVE COLUMN MAPPING"
"""the operation that rewrites every file to its logical column names"""


class Rewrite(StrEnum):
    """Which data files a statement rewrites."""

    NONE = "none"
    VECTORS = "vectors"
    """those with deletion vectors"""
    WIDENED = "widened"
    """those written before a column was widened"""
    SOME = "some"
    """which ones only the files themselves tell; at most all"""
    ALL = "all"


class PredictedCommit(NamedTuple):
    """One commit, by the operation that its commitInfo names."""

    operation: str
    protocol: Protocol
    sure: bool = True
    """False: it depends on what is not known"""


class Refusal(NamedTuple):
    """Why the engine refuses. Commits made before it stay."""

    error: str
    """the error class, as Delta names it; empty where it names none"""
    message: str
    remedy: str
    retry: bool = False
    """the same statement succeeds later, once history has gone"""
    sure: bool = True
    """False: it depends on what is not known, and the statement may succeed at once"""


class Outcome(NamedTuple):
    """What becomes of a statement."""

    table: Table
    """afterwards; after a refusal too, as its commits stay"""
    commits: tuple[PredictedCommit, ...] = ()
    rewrites: Rewrite = Rewrite.NONE
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()
    """harm that comes later, and that no engine tells"""

    @property
    def fewest(self) -> int:
        """The least number of commits."""
        return sum(commit.sure for commit in self.commits)

    @property
    def most(self) -> int:
        """The greatest number of commits."""
        return len(self.commits)


def elsewhere(refusal: Refusal) -> Refusal:
    """Of a refusal that was measured with Delta Spark: what is known of Databricks."""
    return Refusal(
        "",
        f"Delta Spark refuses this ({refusal.message}); whether Databricks does is not known",
        refusal.remedy,
        sure=False,
    )
