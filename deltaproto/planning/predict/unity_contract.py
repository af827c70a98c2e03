"""What Unity Catalog requires of the tables whose commits it manages.

Source: Unity Catalog 0.6's `UcManagedDeltaContract`, which its Delta API applies to each commit
that changes the protocol. Measured with Delta Spark 4.4.0 and a server built from source.
"""

from __future__ import annotations

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.predict.outcome import Outcome, Refusal
from deltaproto.planning.predict.table import CHECKPOINT_POLICY, TIMESTAMPS, Table
from deltaproto.protocol.feature_catalog import UNITY_FEATURES, UNITY_TABLE_ID
from deltaproto.sql.quoting import quote_literal

_PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    CHECKPOINT_POLICY: "v2",
    TIMESTAMPS: "true",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "true",
}


def refuse_rename(table: Table, engine: Engine) -> Refusal | None:
    """Return why Unity Catalog's connector for Spark refuses to rename a column, or None."""
    if not _applies(table, engine):
        return None
    return Refusal(
        "",
        "Unity Catalog manages the table, and its connector for Spark refuses RENAME COLUMN (0.6)",
        "add a column with the other name, and copy the values",
        sure=False,
    )


def refuse_drop(table: Table, name: str, engine: Engine) -> Refusal | None:
    """Return why Unity Catalog refuses to drop a feature of its table, or None."""
    if name not in UNITY_FEATURES or not _applies(table, engine):
        return None
    return Refusal(
        "",
        f"Unity Catalog manages the table, and refuses a protocol without {name}",
        "keep it, or copy the table into a new one that Unity Catalog does not manage",
    )


def refuse_commit(before: Table, outcome: Outcome, engine: Engine) -> Refusal | None:
    """Return why Unity Catalog refuses a statement, or why no client could open the table later."""
    after = outcome.table
    if not outcome.commits or not _applies(before, engine):
        return None
    if after.configuration.get(UNITY_TABLE_ID) != before.configuration[UNITY_TABLE_ID]:
        return Refusal(
            "",
            f"Unity Catalog finds the table by {UNITY_TABLE_ID}: Delta Spark accepts another "
            "value, and then cannot open the table",
            "do not change the property",
        )
    if all(commit.protocol == before.protocol for commit in outcome.commits):
        return None
    missing = [name for name in UNITY_FEATURES if name not in after.protocol.supported]
    if missing:
        return refuse_drop(before, missing[0], engine)
    wrong = {key: v for key, v in _PROPERTIES.items() if after.configuration.get(key) != v}
    if not wrong:
        return None
    needed = ", ".join(f"{quote_literal(k)} = {quote_literal(v)}" for k, v in wrong.items())
    return Refusal(
        "",
        "Unity Catalog manages the table, and refuses to change its protocol while "
        f"{next(iter(wrong))} is not {next(iter(wrong.values()))}",
        f"first SET TBLPROPERTIES ({needed})",
    )


def _applies(table: Table, engine: Engine) -> bool:
    """Return True if Unity Catalog manages the table's commits, and the engine is not its own."""
    in_unity = table.managed and UNITY_TABLE_ID in table.configuration
    return in_unity and engine.name is EngineName.DELTA_SPARK
