"""Approvals: which losses of access they cover, and which not."""

from __future__ import annotations

import datetime

import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access
from deltaproto.policy.approvals import AccessLoss, Approvals, LossRuling
from deltaproto.policy.document import Policy, PolicyError, Position
from deltaproto.policy.document.model import Approval
from deltaproto.policy.document.patterns import TableNames

TODAY = datetime.date(2026, 11, 23)
TABLE = TableNames("gold/orders", "file:///lake/gold/orders")
GIVEN = Approval(
    client="trino@400",
    access=(Access.READ,),
    table="gold/**",
    feature="deletionVectors",
    goal=None,
    approver="Mary Moss",
    reason="dashboards move in May",
    ticket="OPS-12",
    expires=TODAY,
    position=Position(4, 3),
)
BY_GOAL = GIVEN._replace(feature=None, goal="Enable  deletionVectors")
LOSS = AccessLoss("trino@400", Access.READ, ("deletionVectors",), "enable deletionVectors")
PAIR = LOSS._replace(features=("deletionVectors", "columnMapping"))


def ruled(loss: AccessLoss, *approvals: Approval) -> LossRuling:
    policy = Policy("p.yaml", approvals=approvals)
    return Approvals(policy, ClientCatalog()).rule_on(TABLE, loss, TODAY)


@pytest.mark.parametrize(
    ("approvals", "loss"),
    [
        ([GIVEN], LOSS),
        ([GIVEN._replace(client="trino")], LOSS),
        ([GIVEN._replace(client="TRINO@v400")], LOSS),
        ([GIVEN._replace(access=(Access.APPEND, Access.READ))], LOSS),
        ([BY_GOAL], LOSS),
        ([BY_GOAL], LOSS._replace(features=())),
        ([GIVEN, GIVEN._replace(feature="columnMapping")], PAIR),
        ([GIVEN._replace(expires=datetime.date(2026, 1, 1)), GIVEN], LOSS),
    ],
)
def test_a_loss_is_approved(approvals: list[Approval], loss: AccessLoss) -> None:
    ruling = ruled(loss, *approvals)
    assert ruling.approved
    assert "is approved by Mary Moss, OPS-12, until 2026-11-23: dashboards move" in ruling.text


@pytest.mark.parametrize(
    ("approval", "loss", "why"),
    [
        (GIVEN._replace(expires=datetime.date(2026, 11, 22)), LOSS, "expired on 2026-11-22"),
        (GIVEN._replace(table="silver/**"), LOSS, 'is for tables that match "silver/**"'),
        (GIVEN, LOSS._replace(access=Access.APPEND), "covers read, not append"),
        (
            GIVEN._replace(feature="columnMapping"),
            LOSS,
            "is for columnMapping, but the loss is caused by deletionV",
        ),
        (
            GIVEN,
            LOSS._replace(features=()),
            "is for deletionVectors, but the loss is caused by no feature",
        ),
        (GIVEN, PAIR, "does not cover columnMapping"),
        (BY_GOAL._replace(goal="enable rowTracking"), LOSS, 'is for the goal "enable rowTracking"'),
        (BY_GOAL, LOSS._replace(goal=None), "is for a plan only"),
    ],
)
def test_an_approval_that_does_not_apply_is_named(
    approval: Approval, loss: AccessLoss, why: str
) -> None:
    ruling = ruled(loss, approval)
    assert not ruling.approved
    assert f"the approval by Mary Moss, OPS-12 (p.yaml:4:3) {why}" in ruling.text


@pytest.mark.parametrize("client", ["trino@401", "bigquery", "deltalake/pyarrow"])
def test_an_approval_of_another_client_is_not_near(client: str) -> None:
    ruling = ruled(LOSS, GIVEN._replace(client=client))
    assert (ruling.approved, ruling.near_misses) == (False, ())


def test_an_unknown_client_is_an_error_with_its_place() -> None:
    with pytest.raises(PolicyError, match=r"p\.yaml:4:3: .*nobody"):
        ruled(LOSS, GIVEN._replace(client="nobody@1"))


def test_every_unknown_client_is_told_at_once() -> None:
    one = GIVEN._replace(client="nobody@1")
    other = GIVEN._replace(client="someone", position=Position(9, 5))
    with pytest.raises(PolicyError) as caught:
        ruled(LOSS, one, GIVEN, other)
    assert "p.yaml:4:3: " in caught.value.message
    assert "; p.yaml:9:5: " in caught.value.message
    assert caught.value.hint == "fix all 2 errors"
    assert caught.value.position == one.position
