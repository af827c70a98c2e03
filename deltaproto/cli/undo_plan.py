"""The plan of `apply --undo`: created once, kept with the journals, and reused to resume."""

from __future__ import annotations

import os
import tempfile

from deltaproto.cli.progress import warn
from deltaproto.errors import UsageError
from deltaproto.execution.append_log import UNDO_SUFFIX
from deltaproto.execution.goal_limits import find_unrelated_undo
from deltaproto.execution.journal import journal_path
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.prepare import ApplyContext
from deltaproto.execution.undo import plan_undo
from deltaproto.planning.plan import Plan
from deltaproto.render.save_plan import save_plan_file


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
    begun = _load_undo_plan(path) if os.path.exists(path) else None
    if begun is None or not journal_path(folder, begun.id).exists():
        begun = _save_undo_plan(plan_undo(planned, context), path, keep=keep)
    if (why := find_unrelated_undo(begun.plan, planned.plan, planned.id)) is not None:
        raise UsageError(
            f"{path} contradicts the plan to undo: {why}",
            "move it away: it is then created again",
        )
    for text in begun.plan.warnings:
        warn(text)
    return begun._replace(undoes=planned)


def _save_undo_plan(plan: Plan, path: str, *, keep: bool) -> LoadedPlan:
    if not keep:
        with tempfile.TemporaryDirectory() as scratch:
            return _save_undo_plan(plan, os.path.join(scratch, os.path.basename(path)), keep=True)
    save_plan_file(plan, path)
    return _load_undo_plan(path)


def _load_undo_plan(path: str) -> LoadedPlan:
    (found,) = (each for each in read_plans(path) if isinstance(each, LoadedPlan))
    return found
