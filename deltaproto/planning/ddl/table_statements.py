"""ALTER TABLE ... CLUSTER BY, ADD and DROP CONSTRAINT, and REORG ... UPGRADE UNIFORM."""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.resolution import UNRESOLVED, resolve_check_constraint
from deltaproto.planning.ddl.user_statement import refuse
from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.auto_enable import upgrade_for_properties
from deltaproto.planning.predict.consistency import unstorable
from deltaproto.planning.predict.iceberg import KEY, enabled_version, validate_change
from deltaproto.planning.predict.outcome import Outcome, PredictedCommit, Refusal, Rewrite
from deltaproto.planning.predict.schema import (
    Path,
    Struct,
    find_duplicate,
    quoted_path,
    resolve_path,
)
from deltaproto.planning.predict.table import CONSTRAINT_PREFIX, MAPPING_MODE, Table
from deltaproto.planning.statement import ClusterBy, DropConstraint
from deltaproto.protocol.compatibility_mode import FORMATS

_SCAN = "every row is read, and a row that violates the constraint makes the statement fail"


class AddConstraint(NamedTuple):
    """ADD CONSTRAINT … CHECK."""

    name: str
    expression: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        key = CONSTRAINT_PREFIX + self.name
        if any(key.lower() == other.lower() for other in table.configuration):
            return refuse(
                table,
                "DELTA_CONSTRAINT_ALREADY_EXISTS",
                f"the constraint {self.name} already exists",
                "drop it first",
            )
        twice = find_duplicate(table.schema or Struct(()))
        if twice is not None and len(twice) == 1:
            message = f"two columns have the name {twice[0]}, apart from case"
            return refuse(table, "AMBIGUOUS_REFERENCE", message, "write the rows to a new table")
        judged = resolve_check_constraint(table, self.expression, engine)
        refusal = judged.refusal or unstorable(table)
        if refusal is not None:
            return Outcome(table, refusal=refusal)
        after = table.with_properties({CONSTRAINT_PREFIX + self.name.lower(): self.expression})
        protocol = upgrade_for_properties(table.protocol, after.configuration, engine)
        commit = PredictedCommit("ADD CONSTRAINT", protocol, sure=not judged.unresolved)
        warnings = (_SCAN, UNRESOLVED) if judged.unresolved else (_SCAN,)
        return Outcome(after._replace(protocol=protocol), (commit,), warnings=warnings)


class DropConstraintIfExists(NamedTuple):
    """DROP CONSTRAINT IF EXISTS, which commits even if it does not exist."""

    name: str

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if table.constraint_key(self.name) is not None or unstorable(table) is not None:
            return DropConstraint(self.name).outcome(table, engine)
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
        after = table.with_properties(properties)
        protocol = upgrade_for_properties(table.protocol, after.configuration, engine)
        # Only the resulting table matters here; SET also checks the previous state.
        refusal = validate_change(table.with_properties(without), after, engine)
        return after._replace(protocol=protocol) if refusal is None else refusal
