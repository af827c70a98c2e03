"""Random tables that are written by hand, without an engine, and read so again.

They have what engines of every kind leave behind: paths that are absolute or escaped, partition
values of any kind, mapped columns, types that few engines store, names with blanks, constraints,
and features that only the protocol lists.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlparse

import pyarrow as pa
from pyarrow import parquet

_DAY, _UTC = datetime.date(2026, 2, 3), datetime.UTC
_AT = datetime.datetime(2026, 2, 3, 4, 5, 6)
_NOTHING: Any = None


class _Kind(NamedTuple):
    """A column that a table may have."""

    name: str
    type: Any
    arrow: pa.DataType
    values: tuple[Any, ...]
    parts: tuple[tuple[str | None, Any], ...] = ()
    """partition values as they are stored, and as they are read"""


def _struct(name: str, type_: str) -> dict[str, Any]:
    field = {"name": name, "type": type_, "nullable": True, "metadata": {}}
    return {"type": "struct", "fields": [field]}


_KINDS = (
    _Kind(
        *("word", "string", pa.string(), ("a", "é b", None)),
        tuple((text, text) for text in ("a", "a b", "é", "x=1/y", "50%", "%20", "it's", "a:b")),
    ),
    _Kind("small", "integer", pa.int32(), (1, 2, None), (("7", 7), ("-7", -7), (None, None))),
    _Kind("tiny", "byte", pa.int8(), (1, 2, None), (("7", 7),)),
    _Kind("ratio", "double", pa.float64(), (1.5, -2.5, None), (("1.5", 1.5),)),
    _Kind("flag", "boolean", pa.bool_(), (True, False, None), (("true", True), ("false", False))),
    _Kind("day", "date", pa.date32(), (_DAY, None), (("2026-02-03", _DAY), (None, None))),
    _Kind(
        *("at", "timestamp", pa.timestamp("us", "UTC"), (_AT.replace(tzinfo=_UTC), None)),
        (("2026-02-03 04:05:06", _AT), ("2026-02-03T04:05:06.000000Z", _AT)),
    ),
    _Kind("noon", "timestamp_ntz", pa.timestamp("us"), (_AT, None)),
    _Kind(
        *("price", "decimal(10,2)", pa.decimal128(10, 2), (decimal.Decimal("1.50"), None)),
        (("1.50", decimal.Decimal("1.50")),),
    ),
    _Kind("raw", "binary", pa.binary(), (b"\x00\xff", None)),
    _Kind("pair", _struct("x", "long"), pa.struct([("x", pa.int64())]), ({"x": 1}, None)),
    _Kind(
        *("listed", {"type": "array", "elementType": "integer", "containsNull": True}),
        *(pa.list_(pa.int32()), ([1, None], [], None)),
    ),
    _Kind(
        "lookup",
        {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
        *(pa.map_(pa.string(), pa.int64()), ([("k", 1)], None)),
    ),
    _Kind("nothing", "void", pa.null(), (None,)),
    _Kind("odd name", "string", pa.string(), ("odd", None)),
    _Kind("Größe", "integer", pa.int32(), (1, None), (("7", 7),)),
)
_INNER = 100
"""what the column id of a struct's field is above the struct's"""
_ID = _Kind("id", "long", pa.int64(), ())
_FEATURES = (
    *("domainMetadata", "rowTracking", "inCommitTimestamp", "changeDataFeed", "clustering"),
    *("allowColumnDefaults", "generatedColumns", "identityColumns", "checkConstraints"),
    *("icebergCompatV1", "materializePartitionColumns", "deletionVectors", "v2Checkpoint"),
    *("vacuumProtocolCheck", "typeWidening", "variantType", "timestampNtz"),
)
_READERS = frozenset(_FEATURES[-6:]) | {"columnMapping"}
_CHECKS = (
    "id >= 0",
    "id < 1000",
    "id > -1 and (word is null or word <> 'z')",
    "word is null or length(word) < 9",
)


def make(seed: int, folder: Path) -> str:
    """Write the table of a seed into a folder, and return its path."""
    random = Random(f"by hand {seed}")
    kinds = [_ID, *random.sample(_KINDS, random.randint(1, 7))]
    mapping = random.choice(("", "", "", "name", "id"))
    parted = [k for k in kinds if k.parts and random.random() < 0.35][:2]
    configuration = {"delta.columnMapping.mode": mapping} if mapping else {}
    if mapping:
        configuration["delta.columnMapping.maxColumnId"] = str(len(kinds) + _INNER)
    if random.random() < 0.3:
        check = random.choice(_CHECKS if any(k.name == "word" for k in kinds) else _CHECKS[:2])
        configuration["delta.constraints.sane"] = check
    for key in ("delta.enableChangeDataFeed", "delta.appendOnly"):
        if random.random() < 0.1:
            configuration[key] = "true"
    physical = {k.name: f"col-{n}" if mapping else k.name for n, k in enumerate(kinds)}
    fields = [_field(k, n, physical[k.name], mapping) for n, k in enumerate(kinds, 1)]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1795000000000, "operation": "WRITE"}},
        {"protocol": _protocol(random, configuration, kinds)},
        {
            "metaData": {
                "id": f"by-hand-{seed}",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [k.name for k in parted],
                "configuration": configuration,
                "createdTime": 1795000000000,
            }
        },
    ]
    absolute = random.random() < 0.2
    for number in range(random.randint(1, 3)):
        actions.append({"add": _file(random, number, folder, kinds, parted, physical, absolute)})
    _damage(Random(f"damage by hand {seed}"), actions[-1]["add"])
    _mistype(Random(f"statistics by hand {seed}"), actions[-1]["add"], [*physical.values()])
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{0:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    return str(folder)


_MEMBERS = ("size", "modificationTime", "dataChange", "partitionValues", "stats")


def _damage(random: Random, added: dict[str, Any]) -> None:
    """Leave out a required member of one file in a tenth of the tables, or break its statistics.

    It draws from a source of its own: the seeds of earlier releases give the same tables otherwise.
    """
    if random.random() >= 0.1:
        return
    name = random.choice(_MEMBERS)
    if name == "stats":
        added[name] = random.choice(("", "{", "[]"))
    elif not (name == "partitionValues" and added[name]):
        del added[name]


_NOT_STATISTICS = ('{"a":}', '{"numRecords":"x"}', '{"numRecords":1}}', '{"numRecords":NaN}')
_MISTYPED = ("x", True, {}, [], 1 << 70, {"x": "y"})


def _mistype(random: Random, added: dict[str, Any], names: list[str]) -> None:
    """Give one file of a sixth of the tables statistics that only look right."""
    stats = added.get("stats") or ""
    if random.random() >= 1 / 6 or not stats.endswith("}"):
        return
    if random.random() < 0.2:
        added["stats"] = random.choice(_NOT_STATISTICS)
        return
    part = random.choice(("minValues", "maxValues", "nullCount"))
    odd = {random.choice(names): random.choice(_MISTYPED)}
    added["stats"] = json.dumps({**json.loads(stats), part: random.choice((odd, odd, odd, []))})


def _field(kind: _Kind, number: int, physical: str, mapping: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    type_ = kind.type
    if mapping:
        metadata["delta.columnMapping.id"] = number
        metadata["delta.columnMapping.physicalName"] = physical
        if isinstance(type_, dict) and type_["type"] == "struct":
            inner = {
                "delta.columnMapping.id": number + _INNER,
                "delta.columnMapping.physicalName": "x",
            }
            type_ = {"type": "struct", "fields": [{**type_["fields"][0], "metadata": inner}]}
    return {"name": kind.name, "type": type_, "nullable": True, "metadata": metadata}


def _protocol(random: Random, configuration: dict[str, str], kinds: list[_Kind]) -> dict[str, Any]:
    needed = {"columnMapping"} if "delta.columnMapping.mode" in configuration else set()
    needed |= {"timestampNtz"} if any(k.type == "timestamp_ntz" for k in kinds) else set()
    needed |= {"checkConstraints"} if "delta.constraints.sane" in configuration else set()
    needed |= {"changeDataFeed"} if "delta.enableChangeDataFeed" in configuration else set()
    if random.random() < 0.5 and "timestampNtz" not in needed:
        if "columnMapping" in needed:
            return {"minReaderVersion": 2, "minWriterVersion": random.choice((5, 6))}
        least = 4 if "changeDataFeed" in needed else 3 if needed else 2
        return {"minReaderVersion": 1, "minWriterVersion": random.randint(least, 4)}
    listed = needed | {"appendOnly", "invariants"}
    listed |= {*random.sample(_FEATURES, random.choice((0, 1, 1, 2)))}
    listed |= {"domainMetadata"} if listed & {"clustering", "rowTracking"} else set()
    listed |= {"columnMapping"} if "icebergCompatV1" in listed else set()
    readers = sorted(listed & _READERS)
    found: dict[str, Any] = {"minReaderVersion": 3 if readers else 1, "minWriterVersion": 7}
    if readers:
        found["readerFeatures"] = readers
    return {**found, "writerFeatures": sorted(listed)}


def _file(
    random: Random,
    number: int,
    folder: Path,
    kinds: list[_Kind],
    parted: list[_Kind],
    physical: dict[str, str],
    absolute: bool,
) -> dict[str, Any]:
    values = {k.name: random.choice(k.parts)[0] for k in parted}
    place = "/".join(
        f"{physical[name]}={'__HIVE_DEFAULT_PARTITION__' if v is None else quote(v, safe=' ')}"
        for name, v in values.items()
    )
    path = folder / place / f"part-{number}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    ids = [number * 10, number * 10 + 1, number * 10 + 2]
    arrays, fields = [], []
    for at, kind in enumerate(kinds, 1):
        if kind in parted or pa.types.is_null(kind.arrow):
            continue
        cells = ids if kind is _ID else [random.choice(kind.values) for _ in ids]
        metadata = {"PARQUET:field_id": str(at)} if physical["id"] != "id" else None
        arrow = kind.arrow
        if metadata and pa.types.is_struct(arrow):
            inner = {"PARQUET:field_id": str(at + _INNER)}
            arrow = pa.struct([pa.field("x", pa.int64(), metadata=inner)])
        fields.append(pa.field(physical[kind.name], arrow, metadata=metadata))
        arrays.append(pa.array(cells, arrow))
    parquet.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
    stored = str(path.relative_to(folder))
    return {
        "path": path.as_uri() if absolute else quote(stored, safe="/=:'-_.~"),
        "partitionValues": {physical[name]: value for name, value in values.items()},
        "size": path.stat().st_size,
        "modificationTime": 1795000000000,
        "dataChange": True,
        "stats": json.dumps({"numRecords": len(ids)}),
    }


def rows(path: str) -> list[dict[str, Any]]:
    """The rows of such a table, also after others wrote to it.

    Raises:
        NotImplementedError: for what no client writes to such tables, as deletion vectors.
    """
    live: dict[str, dict[str, Any]] = {}
    schema: dict[str, Any] = {}
    for file in sorted((Path(path) / "_delta_log").glob("*.json")):
        for line in file.read_text().splitlines():
            action = json.loads(line)
            if "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
            if "add" in action:
                live[action["add"]["path"]] = action["add"]
    return [row for added in live.values() for row in _rows_of(path, added, schema["fields"])]


def _rows_of(path: str, added: dict[str, Any], fields: Any) -> Iterator[dict[str, Any]]:
    if added.get("deletionVector"):
        raise NotImplementedError("a deletion vector")
    stored = added["path"]
    found = urlparse(stored) if stored.startswith("file:") else None
    file = Path(unquote(found.path)) if found else Path(path) / unquote(stored)
    parts = {k.name: dict(k.parts) for k in _KINDS}
    for row in parquet.ParquetFile(file).read().to_pylist():
        made = {}
        for field in fields:
            name = field["name"]
            physical = field["metadata"].get("delta.columnMapping.physicalName", name)
            if physical in added.get("partitionValues", {}):
                text = added["partitionValues"][physical] or None
                made[name] = parts[name].get(text, text)
            else:
                made[name] = row.get(physical)
        yield made
