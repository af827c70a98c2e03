"""Planners: functions that plan for one table with known clients."""

from __future__ import annotations

from collections.abc import Callable, Collection

from deltaproto.clients.model import Access
from deltaproto.planning.converge import plan_target
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Alternative, ClientChange, Plan
from deltaproto.planning.request import PlanInput, UpgradeRequest
from deltaproto.planning.search.goals import TableClient
from deltaproto.planning.upgrade import plan_upgrade
from deltaproto.policy.local_catalog import DEFAULT_ACCESS

Planner = Callable[[PlanInput], Plan]
UNDECLARED = "seen, not declared"
"""label prefix of clients that were seen to use a table and are not declared"""
_READ_ONLY_HINT = "enough if the clients only read: plan with --access read"


def is_undeclared(client: TableClient | ClientChange) -> bool:
    """Return True if the client was seen to use the table, and is not declared."""
    return (client.label or "").startswith(UNDECLARED)


def upgrade_planner(request: UpgradeRequest, keep: Collection[str] = ()) -> Planner:
    """Return a planner for upgrades after which the `keep` clients retain their access."""

    def planner(inputs: PlanInput) -> Plan:
        kept = [each for each in inputs.clients if str(each.candidate.reference) in keep]
        return plan_upgrade(inputs, request._replace(keep=tuple(kept)))

    return planner


def target_planner(inputs: PlanInput) -> Plan:
    """Plan what the policy requires of the table, which `ClientScope.targeted` adds."""
    assert inputs.target is not None
    return plan_target(inputs, inputs.target)


def downgrade_planner(request: DowngradeRequest) -> Planner:
    """Return a planner for downgrades whose goal names no client."""
    return lambda given: plan_downgrade(given, request)


def client_downgrade_planner(
    request: DowngradeRequest, watched: Collection[str] = (), assumed: Collection[str] = ()
) -> Planner:
    """Return a planner for downgrades after which every client has its requested access.

    Args:
        watched: clients for which only the effect is reported.
        assumed: clients with default access. If a plan for read-only access is cheaper, it is
         added as an alternative.
    """

    def planner(inputs: PlanInput) -> Plan:
        wanted = [
            each
            for each in inputs.clients
            if str(each.candidate.reference) not in watched and not is_undeclared(each)
        ]
        uses = tuple(each._replace(access=each.access or DEFAULT_ACCESS) for each in wanted)
        plan = plan_downgrade(inputs, request._replace(clients=uses))
        if not (plan.steps or plan.blocked):
            return plan
        only = tuple(
            _read_only(use) if str(use.candidate.reference) in assumed else use for use in uses
        )
        if only == uses:
            return plan
        less = plan_downgrade(inputs, request._replace(clients=only))
        if less.blocked or not less.steps or not (plan.blocked or less.cost < plan.cost):
            return plan
        other = Alternative(
            "reading", _READ_ONLY_HINT, False, less.protocol_after, less.cost, less.steps
        )
        return plan._replace(alternatives=(other, *plan.alternatives))

    return planner


def _read_only(use: TableClient) -> TableClient:
    return use._replace(access=(Access.READ,)) if Access.READ in use.access else use
