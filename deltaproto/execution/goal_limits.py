"""Check that a plan makes only changes that its goal requires. Pure.

Approvals name a plan's goal, so an edited plan must not do more than the goal that it shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.clients.requirements import UNTRACKED_FILES, TableRequirements
from deltaproto.errors import UsageError
from deltaproto.execution.needed_changes import VERSION_KEYS, NeededChanges, protocol_before_drops
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.ddl.user_statement import ClusterByPaths, UserStatement
from deltaproto.planning.enable import (
    DISABLEABLE_FEATURES,
    DISABLING_PROPERTIES,
)
from deltaproto.planning.plan import Plan, Step
from deltaproto.planning.predict.auto_enable import features_of_properties
from deltaproto.planning.predict.pending import stored_requests
from deltaproto.planning.predict.properties import normalize_properties
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_TRACKING, Table
from deltaproto.planning.predict.validation import versions_for_mapping
from deltaproto.planning.search.goals import (
    ClientsSupported,
    Goal,
    HistoryChoice,
    TableClient,
    VersionsAtMost,
)
from deltaproto.planning.search.lowest import find_unused, is_higher, states_without
from deltaproto.planning.statement import (
    Action,
    ClusterBy,
    DropFeature,
    SetProperties,
    UnsetProperties,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.feature import PropertyIs, RequirementKind
from deltaproto.protocol.feature_catalog import CHECKPOINT_PROTECTION, FEATURE_PREFIX
from deltaproto.protocol.isolation import ISOLATION_PROPERTY
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol
from deltaproto.sql.quoting import split_name

_CONFLICTING = (RequirementKind.NOT_ENABLED, RequirementKind.NOT_SUPPORTED)


class TableUse(NamedTuple):
    """How a table uses its features now, and the clients that a goal can name."""

    states: tuple[FeatureState, ...]
    needs: TableRequirements
    catalog: ClientCatalog
    domains: Collection[str] | None = None
    """the names of the table's metadata domains; None if unknown"""


class _Limits(NamedTuple):
    """The most that a goal permits."""

    drops: frozenset[str] = frozenset()
    disables: frozenset[str] = frozenset()
    """features that may be disabled without a drop"""
    adds: frozenset[str] = frozenset()
    """features that may be added by name"""
    properties: frozenset[tuple[str, str]] = frozenset()
    """permitted properties and values, in lower case"""
    clustering: tuple[tuple[str, ...], ...] | None = None
    pair: bool = False
    """True if a downgrade may set versions, which removes the feature lists"""


_WHILE_UNCLUSTERED = frozenset(
    {"clustering", "columnMapping", "deletionVectors", "typeWidening", "typeWidening-preview"}
)
"""features whose drop, or whose end of use, removes clustering meanwhile"""


def find_unrequested_change(
    plan: Plan, use: TableUse | None = None, left: Sequence[Step] | None = None
) -> str | None:
    """Describe the first change that the plan's goal does not require; None if there is none.

    Undo plans have no goal of their own: see `find_unrelated_undo`.

    Args:
        use: None: unknown, so only the protocol shows what the goal needs.
        left: the remaining steps; None: all of them.
    """
    if "undo" in plan.goal:
        return None
    steps = plan.steps if left is None else left
    if _raises_versions(plan):
        return f"it raises the versions to {plan.protocol_after}, which is not part of its goal"
    try:
        limits = _find_limits(plan, use, steps)
    except UsageError as error:
        return f"a client of its goal is unknown: {error.message}"
    requested = requested_statements(plan)
    found = ((s, _find_excess(plan, s, limits)) for s in steps if s.sql not in requested)
    return next((f"{s.id} {why}, which is not part of its goal" for s, why in found if why), None)


def find_unrelated_undo(undo: Plan, original: Plan, original_id: str) -> str | None:
    """Describe the first part of an undo plan that does not undo the original plan."""
    if undo.goal.get("undo") != original_id:
        return f"it is not the undo plan of {original_id}"
    if (undo.sql_name, undo.location) != (original.sql_name, original.location):
        return f"it changes {undo.sql_name}, not {original.sql_name}"
    known = {
        parsed.statement.sql(undo.sql_name)
        for step in original.steps
        for parsed in parse_script(step.undo or "")
    } | {step.undo for step in original.steps}
    other = (step.id for step in undo.steps if step.sql is not None and step.sql not in known)
    return next((f"{name} does not undo a step of {original_id}" for name in other), None)


def requested_statements(plan: Plan) -> frozenset[str]:
    """Return the user's statements in the plan's goal."""
    found = (parsed for text in plan.goal.get("sql") or () for parsed in parse_script(text))
    return frozenset(parsed.statement.sql(plan.sql_name) or "" for parsed in found)


