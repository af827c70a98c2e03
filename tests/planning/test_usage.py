"""What is predicted of a table's use, for the clients' sake."""

from __future__ import annotations

import pytest

from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import Engine
from deltaproto.planning.impact import end_state_of
from deltaproto.planning.predict.table import Table
from deltaproto.planning.search.goals import requirements_after
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


TRACKED = Table(Protocol.carrying({"rowTracking", "domainMetadata"}))
UNTRACKED = TRACKED._replace(protocol=Protocol.carrying({"domainMetadata"}))
ROW_TRACKING = ("delta.rowTracking",)
BOTH = ("another", *ROW_TRACKING)


@pytest.mark.parametrize(
    ("before", "after", "uses", "holds"),
    [
        (ROW_TRACKING, (), True, False),
        (BOTH, ("another",), True, True),
        # Delta dropped it, and nobody knows whether there were others.
        (None, None, None, None),
        ((), None, None, None),
        (None, (), True, False),
    ],
)
def test_a_feature_without_a_switch_may_lose_its_last_trace(
    before: tuple[str, ...] | None,
    after: tuple[str, ...] | None,
    uses: bool | None,
    holds: bool | None,
) -> None:
    started = TRACKED._replace(domains=before)
    usage = dict.fromkeys(("rowTracking", "domainMetadata"), True)
    absent = ("domainMetadata",) if before == () else ()
    needs = table_requirements(started.protocol, usage, {}, absent=absent)
    ending = end_state_of(UNTRACKED._replace(domains=after), started)
    found = requirements_after(needs, ending)
    assert (found.uses("domainMetadata"), found.holds("domainMetadata")) == (uses, holds)


def test_what_was_never_used_may_be_after_new_rows() -> None:
    table = TRACKED._replace(row_ids=False)
    usage = {"rowTracking": False, "domainMetadata": True}
    needs = table_requirements(table.protocol, usage, {}, absent=usage)
    same = requirements_after(needs, end_state_of(table, table))
    assert same == needs
    (parsed,) = parse_script("INSERT INTO t VALUES (1)")
    written = parsed.statement.outcome(table, Engine()).table
    after = requirements_after(needs, end_state_of(written, table))
    assert after.uses("rowTracking") is after.holds("rowTracking") is None
