"""Carrying out a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaproto.app.arguments import NONE, spark_settings, words
from deltaproto.errors import UsageError

if TYPE_CHECKING:
    from deltaproto.execution.plan_file import LoadedPlan
    from deltaproto.execution.result import Applied
    from deltaproto.planning.plan import Plan


def apply(
    plan: Plan | str | os.PathLike[str],
    *,
    journal: str | os.PathLike[str] = ".deltaproto",
    dry_run: bool = False,
    allow_irreversible: bool = False,
    policy: str | os.PathLike[str] | None = None,
    outside_window: bool = False,
    wait: bool = False,
    retries: int = 5,
    catalogue: Sequence[str] = (),
    storage_options: Mapping[str, str] = NONE,
    spark_remote: str | None = None,
    spark_conf: Mapping[str, str] = NONE,
) -> Applied:
    """Carry out one plan through Spark: gated, step by step, verified, on record.

    Nobody is asked: the call is the consent. Look at the plan first, or at `warning` of a dry run.
    Call it again to resume; what is done is found in the table.

    Args:
        plan: a plan, or a file with one.
        journal: the folder for journal and audit log; a plan is kept there as JSON.
        dry_run: pass every gate, change nothing.
        allow_irreversible: execute steps beyond the point of no return, too.
        policy: a YAML file: its clients must not lose anything, its windows hold.
        wait: stay until waiting steps may go on.
        retries: of a step that lost a race.

    Returns:
        What came of it. Only `status` done and nothing-to-do (`code` 0) are a success.

    Raises:
        UsageError: for what is no plan, was changed, or holds several.
    """
    from deltaproto.execution.append_log import AUDIT
    from deltaproto.execution.apply import Session, apply_plans
    from deltaproto.execution.prepare import Context
    from deltaproto.execution.result import NullObserver
    from deltaproto.execution.runner import StatementRunner
    from deltaproto.execution.waits import WaitLimits
    from deltaproto.policy.evaluate import Checker
    from deltaproto.policy.local_catalog import site_catalogue, site_policy
    from deltaproto.redaction import Redactor

    folder = os.fspath(journal)
    spark = spark_settings(spark_remote, spark_conf, storage_options)
    rules = None if policy is None else site_policy(os.fspath(policy))
    context = Context(
        dict(storage_options),
        spark,
        folder=lambda _: folder,
        policy=rules,
        checker=None
        if rules is None
        else Checker(rules, site_catalogue(words(catalogue, "catalogue"), rules)),
        allow_irreversible=allow_irreversible,
        outside_window=outside_window,
    )
    planned = _from_file(plan if isinstance(plan, str | os.PathLike) else _kept(plan, folder))
    session = Session(
        context,
        lambda: StatementRunner.started(spark.reaching(planned.plan.location)),
        audit=lambda _: os.path.join(folder, AUDIT),
        redact=Redactor(storage_options, spark.conf, spark.hadoop),
        observer=NullObserver(),
        limits=WaitLimits(retries, wait),
        dry_run=dry_run,
    )
    (applied,) = apply_plans([planned], session, lambda _: None, ask_all_first=False)
    return applied


def _kept(plan: Plan, folder: str) -> str:
    """The file that holds a plan: one made earlier counts its waits from when it was made."""
    from deltaproto.planning.checksum import plan_id
    from deltaproto.render.save_plan import keep_plan

    path = os.path.join(folder, f"{plan_id(plan)}.json")
    if not os.path.exists(path):
        keep_plan(plan, path)
    return path


def _from_file(path: str | os.PathLike[str]) -> LoadedPlan:
    from deltaproto.execution.plan_file import LoadedPlan, read_plans

    found = read_plans(os.fspath(path))
    if len(found) != 1 or not isinstance(found[0], LoadedPlan):
        raise UsageError(f"{os.fspath(path)} holds not one plan", "apply one plan at a time")
    return found[0]
