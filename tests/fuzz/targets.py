"""What is fuzzed: for each target its whole documents, how they are damaged, and what must hold.

A target may answer, or refuse with a `DeltaprotoError`. Anything else that is raised is an escape.
"""

from __future__ import annotations

import datetime
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import IO, Any, NamedTuple
from unicodedata import category

import pyarrow as pa
import pyarrow.parquet as pq

from deltaproto.cli.options import parse_pairs
from deltaproto.errors import DeltaprotoError, SavedError, TableError
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.inspection.inspect import run_rules
from deltaproto.inspection.saved import read_saved
from deltaproto.location import Location, LocationKind, locate
from deltaproto.plan_inputs.from_log import survey_log
from deltaproto.planning.plan import CHECKSUM_FIELD, compute_checksum
from deltaproto.policy.document import load_policy
from deltaproto.policy.local_catalog import load_local_catalog
from deltaproto.policy.rules import all_rules
from deltaproto.protocol.table_state import TableState
from deltaproto.render.inspection_json import table_fields
from deltaproto.render.terminal import single_line
from deltaproto.tables.log.reader import LogReader
from deltaproto.tables.storage import open_log
from deltaproto.tables.storage.interface import FolderEntry, file_gone_error
from deltaproto.tables.storage.through_spark import hadoop_conf
from tests.fuzz import mutate
from tests.support.logs import (
    action_table,
    add,
    column,
    commit_info,
    metadata,
    protocol,
    schema_string,
)

ROOT = Path(__file__).parents[2]
FEATURES = ["appendOnly", "deletionVectors", "domainMetadata", "rowTracking", "v2Checkpoint"]
READERS = ["deletionVectors", "v2Checkpoint"]
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 40}
ACTIONS: tuple[dict[str, Any], ...] = (
    commit_info("CREATE TABLE", operationParameters={"properties": '{"a":"b"}'}),
    protocol(3, 7, READERS, FEATURES),
    metadata(
        {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2", "owner": "me"},
        schema_string(column("id"), column("price"), column("part")),
        ["part"],
    ),
    {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}},
    add("part=1/a.parquet", deletionVector=VECTOR, baseRowId=0, partitionValues={"part": "1"}),
    {"txn": {"appId": "x", "version": 1}},
)
CHANGES: tuple[dict[str, Any], ...] = (
    commit_info("DELETE", txnId="1"),
    {"remove": {"path": "part=1/a.parquet", "dataChange": True, "deletionVector": VECTOR}},
    add("b.parquet", baseRowId=3, stats='{"numRecords":3}'),
)


