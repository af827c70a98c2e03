"""Execution of a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deltaproto.app.arguments import NONE, spark_settings, words
from deltaproto.errors import UsageError

if TYPE_CHECKING:
    from deltaproto.execution.plan_file import LoadedPlan
    from deltaproto.execution.result import ApplyResult
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
) -> ApplyResult:
    """Apply one plan through Spark, step by step, with checks before and after each step.

    Does not ask for confirmation: the call is the consent. Review the plan first, or `warning` of
    a dry run. Call it again to resume; finished steps are read from the table.

    Args:
        plan: a plan, or a file with one plan.
        journal: the folder for journal and audit log; a plan is saved there as JSON.
        dry_run: evaluate every gate, change nothing.
        allow_irreversible: also execute irreversible steps.
        policy: a YAML file: block the plan if a declared client would lose access, and enforce
            maintenance windows.
        wait: wait until waiting steps may continue, instead of returning.
        retries: how often to retry a step that lost a conflict.

    Returns:
        The result. Only `status` done and nothing-to-do (`code` 0) are a success.

    Raises:
        UsageError: for a file that is not a plan, was changed, or has several plans.
    """
    from deltaproto.execution.append_log import AUDIT_FILE
    from deltaproto.execution.apply import ApplySession, apply_plans
    from deltaproto.execution.prepare import ApplyContext
    from deltaproto.execution.result import NullObserver
    from deltaproto.execution.runner import StatementRunner
    from deltaproto.execution.waits import WaitLimits
    from deltaproto.policy.evaluate import Checker
    from deltaproto.policy.local_catalog import load_local_catalog, load_local_policy
    from deltaproto.redaction import Redactor

    folder = os.fspath(journal)
    spark = spark_settings(spark_remote, spark_conf, storage_options)
    rules = None if policy is None else load_local_policy(os.fspath(policy))
    catalog = load_local_catalog(words(catalogue, "catalogue"), rules)
    context = ApplyContext(
        dict(storage_options),
        spark,
        folder=lambda _: folder,
        policy=rules,
        checker=None if rules is None else Checker(rules, catalog),
        allow_irreversible=allow_irreversible,
        outside_window=outside_window,
        catalog=catalog,
    )
    planned = _from_file(plan if isinstance(plan, str | os.PathLike) else _kept(plan, folder))
    session = ApplySession(
        context,
        lambda: StatementRunner.started(spark.reaching(planned.plan.location)),
        audit=lambda _: os.path.join(folder, AUDIT_FILE),
        redact=Redactor(storage_options, spark.conf, spark.hadoop),
        observer=NullObserver(),
        limits=WaitLimits(retries, wait),
        dry_run=dry_run,
    )
    (applied,) = apply_plans([planned], session, lambda _: None, ask_all_first=False)
    return applied


def _kept(plan: Plan, folder: str) -> str:
    """Return the file of a plan; an existing file keeps the start times of its waits."""
    from deltaproto.planning.checksum import plan_id
    from deltaproto.render.save_plan import save_plan_file

    path = os.path.join(folder, f"{plan_id(plan)}.json")
    if not os.path.exists(path):
        save_plan_file(plan, path)
    return path


def _from_file(path: str | os.PathLike[str]) -> LoadedPlan:
    from deltaproto.execution.plan_file import LoadedPlan, read_plans

    found = read_plans(os.fspath(path))
    if len(found) != 1 or not isinstance(found[0], LoadedPlan):
        raise UsageError(f"{os.fspath(path)} is not a single plan", "apply one plan at a time")
    return found[0]
