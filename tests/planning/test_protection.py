"""When checkpointProtection is dropped, and what history was left before."""

from __future__ import annotations

from deltaproto.planning.drop import PROTECTED_BEFORE, drop_feature
from deltaproto.planning.engine import Engine
from deltaproto.planning.table import Table
from deltaproto.protocol.catalogue import CHECKPOINT_PROTECTION
from deltaproto.protocol.protocol import Protocol


def test_a_truncating_drop_may_have_deleted_what_was_protected() -> None:
    # Measured with Delta Spark 4.4.0: then there is no empty commit.
    table = Table(
        Protocol.carrying({CHECKPOINT_PROTECTION, "columnMapping"}),
        {PROTECTED_BEFORE: "9"},
        traced=frozenset(),
        aged=frozenset({CHECKPOINT_PROTECTION, "columnMapping"}),
    )
    alone = drop_feature(table, CHECKPOINT_PROTECTION, Engine(), truncate=True)
    assert (alone.fewest, alone.most) == (3, 3)
    first = drop_feature(table, "columnMapping", Engine(), truncate=True)
    assert first.refusal is None
    then = drop_feature(first.table, CHECKPOINT_PROTECTION, Engine(), truncate=True)
    assert (then.fewest, then.most) == (2, 3)
