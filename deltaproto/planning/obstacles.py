"""What keeps a goal from being reached, feature by feature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deltaproto.clients.capability import Access
from deltaproto.clients.judgement import Verdict
from deltaproto.planning.candidates import Candidates
from deltaproto.planning.compatibility import READ_COPY
from deltaproto.planning.given import Given
from deltaproto.planning.goal import AtMost, Ending, Goal, Usable, needs_after
from deltaproto.planning.impact import impact
from deltaproto.planning.plan import Blocked
from deltaproto.protocol import catalogue
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION

UNREACHED = Blocked(
    None,
    "no change that can be made to this table reaches the goal as a whole",
    "see the nearest protocol that can be reached, or ask for less",
)
"""where no single feature or client is to blame"""


def strange(given: Given, names: Iterable[str]) -> Iterator[Blocked]:
    """Names that nobody knows, and that the table does not have."""
    for name in names:
        if catalogue.find(name) is None and name not in given.table.protocol.supported:
            yield Blocked(
                name,
                "nobody knows it, and the table does not have it",
                "see `deltaproto features`",
                "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            )


def obstacles(given: Given, goal: Goal, ending: Ending, can: Candidates) -> Iterator[Blocked]:
    """What keeps the goal from being reached, feature by feature."""
    stuck = can.stuck
    objections = sorted(goal.objections(ending))
    for name in objections:
        if name in stuck:
            yield Blocked(*stuck[name])
        elif name == CHECKPOINT_PROTECTION:
            yield Blocked(
                name,
                "fast drops leave it, and its removal truncates the history, which is to be kept",
                "--history truncate",
            )
    if isinstance(goal, Usable):
        after = needs_after(given.needs, ending)
        for change in impact(given.clients, given.needs, after):
            if change.after is not Verdict.OK and not set(change.because) & set(objections) & {
                *stuck
            }:
                yield Blocked(
                    None,
                    f"{change.client}, {change.access}: {change.reason}",
                    _remedy(change.access),
                )
    elif isinstance(goal, AtMost) and not objections:
        yield Blocked(
            None,
            f"the features {', '.join(sorted(ending.protocol.supported))} fit no legacy pair "
            f"as low as ({goal.reader},{goal.writer})",
            "see the nearest protocol that can be reached",
        )


def _remedy(access: Access) -> str:
    remedy = "upgrade the client, or leave it out"
    return f"{remedy}; {READ_COPY}" if access is Access.READ else remedy
