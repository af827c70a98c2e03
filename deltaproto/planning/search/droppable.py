"""Which features of a table can be dropped, and what prevents dropping the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.clients.model import Access, Verdict
from deltaproto.counts import all_names
from deltaproto.planning.engine import Engine, EngineName
from deltaproto.planning.impact import compare_clients
from deltaproto.planning.plan import Blocked
from deltaproto.planning.predict.before_drop import needs_unclustering
from deltaproto.planning.predict.consistency import READ_COPY
from deltaproto.planning.predict.drop_feature import (
    find_drop_refusal,
    find_protection_refusal,
)
from deltaproto.planning.predict.outcome import Refusal, as_known_for
from deltaproto.planning.predict.pending import has_pending, settle, settling_keys
from deltaproto.planning.predict.properties import READ_FAILED, find_untracked_files
from deltaproto.planning.predict.table import Table
from deltaproto.planning.predict.unreadable import refuse_every_statement
from deltaproto.planning.request import PlanInput
from deltaproto.planning.search.goals import (
    ClientsSupported,
    EndState,
    Goal,
    VersionsAtMost,
    requirements_after,
)
from deltaproto.planning.statement import ClusterBy, UnsetProperties
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, CHECKPOINT_PROTECTION

# Drop order: dependents come first, and drops that rewrite every file come before drops that would
# rewrite some files again. V2 checkpoints may disappear with the checkpoints that the other drops
# write.
DROP_ORDER = (
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

COPY_HINT = "copy the table into a new one without it (`plan-downgrade --rewrite`)"
"""the remedy for a feature that no engine drops"""


class DroppableFeatures(NamedTuple):
    """The features of one table, except checkpointProtection."""

    names: tuple[str, ...]
    """droppable features, in drop order"""
    undroppable: Mapping[str, Blocked]
    """the others, with the reason"""


def find_droppable(table: Table, engine: Engine) -> DroppableFeatures:
    """Return what the engine can drop from the table, dependents first."""
    undroppable: dict[str, Blocked] = {}
    supported = table.protocol.supported
    for name in sorted(supported - {CHECKPOINT_PROTECTION}):
        if not engine.drops(feature_catalog.feature_record(name)):
            why, remedy = _undroppable_reason(name, engine)
            error = "UNSUPPORTED_CLIENT" if name in CATALOG_MANAGED else "NONREMOVABLE"
            undroppable[name] = Blocked(name, why, remedy, f"DELTA_FEATURE_DROP_{error}_FEATURE")
    # Same order as the engine's checks: dependents come before requirements of the feature itself.
    _add_required(undroppable, supported)
    for name in _dependents_first(supported - undroppable.keys() - {CHECKPOINT_PROTECTION}):
        refusal = find_drop_refusal(table, name, engine)
        refusal = refusal or _refuse_clustering_again(table, name, engine)
        if name not in undroppable and refusal is not None:
            refusal = as_known_for(refusal, engine)
            undroppable[name] = Blocked(name, refusal.message, refusal.remedy, refusal.error)
            _add_required(undroppable, supported)
    refusal = refuse_every_change(table, engine)
    names = supported - undroppable.keys() - {CHECKPOINT_PROTECTION}
    if refusal is not None:
        reason = refusal.message, refusal.remedy, refusal.error
        undroppable |= {name: Blocked(name, *reason) for name in names}
        names = frozenset()
    return DroppableFeatures(tuple(sorted(names, key=drop_rank)), undroppable)


def _refuse_clustering_again(table: Table, name: str, engine: Engine) -> Refusal | None:
    """Return why a drop would lose the clustering columns, which it removes meanwhile, or None."""
    if not needs_unclustering(table, name, engine):
        return None
    again = ClusterBy(table.clustering or ()).outcome(table, engine).refusal
    if again is None:
        return None
    message = (
        f"it is safe only while the table is not clustered, and CLUSTER BY is refused after it: "
        f"{again.message}"
    )
    return Refusal("", message, f"first: {again.remedy}, or ALTER TABLE … CLUSTER BY NONE")


def refuse_every_change(table: Table, engine: Engine) -> Refusal | None:
    """Return why the engine refuses every metadata change, whatever it changes, or None."""
    refusal = refuse_every_statement(table, engine)
    if refusal is not None or not has_pending(table, engine):
        return refusal
    # UNSET removes pending properties before Delta reads them, except those with capitals.
    removed = UnsetProperties(settling_keys(table)).outcome(table, engine)
    settled = settle(table, engine)
    if removed.refusal is None or not isinstance(settled, Refusal):
        return None
    return as_known_for(settled, engine)


def refuse_protection_drop(
    table: Table, engine: Engine, *, renewed: bool = False
) -> Refusal | None:
    """Return why checkpointProtection cannot be dropped, however long one waits, or None.

    Args:
        renewed: an earlier fast drop stores its own version as the protected one.
    """
    refusal = find_protection_refusal(table, renewed=renewed)
    if refusal is not None:
        return as_known_for(refusal, engine)
    return refuse_every_change(table, engine)


def drop_rank(name: str) -> tuple[int, str]:
    """Return the drop order of a feature as a sort key."""
    return (DROP_ORDER.index(name) if name in DROP_ORDER else len(DROP_ORDER), name)


def _dependents_first(names: frozenset[str]) -> Iterator[str]:
    pending = sorted(names)
    while pending:
        name = next(n for n in pending if not feature_catalog.find_dependents(n, pending))
        pending.remove(name)
        yield name


def _add_required(undroppable: dict[str, Blocked], supported: frozenset[str]) -> None:
    """Add the features that an undroppable feature requires."""
    added = True
    while added:
        added = False
        for name in sorted(supported - undroppable.keys() - {CHECKPOINT_PROTECTION}):
            by = [
                other
                for other in feature_catalog.find_dependents(name, supported)
                if other in undroppable
            ]
            if by:
                undroppable[name] = _required_by_undroppable(name, by, undroppable)
                added = True


def _undroppable_reason(name: str, engine: Engine) -> tuple[str, str]:
    drop = feature_catalog.feature_record(name).drop
    if engine.name is EngineName.DELTA_SPARK and drop.delta_spark is not None:
        return f"{engine} cannot drop it", f"delta-spark@{drop.delta_spark} or later can"
    if engine.name is EngineName.DATABRICKS and drop.databricks is not None:
        return f"{engine} cannot drop it", f"databricks@{drop.databricks} or later can"
    if drop.databricks is not None:
        return (
            f"neither {engine} nor any delta-spark can drop it",
            f"Databricks Runtime {drop.databricks} or later can; otherwise {COPY_HINT}",
        )
    if drop.delta_spark is not None:
        return (
            f"no Databricks Runtime (including {engine}) is documented to drop it",
            f"delta-spark@{drop.delta_spark} or later can; otherwise {COPY_HINT}",
        )
    if name in feature_catalog.NEW_TABLE_FEATURES:
        return "no engine can drop it", "keep it; every new table has it too"
    return "no engine can drop it", COPY_HINT


def _required_by_undroppable(
    name: str, by: list[str], undroppable: Mapping[str, Blocked]
) -> Blocked:
    needs = "requires it, used or not, and stays"
    if len(by) > 1:
        needs = "require it, used or not, and stay"
    return Blocked(
        name,
        f"{all_names(by)} {needs}: {undroppable[by[0]].reason}",
        undroppable[by[0]].remedy,
        "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
    )


GOAL_UNREACHABLE = Blocked(
    None,
    "no possible change to this table reaches the whole goal",
    "see the nearest reachable protocol, or change the goal",
)
"""the reason if no single feature or client is the cause"""


def find_unknown_features(inputs: PlanInput, names: Iterable[str]) -> Iterator[Blocked]:
    """Yield unknown feature names that the table does not have."""
    for name in names:
        if (
            feature_catalog.find_feature(name) is None
            and name not in inputs.table.protocol.supported
        ):
            yield Blocked(
                name,
                "unknown feature, and the table does not have it",
                "see `deltaproto features`",
                "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            )


def find_blockers(
    inputs: PlanInput, goal: Goal, ending: EndState, droppable: DroppableFeatures
) -> Iterator[Blocked]:
    """Yield the blockers of the goal, feature by feature.

    Problems that drops would solve are blockers only if there are no others.
    """
    undroppable = droppable.undroppable
    objections = sorted(goal.objections(ending))
    solvable: list[Blocked] = []
    others = False
    for name in objections:
        blocker = _feature_blocker(inputs, name, undroppable)
        if blocker is not None:
            others = True
            yield blocker
    if isinstance(goal, ClientsSupported):
        after = requirements_after(inputs.needs, ending)
        for change in compare_clients(inputs.clients, inputs.needs, after):
            because = {*change.because}
            if change.after is Verdict.OK or because & {*objections} & {*undroppable}:
                continue
            blocker = Blocked(
                None, f"{change.client}, {change.access}: {change.reason}", _remedy(change.access)
            )
            if because and because <= {*droppable.names}:
                solvable.append(blocker)
                continue
            others = True
            yield blocker
    elif isinstance(goal, VersionsAtMost) and not objections:
        yield Blocked(
            None,
            f"the features {', '.join(sorted(ending.protocol.supported))} do not fit a legacy pair "
            f"as low as ({goal.reader},{goal.writer})",
            "see the nearest reachable protocol",
        )
    if not others:
        yield from solvable


def _feature_blocker(
    inputs: PlanInput, name: str, undroppable: Mapping[str, Blocked]
) -> Blocked | None:
    """Return why a feature that violates the goal cannot be dropped; None if it can."""
    if name in undroppable:
        return undroppable[name]
    if name == "columnMapping" and inputs.table.mapped:
        refusal = find_untracked_files(inputs.table, READ_FAILED, sure=True)
        if refusal is None:
            return None
        refusal = as_known_for(refusal, inputs.engine)
        return Blocked(name, refusal.message, refusal.remedy, refusal.error)
    if name != CHECKPOINT_PROTECTION:
        return None
    if refusal := refuse_protection_drop(inputs.table, inputs.engine):
        return Blocked(name, refusal.message, refusal.remedy, refusal.error)
    return Blocked(
        name,
        "fast drops add it, and removing it truncates the history, which you want to keep",
        "--history truncate",
    )


def _remedy(access: Access) -> str:
    remedy = "upgrade the client, or remove it from the command"
    return f"{remedy}; {READ_COPY}" if access is Access.READ else remedy
