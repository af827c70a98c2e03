"""Where a plan stands, told from the table itself. Pure: no log, no clock.

Each commit of a plan carries its mark, so that what was done is found even where a crash came
between the engine's commit and our journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deltaproto.drafting.live import digest
from deltaproto.execution.sight import Point, Sight
from deltaproto.planning.plan import Plan, Step
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.commits import Commit
from deltaproto.tables.log.mark import mark_of

_DROPPED = "DROP FEATURE"


class Foreign(NamedTuple):
    """A commit of somebody else that changed what the plan depends on."""

    commit: Commit
    what: str
    """`the protocol`, or `schema or properties`"""


class Standing(NamedTuple):
    """How far a plan has come."""

    done: int
    """so many steps, from the first on, are finished"""
    early: frozenset[str]
    """features that went in the first of two calls, so that the rest of the two is not needed"""
    own: Mapping[str, tuple[Commit, ...]]
    """the commits of each step since the point"""
    point: Point
    """the table as the plan's own commits, and harmless ones of others, left it"""
    foreign: Foreign | None
    partial: bool = False
    """the next step has made commits already, and was cut off"""

    @property
    def started(self) -> bool:
        """Whether some of the plan is done, a step that was cut off included."""
        return self.done > 0 or bool(self.own)


def standing(
    plan_id: str, plan: Plan, done: int, early: frozenset[str], sight: Sight, start: Point
) -> Standing:
    """Where the plan stands, from `start` on, where `done` steps were finished.

    `sight` holds the commits after `start`.
    """
    own: dict[str, list[Commit]] = {}
    protocol, metadata = start.protocol, start.metadata
    foreign: Foreign | None = None
    for commit in sight.commits:
        mark = mark_of(commit)
        ours = mark is not None and mark.plan == plan_id
        new = commit.protocol if commit.protocol is not None else protocol
        seen = metadata if commit.metadata is None else digest(commit.metadata)
        if ours:
            assert mark is not None
            own.setdefault(mark.step, []).append(commit)
        elif new != protocol:
            foreign = foreign or Foreign(commit, "the protocol")
        elif metadata is not None and seen != metadata:
            foreign = foreign or Foreign(commit, "schema or properties")
        protocol, metadata = new, seen
    if foreign is None:
        foreign = _unseen(sight.now, protocol, metadata)
    for number, step in enumerate(plan.steps[done:], done):
        mine = own.get(step.id, [])
        later = any(each.id in own for each in plan.steps[number + 1 :])
        finished = bool(mine) and is_finished(step, mine, early, protocol)
        if gone_early(step, mine, protocol):
            early |= {step.feature or ""}
        elif not (finished or later):
            break
        done = number + 1
    return Standing(
        done,
        early,
        {name: tuple(each) for name, each in own.items()},
        sight.now,
        foreign,
        partial=done < len(plan.steps) and plan.steps[done].id in own,
    )


def _unseen(now: Point, protocol: Protocol, metadata: str | None) -> Foreign | None:
    """A change that no commit shows which is left: log files of before it may have been deleted."""
    commit = Commit(now.version, {}, None, None)
    if now.protocol != protocol:
        return Foreign(commit, "the protocol")
    if metadata is not None and now.metadata != metadata:
        return Foreign(commit, "schema or properties")
    return None


def is_finished(
    step: Step, own: Sequence[Commit], early: frozenset[str], protocol: Protocol
) -> bool:
    """Whether these commits are all that the step makes.

    The last operation that a statement makes is made last; a statement that was cut off lacks it.
    """
    if not step.operations or not own:
        return False
    if own[-1].operation != step.operations[-1]:
        return False
    return protocol == without(step.protocol_after, early)


def gone_early(step: Step, own: Sequence[Commit], protocol: Protocol) -> bool:
    """Whether the first of two calls to drop a feature was enough."""
    return (
        step.expects is not None
        and step.feature is not None
        and step.feature not in protocol.supported
        and any(commit.operation == _DROPPED for commit in own)
    )


def without(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The protocol that is predicted where these went earlier."""
    for feature in features & protocol.supported:
        protocol = protocol.without_feature(feature)
    return protocol
