"""What the catalog says of layouts, types and constraints against the deltalake that is installed.

No `ok` may fail or return other rows. A refusal that is none would be a false alarm.
"""

from __future__ import annotations

import codecs
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.model import Access, PathVerdict, Verdict
from deltaproto.clients.verdicts import path_verdicts
from deltaproto.inspection import Inspection, ReadRequest, inspect_table
from deltaproto.inspection.facts import facts_from_inspection
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

RELEASE = deltalake.__version__
ENGINE, PYARROW = f"deltalake/engine@{RELEASE}", f"deltalake/pyarrow@{RELEASE}"
ID, WORD = column("id"), column("word", "string")


class Made(NamedTuple):
    """A hand-made table: rows 1, 2 and 3, and whatever is odd about it."""

    name: str
    columns: tuple[dict[str, Any], ...] = (ID, WORD)
    configuration: Mapping[str, str] = MappingProxyType({})
    partition: str | None = None
    """a value of a partition column `part`, which is the folder of the file"""
    of_partition: str = "string"
    hidden: bool = False
    """the folder is another one"""
    protocol: tuple[int, int] = (1, 2)
    absolute: bool = False
    mark: bool = False
    more: str | None = None
    """a partition column that the schema does not have"""
    stored: Mapping[str, Any] = MappingProxyType({})
    """other members of the add action; None: it is missing"""
    folder: str = "t"


def kind(name: str, type_: Any) -> Made:
    return Made(name, (ID, WORD, column("v", type_)))


def check(expression: str) -> Made:
    return Made(expression, configuration={"delta.constraints.c": expression}, protocol=(1, 3))


TABLES = (
    Made("plain"),
    Made("absolute", absolute=True),
    Made("marked", mark=True),
    Made("differing in case", (ID, WORD, column("ID"))),
    Made("nested in case", (ID, WORD, column("s", json.loads(schema_string(ID, column("Id")))))),
    Made("partition not in schema", more="gone"),
    Made("append-only", configuration={"delta.appendOnly": "true"}),
    Made("escaped", partition="a b:c"),
    Made("beyond ascii", partition="é"),
    Made("hidden", partition="a", hidden=True),
    Made("percent", folder="a%20b"),
    Made("space", folder="a b"),
    Made("umlaut", folder="ä"),
    kind("void", "void"),
    kind("array of void", {"type": "array", "elementType": "void", "containsNull": True}),
    *(
        kind(f"interval {fields}", f"interval {fields}")
        for fields in ("year", "month", "year to month", "day", "hour to second", "day to second")
    ),
    kind("interval that is none", "interval second to year"),
    kind("calendar interval", "interval"),
    kind("udt", {"type": "udt", "class": "a.B", "sqlType": "double"}),
    kind("time", "time(3)"),
    kind("varchar", "varchar(9)"),
    kind("unsigned", "uint16"),
    kind("long decimal", "decimal(39,1)"),
    kind("negative scale", "decimal(10,-2)"),
    kind("upper case", "LONG"),
    kind("alias", "bigint"),
    kind("array without nullability", {"type": "array", "elementType": "long"}),
    kind("number", 5),
    kind("good decimal", "decimal(38,38)"),
    *(
        Made(f"{name} {value}", stored={name: value})
        for name, value in (
            # With a size of -1, deltalake 1.6.6 may take all memory.
            *(("size", value) for value in (None, 0)),
            *((name, None) for name in ("modificationTime", "dataChange", "partitionValues")),
            *(("stats", value) for value in (None, "", "[]", '{"numRecords":1', {"numRecords": 3})),
        )
    ),
    *(
        Made(
            f"{of_column} and stats {text}",
            (ID, WORD, column("v", of_column)),
            stored={"stats": text},
        )
        for of_column, text in (
            *(("long", text) for text in ('{"a":}', '{"numRecords":"x"}', '{"x":"\\ud800"}')),
            *(("long", f'{{"numRecords":3,"{part}":[]}}') for part in ("minValues", "nullCount")),
            ("boolean", '{"numRecords":3,"minValues":{"v":"false"}}'),
            ("boolean", '{"numRecords":3,"minValues":{"word":{}}}'),
            ("boolean", '{"numRecords":3,"nullCount":{"id":"x"}}'),
            ("boolean", '{"numRecords":3,"minValues":{"id":"1"},"maxValues":{"word":3}}'),
        )
    ),
    *(
        Made(f"{name} and stats {text}", (ID, WORD, column("v", of_column)), stored={"stats": text})
        for text in ("", "[]")
        for name, of_column in (
            ("boolean", "boolean"),
            ("inner boolean", json.loads(schema_string(column("b", "boolean")))),
            ("booleans", {"type": "array", "elementType": "boolean", "containsNull": True}),
        )
    ),
    Made("boolean part", partition="true", of_partition="boolean", stored={"stats": "["}),
    check("id > 0 and word is not null"),
    check("size(array(id)) = 1"),
    check("year(current_date()) > 2000"),
    check("if(id > 0, true, false)"),
    check("regexp_extract(word, 'a', 0) is not null"),
    check("int(id) > 0"),
    check("crc32(word) is not null"),
    check("id div 1 > 0"),
    check('word <> "x"'),
    check("!(id < 0)"),
    check("length(word) < 9 and upper(word) <> 'X'"),
    check("cast(id as int) > 0"),
    check("id > 0 and ltrim('c', word) <> 'c'"),
    check("id > 0 and replace(word, 'a') is not null"),
    check("id > 0 and initcap('a-b') = 'A-b'"),
    check("id > 0 and chr(256) <> 'Ā'"),
    check("id > 0 and date_part('dow', date'2024-08-15') = 5"),
    check("id > 0 and date_trunc('mm', timestamp'2024-08-15 00:00:00') is not null"),
    check("id > 0 and cast(1.005 as decimal(5,2)) = 1.01"),
    check("id > 0 and cast(timestamp'2020-01-01 00:00:00' as string) = '2020-01-01 00:00:00'"),
    check("id > 0 and interval 1 day = interval 24 hours"),
    check("id > 0 and substr(word, 0, 1) <> ''"),
    check("id > 0 and length(right(word, id - 7)) = 0"),
    check("id > 0 and substring(word from 1 for 1) <> ''"),
    check("case when id > 0 then true else false end"),
    check("ID > 0"),
    check("unheard_of(id)"),
)


