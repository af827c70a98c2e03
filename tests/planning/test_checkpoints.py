"""The checkpoints that Delta makes unasked, every tenth version or so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.planning.from_state import commits_until_checkpoint
from deltaproto.planning.predict.table import Table, checkpoint_interval
from deltaproto.protocol.protocol import Protocol

V2 = Protocol.carrying({"v2Checkpoint"})


def table(policy: str, interval: int, version: int, v2: bool) -> Table:
    configuration = {"delta.checkpointPolicy": policy, "delta.checkpointInterval": str(interval)}
    left = commits_until_checkpoint(configuration, version)
    return Table(V2, configuration, v2_checkpoint=v2, to_checkpoint=left)


@given(
    st.sampled_from(["classic", "v2"]),
    st.integers(1, 12),
    st.integers(0, 40),
    st.booleans(),
    st.lists(st.integers(0, 15), max_size=5),
)
def test_they_come_when_delta_makes_them(
    policy: str, interval: int, version: int, v2: bool, statements: list[int]
) -> None:
    planned = table(policy, interval, version, v2)
    for commits in statements:
        planned = planned.committed(commits, commits)
        for _ in range(commits):
            version += 1
            if version % interval == 0:
                v2 = policy == "v2"
    assert planned.v2_checkpoint is v2
    assert planned.to_checkpoint == interval - version % interval


@given(
    st.integers(1, 12),
    st.integers(0, 40),
    st.integers(0, 12),
    st.integers(0, 12),
    st.data(),
)
def test_of_what_is_unsure_nothing_is_claimed(
    interval: int, version: int, fewest: int, more: int, data: st.DataObject
) -> None:
    planned = table("classic", interval, version, v2=True).committed(fewest, fewest + more)
    real = data.draw(st.integers(fewest, fewest + more))
    made = any((version + n) % interval == 0 for n in range(1, real + 1))
    assert planned.v2_checkpoint in (None, not made)


@pytest.mark.parametrize(
    ("stored", "interval"),
    [(None, 10), ("", 10), ("5", 5), ("0", 10), ("-3", 10), ("x", 10), ("9" * 5000, 10)],
)
def test_the_interval(stored: str | None, interval: int) -> None:
    assert checkpoint_interval({"delta.checkpointInterval": stored}) == interval


@pytest.mark.parametrize(
    ("interval", "v2", "left"), [("1", True, 1), ("4", True, 4), ("5", False, 2)]
)
def test_a_new_interval_counts_from_its_own_commit_on(interval: str, v2: bool, left: int) -> None:
    """Source: `isCheckpointNeeded`; measured for 1, of a table that had one every 3 versions."""
    before = table("v2", 3, 7, v2=False)._replace(version=7)
    after = before.with_properties({"delta.checkpointInterval": interval}).committed(1, 1)
    assert (after.v2_checkpoint, after.to_checkpoint) == (v2, left)


def test_without_the_feature_they_are_of_no_consequence() -> None:
    plain = Table(
        Protocol(1, 2), v2_checkpoint=False, to_checkpoint=commits_until_checkpoint({}, 3)
    )
    assert plain.committed(1, 20).v2_checkpoint is False
