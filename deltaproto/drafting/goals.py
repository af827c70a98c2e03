"""Goals that name clients, for every table the clients that use it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from deltaproto.checking.site import DEFAULT_ACCESS
from deltaproto.clients.capability import Access
from deltaproto.planning.asked import Upgrade
from deltaproto.planning.downgrade import Downgrade, plan_downgrade
from deltaproto.planning.given import Given
from deltaproto.planning.goal import Use
from deltaproto.planning.plan import Alternative, Plan
from deltaproto.planning.upgrade import plan_upgrade

Planner = Callable[[Given], Plan]
_READING = "enough where the clients only read: plan with --access read"


def upgrading(asked: Upgrade, keep: Collection[str] = ()) -> Planner:
    """Plans an upgrade after which the clients that `keep` names can do what they could."""

    def planner(given: Given) -> Plan:
        kept = [each for each in given.clients if str(each.candidate.reference) in keep]
        return plan_upgrade(given, asked._replace(keep=tuple(kept)))

    return planner


def downgrading(asked: Downgrade) -> Planner:
    """Plans a downgrade whose goal names no client."""
    return lambda given: plan_downgrade(given, asked)


def letting_in(
    asked: Downgrade, watched: Collection[str] = (), assumed: Collection[str] = ()
) -> Planner:
    """Plans a downgrade after which every client of a table can do what it is named with.

    Args:
        watched: those of whom only the effect is told.
        assumed: those of whom nobody said what they do. What would do for reading alone, where that
            is cheaper, is an alternative.
    """

    def planner(given: Given) -> Plan:
        wanted = [c for c in given.clients if str(c.candidate.reference) not in watched]
        uses = tuple(Use(each.candidate, each.access or DEFAULT_ACCESS) for each in wanted)
        plan = plan_downgrade(given, asked._replace(clients=uses))
        if not (plan.steps or plan.blocked):
            return plan
        only = tuple(
            _reading(use) if str(use.candidate.reference) in assumed else use for use in uses
        )
        if only == uses:
            return plan
        less = plan_downgrade(given, asked._replace(clients=only))
        if less.blocked or not less.steps or not (plan.blocked or less.cost < plan.cost):
            return plan
        other = Alternative("reading", _READING, False, less.protocol_after, less.cost, less.steps)
        return plan._replace(alternatives=(other, *plan.alternatives))

    return planner


def _reading(use: Use) -> Use:
    return use._replace(access=(Access.READ,)) if Access.READ in use.access else use
