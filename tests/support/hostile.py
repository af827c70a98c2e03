"""Tables with every kind of damage that a log can have, by name."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.logs import Log, add, commit_info, metadata, protocol, schema_string

Make = Callable[[Path], Any]
SPARSE_BYTES = 50 << 30
_P, _M = protocol(1, 2), metadata()
_DEEP = 100_000


def make_hostile(root: Path) -> list[str]:
    """One folder for each kind of damage below `root`, and one table that is healthy."""
    for name, make in KINDS.items():
        make(root / name)
    return [str(root / name) for name in KINDS]


def healthy(root: Path) -> Log:
    return Log(root).commit(0, commit_info(), _P, _M, add()).commit(1, commit_info(), add("b"))


def raw(content: bytes, suffix: str = ".json", version: int = 1) -> Make:
    return lambda root: healthy(root).raw(version, content, suffix)


def text(*actions: Any) -> Make:
    return raw("".join(json.dumps(action) + "\n" for action in actions).encode())


def placed(put: Callable[[Path], object], suffix: str, version: int = 1) -> Make:
    """A healthy table with something else where a file of its log belongs."""

    def make(root: Path) -> None:
        path = healthy(root).path(version, suffix)
        path.unlink(missing_ok=True)
        put(path)

    return make


def checkpoint(table: pa.Table, suffix: str = ".checkpoint.parquet") -> Make:
    """A table that cannot be read without this checkpoint."""

    def make(root: Path) -> None:
        log = Log(root).commit(8, commit_info(), add())
        pq.write_table(table, log.path(7, suffix), store_schema=False)

    return make


def log_folder(put: Callable[[Path], object]) -> Make:
    def make(root: Path) -> None:
        root.mkdir()
        put(root / "_delta_log")

    return make


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, SPARSE_BYTES)


def bind(path: Path) -> None:
    # An address holds about a hundred characters only.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def state(**columns: Any) -> pa.Table:
    """The columns of a checkpoint, those that are not named as they should be."""
    whole: dict[str, Any] = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "metaData": {"id": "i", "schemaString": schema_string(), "partitionColumns": ["id"]},
    }
    return pa.table({name: [value] for name, value in {**whole, **columns}.items()})


def repeated(column_name: str, field: str, value: Any, rows: int, **others: Any) -> pa.Table:
    """One value in all rows: some kilobytes of Parquet, whatever it expands to."""
    zeros = pa.array([0]).take(pa.array([0] * rows, pa.int32())).cast(pa.int32())
    one = pa.DictionaryArray.from_arrays(zeros, pa.array([value]))
    same = {name: pa.array([other]).take(zeros) for name, other in others.items()}
    return pa.table(
        {column_name: pa.StructArray.from_arrays([one, *same.values()], [field, *same])}
    )


def link_to(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def _nested(opening: str, depth: int = _DEEP) -> bytes:
    return f'{{"metaData":{opening * depth}'.encode()


def _with_checksum(**members: Any) -> Make:
    def make(root: Path) -> None:
        log = healthy(root)
        log.commit(1, commit_info(txnId="t"), add())
        log.checksum(1, _P, _M, **{"txnId": "t", **members})

    return make


def _features(*names: str) -> Make:
    return text(protocol(3, 7, [*names], [*names]))


def _v2(*actions: Any) -> Make:
    def make(root: Path) -> None:
        log = Log(root).commit(8, commit_info(), add())
        log.checkpoint(7, *actions, suffix=".checkpoint.01234567-89ab.json")

    return make


def _domain(configuration: str) -> Make:
    def make(root: Path) -> None:
        features = ["clustering", "domainMetadata"]
        Log(root).commit(
            0,
            protocol(1, 7, None, features),
            _M,
            {"domainMetadata": {"domain": "delta.clustering", "configuration": configuration}},
        )

    return make


def _many_parts(root: Path) -> None:
    log = healthy(root)
    (log.folder / f"{1:020d}.checkpoint.{1:010d}.9999999999.parquet").write_bytes(b"PAR1")


def _gap(root: Path) -> None:
    healthy(root).commit(9, commit_info())


KINDS: dict[str, Make] = {
    "healthy": healthy,
    "commit-empty": raw(b""),
    "commit-blank": raw(b"\n" * 100),
    "commit-cut": raw(b'{"metaData":{"id'),
    "commit-binary": raw(bytes(range(256)) * 8),
    "commit-utf16": raw('{"add":{}}\n'.encode("utf-16")),
    "commit-list": raw(b"[1, 2]\n"),
    "commit-null": raw(b"null\n"),
    "commit-nan": raw(b'{"commitInfo":{"timestamp":NaN}}\n'),
    "commit-deep-list": raw(_nested("[")),
    "commit-deep-object": raw(_nested('{"a":')),
    "commit-huge-number": raw(b'{"protocol":{"minReaderVersion":' + b"9" * 9000 + b"}}\n"),
    "commit-large-number": text(protocol(10**300, 2)),
    "commit-surrogate": raw(b'{"commitInfo":{"operation":"\\ud800\\u0000"}}\n'),
    "commit-actions-are-numbers": text({"protocol": 1, "metaData": 2, "commitInfo": 3, "txn": 4}),
    "commit-actions-are-lists": text({"protocol": [], "metaData": [], "commitInfo": []}),
    "commit-info-odd": text({"commitInfo": {"timestamp": "x", "operation": {"a": 1}}}),
    "commit-info-late": text({"commitInfo": {"timestamp": 10**30, "inCommitTimestamp": -5}}),
    "commit-txn-odd": text({"txn": {"appId": {}, "version": 10**30}}),
    "commit-controls": text(commit_info("\x1b[31m\n::error::x", engineInfo="\r\x00")),
    "version-negative": text(protocol(-5, 2)),
    "version-zero": text(protocol(0, 0)),
    "version-text": text({"protocol": {"minReaderVersion": "1", "minWriterVersion": "2"}}),
    "version-float": text({"protocol": {"minReaderVersion": 1.5, "minWriterVersion": 2}}),
    "version-true": text({"protocol": {"minReaderVersion": True, "minWriterVersion": 2}}),
    "features-many": _features(*(f"feature{number}" for number in range(5000))),
    "features-long": _features("x" * 10_000_000),
    "features-empty-name": _features(""),
    "features-controls": _features("\x1b]0;x\x07\n::error::x"),
    "features-numbers": text({"protocol": {**_P["protocol"], "writerFeatures": [1]}}),
    "features-text": text({"protocol": {**_P["protocol"], "readerFeatures": "x" * 10_000_000}}),
    "schema-text": text(metadata(schema="not JSON")),
    "schema-deep": text(metadata(schema='{"type":' * _DEEP)),
    "schema-deep-whole": text(
        metadata(schema='{"fields":[{"name":"delta.","type":' * 2000 + '"long"' + "}]}" * 2000)
    ),
    "schema-deep-structs": text(
        metadata(
            schema='{"type":"struct","fields":[{"name":"a","metadata":{},"type":' * 300
            + '"long"'
            + "}]}" * 300
        )
    ),
    "schema-fields-odd": text(
        metadata(schema='{"fields":[1, {"metadata": 3, "type": ["variant"]}]}')
    ),
    "schema-number": text({"metaData": {"schemaString": 5}}),
    "partitions-odd": text({"metaData": {"schemaString": "", "partitionColumns": [1]}}),
    "configuration-list": text({"metaData": {"configuration": ["a"]}}),
    "configuration-nested": text(metadata({"delta.isolationLevel": {"a": [1]}})),
    "configuration-large": text(metadata({"delta.isolationLevel": "x" * 1_000_000})),
    "domain-deep": _domain("[" * _DEEP),
    "domain-odd": _domain('{"clusteringColumns": [[1, {}], 2, "x"]}'),
    "domain-number": _domain('{"clusteringColumns": 5}'),
    "gap": _gap,
    "parts-announced": _many_parts,
    "checksum-cut": raw(b'{"protocol":', ".crc"),
    "checksum-list": raw(b"[]", ".crc"),
    "checksum-odd-domains": _with_checksum(domainMetadata=[1, {"domain": 2}]),
    "checksum-odd-files": _with_checksum(allFiles=[1], numFiles=1, numDeletionVectorsOpt="x"),
    "checksum-odd-protocol": _with_checksum(protocol=[1], metadata="x"),
    "checksum-odd-transaction": _with_checksum(txnId={"a": []}),
    "checkpoint-protocol-number": checkpoint(state(protocol=5)),
    "checkpoint-protocol-list": checkpoint(state(protocol=[{"minReaderVersion": 1}])),
    "checkpoint-protocol-text": checkpoint(state(protocol="x")),
    "checkpoint-metadata-number": checkpoint(state(metaData=5)),
    "checkpoint-metadata-map": checkpoint(
        state(metaData={"id": {"a": 1}, "schemaString": {"b": 2}})
    ),
    "checkpoint-domain-number": checkpoint(state(domainMetadata=5)),
    "checkpoint-configuration-list": checkpoint(
        state(metaData={"id": "i", "schemaString": "{}", "configuration": ["abc", "de"]})
    ),
    "checkpoint-configuration-lists": checkpoint(
        state(metaData={"id": "i", "schemaString": "{}", "configuration": [["a", "b", "c"]]})
    ),
    "checkpoint-binary": checkpoint(state(metaData={"id": b"\xff\xfe", "schemaString": b"\xff"})),
    "checkpoint-features-numbers": checkpoint(
        state(protocol={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [1]})
    ),
    "checkpoint-versions-text": checkpoint(
        state(protocol={"minReaderVersion": "1", "minWriterVersion": "2"})
    ),
    "checkpoint-no-columns": checkpoint(pa.table({"x": [1]})),
    "checkpoint-no-rows": checkpoint(state().slice(0, 0)),
    "checkpoint-random": placed(
        lambda path: path.write_bytes(os.urandom(5000)), ".checkpoint.parquet"
    ),
    "checkpoint-magic": placed(
        lambda path: path.write_bytes(b"PAR1" + b"\xff" * 900 + b"PAR1"), ".checkpoint.parquet"
    ),
    "checkpoint-json-odd": _v2(5, [], {"protocol": 5}),
    "checkpoint-json-sidecar": _v2(
        {"checkpointMetadata": {"version": 7}},
        {"sidecar": {"path": "../../../../etc/passwd"}},
        {"sidecar": {"path": ["x"]}},
        _P,
        _M,
    ),
    "bomb-actions": checkpoint(
        repeated("protocol", "minReaderVersion", 1, 3_000_000, minWriterVersion=2)
    ),
    "bomb-schema": checkpoint(repeated("metaData", "schemaString", "x" * 1_000_000, 4800, id="i")),
    "bomb-files": checkpoint(repeated("add", "path", "x" * 1000, 4_000_000)),
    "folder-as-commit": placed(Path.mkdir, ".json"),
    "folder-as-checksum": placed(Path.mkdir, ".crc"),
    "folder-as-checkpoint": placed(Path.mkdir, ".checkpoint.parquet"),
    "log-is-a-file": log_folder(Path.touch),
}
if sys.platform != "win32":
    KINDS |= {
        "zero-as-commit": placed(link_to("/dev/zero"), ".json"),
        "zero-as-checksum": placed(link_to("/dev/zero"), ".crc"),
        "zero-as-checkpoint": placed(link_to("/dev/zero"), ".checkpoint.parquet"),
        "null-as-commit": placed(link_to("/dev/null"), ".json"),
        "pipe-as-commit": placed(os.mkfifo, ".json"),
        "pipe-as-checksum": placed(os.mkfifo, ".crc"),
        "pipe-as-checkpoint": placed(os.mkfifo, ".checkpoint.parquet"),
        "socket-as-commit": placed(bind, ".json"),
        "sparse-commit": placed(sparse, ".json"),
        "sparse-checksum": placed(sparse, ".crc"),
        "sparse-checkpoint": placed(sparse, ".checkpoint.parquet"),
        "sparse-json-checkpoint": placed(sparse, ".checkpoint.01234567-89ab.json"),
        "commit-dangles": placed(link_to("nowhere"), ".json"),
        "commit-loops": placed(lambda path: path.symlink_to(path.name), ".json"),
        "log-dangles": log_folder(link_to("nowhere")),
        "log-loops": log_folder(link_to("_delta_log")),
        "log-is-a-pipe": log_folder(os.mkfifo),
    }
