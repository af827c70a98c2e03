"""REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)).

Source: Delta Spark 4.4's `ReorgTableForUpgradeUniformHelper`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.own import refused
from deltaproto.planning.engine import Engine
from deltaproto.planning.iceberg import KEY, broken, enabled
from deltaproto.planning.outcome import Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.pulled import upgraded
from deltaproto.planning.table import MODE, Table
from deltaproto.protocol.compatibility_mode import FORMATS

_HIGHEST = 2


class UpgradeUniform(NamedTuple):
    """The upgrade to an IcebergCompat version."""

    version: int

    def outcome(self, table: Table, engine: Engine) -> Outcome:
        if not 1 <= self.version <= _HIGHEST:
            return refused(
                table,
                "DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
                f"REORG knows IcebergCompat 1 to {_HIGHEST}",
                f"ICEBERG_COMPAT_VERSION = {_HIGHEST}",
            )
        commits: list[Commit] = []
        before = table
        current = enabled(table)
        if current != self.version:
            after = self._enabled(table, current, engine)
            if isinstance(after, Refusal):
                return Outcome(table, refusal=after)
            table = after
            commits.append(Commit("REORG TABLE UPGRADE UNIFORM", table.protocol))
        rewrites = Rewrite.NONE
        if self.version > 1:
            # Only files without the tag of this version; an empty table has none.
            commits.append(Commit("REORG", table.protocol, sure=False))
            rewrites = Rewrite.ALL
            table = table._replace(vectors=False, rewritten=current != self.version)
        formats = before.configuration.get(FORMATS, "")
        if "iceberg" not in formats:
            table = table.with_properties({FORMATS: "iceberg"})
            commits.append(Commit("SET TBLPROPERTIES", table.protocol))
        return Outcome(table, tuple(commits), rewrites)

    def _enabled(self, table: Table, current: int | None, engine: Engine) -> Table | Refusal:
        mode = table.configuration.get(MODE, "none").lower()
        if mode == "id":
            return Refusal(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                "REORG sets the mapping mode to name, and it cannot go from id to name",
                f"set {KEY.format(self.version)} = true instead",
            )
        without = {"delta.enableDeletionVectors": "false"}
        properties = {KEY.format(self.version): "true", MODE: "name", **without}
        if current is not None:
            properties[KEY.format(current)] = "false"
        after = table.with_properties(properties)
        protocol = upgraded(table.protocol, after.configuration, None, engine)
        if isinstance(protocol, Refusal):
            return protocol
        # Nothing but what the table becomes counts here; SET looks at what it was, too.
        refusal = broken(table.with_properties(without), after, engine)
        return after._replace(protocol=protocol) if refusal is None else refusal
