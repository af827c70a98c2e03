"""Filters on pyarrow datasets of deltalake, which skip files by their statistics."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

import deltaproto
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, Verdict
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.inspection import ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

PYARROW = f"deltalake/pyarrow@{deltalake.__version__}"
STRUCT = {"type": "struct", "fields": [column("x"), column("y", "boolean")]}
KINDS: dict[str, tuple[Any, pa.DataType, list[Any], list[Any]]] = {
    "long": ("long", pa.int64(), [1, 2, 3], [1, 3]),
    "text": ("string", pa.string(), ["a", "b", "c"], ["a", "c"]),
    "flag": ("boolean", pa.bool_(), [True, False, True], [False, True]),
    "binary": ("binary", pa.binary(), [b"a", b"b", b"c"], []),
    "list": (
        {"type": "array", "elementType": "long", "containsNull": True},
        pa.list_(pa.int64()),
        [[1], [2], [3]],
        [],
    ),
    "ratio": ("double", pa.float64(), [1.0, float("nan"), 2.0], [1.0, "NaN"]),
    "plain": ("double", pa.float64(), [1.0, 3.0, 2.0], [1.0, 3.0]),
    "amount": (
        "decimal(20,10)",
        pa.decimal128(20, 10),
        [Decimal(0), Decimal(5), Decimal("7.25")],
        ["number 0E-10", "number 7.2500000000"],
    ),
    "cents": (
        "decimal(9,2)",
        pa.decimal128(9, 2),
        [Decimal(0), Decimal(5), Decimal("7.25")],
        ["number 0.00", "number 7.25"],
    ),
    "struct": (
        STRUCT,
        pa.struct([("x", pa.int64()), ("y", pa.bool_())]),
        [{"x": 1, "y": True}, {"x": 2, "y": False}, {"x": 3, "y": True}],
        [{"x": 1}, {"x": 3}],
    ),
}
"""for each column its type, its Arrow type, its values, and the bounds that Delta Spark stores"""
INDEXED, NAMED = "delta.dataSkippingNumIndexedCols", "delta.dataSkippingStatsColumns"


class File(NamedTuple):
    """A data file and what its statistics have."""

    empty: frozenset[str]
    """columns that are NULL in every row"""
    absent: frozenset[str]
    """columns that were added later"""
    least: frozenset[str] | None
    """columns with a minimum; None: no minimums at all"""
    most: frozenset[str] | None
    nulls: frozenset[str] | None
    """columns whose NULLs are counted"""
    counted: bool
    """whether there are statistics"""


def files(names: list[str]) -> st.SearchStrategy[File]:
    some = st.frozensets(st.sampled_from(names))
    most_of = st.one_of(st.just(frozenset(names)), some)
    return st.builds(
        File,
        some,
        some,
        st.none() | most_of,
        st.none() | most_of,
        st.none() | most_of,
        st.booleans(),
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[File], dict[str, str]]:
    names = draw(st.permutations(sorted(KINDS)))[: draw(st.integers(1, len(KINDS)))]
    made = draw(st.lists(files(names), min_size=1, max_size=3))
    properties = draw(
        st.sampled_from([{}, {INDEXED: "-1"}, *({INDEXED: str(n)} for n in range(5))])
        | st.lists(st.sampled_from(names), unique=True).map(lambda some: {NAMED: ",".join(some)})
    )
    return names, made, properties


def statistics(names: list[str], file: File) -> str | None:
    if not file.counted:
        return None
    found: dict[str, Any] = {"numRecords": 3}
    present = [name for name in names if name not in file.empty | file.absent]
    for member, wanted, place in (("minValues", file.least, 0), ("maxValues", file.most, -1)):
        if wanted is not None:
            bounds = {name: KINDS[name][3] for name in present if name in wanted}
            found[member] = {name: each[place] for name, each in bounds.items() if each}
    if file.nulls is not None:
        found["nullCount"] = {
            name: {"x": count, "y": count} if name == "struct" else count
            for name in names
            if name in file.nulls - file.absent
            for count in (3 if name in file.empty else 0,)
        }
    return re.sub(r'"number ([^"]*)"', r"\1", json.dumps(found))


def build(root: Path, names: list[str], made: list[File], properties: Mapping[str, str]) -> str:
    log = Log(root)
    schema = schema_string(*(column(name, KINDS[name][0]) for name in names))
    log.commit(0, commit_info(), protocol(1, 2), metadata(dict(properties), schema))
    for number, file in enumerate(made):
        columns = {
            name: pa.array([None] * 3 if name in file.empty else KINDS[name][2], KINDS[name][1])
            for name in names
            if name not in file.absent
        }
        path = log.root / f"f{number}.parquet"
        pq.write_table(pa.table(columns or {"other": pa.array([1, 2, 3])}), path)
        action = add(path.name, size=path.stat().st_size, stats=statistics(names, file))
        if action["add"]["stats"] is None:
            del action["add"]["stats"]
        log.commit(number + 1, commit_info(), action)
    return log.table


def filters(names: list[str]) -> Iterator[pc.Expression]:
    for name in names:
        yield ds.field(name).is_null()
        yield ds.field(name).is_valid()
        if name not in ("list", "struct"):
            yield from (ds.field(name) == pa.scalar(v, KINDS[name][1]) for v in KINDS[name][2])
    if "struct" in names:
        yield ds.field("struct", "x") == 2
        yield ds.field("struct", "y") == pa.scalar(False)


def loses_rows(table: str, names: list[str]) -> bool:
    data = deltalake.DeltaTable(table).to_pyarrow_dataset()
    whole = data.to_table()
    return any(
        data.to_table(filter=each).num_rows != whole.filter(each).num_rows
        for each in filters(names)
    )


def verdict(table: str) -> Verdict:
    facts = facts_from_inspection(inspect_table(table, ReadRequest()))
    candidate = ClientCatalog().resolve(PYARROW)
    (_, found), *_ = path_verdicts(candidate, Access.READ, facts.needs)
    return found.verdict


@given(tables())
def test_rows_are_lost_in_filters_where_the_verdict_is_wrong(
    table: tuple[list[str], list[File], dict[str, str]],
) -> None:
    names, made, properties = table
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder), names, made, properties)
        found, lost = verdict(built), loses_rows(built, names)
        # Only filters for structs that are NULL lose rows, which statistics do not show.
        allowed = {Verdict.OK, Verdict.WRONG} if "struct" in names else {Verdict.OK}
        assert found in ({Verdict.WRONG} if lost else allowed), (lost, properties)


def test_only_the_statistics_of_every_file_show_that_no_row_is_lost(tmp_path: Path) -> None:
    """A check that reads some of them says unknown; one that reads all says what happens."""
    rows = pa.table({"id": range(120), "flag": [number % 2 == 0 for number in range(120)]})
    place = str(tmp_path / "table")
    deltalake.write_deltalake(place, rows, partition_by=["id"])
    assert len(_filtered(place)) == 60

    def outcomes(**options: bool) -> list[str]:
        (checked,) = deltaproto.check(place, clients=[PYARROW], access=["read"], **options)
        return [str(each.outcome) for each in checked.verdicts]

    assert outcomes() == ["unknown"]
    assert outcomes(look_in_files=True) == ["ok"]
    # The statistics of the last file with the flag lose its bounds.
    commit = Path(place, "_delta_log", f"{0:020d}.json")
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    *_, last = (line["add"] for line in lines if '"flag\\":true' in json.dumps(line))
    last["stats"] = json.dumps({"numRecords": 1, "minValues": {}, "maxValues": {}})
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(_filtered(place)) == 59
    assert outcomes() == ["unknown"]
    assert outcomes(look_in_files=True) == ["wrong"]


def _filtered(place: str) -> pa.Table:
    flag = ds.field("flag") == pa.scalar(True)
    return deltalake.DeltaTable(place).to_pyarrow_dataset().to_table(filter=flag)
