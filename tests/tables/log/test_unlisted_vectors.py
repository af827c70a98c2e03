"""Deletion vectors of live files in a table whose protocol does not support them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.reader import LogReader
from tests.support.logs import Log, add, commit_info, metadata, protocol

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "cardinality": 1}
OLD = protocol(1, 2)
MARKED = add("a.parquet", deletionVector=VECTOR)
REMOVED = {"remove": {"path": "a.parquet", "dataChange": False, "deletionVector": VECTOR}}
LISTED = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])


def traces(log: Log, *, every_commit: bool) -> Any:
    reader = LogReader(every_commit=every_commit)
    return reader.read(log.table).traces.get(Trace.DELETION_VECTORS)


FILES = [add(f"{number}.parquet") for number in range(300)]


@pytest.mark.parametrize("every_commit", [True, False], ids=["table", "scan"])
@pytest.mark.parametrize(
    ("actions", "checkpoint", "newer", "expected"),
    [
        pytest.param([OLD, MARKED], None, [], True, id="commit"),
        pytest.param([OLD, *FILES, MARKED], None, [], True, id="many"),
        pytest.param([OLD, MARKED], [OLD, metadata(), MARKED], [], True, id="checkpoint"),
        pytest.param([OLD, MARKED], [OLD, metadata(), MARKED], [REMOVED], False, id="rewritten"),
        pytest.param([LISTED, MARKED], [LISTED, metadata(), MARKED], [], None, id="listed"),
        pytest.param([OLD, *FILES], [OLD, metadata(), *FILES], [], None, id="none"),
        pytest.param([OLD, add("a.parquet", deletionVector=None)], None, [], None, id="null"),
    ],
)
def test_vectors_that_the_protocol_does_not_list_are_found(
    tmp_path: Path,
    actions: list[dict[str, Any]],
    checkpoint: list[dict[str, Any]] | None,
    newer: list[dict[str, Any]],
    expected: bool | None,
    every_commit: bool,
) -> None:
    log = Log(tmp_path / "t").commit(0, commit_info(), metadata(), *actions)
    if checkpoint is not None:
        log.checkpoint(0, *checkpoint)
    log.commit(1, commit_info("OPTIMIZE"), *newer, add("b.parquet"))
    assert traces(log, every_commit=every_commit) is expected