class Memory:
    """A log that is held in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def list(self) -> list[FolderEntry]:
        return [FolderEntry(name, len(data), 1_000_000) for name, data in self.files.items()]

    def list_dated(self) -> tuple[FolderEntry, ...]:
        return tuple(self.list())

    def list_staged(self) -> tuple[FolderEntry, ...]:
        return ()

    def open(self, name: str) -> IO[bytes]:
        if name not in self.files:
            raise file_gone_error(name)
        return io.BytesIO(self.files[name])


class Target(NamedTuple):
    """One thing that takes what others wrote."""

    corpus: Callable[[], Sequence[bytes]]
    damage: Callable[[Random, bytes], bytes]
    run: Callable[[bytes], object]

    def case(self, seed: int) -> bytes:
        """The damaged document of a seed."""
        return mutate.of(Random(seed), self.corpus(), self.damage)

    def holds(self, document: bytes) -> bool:
        """Whether it was answered; False when it was refused.

        Raises:
            Exception: whatever escapes.
        """
        try:
            self.run(document)
        except DeltaprotoError as error:
            _one_line(error)
            return False
        return True


def _one_line(error: DeltaprotoError) -> None:
    assert error.message
    shown = single_line(error.message)
    assert not any(category(each) == "Cc" for each in set(shown)), "what is shown is one line"


def _lines(*actions: dict[str, Any]) -> bytes:
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def _commit(version: int) -> str:
    return f"{version:020d}.json"


COMMITS = {_commit(0): _lines(*ACTIONS), _commit(1): _lines(*CHANGES)}
PLAIN = {_commit(0): _lines(commit_info(), protocol(1, 2), metadata()), _commit(1): b""}


def seen(files: Mapping[str, bytes], *, checksums: bool = True) -> TableState:
    """What the log reader says of a log, with everything that is made of it."""
    store = Memory(files)
    location = Location("/t", LocationKind.PATH, "file:///t", "/t")
    reader = LogReader(use_checksums=checksums, look_in_files=True, every_statistics=True)
    state = reader.read_from(location, store)
    json.dumps(table_fields(run_rules(state))).encode("utf-8", "surrogatepass")
    survey_log(store)
    return state


def _log_with(name: str, document: bytes) -> object:
    return seen({**COMMITS, name: document})


@cache
def _checksum() -> bytes:
    document = {
        "txnId": "1",
        "tableSizeBytes": 1,
        "numFiles": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [ACTIONS[3]["domainMetadata"]],
        "metadata": ACTIONS[2]["metaData"],
        "protocol": ACTIONS[1]["protocol"],
        "allFiles": [ACTIONS[4]["add"]],
    }
    return json.dumps(document).encode()


@cache
def checkpoints() -> tuple[bytes, ...]:
    """Checkpoints as several writers would lay them out."""
    table = action_table(ACTIONS[1:5])
    found = []
    for settings in (
        {"compression": "snappy"},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0"},
        {"compression": "gzip", "row_group_size": 2, "write_statistics": False},
        {"compression": "lz4", "data_page_size": 16},
    ):
        out = io.BytesIO()
        pq.write_table(table, out, **settings)
        found.append(out.getvalue())
    return tuple(found)


def same_protocol(document: bytes) -> object:
    """A checkpoint: where we answer and Arrow does too, the protocol is the same."""
    state = seen({f"{1:020d}.checkpoint.parquet": document, _commit(1): b""}, checksums=False)
    try:
        read = pq.ParquetFile(io.BytesIO(document)).read
        column = read(columns=["protocol"], use_threads=False)["protocol"]
        found = [row for row in column.to_pylist() if row and row["minReaderVersion"] is not None]
    except (pa.ArrowException, OSError, KeyError, ValueError, UnicodeDecodeError):
        return state
    if len(found) == 1:
        theirs = found[0]
        mine = state.protocol
        assert (mine.min_reader_version, mine.min_writer_version) == (
            theirs["minReaderVersion"],
            theirs["minWriterVersion"],
        )
        if "writerFeatures" in theirs:
            listed = frozenset(theirs["writerFeatures"] or ())
            assert (mine.writer_features or frozenset()) == listed
    return state


def v2_checkpoint(document: bytes) -> object:
    """A V2 checkpoint in JSON, with a sidecar."""
    return seen(
        {
            f"{1:020d}.checkpoint.{'a' * 8}-0000-0000-0000-{'0' * 12}.json": document,
            _commit(1): b"",
            "_sidecars/s.parquet": checkpoints()[0],
        },
        checksums=False,
    )


def as_deltalake(document: bytes) -> object:
    """A commit: where we answer and deltalake does too, they say the same."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    files = {_commit(0): document}
    state = seen(files)
    with Folder(files) as table:
        try:
            opened = DeltaTable(table)
            theirs, described = opened.protocol(), opened.metadata()
        except (DeltaError, ValueError, OSError, OverflowError):
            return state
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return state
    mine = state.protocol
    features = (theirs.reader_features, theirs.writer_features)
    assert (mine.min_reader_version, mine.min_writer_version) == (
        theirs.min_reader_version,
        theirs.min_writer_version,
    )
    own = (mine.reader_features, mine.writer_features)
    assert [set(each or ()) for each in own] == [set(each or ()) for each in features]
    assert state.metadata.id == described.id
    assert list(state.metadata.partition_columns) == described.partition_columns
    assert dict(state.metadata.configuration) == described.configuration
    return state


