"""REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)).

Source: Delta Spark 4.4's `ReorgTableForUpgradeUniformHelper`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

from typing import NamedTuple

from deltaproto.planning.ddl.checks import forbidden
from deltaproto.planning.ddl.own import refused
from deltaproto.planning.engine import Engine
from deltaproto.planning.outcome import Commit, Outcome, Refusal, Rewrite
from deltaproto.planning.pulled import upgraded
from deltaproto.planning.schema import Struct
from deltaproto.planning.table import MODE, Table

_KEY = "delta.enableIcebergCompatV{}"
_FORMATS = "delta.universalFormat.enabledFormats"
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
        current = next((n for n in (1, 2, 3) if table.on(_KEY.format(n))), None)
        if current != self.version:
            enabled = self._enabled(table, current)
            if isinstance(enabled, Refusal):
                return Outcome(table, refusal=enabled)
            table = enabled
            commits.append(Commit("REORG TABLE UPGRADE UNIFORM", table.protocol))
        rewrites = Rewrite.NONE
        if self.version > 1:
            # Only files without the tag of this version; an empty table has none.
            commits.append(Commit("REORG", table.protocol, sure=False))
            rewrites = Rewrite.ALL
            table = table._replace(vectors=False, rewritten=current != self.version)
        formats = before.configuration.get(_FORMATS, "")
        if "iceberg" not in formats:
            table = table.with_properties({_FORMATS: "iceberg"})
            commits.append(Commit("SET TBLPROPERTIES", table.protocol))
        return Outcome(table, tuple(commits), rewrites)

    def _enabled(self, table: Table, current: int | None) -> Table | Refusal:
        mode = table.configuration.get(MODE, "none").lower()
        if mode == "id":
            return Refusal(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                "REORG sets the mapping mode to name, and it cannot go from id to name",
                f"set {_KEY.format(self.version)} = true instead",
            )
        properties = {
            _KEY.format(self.version): "true",
            MODE: "name",
            "delta.enableDeletionVectors": "false",
        }
        if current is not None:
            properties[_KEY.format(current)] = "false"
        after = table.with_properties(properties)
        refusal = forbidden(after, table.schema or Struct(()))
        if refusal is not None:
            return refusal
        protocol = upgraded(table.protocol, after.configuration)
        return protocol if isinstance(protocol, Refusal) else after._replace(protocol=protocol)
