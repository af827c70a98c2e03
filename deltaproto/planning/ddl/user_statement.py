"""Common parts of user-written statements."""

from __future__ import annotations

from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome, Refusal, refusal_on_databricks
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

PlannerStatement = (
    SetProperties | UnsetProperties | DropFeature | DropConstraint | ClusterBy | Purge
)
"""the statements that plans also generate themselves"""


class StatementEffect(Interface):
    """The effect of a kind of statement."""

    def outcome(self, table: Table, engine: Engine) -> Outcome: ...


class UserStatement(NamedTuple):
    """A user's SQL statement: its text, split at the table's name, and its effect."""

    head: str
    """text before the table's name; the whole text if it is kept as written"""
    tail: str | None
    """text after the name; None: the statement names its tables itself"""
    effect: StatementEffect
    feature: str | None = None

    @property
    def action(self) -> Action:
        return Action.SQL

    def sql(self, table: str) -> str:
        return self.head if self.tail is None else f"{self.head}{table}{self.tail}"

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return self.effect.outcome(table, engine)


class ParsedStatement(NamedTuple):
    """One statement of a script."""

    statement: Statement
    text: str
    line: int
    """line of its start in the script, from 1"""
    target: tuple[str, ...] | None
    """parts of the target table's name, `("delta", path)` for a path; None: no target, or not
    understood"""
    operation: Operation | None
    """operation in the conflict matrices; None if it has no conflicts or is unknown
    """

    @property
    def understood(self) -> bool:
        """Return True if the statement was understood."""
        return not (
            isinstance(self.statement, UserStatement)
            and isinstance(self.statement.effect, NotUnderstood)
        )


class NotUnderstood(NamedTuple):
    """A statement that was not understood."""

    why: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = Refusal(
            "",
            f"the statement was not understood ({self.why}), so its effect is unknown",
            "plan without it, or try it on a copy of the table",
            sure=False,
        )
        return Outcome(table, refusal=refusal)


class NoEffect(NamedTuple):
    """A statement that does not change the table."""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        return Outcome(table)


class RefusedStatement(NamedTuple):
    """A statement that Delta Spark refuses for any table."""

    refusal: Refusal
    on_databricks: bool = False
    """True if Databricks also refuses it"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        known = self.on_databricks or engine.name is EngineName.DELTA_SPARK
        return Outcome(
            table, refusal=self.refusal if known else refusal_on_databricks(self.refusal)
        )


def refuse(table: Table, error: str, message: str, remedy: str) -> Outcome:
    """Return a refusal before any commit."""
    return Outcome(table, refusal=Refusal(error, message, remedy))