class Folder:
    """A log on disk for a while."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._made = tempfile.TemporaryDirectory(dir=_memory())

    def __enter__(self) -> str:
        log = Path(self._made.name, "_delta_log")
        log.mkdir()
        for name, data in self._files.items():
            (log / name).write_bytes(data)
        return self._made.name

    def __exit__(self, *_: object) -> None:
        self._made.cleanup()


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _file(use: Callable[[str], object], document: bytes, suffix: str = ".json") -> object:
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=_memory()) as file:
        file.write(document)
        file.flush()
        return use(file.name)


@cache
def _policies() -> tuple[bytes, ...]:
    found = [file.read_bytes() for file in sorted((ROOT / "policies").glob("*.yaml"))]
    return (*found, OWN_CLIENT)


OWN_CLIENT = b"""policy_version: 1
clients:
- client: ours@2.1
  access: [read, append]
define:
  ours:
    name: a loader
    versions: dotted
    ranges:
    - from: '1'
      before: '3'
      read: {legacy: [1, 2], features: [deletionVectors]}
      write: {legacy: [1, 2]}
      access: [read, append]
"""


def policy(document: bytes) -> object:
    """A policy, and the clients that it defines."""
    rules = [rule.id for rule in all_rules()]
    today = datetime.date(2026, 1, 1)

    def use(path: str) -> object:
        loaded = load_policy(path, rules=rules, today=today)
        return load_local_catalog([], loaded)

    return _file(use, document, ".yaml")


@cache
def _clients() -> tuple[bytes, ...]:
    names = ("duckdb", "trino", "polars", "delta-standalone", "clickhouse")
    folder = ROOT / "deltaproto" / "clients" / "data"
    return tuple((folder / f"{name}.yaml").read_bytes() for name in names)


def clients(document: bytes) -> object:
    """A file of a site's own clients, and each of them asked for."""

    def use(path: str) -> object:
        catalog = load_local_catalog([path])
        for client in catalog.clients():
            if client.ranges and client.newest.start is not None:
                catalog.resolve(f"{client.id}@{client.newest.start}")
        return catalog

    return _file(use, document, ".yaml")


@cache
def _plans() -> tuple[bytes, ...]:
    from deltaproto import plan_downgrade, plan_upgrade, to_dict
    from deltaproto.render.interface import dump_json, envelope

    with Folder(COMMITS) as table:
        made = [
            plan_downgrade(table, lowest=True, include_enabled=True),
            plan_downgrade(table, for_clients=["trino@422"]),
            plan_upgrade(table, enable=["columnMapping"], clients=["polars@1.20.0"]),
        ]
        return tuple(dump_json(envelope(p.command, to_dict(p))).encode() for p in made)


def _damaged_plan(random: Random, document: bytes) -> bytes:
    damaged = mutate.json_of(random, document)
    if random.random() < 0.5:
        return damaged
    try:
        entry = json.loads(damaged)
        entry[CHECKSUM_FIELD] = compute_checksum(entry)
        return json.dumps(entry).encode()
    except Exception:
        return damaged


def plans(document: bytes) -> object:
    """A plan file. Who knows the seal gets past it, and no further than data can."""

    def use(path: str) -> object:
        for each in read_plans(path):
            assert isinstance(each, LoadedPlan) or each.message
        return None

    return _file(use, document)


@cache
def _saved() -> tuple[bytes, ...]:
    from deltaproto import inspect_table, to_dict
    from deltaproto.render.interface import dump_json, envelope

    with Folder(COMMITS) as table:
        found = to_dict(inspect_table(table, look_in_files=True))
    error = {"table": "x", "error": {"code": "not-found", "message": "no", "hint": ""}}
    document = envelope("inspect", {"tables": [found, error]})
    return (
        dump_json(document).encode(),
        json.dumps(envelope("inspect", {"tables": [found]})).encode(),
    )


def saved(document: bytes) -> object:
    """A saved inspection, and what a plan makes of each of its tables."""
    from deltaproto.inspection.age import SavedAges
    from deltaproto.inspection.saved import saved_entries
    from deltaproto.plan_inputs.from_snapshot import input_from_saved
    from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade

    def use(path: str) -> object:
        for found in read_saved(path):
            assert found.table is not None or isinstance(found, SavedError)
        ages = SavedAges(path, datetime.datetime.now(datetime.UTC))
        for entry in saved_entries(path, ages):
            try:
                given = input_from_saved(entry, path, ages)
            except TableError:
                continue
            if len(document) % 4 == 0:
                plan_downgrade(given, DowngradeRequest(lowest=True, include_enabled=True))
        return None

    return _file(use, document)


