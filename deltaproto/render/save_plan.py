"""Saved plan files, so that a run after a crash resumes exactly the same plan."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from deltaproto.errors import UsageError
from deltaproto.planning.plan import Plan
from deltaproto.render.interface import dump_json, envelope
from deltaproto.render.plan_json import plan_fields


def save_plan_file(plan: Plan, path: str) -> None:
    """Write a plan atomically, in the format of the planning commands; waits count from now.

    Raises:
        UsageError: if it cannot be written.
    """
    fields = plan_fields(plan, time.time())
    text = dump_json(envelope(plan.command, fields, complete=plan.complete)) + "\n"
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        try:
            with open(aside, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(aside, path)
        except OSError:
            with suppress(OSError):
                os.remove(aside)
            raise
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}",
            "choose another folder for the journal; nothing was changed",
        ) from None
