"""Which features of a table can leave its protocol, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.outcome import Refusal
from deltaproto.planning.prepare import prepare
from deltaproto.planning.table import Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CATALOG_MANAGED, CHECKPOINT_PROTECTION

# Dropped in this order: who depends on another comes before it, and what rewrites every file
# before what would rewrite some of them again. V2 checkpoints may be gone with the checkpoints that
# the other drops leave.
ORDER = (
    "coordinatedCommits-preview",
    "inCommitTimestamp",
    "rowTracking",
    "domainMetadata",
    "materializePartitionColumns",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "typeWidening",
    "typeWidening-preview",
    "vacuumProtocolCheck",
    "geospatial",
    "geospatial-dev",
    "v2Checkpoint",
)


class Stuck(NamedTuple):
    """Why a feature stays in the protocol."""

    feature: str
    reason: str
    remedy: str
    error: str = ""
    """the error class with which the engine would refuse; empty where it names none"""


class Candidates(NamedTuple):
    """The features of one table, without checkpointProtection."""

    goes: tuple[str, ...]
    """those that can be dropped, in the order in which they are"""
    stuck: Mapping[str, Stuck]


def candidates(table: Table, engine: Engine) -> Candidates:
    """What the engine can drop from the table, each after whatever requires it."""
    stuck: dict[str, Stuck] = {}
    supported = table.protocol.supported
    for name in sorted(supported - {CHECKPOINT_PROTECTION}):
        if not engine.drops(catalogue.record(name)):
            why, remedy = _undroppable(name, engine)
            error = "UNSUPPORTED_CLIENT" if name in CATALOG_MANAGED else "NONREMOVABLE"
            stuck[name] = Stuck(name, why, remedy, f"DELTA_FEATURE_DROP_{error}_FEATURE")
    # In the order of the engine's own checks: dependents come before what the feature itself asks.
    _pin(stuck, supported)
    for name in sorted(supported - stuck.keys() - {CHECKPOINT_PROTECTION}):
        found = _refused(table, name)
        if found is not None:
            stuck[name] = found
    _pin(stuck, supported)
    goes = supported - stuck.keys() - {CHECKPOINT_PROTECTION}
    return Candidates(tuple(sorted(goes, key=rank)), stuck)


def rank(name: str) -> tuple[int, str]:
    """Where a feature stands in the order of drops."""
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _pin(stuck: dict[str, Stuck], supported: frozenset[str]) -> None:
    """Add what a feature that is stuck requires."""
    pinned = True
    while pinned:
        pinned = False
        for name in sorted(supported - stuck.keys() - {CHECKPOINT_PROTECTION}):
            by = [other for other in catalogue.dependents(name, supported) if other in stuck]
            if by:
                stuck[name] = _pinned(name, by, stuck)
                pinned = True


def _refused(table: Table, name: str) -> Stuck | None:
    if name == "checkConstraints":
        # Constraints are dropped first.
        return None
    refusal: Refusal | None = prepare(table, name).refusal
    if refusal is None:
        return None
    return Stuck(name, refusal.message, refusal.remedy, refusal.error)


def _undroppable(name: str, engine: Engine) -> tuple[str, str]:
    drop = catalogue.record(name).drop
    rewrite = "copy the table into a new one without it (--rewrite)"
    if engine.name is EngineName.DELTA_SPARK and drop.delta_spark is not None:
        return f"{engine} cannot drop it", f"delta-spark@{drop.delta_spark} or later can"
    if engine.name is EngineName.DATABRICKS and drop.databricks is not None:
        return f"{engine} cannot drop it", f"databricks@{drop.databricks} or later can"
    if drop.databricks is not None:
        return (
            f"{engine} cannot drop it, and no delta-spark can",
            f"Databricks Runtime {drop.databricks} or later can; else {rewrite}",
        )
    if drop.delta_spark is not None:
        return (
            f"no Databricks Runtime is documented to drop it, and {engine} neither",
            f"delta-spark@{drop.delta_spark} or later can; else {rewrite}",
        )
    return "no engine can drop it", rewrite


def _pinned(name: str, by: list[str], stuck: Mapping[str, Stuck]) -> Stuck:
    names = " and ".join(by)
    return Stuck(
        name,
        f"{names} {'requires' if len(by) == 1 else 'require'} it, used or not, and stays: "
        f"{stuck[by[0]].reason}",
        stuck[by[0]].remedy,
        "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
    )
