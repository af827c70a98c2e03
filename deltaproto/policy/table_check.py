"""The result of checking one table against a policy."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.clients.model import Verdict
from deltaproto.clients.usability import Usability
from deltaproto.errors import ErrorCode, ExitCode, TableError
from deltaproto.policy.declared_verdict import DeclaredVerdict
from deltaproto.policy.document.merging import Decision
from deltaproto.policy.finding import FailOn, Finding, Suppression, exit_code
from deltaproto.policy.rules import client_refused, client_unknown, client_wrong
from deltaproto.protocol.protocol import Protocol

CLIENT_RULES = {
    Verdict.REFUSED: client_refused.RULE.id,
    Verdict.WRONG: client_wrong.RULE.id,
    Verdict.UNKNOWN: client_unknown.RULE.id,
}
"""verdict to the client rule that reports it; approvals can suppress these rules"""


_NO_TABLE = (ErrorCode.NOT_FOUND, ErrorCode.NOT_A_DELTA_TABLE, ErrorCode.NO_TABLES)


class TableCheck(NamedTuple):
    """The result of checking one table."""

    table: str
    """the table as it was named"""
    location: str | None
    """absolute URI; None if the table could not be read"""
    verdicts: tuple[DeclaredVerdict, ...]
    """the verdict on each declared client and access"""
    findings: tuple[Finding, ...]
    """the findings, worst first"""
    suppressed: tuple[Suppression, ...]
    """findings that the policy waives or approves"""
    error: TableError | None
    """why the table could not be read; the other fields are then empty"""
    complete: bool
    """false if the result may be incomplete, or the table could not be read"""
    unasked: bool = False
    """True if no policy pattern matches the table and no command-line client applies"""
    decisions: tuple[Decision, ...] = ()
    """the source of each policy setting"""
    silenced: int = 0
    """number of findings from rules that the policy turns off"""
    of_policy: bool = False
    """True for findings about the policy itself; `table` is then the policy file"""
    usability: tuple[Usability, ...] = ()
    """the access of each client by version, if requested"""
    protocol: Protocol | None = None
    """None if the table could not be read"""
    fixed: int = 0
    """number of findings in the saved check that this table no longer has"""
    other_names: tuple[str, ...] = ()
    """further names of its location, in catalogs and through links"""
    of_input: bool = False
    """True for an inventory or a file that could not be read; `table` is then its name"""

    @property
    def is_table(self) -> bool:
        """False if the name may not refer to a table."""
        missing = self.error is not None and self.error.code in _NO_TABLE
        return not (self.of_policy or self.of_input or missing)


def table_exit_code(checked: TableCheck, fail_on: FailOn) -> ExitCode:
    """Return the exit code of `check` for one table; an incomplete result is never compliant."""
    return exit_code(checked.findings, fail_on) if checked.complete else ExitCode.UNREADABLE


def unreadable_table(table: str, error: TableError) -> TableCheck:
    """Return the result for a table that could not be read."""
    return TableCheck(table, None, (), (), (), error, complete=False)


def unreadable_input(name: str, error: TableError) -> TableCheck:
    """Return the result for an inventory or a file with tables that could not be read."""
    return unreadable_table(name, error)._replace(of_input=True)
