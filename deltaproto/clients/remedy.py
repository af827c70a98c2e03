"""One remedy for a client that cannot use a table, and what it is found from."""

from enum import StrEnum
from typing import NamedTuple

from deltaproto.clients.matching import judge_access
from deltaproto.clients.model import Access, Path, Verdict
from deltaproto.clients.requirements import TableRequirements
from deltaproto.clients.resolve import ClientAtVersion

TABLE = "{table}"


class RemedyCost(StrEnum):
    """The cost of a remedy, cheapest first."""

    NONE = "none"
    """nothing is changed"""
    METADATA = "metadata"
    """a few commits, without rewriting files"""
    CLIENT = "client"
    """another client version"""
    COPY = "copy"
    """an additional copy of the table"""
    HISTORY = "history"
    """the history is truncated, or checkpointProtection is left"""
    REWRITE = "rewrite"
    """data files are rewritten"""


class Remedy(NamedTuple):
    """One remedy."""

    kind: str
    """`look-in-files`, `raise-client`, `use-catalog`, `normalise`, `add-feature`, `set-property`,
    `drop-feature` or `read-copy`"""
    cost: RemedyCost
    text: str
    client: str | None = None
    features: tuple[str, ...] = ()
    command: str | None = None
    """command to run; `{table}` is a placeholder for the table"""

    def command_for(self, table: str) -> str | None:
        """Return the command with the table's name, quoted for a POSIX shell."""
        if self.command is None:
            return None
        import shlex

        return self.command.replace(TABLE, shlex.quote(table))


class Failing(NamedTuple):
    """A client that cannot use a table, or may not be able to."""

    candidate: ClientAtVersion
    path: Path
    table: TableRequirements
    access: Access
    because: tuple[str, ...]
    """the features that decide"""

    def works_on(self, changed: TableRequirements | None) -> bool:
        """Return True if this version can use a changed table; False if it is unknown."""
        known = self.candidate.range
        return (
            known is not None
            and changed is not None
            and judge_access(known, self.path, changed, self.access).verdict is Verdict.OK
        )
