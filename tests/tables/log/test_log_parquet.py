"""The small Parquet reader against pyarrow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaproto.tables.log.parquet import UnsupportedParquet, read_rows

COLUMNS = ("protocol", "metaData", "domainMetadata")

text = st.text(max_size=6)
scalars = st.sampled_from(
    [
        (pa.string(), text),
        (pa.large_string(), text),
        (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
        (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
        (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.bool_(), st.booleans()),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.float32(), st.floats(allow_nan=False, width=32)),
    ]
)


@st.composite
def field(draw: Any, depth: int = 0) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "map", "struct"][: 5 - depth]))
    if kind == "scalar":
        return draw(scalars)
    if kind == "struct":
        return draw(struct(depth + 2))
    type_, values = draw(scalars)
    nullable = draw(st.booleans())
    inner = st.none() | values if nullable else values
    if kind == "list":
        return pa.list_(pa.field("element", type_, nullable)), st.lists(inner, max_size=12)
    keys = st.dictionaries(text, inner, max_size=12).map(lambda d: list(d.items()))
    return pa.map_(pa.string(), pa.field("value", type_, nullable)), keys


@st.composite
def struct(draw: Any, depth: int = 0) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    fields, values = [], {}
    for number in range(draw(st.integers(1, 3))):
        type_, value = draw(field(depth if depth < 3 else 4))
        nullable = draw(st.booleans())
        fields.append(pa.field(f"f{number}", type_, nullable))
        values[f"f{number}"] = st.none() | value if nullable else value
    return pa.struct(fields), st.fixed_dictionaries(values)


@st.composite
def tables(draw: Any) -> tuple[pa.Table, dict[str, Any]]:
    fields, arrays = [pa.field("add", pa.int64())], []
    size = draw(st.integers(0, 60)) * draw(st.sampled_from([1, 1, 30]))
    names = draw(st.sets(st.sampled_from(COLUMNS), min_size=1))
    for name in sorted(names):
        type_, value = draw(struct())
        sample = draw(st.lists(value, min_size=1, max_size=5))
        places = {
            draw(st.integers(0, max(0, size - 1))): draw(st.sampled_from(sample))
            for _ in range(draw(st.integers(0, 12)))
        }
        nullable = draw(st.integers(0, 7)) > 0
        filler = None if nullable else sample[0]
        column = [places.get(row, filler) for row in range(size)]
        fields.append(pa.field(name, type_, nullable))
        arrays.append(pa.array(column, type_))
    adds = pa.array(range(size), pa.int64())
    table = pa.Table.from_arrays([adds, *arrays], schema=pa.schema(fields))
    return table, {
        "compression": draw(st.sampled_from(["none", "snappy", "gzip"])),
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "use_dictionary": draw(st.booleans()),
        "row_group_size": draw(st.sampled_from([7, 100, 10_000])),
        "write_batch_size": draw(st.sampled_from([1, 8, 1024])),
        "data_page_size": draw(st.sampled_from([1, 64, 1 << 20])),
        "dictionary_pagesize_limit": draw(st.sampled_from([16, 1 << 20])),
        "write_statistics": draw(st.booleans()),
        "store_schema": draw(st.booleans()),
        "write_page_index": draw(st.booleans()),
    }


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def plain(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: plain(item, type_.item_type) for key, item in value}
    if pa.types.is_struct(type_):
        return {member.name: plain(value[member.name], member.type) for member in type_}
    if pa.types.is_list(type_):
        return [plain(item, type_.value_type) for item in value]
    return value


def arrow_rows(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    file = pq.ParquetFile(io.BytesIO(data))
    wanted = [name for name in file.schema_arrow.names if name in COLUMNS]
    groups = [file.read_row_group(n, columns=wanted) for n in range(file.num_row_groups)]
    return [row for group in groups for row in group_rows(group)]


def arrow_loses_rows(data: bytes) -> bool:
    """pyarrow 26 writes pages of no values when pages are tiny, and then reads no further."""
    file = pq.ParquetFile(io.BytesIO(data))
    return any(
        file.read_row_group(n, columns=[leaf.path]).num_rows != file.metadata.row_group(n).num_rows
        for n in range(file.num_row_groups)
        for leaf in file.schema
    )


def source_rows(table: pa.Table, row_group_size: int) -> list[tuple[str, dict[str, Any]]]:
    starts = range(0, len(table), row_group_size)
    return [row for n in starts for row in group_rows(table.slice(n, row_group_size))]


def group_rows(group: pa.Table) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, plain(value, group.column(name).type))
        for name in group.column_names
        if name in COLUMNS
        for value in group.column(name).to_pylist()
        if value is not None
    ]


def our_rows(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    return read_rows(io.BytesIO(data), COLUMNS)


def table_of(size: int = 100, column: str = "protocol", **places: Any) -> pa.Table:
    values: list[Any] = [None] * size
    values[size // 2] = {"minReaderVersion": 3, "readerFeatures": ["a", "b"], **places}
    return pa.table({"add": list(range(size)), column: values})


relaxed = settings(
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check_against_pyarrow(case: tuple[pa.Table, dict[str, Any]]) -> None:
    table, options = case
    data = written(table, **options)
    found = our_rows(data)
    assert repr(found) == repr(source_rows(table, options["row_group_size"]))
    if not arrow_loses_rows(data):
        assert repr(found) == repr(arrow_rows(data))


@settings(relaxed, max_examples=40)
@given(tables())
def test_random_tables_read_as_pyarrow_reads_them(case: tuple[pa.Table, dict[str, Any]]) -> None:
    check_against_pyarrow(case)


@pytest.mark.slow
@relaxed
@given(tables())
def test_many_random_tables_read_as_pyarrow_reads_them(
    case: tuple[pa.Table, dict[str, Any]],
) -> None:
    check_against_pyarrow(case)


CHECKPOINT_LIKE = pa.schema(
    [
        pa.field("add", pa.struct([("path", pa.string()), ("size", pa.int64())])),
        pa.field(
            "metaData",
            pa.struct(
                [
                    pa.field("id", pa.string(), nullable=False),
                    ("format", pa.struct([("options", pa.map_(pa.string(), pa.string()))])),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        pa.field("protocol", pa.struct([("minReaderVersion", pa.int32()), ("on", pa.bool_())])),
    ]
)
ROWS = [
    {"protocol": {"minReaderVersion": 3, "on": True}},
    {
        "metaData": {
            "id": "x",
            "format": {"options": [("a", "b"), ("c", None)]},
            "partitionColumns": ["p", None, "p"],
            "createdTime": 12345678,
        }
    },
    {"metaData": {"id": "y", "format": {"options": []}, "partitionColumns": []}},
    {"metaData": {"id": "z", "format": None, "partitionColumns": None}},
    *[{"add": {"path": f"part-{n}", "size": n}} for n in range(40)],
]
MUTABLE = [
    written(
        pa.Table.from_pylist(ROWS, CHECKPOINT_LIKE),
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        row_group_size=size,
        store_schema=False,
    )
    for compression, version, dictionary, size in [
        ("none", "1.0", True, 100),
        ("none", "2.0", False, 20),
        ("snappy", "1.0", False, 100),
        ("snappy", "2.0", True, 20),
        ("gzip", "1.0", True, 100),
    ]
]


def never_wrong(original: bytes, damaged: bytes, flips: int) -> None:
    try:
        found = our_rows(damaged)
    except UnsupportedParquet:
        return
    try:
        want = arrow_rows(damaged)
    except Exception:
        # Damage where pyarrow looks and we do not; a single one cannot have changed our answer.
        if flips > 1:
            return
        want = arrow_rows(original)
    assert repr(found) == repr(want)


@pytest.mark.parametrize("data", MUTABLE)
def test_undamaged_files_are_read(data: bytes) -> None:
    assert our_rows(data) == arrow_rows(data)
    assert len(our_rows(data)) == 4


def check_flipped_bits(data: bytes, draw: st.DataObject) -> None:
    damaged = bytearray(data)
    bits = draw.draw(st.lists(st.integers(0, len(data) * 8 - 1), min_size=1, max_size=3))
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
    never_wrong(data, bytes(damaged), len(bits))


@settings(relaxed, max_examples=300)
@given(st.sampled_from(MUTABLE), st.data())
def test_flipped_bits_never_give_a_wrong_answer(data: bytes, draw: st.DataObject) -> None:
    check_flipped_bits(data, draw)


@pytest.mark.slow
@settings(relaxed, max_examples=1500)
@given(st.sampled_from(MUTABLE), st.data())
def test_many_flipped_bits_never_give_a_wrong_answer(data: bytes, draw: st.DataObject) -> None:
    check_flipped_bits(data, draw)


@pytest.mark.parametrize("data", MUTABLE)
def test_truncated_files_are_not_simple(data: bytes) -> None:
    for end in range(len(data)):
        with pytest.raises(UnsupportedParquet):
            our_rows(data[:end])


@settings(relaxed)
@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_not_simple(garbage: bytes, framed: bool) -> None:
    if framed:
        garbage = b"PAR1" + garbage + len(garbage).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(UnsupportedParquet):
        our_rows(garbage)


@pytest.mark.parametrize("codec", ["zstd", "brotli", "lz4"])
def test_other_codecs_are_not_simple(codec: str) -> None:
    with pytest.raises(UnsupportedParquet, match="codec"):
        our_rows(written(table_of(), compression=codec))


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(b"x"),
        pa.scalar(1, pa.uint32()),
        pa.scalar(1, pa.timestamp("us")),
        pa.scalar(1, pa.date32()),
        pa.scalar([["x"]]),
        pa.scalar([{"x": 1}]),
        pa.scalar([("x", ["y"])], pa.map_(pa.string(), pa.list_(pa.string()))),
    ],
    ids=lambda value: str(value.type),
)
def test_other_types_are_not_simple(value: pa.Scalar) -> None:
    column = pa.StructArray.from_arrays([pa.array([value.as_py()], value.type)], ["x"])
    with pytest.raises(UnsupportedParquet):
        our_rows(written(pa.table({"protocol": column})))


@pytest.mark.parametrize("value", [1, "x", [1], [{"x": 1}]])
def test_a_column_that_is_no_struct_is_not_simple(value: Any) -> None:
    with pytest.raises(UnsupportedParquet):
        our_rows(written(pa.table({"protocol": [value]})))


def test_other_columns_may_be_anything() -> None:
    table = table_of(4).append_column("add2", pa.array([[[b"x"]], None, [], [[]]]))
    assert our_rows(written(table)) == [
        ("protocol", {"minReaderVersion": 3, "readerFeatures": ["a", "b"]})
    ]


def test_columns_come_in_the_order_of_the_file() -> None:
    table = pa.table({name: [{"x": 1}, None, {"x": 2}] for name in reversed(COLUMNS)})
    assert our_rows(written(table, row_group_size=2)) == [
        ("domainMetadata", {"x": 1}),
        ("metaData", {"x": 1}),
        ("protocol", {"x": 1}),
        ("domainMetadata", {"x": 2}),
        ("metaData", {"x": 2}),
        ("protocol", {"x": 2}),
    ]


def test_a_file_without_the_columns_has_no_rows() -> None:
    assert our_rows(written(pa.table({"add": [1, 2]}))) == []


def with_footer(data: bytes, *changes: tuple[bytes, bytes]) -> bytes:
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[end:-8]
    for old, new in changes:
        assert old in footer
        footer = footer.replace(old, new)
    return data[:end] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


LEGACY = pa.table(
    {
        "protocol": pa.array(
            [{"f": ["a", "b"], "m": [("k", "v")]}, None, {"f": [], "m": []}, {"f": None}],
            pa.struct(
                [
                    ("f", pa.list_(pa.field("element", pa.string(), nullable=False))),
                    ("m", pa.map_(pa.string(), pa.string())),
                ]
            ),
        )
    }
)


def test_names_of_older_writers_are_read() -> None:
    data = with_footer(
        written(LEGACY, store_schema=False),
        (b"\x04list", b"\x03bag"),
        (b"\x07element", b"\x0darray_element"),
        (b"\x09key_value", b"\x03map"),
    )
    assert our_rows(data) == arrow_rows(data) == group_rows(LEGACY)


def test_lists_of_two_levels_are_read() -> None:
    data = with_footer(
        written(LEGACY, store_schema=False),
        (b"\x15\x04\x19\x9c", b"\x15\x04\x19\x8c"),
        (
            b"5\x04\x18\x04list\x15\x02\x00\x15\x0c%\x00\x18\x07element",
            b"\x15\x0c%\x04\x18\x05array",
        ),
        (b"\x19H\x08protocol\x01f\x04list\x07element", b"\x198\x08protocol\x01f\x05array"),
    )
    assert our_rows(data) == arrow_rows(data) == group_rows(LEGACY)


@pytest.mark.parametrize("name", [b"\x05array", b"\x07f_tuple"])
def test_lists_of_structs_in_disguise_are_not_simple(name: bytes) -> None:
    with pytest.raises(UnsupportedParquet, match="list of structs"):
        our_rows(with_footer(written(LEGACY), (b"\x04list", name)))


class Counting(io.BytesIO):
    """Counts what is read."""

    taken = 0
    calls = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        self.calls += 1
        return data


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_a_million_rows_cost_little(version: str, codec: str) -> None:
    size = 1_000_000
    protocol = [{"minReaderVersion": 3, "readerFeatures": ["a", None]}, *[None] * (size - 1)]
    table = pa.table({"add": pa.array(range(size)), "protocol": pa.array(protocol)})
    data = written(table, data_page_version=version, compression=codec, use_dictionary=["protocol"])
    file = Counting(data)
    assert read_rows(file, COLUMNS) == [("protocol", protocol[0])]
    assert file.taken < 70 * 1024 < len(data)
    assert file.calls <= 4


def test_row_groups_that_are_null_by_statistics_are_not_read() -> None:
    size = 200_000
    table = table_of(size)
    file = Counting(written(table, row_group_size=size // 10, use_dictionary=False))
    assert len(read_rows(file, COLUMNS)) == 1
    assert file.calls == 3


def test_values_that_are_not_rare_are_not_simple() -> None:
    with pytest.raises(UnsupportedParquet, match="too many values"):
        our_rows(written(pa.table({"protocol": [{"minReaderVersion": 1}] * 200_000})))


def test_a_footer_larger_than_the_tail_is_read() -> None:
    wide = {f"c{number}": pa.array([number]) for number in range(900)}
    data = written(pa.table({**wide, "protocol": pa.array([{"minReaderVersion": 1}])}))
    assert int.from_bytes(data[-8:-4], "little") > 64 * 1024
    assert our_rows(data) == [("protocol", {"minReaderVersion": 1})]


def test_a_large_string_survives_snappy() -> None:
    schema = '{"type":"struct","fields":[' + ",".join(f'{{"name":"c{n}"}}' for n in range(9999))
    data = written(table_of(schemaString=schema), compression="snappy")
    assert our_rows(data) == arrow_rows(data)


def test_errors_of_the_file_are_passed_on() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise PermissionError

    with pytest.raises(PermissionError):
        read_rows(Broken(written(table_of())), COLUMNS)


def test_a_checkpoint_of_delta_rs_is_read(tmp_path: Path) -> None:
    features = {"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"}
    for number in range(3):
        write_deltalake(
            tmp_path,
            pa.table({"p": ["a", "b"], "x": [number, number]}),
            mode="append",
            partition_by=["p"],
            configuration=features,
        )
    DeltaTable(tmp_path).create_checkpoint()
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    data = checkpoint.read_bytes()
    found = our_rows(data)
    assert found == arrow_rows(data)
    actions = dict(found)
    assert actions["protocol"]["minReaderVersion"] == 3
    assert actions["metaData"]["partitionColumns"] == ["p"]
    assert actions["metaData"]["configuration"] == features
