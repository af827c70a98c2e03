"""`deltaproto apply`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Command, Option, Panel, switch
from deltaproto.cli.plan_io import (
    AUDIT,
    DETAILED_EXITCODE,
    FORMAT,
    JOURNAL,
    PLANS,
    SCRATCH,
    YES,
    journal_folder,
    load_and_report_plans,
    open_plan_output,
    refuse_output_among_plans,
    type_name,
)
from deltaproto.cli.progress import warn
from deltaproto.cli.signals import resume_hint
from deltaproto.errors import ExitCode, TableError, UsageError
from deltaproto.execution.apply import apply_plans, preparation_failure
from deltaproto.execution.goal_limits import find_unrelated_undo
from deltaproto.execution.hooks import Hooks, open_hooks
from deltaproto.execution.plan_executor import ApplySession
from deltaproto.execution.plan_file import LoadedPlan, read_plan
from deltaproto.execution.prepare import ApplyContext, PreparedPlan, load_context
from deltaproto.execution.prepare_copy import parse_losses
from deltaproto.execution.result import ApplyResult
from deltaproto.execution.rollout import RolloutRun
from deltaproto.execution.rollout_file import (
    Rollout,
    find_bypassed_rollouts,
    find_rollout,
    require_policy,
)
from deltaproto.execution.run_log import AUDIT_FILE, UNDO_SUFFIX, journal_path
from deltaproto.execution.runner import lazy_runner
from deltaproto.execution.undo import StalePlanError, plan_undo
from deltaproto.execution.waits import WaitLimits
from deltaproto.planning.plan import Plan
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.redaction import Redactor
from deltaproto.render.plan_json import save_plan_file
from deltaproto.render.rollout import rollout_fields, rollout_section


def load_or_create_undo_plan(
    planned: LoadedPlan, context: ApplyContext, *, keep: bool
) -> LoadedPlan:
    """Return the undo plan; reuses a previously generated one if it was already started.

    Without `keep`, nothing is written to disk.

    Raises:
        StalePlanError: when another writer has changed the table since.
        TableError: when the table cannot be read.
        UsageError: when the plan cannot be saved because the disk is full.
    """
    folder = context.folder(planned.path)
    path = os.path.join(folder, f"{planned.id}{UNDO_SUFFIX}")
    saved = read_plan(path) if os.path.exists(path) else None
    if saved is None or not journal_path(folder, saved.id).exists():
        saved = _save_undo_plan(plan_undo(planned, context), path, keep=keep)
    if (why := find_unrelated_undo(saved.plan, planned.plan, planned.id)) is not None:
        raise UsageError(
            f"{path} contradicts the plan to undo: {why}",
            "move it away: it is then created again",
        )
    for text in saved.plan.warnings:
        warn(text)
    return saved._replace(undoes=planned)


def _save_undo_plan(plan: Plan, path: str, *, keep: bool) -> LoadedPlan:
    if not keep:
        with tempfile.TemporaryDirectory() as scratch:
            return _save_undo_plan(plan, os.path.join(scratch, os.path.basename(path)), keep=True)
    save_plan_file(plan, path)
    return read_plan(path)


_MAX_RETRIES = 1000
_MAX_PARALLEL = 64
_RESUME_HINT = "committed steps are kept and recorded; run the same command again to resume"


def run(values: Mapping[str, Any]) -> int:
    """Execute every plan, render each result, and return the worst exit code."""
    plans, codes = load_and_report_plans(values["plans"], allow_empty=values["allow_empty"])
    rollout = None if values["undo"] else _find_rollout(values)
    hooks = _open_hooks(values["hooks"], rollout)
    _check_values(values, rollout)
    storage = options.storage_options(values)
    spark = options.spark_settings(values).reaching(*(each.plan.location for each in plans))
    redact = Redactor(storage, spark.conf)
    context = _build_context(values, storage, spark)
    refuse_output_among_plans(values["output"], values["plans"])
    read = (values["policy"], values["audit"], *values["client_file"])
    options.refuse_overwrite(values["output"], read)
    whole = ExitCode.UNREADABLE not in codes
    with open_plan_output("apply", values, redact, many=len(plans) > 1, complete=whole) as to:
        session = ApplySession(
            context,
            lazy_runner(spark),
            audit=lambda path: values["audit"] or os.path.join(context.folder(path), AUDIT_FILE),
            redact=redact,
            observer=to.display,
            limits=WaitLimits(values["retries"], values["wait"]),
            dry_run=values["dry_run"],
            parallel=values["parallel"] or (1 if rollout is None else rollout.parallel),
            interrupted=to.result,
        )
        asks = not (values["yes"] or values["dry_run"])

        def confirm(prepared: PreparedPlan) -> str | None:
            to.text.warned(prepared)
            if not asks or prepared.refused is not None or not prepared.left:
                return None
            return _confirm_table_name(prepared.planned.plan.table)

        ready, refused = _choose_plans(plans, context, values)
        to.report.expect([*(each.planned.id for each in refused), *(each.id for each in ready)])
        waves = rollout and _build_run(rollout, plans, session, hooks, values)
        with (
            resume_hint(None if values["dry_run"] else _RESUME_HINT),
            # Without closing it, an interruption while one result is shown would let other plans
            # continue.
            closing(
                apply_plans(ready, session, confirm, ask_all_first=asks)
                if waves is None
                else waves.apply(confirm, ask_all_first=asks)
            ) as results,
        ):
            for applied in chain(refused, results):
                # Only the end of a rollout shows whether it has pending steps.
                if waves is None or applied.code is not ExitCode.CHANGES:
                    codes.add(applied.code)
                to.result(applied)
        if waves is not None:
            progress = waves.progress()
            codes.add(progress.code)
            to.report.rollout, to.text.closing = rollout_fields(progress), rollout_section(progress)
        options.print_policy_notices(context.checker, in_waves=rollout is not None)
    codes.add(to.output.code)
    if not values["detailed_exitcode"]:
        codes = {ExitCode.OK if code is ExitCode.CHANGES else code for code in codes}
    return int(ExitCode.worst(codes))


def _find_rollout(values: Mapping[str, Any]) -> Rollout | None:
    """Return the rollout of the arguments, if any; warn about those that do not apply.

    Raises:
        UsageError: if a rollout is damaged, or needs a policy to know its maintenance windows.
    """
    for folder in find_bypassed_rollouts(values["plans"]):
        warn(
            f"the rollout of {folder} does not apply to a plan that is passed alone: waves, pauses "
            f"and failures are ignored; pass {folder} to follow them"
        )
    rollout = find_rollout(values["plans"])
    if rollout is not None and not (values["policy"] or values["outside_window"]):
        require_policy(
            rollout, hint="pass --policy FILE, or --outside-window to ignore maintenance windows"
        )
    return rollout


def _build_run(
    rollout: Rollout,
    plans: Sequence[LoadedPlan],
    session: ApplySession,
    hooks: Hooks | None,
    values: Mapping[str, Any],
) -> RolloutRun:
    return RolloutRun(
        rollout,
        plans,
        session,
        save_plan_file,
        hooks=hooks,
        client_files=values["client_file"],
        rehearse=rollout.rehearse and not values["skip_rehearsal"],
        scratch=values["scratch"],
    )


def _open_hooks(folder: str | None, rollout: Rollout | None) -> Hooks | None:
    if folder is None:
        return None
    if rollout is None:
        raise UsageError(
            "--hooks needs a folder of plans with a rollout",
            "plan with --out and a policy that has the section `rollout`",
        )
    return open_hooks(folder, rollout.hook_minutes * 60)


def _build_context(
    values: Mapping[str, Any], storage: Mapping[str, str], spark: SparkSettings
) -> ApplyContext:
    policy = load_local_policy(values["policy"]) if values["policy"] else None
    context = load_context(storage, spark, journal_folder(values), policy, values["client_file"])
    return context._replace(
        allow_irreversible=values["allow_irreversible"],
        outside_window=values["outside_window"],
        accepted_losses=parse_losses(values["accept_loss"]),
    )


def _check_values(values: Mapping[str, Any], rollout: Rollout | None) -> None:
    options.require_range(values["parallel"], "--parallel", _MAX_PARALLEL)
    options.require_range(values["retries"], "--retries", _MAX_RETRIES, 0)
    if (values["scratch"] or values["skip_rehearsal"]) and not (rollout and rollout.rehearse):
        raise UsageError(
            "no rehearsals are planned, so none can be changed or skipped",
            "plan with --out and a policy that has `rehearse: true` in its section `rollout`",
        )


def _choose_plans(
    plans: Sequence[LoadedPlan], context: ApplyContext, values: Mapping[str, Any]
) -> tuple[list[LoadedPlan], list[ApplyResult]]:
    """Return the plans to execute (with --undo: the undo plans), and results for the others."""
    if not values["undo"]:
        return list(plans), []
    ready: list[LoadedPlan] = []
    refused: list[ApplyResult] = []
    for planned in plans:
        try:
            ready.append(load_or_create_undo_plan(planned, context, keep=not values["dry_run"]))
        except (StalePlanError, TableError) as error:
            refused.append(preparation_failure(planned, error))
    return ready, refused


def _confirm_table_name(table: str) -> str | None:
    """Ask for the table's name. Return None if it was typed, else why execution is refused.

    Raises:
        UsageError: when standard input is not a terminal.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "cannot ask for confirmation: standard input is not a terminal",
            "pass --yes to execute without confirmation",
        )
    return None if type_name(table, "execute this plan") else "it was not confirmed"


