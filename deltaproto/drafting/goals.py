"""Goals that name clients, for every table the clients that use it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from deltaproto.checking.site import DEFAULT_ACCESS
from deltaproto.planning.asked import Upgrade
from deltaproto.planning.downgrade import Downgrade, plan_downgrade
from deltaproto.planning.given import Given
from deltaproto.planning.goal import Use
from deltaproto.planning.plan import Plan
from deltaproto.planning.upgrade import plan_upgrade

Planner = Callable[[Given], Plan]


def upgrading(asked: Upgrade, keep: Collection[str] = ()) -> Planner:
    """Plans an upgrade after which the clients that `keep` names can do what they could."""

    def planner(given: Given) -> Plan:
        kept = [each for each in given.clients if str(each.candidate.reference) in keep]
        return plan_upgrade(given, asked._replace(keep=tuple(kept)))

    return planner


def downgrading(asked: Downgrade) -> Planner:
    """Plans a downgrade whose goal names no client."""
    return lambda given: plan_downgrade(given, asked)


def letting_in(asked: Downgrade, watched: Collection[str] = ()) -> Planner:
    """Plans a downgrade after which every client of a table can do what it is named with.

    `watched` are those of whom only the effect is told.
    """

    def planner(given: Given) -> Plan:
        wanted = [c for c in given.clients if str(c.candidate.reference) not in watched]
        uses = tuple(Use(each.candidate, each.access or DEFAULT_ACCESS) for each in wanted)
        return plan_downgrade(given, asked._replace(clients=uses))

    return planner
