"""What is predicted of a table's use, for the clients' sake."""

from __future__ import annotations

import pytest

from deltaproto.planning.impact import end_state_of
from deltaproto.planning.predict.table import Table
from deltaproto.protocol.protocol import Protocol


def test_shredding_that_is_off_may_have_left_shredded_files() -> None:
    protocol = Protocol.carrying({"variantShredding", "variantShredding-preview", "appendOnly"})
    ending = end_state_of(Table(protocol), Table(protocol))
    assert ending.off == {"appendOnly"}
    assert not ending.on


@pytest.mark.parametrize(
    ("feature", "seen"),
    [
        ("deletionVectors", "vectors"),
        ("typeWidening", "widened"),
        ("typeWidening-preview", "widened"),
        ("rowTracking", "row_ids"),
        ("v2Checkpoint", "v2_checkpoint"),
    ],
)
def test_what_files_may_still_hold_is_not_off(feature: str, seen: str) -> None:
    table = Table(Protocol.carrying({feature}))
    for there in (True, None):
        assert feature not in end_state_of(table._replace(**{seen: there}), table).off
    assert feature in end_state_of(table._replace(**{seen: False}), table).off


def test_constraints_clustering_and_mapping() -> None:
    table = Table(Protocol.carrying({"checkConstraints", "clustering", "columnMapping"}))
    assert end_state_of(table, table).off >= {"checkConstraints", "clustering", "columnMapping"}
    unseen = end_state_of(table._replace(clustering=None), table)
    assert "clustering" not in unseen.on | unseen.off
    used = table._replace(
        clustering=("id",),
        configuration={"delta.constraints.c": "x", "delta.columnMapping.mode": "id"},
    )
    assert end_state_of(used, used).on >= {"checkConstraints", "clustering", "columnMapping"}
    assert end_state_of(used, used).mode == "id"