COMMAND = Command(
    "apply",
    "Execute plans step by step. Each step is gated, verified and recorded; run the "
    "command again to resume.",
    run,
    PLANS,
    (
        YES,
        switch("--allow-irreversible", help="Also execute irreversible steps.", panel=Panel.SAFETY),
        Option(
            ("--accept-loss",),
            "Accept these losses of a copy into a new table, named as in the plan. Repeatable.",
            many=True,
            metavar="NAME,…",
            panel=Panel.SAFETY,
        ),
        switch(
            "--dry-run",
            help="Evaluate every gate and show what would happen. Change nothing.",
            panel=Panel.SAFETY,
        ),
        options.POLICY._replace(
            help="Refuse plans that block clients of this policy. Execute only in its maintenance "
            "windows."
        ),
        options.CLIENT_FILE,
        switch(
            "--outside-window",
            help="Execute even if no maintenance window is open.",
            panel=Panel.SAFETY,
        ),
        switch("--undo", help="Undo the finished steps, where possible.", panel=Panel.GOAL),
        switch("--wait", help="Keep running until waiting steps can continue.", panel=Panel.SAFETY),
        Option(
            ("--retries",),
            "Retry a step up to N times if a concurrent writer wins.",
            int,
            5,
            metavar="N",
            panel=Panel.SAFETY,
        ),
        Option(
            ("--parallel",),
            "Apply up to N plans at the same time. Default: 1, or the setting of the rollout.",
            int,
            metavar="N",
            panel=Panel.SAFETY,
        ),
        Option(
            ("--hooks",),
            "Run the programs in this folder before and after each table of a rollout.",
            metavar="DIR",
            panel=Panel.SAFETY,
        ),
        switch(
            "--skip-rehearsal",
            help="Skip the rehearsals that the policy requires for a rollout.",
            panel=Panel.SAFETY,
        ),
        SCRATCH,
        JOURNAL,
        AUDIT,
        DETAILED_EXITCODE,
        FORMAT,
        options.ALLOW_EMPTY,
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "apply plan.json --dry-run --policy policy.yaml",
        "apply plan.json --yes --wait",
    ),
    more_exits=(
        ExitCode.FINDINGS,
        ExitCode.UNREADABLE,
        ExitCode.STALE,
        ExitCode.FAILED,
        ExitCode.CHANGES,
    ),
)
