"""Whether what a step did is what the plan said. Pure.

A drop that deletes history may succeed in its first call, where no history is left that shows the
feature, and may have to wait again in its second: Delta decides that by times which a plan cannot
know. All else must be as predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from deltaproto.execution.answer import LATER, NOT_PRESENT, Answer
from deltaproto.execution.resume import without
from deltaproto.planning.plan import Step
from deltaproto.protocol.protocol import Protocol


class Verdict(StrEnum):
    """What to make of a step."""

    AS_PREDICTED = "as-predicted"
    EARLY = "early"
    """the first of two calls was enough"""
    NOT_NEEDED = "not-needed"
    WAIT = "wait"
    """the engine wants more history to grow old first"""
    CONFLICT = "conflict"
    """a concurrent transaction won"""
    LOST = "lost"
    """the engine is gone"""
    REFUSED = "refused"
    UNEXPECTED = "unexpected"
    """it was done, and the table is not as predicted"""


class Judged(NamedTuple):
    """A verdict, in words."""

    verdict: Verdict
    message: str = ""
    remarks: tuple[str, ...] = ()
    """differences that do no harm"""


def judge(
    step: Step,
    answer: Answer,
    operations: Sequence[str],
    now: Protocol,
    early: frozenset[str],
    *,
    resumed: bool = False,
) -> Judged:
    """What became of a step.

    Args:
        operations: of the commits that the step made.
        now: the table's protocol afterwards.
        early: features that went earlier than planned.
        resumed: an earlier run has made commits of the step already.
    """
    if answer.lost:
        return Judged(Verdict.LOST, answer.message)
    if answer.conflict:
        return Judged(Verdict.CONFLICT, answer.message)
    if step.optional and answer.error == NOT_PRESENT and step.feature in early:
        return Judged(Verdict.NOT_NEEDED, f"{step.feature} went in the first call")
    wanted = without(step.protocol_after, early)
    feature = step.feature or ""
    if step.expects in LATER and answer.error is None and feature in wanted.supported:
        sooner = without(wanted, frozenset({feature}))
        if now == sooner:
            return Judged(Verdict.EARLY, f"{feature} went at once: no history shows it")
        wanted = sooner
    elif answer.error in LATER and step.expects not in LATER:
        return Judged(Verdict.WAIT, answer.message)
    elif not _fits(step.expects, answer.error):
        said = "it succeeded" if answer.error is None else answer.message
        return Judged(Verdict.REFUSED, said)
    if now != wanted:
        return Judged(Verdict.UNEXPECTED, _difference(wanted, now))
    if step.commits[0] and not operations and not resumed:
        predicted = ", ".join(step.operations)
        said = f"no commit of {step.id} is in the table; predicted: {predicted}"
        return Judged(Verdict.UNEXPECTED, said)
    return Judged(Verdict.AS_PREDICTED, remarks=tuple(_remarks(step, operations)))


def _fits(expected: str | None, error: str | None) -> bool:
    # Delta can lose count of deletion vectors, and then names another reason to wait.
    return error == expected or (expected in LATER and error in LATER)


def _remarks(step: Step, operations: Sequence[str]) -> list[str]:
    least, most = step.commits
    if least <= len(operations) <= most:
        return []
    made = ", ".join(operations) or "none"
    return [f"commits: {made}; {least} to {most} were predicted"]


def _difference(wanted: Protocol, now: Protocol) -> str:
    more = sorted(now.supported - wanted.supported)
    less = sorted(wanted.supported - now.supported)
    parts = [f"{', '.join(more)} should not be there"] if more else []
    parts += [f"{', '.join(less)} should be there"] if less else []
    told = "; ".join(parts) or "the same features"
    return f"{told}: the protocol is {now} and should be {wanted}"
