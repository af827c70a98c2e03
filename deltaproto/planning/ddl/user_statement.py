"""What is common to statements that people write."""

from __future__ import annotations

from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome, Refusal, elsewhere
from deltaproto.planning.predict.table import Table
from deltaproto.planning.statement import (
    Action,
    ClusterBy,
    DropConstraint,
    DropFeature,
    Purge,
    SetProperties,
    Statement,
    UnsetProperties,
)

Known = SetProperties | UnsetProperties | DropFeature | DropConstraint | ClusterBy | Purge
"""the statements that plans are made of themselves"""


class StatementEffect(Interface):
    """What a kind of statement does."""

    def outcome(self, table: Table, engine: Engine) -> Outcome: ...


class UserStatement(NamedTuple):
    """A statement of the user's own: its text, parted at the table's name, and its effect."""

    head: str
    """the text before the table's name; the whole text where it stays as it was written"""
    tail: str | None
    """the text after the name; None: the statement names its tables itself"""
    effect: StatementEffect
    feature: str | None = None

    @property
    def action(self) -> Action:
        return Action.SQL

    def sql(self, table: str) -> str:
        return self.head if self.tail is None else f"{self.head}{table}{self.tail}"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return self.effect.outcome(table, engine)


class Parsed(NamedTuple):
    """One statement of a script."""

    statement: Statement
    text: str
    line: int
    """of the script, from 1, where it begins"""
    target: tuple[str, ...] | None
    """the parts of the name of the table that it is about, `("delta", path)` for a path; None: it
    is about none, or was not understood"""
    operation: Operation | None
    """what it counts as in the conflict matrices; None when it takes no part, or nothing is known
    """

    @property
    def understood(self) -> bool:
        """Whether anything is claimed about the statement."""
        return not (
            isinstance(self.statement, UserStatement)
            and isinstance(self.statement.effect, NotUnderstood)
        )


class NotUnderstood(NamedTuple):
    """A statement about which nothing is claimed."""

    why: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = Refusal(
            "",
            f"the statement was not understood ({self.why}), so nothing is claimed about it",
            "plan without it, or try it on a copy of the table",
            sure=False,
        )
        return Outcome(table, refusal=refusal)


class Nothing(NamedTuple):
    """A statement that leaves the table as it is."""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return Outcome(table)


class Refused(NamedTuple):
    """A statement that Delta Spark refuses whatever the table is."""

    refusal: Refusal
    on_databricks: bool = False
    """Databricks refuses it as well"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        known = self.on_databricks or engine.name is EngineName.DELTA_SPARK
        return Outcome(table, refusal=self.refusal if known else elsewhere(self.refusal))


def refused(table: Table, error: str, message: str, remedy: str) -> Outcome:
    """A refusal before any commit."""
    return Outcome(table, refusal=Refusal(error, message, remedy))
