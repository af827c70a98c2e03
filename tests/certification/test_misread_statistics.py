"""Clients that lose rows in filters are found, on tables whose statistics they misread."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.certification.adapter_server import listed
from deltaproto.certification.client import ClientUnderTest, certify, load_roster
from deltaproto.certification.entry import build_entry, known_tables
from deltaproto.certification.fixtures.case import Filter, Kit, ReferenceTable
from deltaproto.certification.fixtures.recipe import FeatureEvidence
from deltaproto.certification.fixtures.recipes import KIT_VERSION
from deltaproto.clients import requirements
from deltaproto.clients.measurement import MeasuredOutcome, Measurement, ResultColumn
from deltaproto.clients.resolve import ClientReference
from tests.certification.conftest import ADAPTERS, cell
from tests.certification.made import case
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string


class Column(NamedTuple):
    """A column `v` of three rows, and its bounds in the statistics as Delta Spark stores them."""

    delta_type: str
    arrow_type: pa.DataType
    values: list[Any]
    bounds: str
    wanted: Any
    """a filter's value, which one row has"""


LONG = ("long", pa.int64(), [7, 8, 9])
COLUMNS: Mapping[str, Column] = {
    "protocol.1-2": Column(*LONG, '"v": 7 | "v": 9', 8),
    requirements.UNBOUNDED_COLUMNS: Column(*LONG, "|", 8),
    requirements.UNBOUNDED_BOOLEANS: Column("boolean", pa.bool_(), [False, True, False], "|", True),
    requirements.NAN_BOUNDS: Column(
        "double", pa.float64(), [0.0, float("nan"), 2.0], '"v": 0.0 | "v": "NaN"', 2.0
    ),
    requirements.EXPONENT_BOUNDS: Column(
        "decimal(38,10)", pa.decimal128(38, 10), [0, 5, 9], '"v": 0E-10 | "v": 9.0000000000', 5
    ),
}
HAZARDS = tuple(hazard for hazard in COLUMNS if hazard in requirements.OF_FILTERED_READS)


@pytest.fixture
def by_hand(tmp_path: Path) -> Kit:
    """A kit of tables that were made by hand."""
    cases = tuple(build(tmp_path / "tables", name, each) for name, each in COLUMNS.items())
    return Kit(tmp_path, KIT_VERSION, "", {}, cases)


def build(folder: Path, name: str, made: Column) -> ReferenceTable:
    log = Log(folder / name)
    data = pa.table({"id": [0, 1, 2], "v": pa.array(made.values, made.arrow_type)})
    path = log.root / "data.parquet"
    pq.write_table(data, path)
    least, most = (f", {bound}" if bound.strip() else "" for bound in made.bounds.split("|"))
    stats = (
        f'{{"numRecords": 3, "minValues": {{"id": 0{least}}}, "maxValues": {{"id": 2{most}}}, '
        '"nullCount": {"id": 0, "v": 0}}'
    )
    schema = schema_string(column("id"), column("v", made.delta_type))
    action = add(path.name, size=path.stat().st_size, stats=stats)
    log.commit(0, commit_info(), protocol(1, 2), metadata({}, schema), action)
    rows = tuple(listed(data))
    matching = tuple(row for row, v in zip(rows, made.values, strict=True) if v == made.wanted)
    return case(
        name,
        state=FeatureEvidence.LAYOUT,
        schema=(("id", "long"), ("v", made.delta_type)),
        values=rows,
        filters=(Filter("v", "=", made.wanted, matching),),
        past=None,
        hazard=name if name in requirements.OF_FILTERED_READS else None,
    )


def measure(kit: Kit, file: Path, folder: Path) -> Measurement:
    """Measure what an adapter reads, with the packages installed for the tests."""
    subject = ClientUnderTest(ClientReference("made", None, "1"), file, (), 1)
    return certify(subject, kit, None, folder)


def shipped(name: str) -> Path:
    return next(each.file for each in load_roster() if str(each) == name)