def build(made: Made, root: Path) -> str:
    log = Log(root / made.folder)
    columns = (*made.columns, *((column("part", made.of_partition),) if made.partition else ()))
    values, path = {}, "f.parquet"
    if made.partition is not None:
        escaped = made.partition.replace(":", "%3A")
        values, path = (
            {"part": made.partition},
            f"{'ab' if made.hidden else f'part={escaped}'}/f.parquet",
        )
    file = log.root / path
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"]}), file)
    stored = path.replace("%", "%25").replace(" ", "%20")
    action = add(
        file.as_uri() if made.absolute else stored,
        size=file.stat().st_size,
        partitionValues=values,
        stats=json.dumps({"numRecords": 3}),
    )
    for name, value in made.stored.items():
        action["add"] |= {name: value}
        if value is None:
            del action["add"][name]
    parts = [*values, *([made.more] if made.more else [])]
    described = metadata(dict(made.configuration), schema_string(*columns), parts)
    log.commit(0, commit_info(), protocol(*made.protocol), described, action)
    if made.mark:
        log.raw(0, codecs.BOM_UTF8 + log.path(0, ".json").read_bytes())
    return log.table


def other_schema(log: Log) -> None:
    log.checksum(0, protocol(1, 2), metadata(schema=schema_string(ID)))


def later_checksum(log: Log) -> None:
    log.checksum(5, protocol(1, 2), metadata(schema=schema_string(ID, WORD)))


def hint_alone(log: Log) -> None:
    (log.folder / "_last_checkpoint").write_text('{"version":0,"size":3}')


def without(member: str) -> Callable[[Log], object]:
    return having(member, ...)


def having(member: str, value: object) -> Callable[[Log], object]:
    """Store another value in the metaData action; an ellipsis removes the member."""

    def change(log: Log) -> None:
        file = log.path(0, ".json")
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            if "metaData" in action:
                changed = {**action["metaData"], member: value}
                action["metaData"] = {k: v for k, v in changed.items() if v is not ...}
        log.commit(0, *actions)

    return change


