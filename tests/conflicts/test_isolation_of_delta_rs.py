"""What delta-rs makes of the isolation level, by letting two of its transactions meet."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from deltaproto.protocol.isolation import IsolationLevel, WriterEngine, evaluate_isolation


def survives(path: Path, level: str | None) -> bool:
    """Whether a DELETE outlives a blind append of rows that it would have deleted."""
    configuration = {"delta.isolationLevel": level} if level else None
    write_deltalake(str(path), pa.table({"id": [1, 2, 3]}), configuration=configuration)
    started = DeltaTable(str(path))
    write_deltalake(str(path), pa.table({"id": [1, 9]}), mode="append")
    # deltalake does not mark its own appends as blind; Spark does, and readers go by the mark.
    commit = path / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["isBlindAppend"] = True
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
    try:
        started.delete("id = 1")
    except CommitFailedError:
        return False
    return True


@pytest.mark.parametrize(
    "level",
    [None, "Serializable", "WriteSerializable", "writeSerializable", "snapshotIsolation", "bogus"],
)
def test_the_level_in_force_is_the_one_that_we_say(level: str | None, tmp_path: Path) -> None:
    effective = evaluate_isolation(level).effective[WriterEngine.DELTA_RS]
    assert survives(tmp_path / "t", level) is (effective is not IsolationLevel.SERIALIZABLE)
