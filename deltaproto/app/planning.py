"""Functions that plan for one table."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.app.arguments import (
    NONE,
    ConnectionOptions,
    TableSource,
    connection_options,
    parse_choice,
    require_text_values,
    require_texts,
    require_version_pair,
    table_name,
)
from deltaproto.app.plan import Plan
from deltaproto.errors import UsageError

if TYPE_CHECKING:
    from deltaproto.plan_inputs.client_scope import ClientScope, SeenUses
    from deltaproto.plan_inputs.planners import Planner
    from deltaproto.planning.ddl.user_statement import ParsedStatement
    from deltaproto.planning.plan import Plan as PlanTuple
    from deltaproto.planning.request import PlanInput


def plan_upgrade(
    table: TableSource,
    *,
    enable: Sequence[str] = (),
    set: Mapping[str, str] = NONE,
    to: tuple[int, int] | None = None,
    isolation: str | None = None,
    cluster_by: Sequence[str] = (),
    sql: Sequence[str] = (),
    for_clients: Sequence[str] = (),
    access: Sequence[str] = (),
    clients: Sequence[str] = (),
    policy: str | os.PathLike[str] | None = None,
    seen: str | os.PathLike[str] | None = None,
    seen_days: int = 90,
    engine: str | None = None,
    client_files: Sequence[str] = (),
    catalogue: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Plan:
    """Plan features, properties or an isolation level, with the effect on protocol and clients.

    Args:
        table: as for `inspect_table`.
        enable: features to enable, with those they require; `columnMapping=name` selects a mode.
        set: table properties.
        to: reader and writer version to reach at least.
        isolation: Serializable or WriteSerializable.
        cluster_by: columns.
        sql: SQL statements, or names of files with statements.
        for_clients: clients that must not lose access, as ID@VERSION.
        access: access needed by the clients named here; default: read and append.
        clients: clients to show the effect on.
        policy: a YAML file: a result that violates it is blocked; losses of clients are warnings.
        seen: an inventory in which `discover` counted clients: the effect on them is shown, and a
            loss of one that is not declared is in `losses`.
        seen_days: count the clients of the last N days of `seen`.
        engine: the engine that will execute the plan, as `delta-spark@4.4` or `databricks@16.4`.
        client_files: files with custom clients.
        catalogue: the old name of `client_files`.

    Raises:
        UsageError: for a request that is empty or invalid.
        TableError: when the table cannot be read, or its protocol violates the spec.
    """
    from deltaproto.plan_inputs.parse_goal import (
        parse_features_to_enable,
        read_script,
        validate_properties_to_set,
    )
    from deltaproto.plan_inputs.planners import upgrade_planner
    from deltaproto.planning.request import UpgradeRequest

    if not (enable or set or to or isolation or cluster_by or sql):
        raise UsageError("no change requested", "pass enable, set, to, isolation, … or sql")
    request = UpgradeRequest(
        enable=parse_features_to_enable(
            require_texts(enable, "enable"), require_texts(cluster_by, "cluster_by"), "enable"
        ),
        set=validate_properties_to_set(require_text_values(set, "set"), "set"),
        to=require_version_pair(to, "to"),
        isolation=isolation,
        statements=tuple(each for text in require_texts(sql, "sql") for each in read_script(text)),
    )
    keep = require_texts(for_clients, "for_clients")
    by = connection_options(table, storage_options, spark_remote, spark_conf)
    found = _load_seen(seen, seen_days, by)
    named = (*keep, *require_texts(clients, "clients"))
    users = _users(policy, (*client_files, *catalogue), named, access, found)
    planner = upgrade_planner(request, keep)
    return _planned(table, planner, users, engine, by, found, request.statements)


def plan_downgrade(
    table: TableSource,
    *,
    lowest: bool = False,
    include_enabled: bool = False,
    drop: Sequence[str] = (),
    to: tuple[int, int] | None = None,
    for_clients: Sequence[str] = (),
    access: Sequence[str] = (),
    policy: str | os.PathLike[str] | None = None,
    history: str | None = None,
    rewrite: bool = False,
    clients: Sequence[str] = (),
    seen: str | os.PathLike[str] | None = None,
    seen_days: int = 90,
    engine: str | None = None,
    client_files: Sequence[str] = (),
    catalogue: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Plan:
    """Plan the cheapest statements that lower the protocol, with every commit and cost.

    Pass one goal: `lowest`, `drop`, `to`, or clients (`for_clients`, `policy`, or both). `lowest`
    can be combined with clients: the lowest protocol that they can use.

    Args:
        table: as for `inspect_table`.
        lowest: the lowest versions at which no client loses access, by dropping unused features;
            with `include_enabled`, also features in use.
        drop: features to drop.
        to: reader and writer version to reach at most.
        for_clients: clients that must be able to read and append afterwards, as ID@VERSION.
        access: access needed by the clients named here, instead of read and append.
        policy: a YAML file: every client in it must get the access that it declares.
        history: keep or truncate.
        rewrite: plan a copy into a new table if drops do not reach the goal.
        clients: clients to show the effect on.
        seen: an inventory in which `discover` counted clients: the effect on them is shown, and a
            loss of one that is not declared is in `losses`.
        seen_days: count the clients of the last N days of `seen`.
        engine: the engine that will execute the plan, as `delta-spark@4.4` or `databricks@16.4`.
        client_files: files with custom clients.
        catalogue: the old name of `client_files`.

    Raises:
        UsageError: for no goal or several, and for an invalid request.
        TableError: when the table cannot be read, or its protocol violates the spec.
    """
    from deltaproto.plan_inputs.parse_goal import parse_feature_names
    from deltaproto.plan_inputs.planners import client_downgrade_planner, downgrade_planner
    from deltaproto.planning.downgrade import DowngradeRequest
    from deltaproto.planning.search.goals import HistoryChoice

    by_client = bool(for_clients) or policy is not None
    _require_one_goal(bool(drop), to is not None, lowest or by_client)
    if include_enabled and not lowest:
        raise UsageError("include_enabled requires lowest")
    request = DowngradeRequest(
        lowest=lowest,
        include_enabled=include_enabled,
        drop=parse_feature_names(require_texts(drop, "drop"), "drop"),
        to=require_version_pair(to, "to"),
        history=None if history is None else parse_choice(HistoryChoice, history, "history"),
        rewrite=rewrite,
    )
    watched, wanted = require_texts(clients, "clients"), require_texts(for_clients, "for_clients")
    planner = downgrade_planner(request)
    if by_client:
        planner = client_downgrade_planner(request, watched, () if access else wanted)
    by = connection_options(table, storage_options, spark_remote, spark_conf)
    found = _load_seen(seen, seen_days, by)
    users = _users(policy, (*client_files, *catalogue), (*wanted, *watched), access, found)
    return _planned(table, planner, users, engine, by, found)


def _require_one_goal(*goals: bool) -> None:
    if sum(goals) != 1:
        cause = "more than one goal was given" if any(goals) else "no goal was given"
        raise UsageError(cause, "pass one of lowest, drop, to, or for_clients and policy")


def plan_policy(
    table: TableSource,
    policy: str | os.PathLike[str],
    *,
    clients: Sequence[str] = (),
    seen: str | os.PathLike[str] | None = None,
    seen_days: int = 90,
    engine: str | None = None,
    client_files: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Plan:
    """Plan the cheapest statements that bring a table into line with a policy, in either direction.

    `Plan.fixes` has what `check` no longer finds afterwards, and `Plan.unmet` the policy's
    requirements that the plan does not meet, with the reason.

    Args:
        table: as for `inspect_table`.
        policy: a YAML file.
        clients: clients to show the effect on.
        seen: an inventory in which `discover` counted clients: the effect on them is shown, and a
            loss of one that is not declared is in `losses`.
        seen_days: count the clients of the last N days of `seen`.
        engine: the engine that will execute the plan, as `delta-spark@4.4` or `databricks@16.4`.
        client_files: files with custom clients.

    Raises:
        UsageError: for an invalid policy.
        TableError: when the table cannot be read, or its protocol violates the spec.
    """
    from deltaproto.plan_inputs.planners import target_planner

    by = connection_options(table, storage_options, spark_remote, spark_conf)
    found = _load_seen(seen, seen_days, by)
    users = _users(policy, client_files, require_texts(clients, "clients"), (), found)

    def planner(inputs: PlanInput) -> PlanTuple:
        return target_planner(users.with_target(inputs))

    return _planned(table, planner, users, engine, by, found)


def _users(
    policy: str | os.PathLike[str] | None,
    files: Sequence[str],
    named: Sequence[str],
    access: Sequence[str],
    found: _Seen,
) -> ClientScope:
    from deltaproto.plan_inputs.client_scope import ClientScope
    from deltaproto.policy.local_catalog import DEFAULT_ACCESS, load_local_policy, parse_accesses

    rules = None if policy is None else load_local_policy(os.fspath(policy))
    does = parse_accesses(require_texts(access, "access"), "access") or DEFAULT_ACCESS
    return ClientScope(rules, require_texts(files, "client_files"), named, does, found.uses)


class _Seen(NamedTuple):
    uses: SeenUses | None = None
    notice: str | None = None
    """that they were counted long ago"""


def _load_seen(name: str | os.PathLike[str] | None, days: int, by: ConnectionOptions) -> _Seen:
    if name is None:
        return _Seen()
    from deltaproto.app.checking import load_seen
    from deltaproto.fleet.seen.seen_findings import uses_for_plans

    recent, notice = load_seen((name, days, by.storage_options))
    return _Seen(uses_for_plans(recent), None if notice is None else f"{notice}.")


def _planned(
    table: TableSource,
    planner: Planner,
    users: ClientScope,
    engine: str | None,
    by: ConnectionOptions,
    seen: _Seen,
    statements: Sequence[ParsedStatement] = (),
) -> Plan:
    """Read a table and plan for it."""
    from deltaproto.plan_inputs.from_log import load_plan_input, with_restored_versions
    from deltaproto.planning.engine import Engine, parse_engine

    executed_by = Engine() if engine is None else parse_engine(engine)
    found = load_plan_input(table_name(table), dict(by.storage_options), by.spark, time.time())
    found = with_restored_versions(found, statements, dict(by.storage_options), by.spark)
    inputs = users.with_clients(found).executed_by(executed_by, by.spark.conf)
    ruled = users.check_plan(planner(inputs), inputs)
    plan = Plan._make(ruled.plan)
    if seen.notice is not None:
        plan = plan._replace(warnings=(*plan.warnings, seen.notice))
    plan.losses = ruled.losses
    return plan