def _raises_versions(plan: Plan) -> bool:
    """Return True if the result of `--lowest` is higher than the table was."""
    versions = plan.protocol_before.versions, plan.protocol_after.versions
    return plan.goal["kind"] == "lowest" and not plan.goal.get("clients") and is_higher(*versions)


def _find_excess(plan: Plan, step: Step, limits: _Limits) -> str | None:
    """Describe what a step does beyond the limits; None for nothing."""
    if step.action is Action.SQL:
        return "runs another statement"
    if step.action is Action.DROP_CONSTRAINT:
        permitted = "checkConstraints" in limits.drops | limits.disables
        return None if permitted else "drops a constraint"
    if step.action is Action.REORG:
        return None if "deletionVectors" in limits.disables else "rewrites files"
    for parsed in parse_script(step.sql or ""):
        statement = parsed.statement
        if isinstance(statement, DropFeature):
            return _find_drop_excess(plan, statement, limits)
        if isinstance(statement, UnsetProperties):
            # A protocol property in the metadata is a request. Removing it requests nothing.
            requests = stored_requests(dict.fromkeys(statement.keys, ""))
            settles = plan.command != "plan-upgrade" and requests.keys() == {*statement.keys}
            return None if settles else f"removes {', '.join(statement.keys)}"
        if isinstance(statement, SetProperties):
            return _find_property_excess(plan, step, statement.properties, limits)
        if isinstance(statement, ClusterBy) and not statement.columns:
            return _find_clustering_excess(plan, step, (), limits)
        if isinstance(statement, UserStatement) and isinstance(statement.effect, ClusterByPaths):
            return _find_clustering_excess(plan, step, statement.effect.paths, limits)
    return None


def _find_drop_excess(plan: Plan, statement: DropFeature, limits: _Limits) -> str | None:
    if statement.feature not in limits.drops:
        return f"drops {statement.feature}"
    keeps = plan.goal.get("history") == HistoryChoice.KEEP
    return "deletes history" if statement.truncate and keeps else None


def _find_property_excess(
    plan: Plan, step: Step, properties: Mapping[str, str], limits: _Limits
) -> str | None:
    versions = {key: value for key, value in properties.items() if key.lower() in VERSION_KEYS}
    mapped = any(key.lower() == MAPPING_MODE.lower() for key in properties)
    implied = mapped and not plan.engine.normalizes
    needed = versions_for_mapping(Table(step.protocol_before), {}) if implied else {}
    for key, value in properties.items():
        lower = key.lower()
        permitted = (lower, value.lower()) in limits.properties
        if lower.startswith(FEATURE_PREFIX):
            permitted = permitted or key[len(FEATURE_PREFIX) :] in limits.adds
        elif lower in VERSION_KEYS:
            permitted = permitted or limits.pair or needed.get(VERSION_KEYS[lower]) == value
        if permitted:
            continue
        if lower in VERSION_KEYS:
            return f"sets the versions {', '.join(versions.values())}"
        return f"sets {key} to {value}"
    return None


def _find_clustering_excess(
    plan: Plan, step: Step, paths: Sequence[tuple[str, ...]], limits: _Limits
) -> str | None:
    if tuple(paths) == limits.clustering:
        return None
    if not paths:
        permitted = _WHILE_UNCLUSTERED & (limits.drops | limits.disables)
        return None if permitted else "removes the clustering"
    # Once the drops are done, the limits no longer contain them.
    permits = plan.command != "plan-upgrade" or _WHILE_UNCLUSTERED & limits.disables
    none = (s for s in plan.steps if s.action is Action.CLUSTER_BY and s is not step)
    restores = any(each.undo == step.sql for each in none)
    return None if permits and restores else "changes the clustering"


def _find_limits(plan: Plan, use: TableUse | None, steps: Sequence[Step]) -> _Limits:
    if plan.command == "plan-upgrade":
        return _upgrade_limits(plan)
    down = _downgrade_limits(plan, use, steps)
    if plan.command == "plan-downgrade":
        return down
    up = _upgrade_limits(plan)
    return up._replace(
        drops=down.drops,
        disables=up.disables | down.disables,
        properties=up.properties | down.properties,
        pair=down.pair or NeededChanges(plan, steps).pair_helps(_features_to_add(plan)),
    )


def _features_to_add(plan: Plan) -> frozenset[str]:
    """Return the features that the goal of a plan for a policy names or enables."""
    goal = plan.goal
    enabled = features_of_properties(goal.get("set") or {}, plan.protocol_after, plan.engine)
    return feature_catalog.with_required_features({*(goal.get("enable") or ()), *enabled})


