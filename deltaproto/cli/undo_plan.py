"""The plan of `apply --undo`: made once, kept beside the journals, and taken up again."""

from __future__ import annotations

import os
import tempfile

from deltaproto.cli.progress import warn
from deltaproto.execution.append_log import WAY_BACK
from deltaproto.execution.journal import journal_path
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.prepare import Context
from deltaproto.execution.undo import undo
from deltaproto.planning.plan import Plan
from deltaproto.render.save_plan import keep_plan


def way_back(planned: LoadedPlan, context: Context, *, keep: bool) -> LoadedPlan:
    """The plan that takes another back; the one that was made before, where that was begun.

    Without `keep` nothing is left on disk.

    Raises:
        StalePlan: when somebody has changed the table since.
        TableError: when the table cannot be read.
        UsageError: when there is no room for the plan.
    """
    folder = context.folder(planned.path)
    path = os.path.join(folder, f"{planned.id}{WAY_BACK}")
    begun = _read(path) if os.path.exists(path) else None
    if begun is None or not journal_path(folder, begun.id).exists():
        begun = _made(undo(planned, context), path, keep=keep)
    for text in begun.plan.warnings:
        warn(text)
    return begun


def _made(plan: Plan, path: str, *, keep: bool) -> LoadedPlan:
    if not keep:
        with tempfile.TemporaryDirectory() as scratch:
            return _made(plan, os.path.join(scratch, os.path.basename(path)), keep=True)
    keep_plan(plan, path)
    return _read(path)


def _read(path: str) -> LoadedPlan:
    (found,) = (each for each in read_plans(path) if isinstance(each, LoadedPlan))
    return found
