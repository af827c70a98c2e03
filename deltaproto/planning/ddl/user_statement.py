"""Common parts of user-written statements."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from typing import Protocol as Interface

from deltaproto.conflicts.operation import Operation
from deltaproto.planning.ddl.constraint_text import refuse_constraint_text, stored_text
from deltaproto.planning.ddl.resolution import UNRESOLVED, resolve_check_constraint
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.auto_enable import upgrade_for_properties
from deltaproto.planning.predict.before_drop import may_skip_files
from deltaproto.planning.predict.consistency import refuse_constraint_change, validate_maintenance
from deltaproto.planning.predict.iceberg import (
    KEY,
    enabled_version,
    validate_change,
    with_atomic_conversion,
)
from deltaproto.planning.predict.outcome import (
    Outcome,
    PredictedCommit,
    Refusal,
    Rewrite,
    refusal_on_databricks,
)
from deltaproto.planning.predict.pending import with_pending
from deltaproto.planning.predict.properties import find_other_function, find_untracked_files
from deltaproto.planning.predict.schema import (
    Path,
    Struct,
    find_duplicate,
    quoted_path,
    resolve_path,
)
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.predict.unreadable import find_lost_clustering
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
from deltaproto.protocol.compatibility_mode import FORMATS
from deltaproto.protocol.properties import CONSTRAINT_PREFIX

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
        if isinstance(self.effect, PlannerStatement):
            return self.effect.outcome(table, engine)
        return with_pending(table, engine, partial(self.effect.outcome, engine=engine))


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
        """True if the statement was understood."""
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
    databricks: str | None = None
    """what Databricks, unlike Delta Spark, supports with it"""

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        refusal = self.refusal
        if engine.name is EngineName.DATABRICKS and self.databricks is not None:
            refusal = Refusal(
                "",
                f"the effect of {self.databricks} on the log is not documented, so it is not "
                "planned",
                "run the statement separately, and plan the others afterwards",
                sure=False,
            )
        elif engine.name is EngineName.DATABRICKS and not refusal.on_databricks:
            refusal = refusal_on_databricks(refusal)
        return Outcome(table, refusal=refusal)


def refuse(table: Table, error: str, message: str, remedy: str) -> Outcome:
    """Return a refusal before any commit."""
    return Outcome(table, refusal=Refusal(error, message, remedy))


_SCAN = "every row is read, and a row that violates the constraint makes the statement fail"


class AddConstraint(NamedTuple):
    """ADD CONSTRAINT … CHECK."""

    name: str
    expression: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if table.constraint_key(self.name) is not None:
            return refuse(
                table,
                "DELTA_CONSTRAINT_ALREADY_EXISTS",
                f"the constraint {self.name} already exists",
                "drop it first",
            )
        by_delta = engine.name is EngineName.DELTA_SPARK
        unread = refuse_constraint_text(self.expression) if by_delta else None
        if unread is not None:
            return Outcome(table, refusal=unread)
        twice = find_duplicate(table.schema or Struct(()))
        if twice is not None and len(twice) == 1:
            message = f"two columns have the name {twice[0]}, apart from case"
            return refuse(table, "AMBIGUOUS_REFERENCE", message, "write the rows to a new table")
        expression = stored_text(self.expression) if by_delta else self.expression
        judged = resolve_check_constraint(table, expression, engine)
        refusal = judged.refusal or refuse_constraint_change(table)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        after = table.with_properties({CONSTRAINT_PREFIX + self.name.lower(): expression})
        protocol = upgrade_for_properties(table.protocol, after.configuration, engine)
        commit = PredictedCommit("ADD CONSTRAINT", protocol, sure=not judged.unresolved)
        warnings = (_SCAN, UNRESOLVED) if judged.unresolved else (_SCAN,)
        return Outcome(after._replace(protocol=protocol), (commit,), warnings=warnings)


class DropConstraintIfExists(NamedTuple):
    """DROP CONSTRAINT IF EXISTS, which commits even if it does not exist."""

    name: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if table.constraint_key(self.name) is not None:
            return DropConstraint(self.name).outcome(table, engine)
        unstored = refuse_constraint_change(table)
        if unstored is not None:
            return Outcome(table, refusal=unstored)
        return Outcome(table, (PredictedCommit("DROP CONSTRAINT", table.protocol),))


class ClusterByPaths(NamedTuple):
    """CLUSTER BY columns."""

    paths: tuple[Path, ...]

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        schema = table.schema
        named = (
            self.paths if schema is None else [resolve_path(schema, path) for path in self.paths]
        )
        return ClusterBy(tuple(map(quoted_path, named))).outcome(table, engine)


_HIGHEST = 2
_SKIPS_FILES = Refusal(
    "DELTA_ICEBERG_COMPAT_VIOLATION.FILES_NOT_ICEBERG_COMPAT",
    "the table is clustered, and REORG rewrites no file that OPTIMIZE has clustered",
    "run ALTER TABLE … CLUSTER BY NONE first, and CLUSTER BY with the columns afterwards",
)


class UpgradeUniform(NamedTuple):
    """The upgrade to an IcebergCompat version."""

    version: int

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if not 1 <= self.version <= _HIGHEST:
            return refuse(
                table,
                "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
                f"REORG supports IcebergCompat 1 to {_HIGHEST}",
                f"use ICEBERG_COMPAT_VERSION = {_HIGHEST}",
            )
        managed = validate_maintenance(table, "REORG", engine)
        if managed is not None:
            return Outcome(table, refusal=managed)
        commits: list[PredictedCommit] = []
        before = table
        current = enabled_version(table)
        if current != self.version:
            after = self._enabled(table, current, engine)
            if isinstance(after, Refusal):
                return Outcome(table, refusal=after)
            table = after
            commits.append(PredictedCommit("REORG TABLE UPGRADE UNIFORM", table.protocol))
        rewrites = Rewrite.NONE
        lost = (
            find_lost_clustering(before, engine)
            or find_untracked_files(before, "")
            or find_other_function(before, "")
        )
        doubt = _SKIPS_FILES if may_skip_files(before, engine) else None
        if lost is not None:
            doubt = lost._replace(error="DELTA_ICEBERG_COMPAT_VIOLATION.REWRITE_DATA_FAILED")
        if self.version > 1 and doubt is not None:
            # A table without files has none to rewrite.
            return Outcome(table, tuple(commits), refusal=doubt._replace(sure=False))
        if self.version > 1:
            # Only files without this version's tag are rewritten; an empty table has none.
            commits.append(PredictedCommit("REORG", table.protocol, sure=False))
            rewrites = Rewrite.ALL
            table = table._replace(vectors=False, rewritten=current != self.version)
        formats = before.configuration.get(FORMATS, "")
        if "iceberg" not in formats:
            table = table.with_properties({FORMATS: "iceberg"})
            commits.append(PredictedCommit("SET TBLPROPERTIES", table.protocol))
        return Outcome(table, tuple(commits), rewrites)

    def _enabled(self, table: Table, current: int | None, engine: Engine) -> Table | Refusal:
        mode = table.configuration.get(MAPPING_MODE, "none").lower()
        if mode == "id":
            return Refusal(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                "REORG sets the mapping mode to name, and the mode cannot change from id to name",
                f"set {KEY.format(self.version)} = true instead",
            )
        without = {"delta.enableDeletionVectors": "false"}
        properties = {KEY.format(self.version): "true", MAPPING_MODE: "name", **without}
        if current is not None:
            properties[KEY.format(current)] = "false"
        after = with_atomic_conversion(table.with_properties(properties), engine)
        protocol = upgrade_for_properties(table.protocol, after.configuration, engine)
        # Only the resulting table matters here; SET also checks the previous state.
        refusal = validate_change(table.with_properties(without), after, engine)
        return after._replace(protocol=protocol) if refusal is None else refusal
