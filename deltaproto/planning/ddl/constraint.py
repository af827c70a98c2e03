"""ALTER TABLE … ADD CONSTRAINT, and DROP CONSTRAINT IF EXISTS.

Source: Delta Spark 4.4's `AlterTableAddConstraintDeltaCommand`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.own import refused
from deltaproto.planning.ddl.resolution import UNRESOLVED, check
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Commit, Outcome, Refusal
from deltaproto.planning.pulled import upgraded
from deltaproto.planning.statement import DropConstraint
from deltaproto.planning.table import CONSTRAINT, Table

_SCAN = "every row is read, and one that breaks the constraint refuses the statement"


class AddConstraint(NamedTuple):
    """ADD CONSTRAINT … CHECK."""

    name: str
    expression: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        key = CONSTRAINT + self.name
        if any(key.lower() == other.lower() for other in table.configuration):
            return refused(
                table,
                "DELTA_CONSTRAINT_ALREADY_EXISTS",
                f"there is a constraint {self.name} already",
                "drop it first",
            )
        judged = check(table, self.expression, engine)
        if judged.refusal is not None:
            return Outcome(table, refusal=judged.refusal)
        after = table.with_properties({CONSTRAINT + self.name.lower(): self.expression})
        protocol = upgraded(table.protocol, after.configuration, None, engine)
        if isinstance(protocol, Refusal):
            return Outcome(table, refusal=protocol)
        commit = Commit("ADD CONSTRAINT", protocol, sure=not judged.unresolved)
        warnings = (_SCAN, UNRESOLVED) if judged.unresolved else (_SCAN,)
        return Outcome(after._replace(protocol=protocol), (commit,), warnings=warnings)


class DropConstraintIfExists(NamedTuple):
    """DROP CONSTRAINT IF EXISTS, which commits even when there is none."""

    name: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        outcome = DropConstraint(self.name).outcome(table, engine)
        if outcome.refusal is None:
            return outcome
        return Outcome(table, (Commit("DROP CONSTRAINT", table.protocol),))
