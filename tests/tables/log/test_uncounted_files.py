"""Data files without row ids and without a number of rows, in commits and checkpoints."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.file_statistics import has_row_count
from deltaproto.tables.log.reader import LogReader
from tests.support.logs import Log, action_table, add, metadata, protocol

COUNTED = '{"numRecords":3,"nullCount":{"id":0}}'
OTHERS = '{"nullCount":{"numRecords":0}}'
MODERN = protocol(3, 7, ["v2Checkpoint"], ["v2Checkpoint"])
V2_JSON = ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"


def is_uncounted(log: Log) -> bool:
    return LogReader(look_in_files=True).read(log.table).traces[Trace.UNCOUNTED_FILES]


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (COUNTED, True),
        ('{ "numRecords" : 3 }', True),
        ('{"nullCount":{},"numRecords":3}', True),
        ('{"numRecords":null}', False),
        (OTHERS, False),
        ("{}", False),
        ("[]", False),
        ("no JSON", False),
        (None, False),
    ],
)
def test_statistics_have_the_number_of_rows_or_not(text: str | None, counted: bool) -> None:
    assert has_row_count(text) is counted


FILES: dict[str, tuple[tuple[dict[str, Any], ...], bool]] = {
    "counted": ((add("a", stats=COUNTED), add("b", stats=COUNTED)), False),
    "one without statistics": ((add("a", stats=COUNTED), add("b")), True),
    "with row ids": ((add("a", stats=COUNTED), add("b", baseRowId=0)), False),
    "no number of rows": ((add("a", stats=COUNTED), add("b", stats=OTHERS)), True),
    "no files": ((), False),
}
IN_CHECKPOINT = {
    **FILES,
    # The footers count statistics, not what they have.
    "no number of rows": ((add("a", stats=COUNTED), add("b", stats=None)), True),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_commits(name: str, log: Log) -> None:
    actions, uncounted = FILES[name]
    log.commit(0, MODERN, metadata()).commit(1, *actions)
    assert is_uncounted(log) is uncounted


def test_files_that_are_no_longer_live_need_no_number(log: Log) -> None:
    log.commit(0, MODERN, metadata(), add("a"))
    log.commit(1, {"remove": {"path": "a", "dataChange": True}}, add("b", stats=COUNTED))
    assert not is_uncounted(log)


@pytest.mark.parametrize("name", IN_CHECKPOINT)
@pytest.mark.parametrize("suffix", [".checkpoint.parquet", V2_JSON])
def test_files_of_a_checkpoint(name: str, suffix: str, log: Log) -> None:
    actions, uncounted = IN_CHECKPOINT[name]
    log.checkpoint(4, MODERN, metadata(), *actions, suffix=suffix).commit(5, add(stats=COUNTED))
    assert is_uncounted(log) is uncounted


@pytest.mark.parametrize("rows", [3, None])
def test_a_checkpoint_may_have_statistics_only_as_a_struct(rows: int | None, log: Log) -> None:
    table = action_table((MODERN, metadata(), add("a")))
    files = table.column("add").combine_chunks()
    members = [files.field(i) for i in range(files.type.num_fields)]
    numbers = pa.array([{"numRecords": rows}] * 3, pa.struct({"numRecords": pa.int64()}))
    names = [*(files.type.field(i).name for i in range(files.type.num_fields)), "stats_parsed"]
    parsed = pa.StructArray.from_arrays([*members, numbers], names, mask=files.is_null())
    place = table.schema.get_field_index("add")
    pq.write_table(table.set_column(place, "add", parsed), log.path(4, ".checkpoint.parquet"))
    assert is_uncounted(log) is (rows is None)
