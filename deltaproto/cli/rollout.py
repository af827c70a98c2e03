"""`deltaproto rollout`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from deltaproto.cli import options
from deltaproto.cli.declare import Argument, Command, Option, Panel
from deltaproto.cli.plan_io import AUDIT, JOURNAL, default_journal_dir
from deltaproto.errors import ExitCode, UsageError
from deltaproto.execution.rollout_file import Rollout, load_rollout
from deltaproto.execution.rollout_log import RolloutLog
from deltaproto.execution.run_log import AUDIT_FILE
from deltaproto.identity import current_actor
from deltaproto.redaction import Redactor
from deltaproto.render.terminal import single_line

_EXAMPLE = "for example: deltaproto rollout pause plans"


class _Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    ABORT = "abort"
    SKIP = "skip"


_EFFECTS = {
    _Action.PAUSE: "paused: no other table is started",
    _Action.RESUME: "resumed: apply continues, and tries failed tables again",
    _Action.ABORT: "aborted: running statements finish, and no other one is sent",
}


def run(values: Mapping[str, Any]) -> int:
    """Record one decision about a rollout. `apply` follows it, also while it runs."""
    words, reason = values["words"], (values["reason"] or "").strip()
    if not words or words[0] not in {*_Action}:
        given = f'"{words[0]}" is not an action' if words else "no action"
        raise UsageError(given, f"actions are {', '.join(_Action)}; {_EXAMPLE}")
    action = _Action(words[0])
    if len(words) != (3 if action is _Action.SKIP else 2):
        wanted = "a folder of plans and a table" if action is _Action.SKIP else "a folder of plans"
        raise UsageError(f"rollout {action} takes {wanted}", "run deltaproto rollout --help")
    if action is _Action.SKIP and not reason:
        raise UsageError("rollout skip needs a reason", "pass --reason TEXT")
    rollout = load_rollout(words[1])
    plan = _find_plan(rollout, words[2]) if action is _Action.SKIP else ""
    folder = values["journal"] or default_journal_dir(rollout.path)
    log = RolloutLog(
        rollout, folder, values["audit"] or os.path.join(folder, AUDIT_FILE), Redactor()
    )
    decisions = log.decisions()
    if decisions.aborted is not None:
        raise UsageError("the rollout was aborted", "plan again into a new folder")
    if action is _Action.RESUME and decisions.paused is None and not decisions.failed:
        print("the rollout is not paused, and no table failed")
        return int(ExitCode.OK)
    shown = f"by {current_actor().actor}{': ' + reason if reason else ''}"
    log.decide(action, time.time(), name=plan, reason=reason, shown=shown)
    print(_EFFECTS.get(action) or single_line(f"{words[2]} is skipped: {reason}"))
    return int(ExitCode.OK)


def _find_plan(rollout: Rollout, name: str) -> str:
    """Return the id of a table's plan. The table is named as in the plan, or by its last part.

    Raises:
        UsageError: when no table has this name, or several have.
    """
    found = [
        each.plan_id
        for each in rollout.tables
        if name in (each.table, each.location, each.plan_id, each.file)
    ] or [
        each.plan_id
        for each in rollout.tables
        if each.location.rstrip("/").rpartition("/")[2] == name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} tables are called {name}", "name one as `status` does")
    raise UsageError(f"{name} is not in {rollout.path}", "name a table as `status` does")


COMMAND = Command(
    "rollout",
    "Pause, resume or abort the rollout of a folder of plans, or exclude a table from it.",
    run,
    Argument(
        "words",
        "ACTION PLANS [TABLE]",
        "The word pause, resume, abort or skip, the folder of plans, and the table to skip.",
        many=True,
    ),
    (
        Option(
            ("--reason",),
            "Save this reason with the decision. Required to skip a table.",
            str,
            metavar="TEXT",
            panel=Panel.GOAL,
        ),
        JOURNAL,
        AUDIT,
        options.CONFIG,
        options.DEBUG,
    ),
    examples=(
        'rollout pause waves --reason "incident 4711"',
        'rollout skip waves orders --reason "is dropped next week"',
    ),
    exits=(ExitCode.OK, ExitCode.USAGE),
)
