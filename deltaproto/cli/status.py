"""`deltaproto status`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command
from deltaproto.cli.plan_io import (
    DETAILED_EXITCODE,
    JOURNAL,
    journal_folder,
    load_and_report_plans,
    refuse_output_among_plans,
)
from deltaproto.cli.progress import warn
from deltaproto.errors import ExitCode
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.rollout_file import load_rollout
from deltaproto.execution.rollout_log import RolloutLog
from deltaproto.execution.rollout_state import match_plans, read_progress
from deltaproto.policy.local_catalog import load_local_policy
from deltaproto.render.rollout import StatusFormat, write_status


def run(values: Mapping[str, Any]) -> int:
    """Render the progress of a rollout. Changes nothing."""
    folder = values["folder"]
    rollout = load_rollout(folder)
    plans, codes = load_and_report_plans([folder])
    storage = options.storage_options(values)
    spark = options.spark_settings(values).reaching(*(each.plan.location for each in plans))
    refuse_output_among_plans(values["output"], [folder])
    options.refuse_overwrite(values["output"], (values["policy"],))
    context = ApplyContext(
        storage,
        spark,
        journal_folder(values),
        policy=load_local_policy(values["policy"]) if values["policy"] else None,
    )
    if rollout.windows and context.policy is None:
        warn("the policy has maintenance windows: pass --policy FILE to see which tables wait")
    log = RolloutLog(rollout, context.folder(rollout.path))
    progress = read_progress(log, match_plans(log, plans), context, time.time())
    with options.open_output(values["output"]) as file:
        whole = progress.complete and ExitCode.UNREADABLE not in codes
        color = not values["no_color"]
        write_status(progress, values["format"], file, complete=whole, color=color)
    code = progress.code
    if code is ExitCode.CHANGES and not values["detailed_exitcode"]:
        code = ExitCode.OK
    return int(ExitCode.worst({*codes, code}))


COMMAND = Command(
    "status",
    "Show the progress of the rollout of a folder of plans: each wave, what it waits for, and what "
    "failed.",
    run,
    Argument("folder", "PLANS", "Folder of plans with a rollout, from `plan --out`."),
    (
        options.POLICY._replace(help="Also show when its maintenance windows open."),
        JOURNAL,
        DETAILED_EXITCODE,
        options.FORMAT._replace(type=StatusFormat, default=StatusFormat.TEXT),
        options.OUTPUT,
        *options.READING,
    ),
    examples=(
        "status waves",
        "status waves --format json --policy policy.yaml",
    ),
    more_exits=(ExitCode.FINDINGS, ExitCode.UNREADABLE, ExitCode.CHANGES),
)