DAMAGES: tuple[tuple[str, Callable[[Log], object]], ...] = (
    ("a checksum with another schema", other_schema),
    ("a checksum beyond the log", later_checksum),
    ("a hint without its checkpoint", hint_alone),
    ("no id", without("id")),
    ("no format", without("format")),
    ("no partition columns", without("partitionColumns")),
    ("no configuration", without("configuration")),
    ("a format without members", having("format", {})),
    ("a format without a provider", having("format", {"options": {}})),
    ("a format without options", having("format", {"provider": "parquet"})),
    ("a format that is a text", having("format", "parquet")),
    ("a creation time that is a text", having("createdTime", "2026-11-30T00:00:00Z")),
)
"""what breaks this client, and the specification forbids"""


def opens(table: str) -> bool:
    try:
        return [field.name for field in deltalake.DeltaTable(table).schema().fields] == [
            "id",
            "word",
        ]
    except Exception:
        return False


@pytest.mark.parametrize(
    ("name", "damage"), DAMAGES, ids=[name.replace(" ", "-") for name, _ in DAMAGES]
)
def test_no_verdict_is_ok_where_the_log_is_damaged(
    name: str, damage: Callable[[Log], object], tmp_path: Path
) -> None:
    table = build(Made(name), tmp_path / "made")
    log = Log.__new__(Log)
    log.root, log.folder = Path(table), Path(table) / "_delta_log"
    # With a second commit, the state is not in the newest one.
    log.commit(1, commit_info(), add("g.parquet", size=1))
    assert opens(table)
    damage(log)
    assert not opens(table)
    assert Verdict.OK not in {said.verdict for *_, said in judged(table)}


def ids(table: str) -> list[int]:
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    return sorted(pa.table(found.execute("select id from t"))["id"].to_pylist())


def ids_with_pyarrow(table: str) -> list[int]:
    found = deltalake.DeltaTable(table).to_pyarrow_table(columns=["id"])
    return sorted(found["id"].to_pylist())


def append(table: str) -> list[int]:
    opened = deltalake.DeltaTable(table)
    row = {"id": 7, "word": "new"}
    names = pa.schema(opened.schema()).names
    fields = {name: [row.get(name)] for name in names}
    types = {field.name: field.type for field in pa.schema(opened.schema())}
    given = pa.table({name: pa.array(value, types[name]) for name, value in fields.items()})
    deltalake.write_deltalake(opened, given, mode="append")
    return ids(table)


def delete(table: str) -> list[int]:
    deltalake.DeltaTable(table).delete("id = 2")
    return ids(table)


def merge(table: str) -> list[int]:
    source = pa.table({"id": [2, 7], "word": ["new", "new"]})
    merging = deltalake.DeltaTable(table).merge(source, "t.id = s.id", "s", "t")
    merging = merging.when_matched_update({"word": "s.word"})
    merging.when_not_matched_insert({"id": "s.id", "word": "s.word"}).execute()
    return ids(table)


Use = Callable[[str], list[int]]
USES: tuple[tuple[str, Access, Use, list[int]], ...] = (
    (ENGINE, Access.READ, ids, [1, 2, 3]),
    (PYARROW, Access.READ, ids_with_pyarrow, [1, 2, 3]),
    (ENGINE, Access.APPEND, append, [1, 2, 3, 7]),
    (ENGINE, Access.DML, delete, [1, 3]),
    (ENGINE, Access.DML, merge, [1, 2, 3, 7]),
)


def judged(table: str) -> Iterator[tuple[str, Access, Use, list[int], PathVerdict]]:
    inspection = inspect_table(table, ReadRequest())
    assert isinstance(inspection, Inspection)
    needs = facts_from_inspection(inspection).needs
    for name, access, use, right in USES:
        ((_, said),) = path_verdicts(ClientCatalog().resolve(name), access, needs)
        yield name, access, use, right, said


def physical(name: str, number: int, stored: str) -> dict[str, Any]:
    """A column of `build` under another name, as after RENAME COLUMN."""
    ids: dict[str, Any] = {
        "delta__columnMapping__id": number,
        "delta__columnMapping__physicalName": stored,
    }
    return column(name, "long" if stored == "id" else "string", **ids)


def test_rows_of_a_path_with_a_space_are_there_twice_after_a_delete(tmp_path: Path) -> None:
    table = build(Made("space", stored={"path": "f g.parquet"}), tmp_path)
    (Path(table) / "f.parquet").rename(Path(table) / "f g.parquet")
    said = {use: verdict.verdict for _, _, use, _, verdict in judged(table)}
    assert (said[ids], said[append], said[delete]) == (Verdict.OK, Verdict.OK, Verdict.WRONG)
    assert ids(table) == [1, 2, 3]
    assert delete(table) == [1, 1, 2, 3, 3]