def _upgrade_limits(plan: Plan) -> _Limits:
    goal = plan.goal
    wanted = frozenset(goal.get("enable") or ())
    chosen = {"columnMapping": goal["mapping_mode"]} if goal.get("mapping_mode") else {}
    requested = normalize_properties(goal.get("set") or {})
    permitted = [*requested.items()]
    if goal.get("isolation") is not None:
        permitted.append((ISOLATION_PROPERTY, str(goal["isolation"])))
    if (pair := goal.get("to")) is not None:
        permitted += zip(VERSION_KEYS, (str(pair["reader"]), str(pair["writer"])), strict=True)
    disables: set[str] = set()
    for name in feature_catalog.with_required_features(wanted):
        record = feature_catalog.find_feature(name)
        if record is None:
            continue
        if isinstance(rule := record.enablement, PropertyIs):
            permitted.append((rule.key, str(chosen.get(name, rule.values[0]))))
        if name in wanted:
            disables |= {each.feature for each in record.requires if each.need in _CONFLICTING}
    disables &= DISABLEABLE_FEATURES
    permitted += (DISABLING_PROPERTIES[n] for n in disables & DISABLING_PROPERTIES.keys())
    switched = {key.lower() for key in requested}
    adds = {
        *wanted,
        *(k[len(FEATURE_PREFIX) :] for k in requested if k.lower().startswith(FEATURE_PREFIX)),
        *(
            record.name
            for record in feature_catalog.all_features()
            if any(key.lower() in switched for key in record.switches)
        ),
    }
    columns = goal.get("cluster_by")
    return _Limits(
        disables=frozenset(disables),
        adds=feature_catalog.with_required_features(adds),
        properties=frozenset((key.lower(), value.lower()) for key, value in permitted),
        clustering=None if columns is None else tuple(tuple(split_name(c)) for c in columns),
    )


def _downgrade_limits(plan: Plan, use: TableUse | None, steps: Sequence[Step]) -> _Limits:
    goal = plan.goal
    now = protocol_before_drops(plan, steps)
    residue = set() if goal.get("history") == HistoryChoice.KEEP else {CHECKPOINT_PROTECTION}
    drops: set[str] = set()
    needed = NeededChanges(plan, steps)
    match goal["kind"]:
        case "drop":
            drops = {*feature_catalog.with_dependents(goal["features"], now.supported)}
            residue = {CHECKPOINT_PROTECTION}
        case "lowest":
            drops = set(now.supported)
            refused = needed.drops(_clients_goal(plan, use))
            if goal["include_enabled"] is not True and use is not None:
                left = states_without(frozenset(refused), use.states, use.domains)
                drops = find_unused(left)
            drops |= refused
        case "policy":
            drops = _policy_drops(plan, use, needed, now)
        case "to":
            drops = needed.drops(VersionsAtMost(int(goal["reader"]), int(goal["writer"])))
        case _:
            drops = needed.drops(_clients_goal(plan, use))
    disables = needed.disables(_clients_goal(plan, use)) if goal.get("clients") else set()
    settings = [DISABLING_PROPERTIES[n] for n in disables & DISABLING_PROPERTIES.keys()]
    # The property is already true: setting it again only gives row ids to files without them.
    if UNTRACKED_FILES in use.needs.hazards if use else "rowTracking" in now.supported:
        settings.append((ROW_TRACKING, "true"))
    return _Limits(
        frozenset(drops | residue | _added_on_the_way(plan)),
        frozenset(disables),
        properties=frozenset((key.lower(), value) for key, value in settings),
        pair=goal["kind"] != "drop" and needed.pair_helps(),
    )


def _added_on_the_way(plan: Plan) -> frozenset[str]:
    """Return the features that the plan adds because the table's metadata requests them."""
    after = (step.protocol_after.supported for step in plan.steps)
    return frozenset().union(*after) - plan.protocol_before.supported


def _policy_drops(
    plan: Plan, use: TableUse | None, needed: NeededChanges, now: Protocol
) -> set[str]:
    """Return the features that the requirements of a policy permit to drop."""
    goal = plan.goal
    drops = {*feature_catalog.with_dependents(goal.get("features") or (), now.supported)}
    if (most := goal.get("at_most")) is not None:
        drops |= needed.drops(VersionsAtMost(int(most["reader"]), int(most["writer"])))
    if goal.get("clients"):
        drops |= needed.drops(_clients_goal(plan, use))
    return drops


def _clients_goal(plan: Plan, use: TableUse | None) -> Goal | None:
    """Return the goal for the clients that the plan names; None without a table to judge them by.

    Raises:
        UsageError: for an unknown client.
    """
    if use is None:
        return None
    uses = (
        TableClient(
            use.catalog.resolve(str(each["client"])), tuple(Access(a) for a in each["access"])
        )
        for each in plan.goal.get("clients") or ()
    )
    return ClientsSupported(tuple(uses), use.needs)