def verdicts(measured: Measurement, kit: Kit) -> Iterator[tuple[str, str]]:
    for item in build_entry(measured, known_tables(kit))["hazards"]:
        assert item["access"] == ["read"]
        yield from ((hazard, item["verdict"]) for hazard in item["hazards"])


def test_a_pyarrow_dataset_of_deltalake_is_wrong_where_bounds_are_missing(
    by_hand: Kit, tmp_path: Path
) -> None:
    measured = measure(by_hand, shipped("deltalake/pyarrow"), tmp_path)
    for name in COLUMNS:
        assert cell(measured, name, ResultColumn.ROWS).outcome is MeasuredOutcome.RIGHT
        found = cell(measured, name, ResultColumn.FILTER)
        outcome = MeasuredOutcome.WRONG if name in HAZARDS else MeasuredOutcome.RIGHT
        assert found.outcome is outcome, found
        assert outcome is MeasuredOutcome.RIGHT or "0 rows instead of 1 (missing: " in found.why
    unread = (requirements.UNREAD_BOOLEAN_BOUNDS, "unknown")
    assert dict(verdicts(measured, by_hand)) == dict([*((h, "wrong") for h in HAZARDS), unread])


def test_the_engine_of_deltalake_is_right_on_the_same_tables(by_hand: Kit, tmp_path: Path) -> None:
    measured = measure(by_hand, shipped("deltalake/engine"), tmp_path)
    assert {found.outcome for found in measured.cells if found.operation.reads} == {
        MeasuredOutcome.RIGHT
    }
    assert dict(verdicts(measured, by_hand)) == dict.fromkeys(HAZARDS, "ok")


@pytest.mark.parametrize("arguments", ["table", "table, version=None"])
def test_an_adapter_without_filters_leaves_them_unknown(
    arguments: str, by_hand: Kit, tmp_path: Path
) -> None:
    source = (ADAPTERS / "honest.py").read_text()
    own = tmp_path / "own.py"
    head = "def rows(table, version=None, where=None):\n"
    assert head in source
    own.write_text(source.replace(head, f"def rows({arguments}):\n    version = where = None\n"))
    measured = measure(by_hand, own, tmp_path)
    for name in COLUMNS:
        assert cell(measured, name, ResultColumn.ROWS).outcome is MeasuredOutcome.RIGHT
        found = cell(measured, name, ResultColumn.FILTER)
        assert found.outcome is MeasuredOutcome.NOT_OFFERED
    unknown = (*HAZARDS, requirements.UNREAD_BOOLEAN_BOUNDS)
    assert dict(verdicts(measured, by_hand)) == dict.fromkeys(unknown, "unknown")


# pyarrow's threads abort some of these processes if Python ends normally (SIGABRT after the answer,
# 4 % of them on a busy machine).
PROGRAM = """
import json, os, sys
import deltalake, pyarrow.compute as pc
operation, table = sys.argv[1:]
where = json.load(sys.stdin).get("where")
if operation != "rows":
    sys.exit(64)
wanted = where and pc.field(where["column"]) == where["value"]
found = deltalake.DeltaTable(table).to_pyarrow_dataset().to_table(filter=wanted)
for row in found.to_pylist():
    print(json.dumps(row, default=str))
sys.stdout.flush()
os._exit(0)
"""


def test_a_command_that_filters_is_measured_as_well(by_hand: Kit, tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(PROGRAM)
    subject = ClientUnderTest(ClientReference("made", None, "1"), ADAPTERS, (), 1)
    names = ("protocol.1-2", requirements.UNBOUNDED_COLUMNS)
    measured = certify(
        subject,
        by_hand,
        None,
        tmp_path,
        command=f"{sys.executable} {program}",
        wanted=lambda case, operation: case.name in names and operation is ResultColumn.FILTER,
    )
    assert [found.outcome for found in measured.cells] == [
        MeasuredOutcome.WRONG,
        MeasuredOutcome.RIGHT,
    ]