@pytest.mark.parametrize("member", ["comment", "metadata"])
def test_a_column_has_the_members_that_the_client_requires(member: str, tmp_path: Path) -> None:
    odd = {**WORD, "comment": "x"} if member == "comment" else {**WORD}
    if member == "metadata":
        del odd["metadata"]
    table = build(Made("odd member", (ID, odd)), tmp_path)
    said = {use: verdict.verdict for _, _, use, _, verdict in judged(table)}
    assert (said[ids] is Verdict.OK) is opens(table) is (member == "comment")


@pytest.mark.parametrize("mode", ["name", "Name"])
def test_a_mode_in_another_case_is_ignored(mode: str, tmp_path: Path) -> None:
    mapping = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
    columns = (physical("number", 1, "id"), physical("word", 2, "word"))
    table = build(Made("renamed", columns, mapping, protocol=(2, 5)), tmp_path / "made")
    said = next(judged(table))[-1].verdict
    found = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    rows = pa.table(found.execute("select number from t"))["number"].to_pylist()
    right = rows == [1, 2, 3]
    assert (right, said) == ((True, Verdict.OK) if mode == "name" else (False, Verdict.WRONG))


@pytest.mark.parametrize("switch", ["delta.appendOnly", "delta.enableChangeDataFeed"])
def test_a_switch_in_another_case_is_ignored(switch: str, tmp_path: Path) -> None:
    table = build(Made("switched", configuration={switch: "TRUE"}, protocol=(1, 4)), tmp_path)
    said = {access: verdict.verdict for _, access, _, _, verdict in judged(table)}
    assert (said[Access.APPEND], said[Access.DML]) == (Verdict.OK, Verdict.WRONG)
    deltalake.DeltaTable(table).update(updates={"word": "'x'"}, predicate="id = 2")
    assert not (Path(table) / "_change_data").exists()


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("stored", [("id", 2), ("word", 1)], ids=["same-name", "same-id"])
def test_columns_that_mapping_cannot_tell_apart_are_refused(
    mode: str, stored: tuple[str, int], tmp_path: Path
) -> None:
    name, number = stored
    mapping = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"}
    columns = (physical("id", 1, "id"), physical("other", number, name))
    table = build(Made("ambiguous", columns, mapping, protocol=(2, 5)), tmp_path / "made")
    assert {said.verdict for *_, said in judged(table)} == {Verdict.REFUSED}
    with pytest.raises(deltalake.exceptions.DeltaError, match="Duplicate"):
        deltalake.DeltaTable(table)


@pytest.mark.parametrize("use", [append, delete, merge], ids=lambda use: use.__name__)
def test_binary_partition_values_are_stored_as_text(use: Use, tmp_path: Path) -> None:
    made = Made("binary", partition="b0", of_partition="binary")
    table = build(made, tmp_path / "made")
    of_use = {each: said for *_, each, _, said in judged(table)}
    assert of_use[use].verdict is Verdict.WRONG
    assert of_use[ids].verdict is Verdict.OK
    use(table)
    raw = deltalake.DeltaTable(table).to_pyarrow_table()["part"].to_pylist()
    assert {b"b0", None}.issuperset(raw) is (use is append)


@pytest.mark.parametrize("made", TABLES, ids=lambda made: made.name)
def test_the_verdict_is_what_happens(made: Made, tmp_path: Path) -> None:
    table = build(made, tmp_path / "made")
    refused: dict[tuple[str, Access], list[bool]] = {}
    for number, (name, access, use, right, said) in enumerate(judged(table)):
        copy = tmp_path / str(number) / made.folder
        shutil.copytree(table, copy)
        failed: Exception | None = None
        found: list[int] = []
        try:
            found = use(str(copy))
        except Exception as error:
            failed = error
        where = (name, access, said, failed, found)
        if said.verdict is Verdict.OK:
            assert failed is None, where
            assert found == right, where
        elif said.verdict is Verdict.REFUSED:
            refused.setdefault((name, access), []).append(failed is not None)
    # A constraint that cannot be planned fails a merge and no delete, an absolute path the reverse.
    assert all(any(failures) for failures in refused.values()), refused