NAMES = (
    "/data/orders",
    "file:///data/a%20b",
    "s3://bucket/x/y",
    "abfss://c@acc.dfs.core.windows.net/t",
    "gs://b/t",
    "catalog.schema.table",
    "`odd name`.t",
    "delta.`/x`",
    "https://host/t?sig=1",
)


def names(document: bytes) -> object:
    """A list of tables, a line each: located, and those on this machine read."""
    text = document.decode("utf-8", "surrogateescape")
    for line in text.splitlines()[:20]:
        try:
            location = locate(line)
        except DeltaprotoError:
            continue
        if location.path is not None:
            try:
                LogReader().read(line)
            except DeltaprotoError as error:
                _one_line(error)
    return None


OPTIONS = (
    "aws_access_key_id=AKIAABCDEFGHIJKLMNOP",
    "AWS_SECRET_ACCESS_KEY=canary/secret+key",
    "aws_region=eu-central-1",
    "endpoint_url=http://localhost:1/",
    "azure_storage_account_name=acc",
    "azure_storage_account_key=Y2FuYXJ5c2VjcmV0",
    "azure_storage_sas_token=?sv=1&sig=canarysig",
    "timeout=5s",
    "aws_conditional_put=etag",
)
_TABLES = ("s3://bucket/t", "abfss://c@acc.dfs.core.windows.net/t", "gs://b/t", "s3a://b/t")
_SECRETS = ("canary/secret+key", "Y2FuYXJ5c2VjcmV0", "canarysig")


def options(document: bytes) -> object:
    """Storage options: a store is set up, and Spark's settings; what fails tells no secret."""
    text = document.decode("utf-8", "surrogateescape")
    given = [line for line in text.splitlines() if line]
    try:
        found = parse_pairs(given, "--storage-option")
        hadoop_conf(found)
        # One store a document: to set one up takes longer than everything else.
        table = _TABLES[len(document) % len(_TABLES)]
        open_log(locate(table), found)
    except DeltaprotoError as error:
        _tells_nothing(error)
        raise
    return None


def _tells_nothing(error: DeltaprotoError) -> None:
    said = f"{error.message} {error.hint}"
    assert not any(secret in said for secret in _SECRETS), said


_json = mutate.json_of
_json_lines = partial(mutate.json_of, lines=True)
TARGETS: dict[str, Target] = {
    "commit": Target(lambda: list(COMMITS.values()), _json_lines, partial(_log_with, _commit(1))),
    "first-commit": Target(
        lambda: [COMMITS[_commit(0)], PLAIN[_commit(0)]], _json_lines, as_deltalake
    ),
    "checksum": Target(lambda: [_checksum()], _json, partial(_log_with, f"{1:020d}.crc")),
    "last-checkpoint": Target(
        lambda: [b'{"version":1,"size":4,"parts":2,"v2Checkpoint":{"path":"x"}}'],
        _json,
        partial(_log_with, "_last_checkpoint"),
    ),
    "checkpoint": Target(checkpoints, mutate.bytes_of, same_protocol),
    "v2-checkpoint": Target(
        lambda: [
            _lines(
                {"checkpointMetadata": {"version": 1}},
                *ACTIONS[1:4],
                {"sidecar": {"path": "s.parquet", "sizeInBytes": 9, "modificationTime": 1}},
            )
        ],
        _json_lines,
        v2_checkpoint,
    ),
    "policy": Target(_policies, mutate.bytes_of, policy),
    "clients": Target(_clients, mutate.bytes_of, clients),
    "plan": Target(_plans, _damaged_plan, plans),
    "saved-inspection": Target(_saved, _json, saved),
    "table-list": Target(lambda: ["\n".join(NAMES).encode()], mutate.bytes_of, names),
    "storage-options": Target(lambda: ["\n".join(OPTIONS).encode()], mutate.bytes_of, options),
}
