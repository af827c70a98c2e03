"""The check before each step: is the table as the last one left it? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from deltaproto.errors import ExitCode
from deltaproto.execution.gates import expected_before, named
from deltaproto.execution.resume import Standing
from deltaproto.planning.plan import Plan, Step
from deltaproto.policy.document.model import Window
from deltaproto.policy.document.openings import is_open, next_opening
from deltaproto.tables.log.commits import Commit
from deltaproto.tables.log.mark import mark_of

_AGAIN = "plan again: the rest follows from the table as it is now"


class Stop(NamedTuple):
    """Why the steps ended before the last."""

    code: ExitCode
    message: str
    hint: str
    earliest: float | None = None
    """when to go on, in seconds since the epoch; None: something has to be done first"""


def changed(plan: Plan, step: Step, stands: Standing, code: ExitCode) -> Stop | None:
    """Why the step must not be executed; `code` is that of a table that somebody changed."""
    if stands.foreign is not None:
        who = named(stands.foreign.commit)
        return Stop(code, f"before {step.id}, {stands.foreign.what} was changed: {who}", _AGAIN)
    expected = expected_before(plan, stands)
    if stands.point.protocol != expected and not stands.partial:
        said = (
            f"before {step.id} the protocol is {stands.point.protocol.in_words}, and should be "
            f"{expected.in_words}"
        )
        return Stop(code, said, _AGAIN)
    return None


def another_run(
    own: Iterable[Sequence[Commit]], run: str, since: int, code: ExitCode
) -> Stop | None:
    """Whether somebody else carries out the same plan: their commits come after ours began."""
    for commits in own:
        for commit in commits:
            mark = mark_of(commit)
            if mark is not None and mark.run != run and commit.version > since:
                said = f"another run carries out this plan: {named(commit)}"
                return Stop(code, said, "let it finish, then run the same command again")
    return None


def closed(windows: Sequence[Window] | None, now: float) -> Stop | None:
    """Whether the policy's maintenance windows are all closed; without windows none is needed."""
    moment = datetime.fromtimestamp(now, UTC)
    if windows is None or is_open(windows, moment):
        return None
    coming = next_opening(windows, moment)
    return Stop(
        ExitCode.CHANGES,
        "the maintenance window has closed",
        "run the same command again when it opens, or give --wait",
        None if coming is None else coming.timestamp(),
    )
