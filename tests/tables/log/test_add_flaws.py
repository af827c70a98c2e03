"""What `add` actions lack, whether their lines are parsed or only searched."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log import files
from deltaproto.tables.log.reader import LogReader
from tests.support.failures import each_row
from tests.support.logs import Log, add, metadata, protocol

UNSIZED, IMPOSSIBLE, INCOMPLETE = (
    Trace.UNSIZED_FILES,
    Trace.IMPOSSIBLE_SIZES,
    Trace.INCOMPLETE_ADDS,
)
MISTYPED, STATISTICS = Trace.MISTYPED_ADDS, Trace.UNREADABLE_STATISTICS
NOTHING = {"path": "p"}


def found(action: dict[str, Any]) -> set[Trace]:
    text = json.dumps(action, separators=(",", ":")).encode()
    seen: list[files.FileChange] = []
    actions = files.read_actions(
        "0.json", io.BytesIO(text), seen=lambda _, changes, __: seen.extend(changes)
    )
    list(actions)
    return {flaw for change in seen for flaw in change.flaws}


@each_row(
    ("members", "flaws"),
    [
        ({}, set()),
        ({"stats": '{"numRecords":1}'}, set()),
        ({"stats": '{"numRecords":1'}, {STATISTICS}),
        ({"stats": None}, set()),
        ({"tags": {"size": "1"}}, set()),
        ({"size": None, "tags": {"size": 5}}, {UNSIZED}),
        ({"size": 0}, {IMPOSSIBLE}),
        ({"size": -5}, {IMPOSSIBLE}),
        ({"size": (1 << 63) - 1}, set()),
        ({"size": 1 << 63}, {MISTYPED}),
        ({"size": 1.5}, {MISTYPED}),
        ({"modificationTime": 1.5}, {MISTYPED}),
        ({"modificationTime": -1}, set()),
        ({"modificationTime": None, "dataChange": "x"}, {INCOMPLETE, MISTYPED}),
        ({"dataChange": None}, {INCOMPLETE}),
        ({"partitionValues": None}, {Trace.NO_PARTITION_VALUES}),
        ({"partitionValues": []}, {MISTYPED}),
        ({"path": None}, {MISTYPED}),
        ({"path": 'a"size":1'}, set()),
    ],
)
def test_an_unparsed_line_shows_the_same(members: dict[str, Any], flaws: set[Trace]) -> None:
    action = add(**members)
    assert found(action) == flaws
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_PARSE_ALL_BYTES", 0)
        # A member elsewhere in the line may hide that it is missing.
        assert found(action) == (set() if "tags" in members else flaws)


def test_an_action_without_anything_lacks_everything() -> None:
    lacks = {UNSIZED, INCOMPLETE, Trace.NO_PARTITION_VALUES}
    assert found({"add": NOTHING}) == lacks
    assert found({"add": {}}) == {*lacks, MISTYPED}
    assert not found({"remove": NOTHING})


@pytest.mark.parametrize("every_commit", [True, False])
def test_commits_before_the_checkpoint_do_not_count(log: Log, every_commit: bool) -> None:
    """The checkpoint replaces them; what the newest commit lacks is always seen."""
    odd, good = add(size=None), add("p2")
    log.commit(0, protocol(1, 2), metadata(), odd).commit(1, good)
    log.checkpoint(0, protocol(1, 2), metadata(), add())
    traces = LogReader(every_commit=every_commit).read(log.table).traces
    assert traces[UNSIZED] is False
    log.commit(2, odd)
    assert LogReader(every_commit=True).read(log.table).traces[UNSIZED] is True
