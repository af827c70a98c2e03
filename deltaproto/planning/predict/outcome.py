"""The outcome of a statement: commits with their protocols, or a refusal."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol

REMOVE_MAPPING = "REMOVE COLUMN MAPPING"
"""operation that rewrites every file with its logical column names"""


class Rewrite(StrEnum):
    """The data files that a statement rewrites."""

    NONE = "none"
    VECTORS = "vectors"
    """files with deletion vectors"""
    WIDENED = "widened"
    """files written before a column was widened"""
    SOME = "some"
    """an unknown subset that depends on the files; at most all"""
    ALL = "all"


class PredictedCommit(NamedTuple):
    """One commit, with the operation name from its commitInfo."""

    operation: str
    protocol: Protocol
    sure: bool = True
    """False: the commit depends on unknown facts"""


class Refusal(NamedTuple):
    """Why the engine refuses. Earlier commits of the statement stay."""

    error: str
    """Delta's error class, or empty"""
    message: str
    remedy: str
    retry: bool = False
    """the same statement succeeds later, after the history was deleted"""
    sure: bool = True
    """False: the refusal depends on unknown facts; the statement may succeed immediately"""
    on_databricks: bool | None = None
    """True: Databricks refuses it, too; False: unknown; None: true if there is an error class"""


class Outcome(NamedTuple):
    """The effect of a statement."""

    table: Table
    """the table afterwards, including commits before a refusal"""
    commits: tuple[PredictedCommit, ...] = ()
    rewrites: Rewrite = Rewrite.NONE
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()
    """later harm that the engine does not report"""

    @property
    def fewest(self) -> int:
        """Minimum number of commits."""
        return sum(commit.sure for commit in self.commits)

    @property
    def most(self) -> int:
        """Maximum number of commits."""
        return len(self.commits)


_OSS_ONLY = "DELTA_ICEBERG_COMPAT_VIOLATION"
"""beginning of error classes whose causes Databricks documents differently"""


def as_known_for(refusal: Refusal, engine: Engine) -> Refusal:
    """Return a refusal that was measured with Delta Spark, as far as it is known for the engine."""
    if engine.name is EngineName.DELTA_SPARK or not refusal.sure or refusal.retry:
        return refusal
    documented = refusal.on_databricks
    if documented is None:
        documented = bool(refusal.error) and not refusal.error.startswith(_OSS_ONLY)
    return refusal if documented else refusal_on_databricks(refusal)


def refusal_on_databricks(refusal: Refusal) -> Refusal:
    """Convert a refusal measured with Delta Spark to an uncertain one for Databricks."""
    return Refusal(
        "",
        f"Delta Spark refuses this ({refusal.message}); unknown for Databricks",
        refusal.remedy,
        sure=False,
    )
