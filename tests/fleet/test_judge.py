"""Judging a kind of table once."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import TableError
from deltaproto.fleet.discovered import DiscoveredTable
from deltaproto.fleet.evaluate import TableEvaluator
from deltaproto.fleet.rows_builder import arrow_array
from deltaproto.fleet.scan_table import ReadSettings, TableScanner
from deltaproto.inspection.inspect import run_rules
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import TableState
from deltaproto.tables.log.reader import LogReader
from tests.fleet.fleets import make_fleet
from tests.support.logs import Log, commit_info, metadata, protocol


def states(root: Path, seed: int) -> list[TableState]:
    found = []
    for path in make_fleet(root, seed, 250):
        try:
            found.append(LogReader().read(str(path)))
        except TableError:
            continue
    return found


def twin_of(state: TableState) -> TableState:
    """Another table that differs only in what belongs to one table."""
    metadata = state.metadata
    own = {
        "delta.rowTracking.materializedRowIdColumnName": "other",
        "delta.columnMapping.maxColumnId": "987654",
    }
    other = Metadata(
        "another",
        "elsewhere",
        metadata.schema_string,
        metadata.partition_columns,
        {key: own.get(key, v) for key, v in metadata.configuration.items()},
    )
    return state._replace(table="twin", location="file:///twin", metadata=other)


def test_a_kind_is_judged_like_each_of_its_tables(tmp_path: Path) -> None:
    judge = TableEvaluator()
    fleet = states(tmp_path, seed=21)
    random.Random(1).shuffle(fleet)
    for state in fleet + [twin_of(each) for each in fleet]:
        found = judge.evaluate(state)
        assert found is judge.evaluate(twin_of(state))
        alone = run_rules(state._replace(changes=None))
        assert found.features == alone.subject.features
        assert found.isolation == alone.isolation
        assert found.row_level == alone.row_level
        assert found.lowest == alone.subject.lowest
        assert found.complete == alone.complete
        here = tuple(each._replace(table=state.table) for each in found.findings)
        assert here == alone.findings


def test_a_bad_value_of_one_table_is_not_overlooked(log: Log) -> None:
    judge = TableEvaluator()
    for value in ("7", "other", "8", "odd"):
        properties = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": value}
        log.commit(0, commit_info(), protocol(2, 5), metadata(properties))
        found = {each.rule for each in judge.evaluate(LogReader().read(log.table)).findings}
        assert ("DP150" in found) is not value.isdigit()


@given(
    values=st.lists(
        st.none() | st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud800", "x"])
    )
)
def test_any_text_becomes_a_row(values: list[str | None]) -> None:
    import pyarrow as pa

    made = arrow_array(list(values), pa.string()).to_pylist()
    assert len(made) == len(values)
    for value, text in zip(values, made, strict=True):
        shown = None if value is None else value.encode("utf-8", "backslashreplace").decode()
        assert text == shown


def test_numbers_that_no_column_holds() -> None:
    import pyarrow as pa

    assert arrow_array([1, 2**40, None, -(2**70)], pa.int32()).to_pylist() == [1, None, None, None]
    assert arrow_array([1, 2**40], pa.int64()).to_pylist() == [1, 2**40]


def test_a_defect_on_one_table_costs_the_others_nothing(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, 5, 6)
    looker = TableScanner(ReadSettings("s", {}))
    tables = [DiscoveredTable(str(path), str(path)) for path in fleet]
    whole = looker.scan(tables).to_pylist()

    bad = next(number for number, row in enumerate(whole) if row["error"] is None)
    judge = looker._judge.evaluate

    def broken(state: TableState) -> object:
        if state.table == whole[bad]["table"]:
            raise ZeroDivisionError("made up")
        return judge(state)

    looker._judge.evaluate = broken  # type: ignore[assignment,method-assign]
    rows = looker.scan(tables).to_pylist()
    assert rows[bad]["error"]["code"] == "internal"
    assert "ZeroDivisionError" in rows[bad]["error"]["message"]
    del rows[bad], whole[bad]
    assert rows == whole
