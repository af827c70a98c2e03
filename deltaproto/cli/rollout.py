"""`deltaproto rollout`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from deltaproto.cli import completion, options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.plan_io import AUDIT, JOURNAL, YES, journal_folder, type_name
from deltaproto.cli.progress import warn
from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.rollout_file import load_rollout
from deltaproto.execution.rollout_log import RolloutAction, RolloutLog
from deltaproto.execution.run_log import AUDIT_FILE
from deltaproto.render.terminal import single_line

_EXAMPLE = "for example: deltaproto rollout pause plans"


_EFFECTS = {
    RolloutAction.PAUSE: "paused: no more tables are started",
    RolloutAction.RESUME: "resumed: apply continues, and tries failed tables again",
    RolloutAction.ABORT: "aborted: running statements finish, and no more are sent",
}


def run(values: Mapping[str, Any]) -> int:
    """Record one decision about a rollout. `apply` follows it, also while it runs."""
    words, reason = values["words"], (values["reason"] or "").strip()
    if not words or words[0] not in {*RolloutAction}:
        given = f'"{words[0]}" is not an action' if words else "no action"
        raise UsageError(given, f"actions are {', '.join(RolloutAction)}; {_EXAMPLE}")
    action = RolloutAction(words[0])
    if len(words) != (3 if action is RolloutAction.SKIP else 2):
        wanted = (
            "a folder of plans and a table" if action is RolloutAction.SKIP else "a folder of plans"
        )
        raise UsageError(f"rollout {action} takes {wanted}", "run deltaproto rollout --help")
    rollout = load_rollout(words[1])
    folder = journal_folder(values)(rollout.path)
    audit = values["audit"] or os.path.join(folder, AUDIT_FILE)
    log = RolloutLog(rollout, folder, audit)
    if action is RolloutAction.ABORT and not values["yes"] and log.decisions().aborted is None:
        _confirm_abort(os.path.dirname(os.path.abspath(rollout.path)))
    unchanged = log.record(action, time.time(), table=words[-1], reason=reason)
    effect = _EFFECTS.get(action) or f"{words[2]} is skipped: {reason}"
    print(single_line(unchanged or effect))
    return int(ExitCode.OK)


def _confirm_abort(folder: str) -> None:
    """Ask for the name of the folder of plans; without a terminal, only warn.

    Raises:
        UsageError: when another text was typed.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        # Scripts from before --yes must be able to stop a rollout.
        warn(
            "an aborted rollout cannot be resumed; pass --yes to confirm: "
            "a later release will require it in scripts"
        )
    elif not type_name(folder, "abort this rollout, which cannot be reverted"):
        raise UsageError(
            "the rollout was not aborted: it was not confirmed",
            "type the name of the folder of plans, or pass --yes",
        )


COMMAND = Command(
    "rollout",
    "Pause, resume or abort the rollout of a folder of plans, or exclude a table from it.",
    run,
    Argument(
        "words",
        "ACTION PLANS [TABLE]",
        "The word pause, resume, abort or skip, the folder of plans, and the table to skip.",
        many=True,
        words=completion.rollout_actions,
    ),
    (
        Option(
            ("--reason",),
            "Save this reason with the decision. Required to skip a table.",
            metavar="TEXT",
            panel=Panel.GOAL,
        ),
        YES._replace(help="Do not ask before aborting."),
        JOURNAL,
        AUDIT,
        options.CONFIG,
        options.DEBUG,
    ),
    examples=(
        'rollout pause waves --reason "incident 4711"',
        'rollout skip waves orders --reason "is dropped next week"',
    ),
    more_exits=(),
)
