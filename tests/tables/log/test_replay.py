"""Random logs, each version of them against a plain replay of the commits."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.errors import ErrorCode, TableError
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.protocol import Protocol
from deltaproto.protocol.table_state import NoteKind, TableState
from deltaproto.tables.log.commits import read_commits
from deltaproto.tables.log.files import build_listing
from deltaproto.tables.log.live_files import last_type_change
from deltaproto.tables.log.reader import LogReader, protocol_changes
from deltaproto.tables.storage.local import LocalLogStore
from tests.support.examples import examples
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

CLUSTERING = "delta.clustering"
# Delta writes no domains to a table whose protocol lacks them.
PROTOCOLS = (
    protocol(1, 7, None, ["domainMetadata"]),
    protocol(2, 7, None, ["columnMapping", "domainMetadata"]),
    protocol(3, 7, ["deletionVectors"], ["clustering", "deletionVectors", "domainMetadata"]),
)
COLUMNS = schema_string(column("id"), column("day"))
METADATA = (
    metadata({"a": "b"}, COLUMNS),
    metadata({"delta.appendOnly": "true"}, COLUMNS),
    metadata({}, schema_string(column("id"))),
)


def domain(name: str, text: str, removed: bool) -> dict[str, Any]:
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": removed}}


domains = st.builds(
    domain,
    st.sampled_from([CLUSTERING, "mine"]),
    st.sampled_from(['{"clusteringColumns":[["id"]]}', '{"clusteringColumns":[["day"],["id"]]}']),
    st.booleans(),
)
rows = st.builds(
    lambda path, vector: add(
        path, **({"deletionVector": {"storageType": "u", "pathOrInlineDv": "x"}} if vector else {})
    ),
    st.sampled_from(["p", "s3://other/q", "%25ä"]),
    st.booleans(),
)


class Made(NamedTuple):
    """A log: its commits, and at which versions it has what else."""

    commits: list[list[dict[str, Any]]]
    checkpoints: dict[int, str]
    """classic, v2, json or damaged, by version"""
    checksums: dict[int, str]
    """honest, other (of another transaction) or damaged, by version"""
    cleaned: int
    """commits below this version are deleted, if a good checkpoint is there"""


@st.composite
def logs(draw: st.DrawFn) -> Made:
    count = draw(st.integers(1, 6))
    commits = []
    for version in range(count):
        info = commit_info(f"OP{version}", txnId=f"t{version}", inCommitTimestamp=version * 1000)
        first = version == 0
        chosen = [draw(st.sampled_from(PROTOCOLS))] if first or draw(st.booleans()) else []
        if first or draw(st.booleans()):
            chosen.append(draw(st.sampled_from(METADATA)))
        named = draw(
            st.lists(domains, max_size=2, unique_by=lambda d: d["domainMetadata"]["domain"])
        )
        rest = [*chosen, *named, *draw(st.lists(rows, max_size=2))]
        commits.append([info, *draw(st.permutations(rest))])
    versions = st.sampled_from(range(count))
    kinds = st.sampled_from(["classic", "v2", "json", "damaged"])
    sums = st.sampled_from(["honest", "other", "damaged"])
    return Made(
        commits,
        draw(st.dictionaries(versions, kinds, max_size=3)),
        draw(st.dictionaries(versions, sums, max_size=3)),
        draw(versions),
    )


class Expected(NamedTuple):
    """The state of one version by plain replay: the last action of each kind wins."""

    protocol: dict[str, Any]
    metadata: dict[str, Any]
    domains: dict[str, str]


def replayed(made: Made, version: int) -> Expected:
    found: dict[str, Any] = {}
    live: dict[str, str] = {}
    for action in itertools.chain(*made.commits[: version + 1]):
        for kind in ("protocol", "metaData"):
            if kind in action:
                found[kind] = action
        if "domainMetadata" in action:
            each = action["domainMetadata"]
            live.pop(each["domain"], None)
            if not each["removed"]:
                live[each["domain"]] = each["configuration"]
    return Expected(found["protocol"], found["metaData"], live)


UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
SUFFIX = {
    "classic": ".checkpoint.parquet",
    "v2": f".checkpoint.{UUID}.parquet",
    "json": f".checkpoint.{UUID}.json",
}


def write(made: Made, root: Path) -> tuple[Log, int]:
    """Write the log; return the oldest version that it can still rebuild."""
    shutil.rmtree(root, ignore_errors=True)
    log = Log(root)
    for version, actions in enumerate(made.commits):
        log.commit(version, *actions)
    good = [version for version, kind in made.checkpoints.items() if kind != "damaged"]
    for version, kind in made.checkpoints.items():
        if kind == "damaged":
            log.raw(version, b"PAR1 damaged PAR1", SUFFIX["classic"])
            continue
        state = replayed(made, version)
        named = [domain(name, text, False) for name, text in state.domains.items()]
        log.checkpoint(version, state.protocol, state.metadata, *named, suffix=SUFFIX[kind])
    for version, kind in made.checksums.items():
        state = replayed(made, version)
        if kind == "damaged":
            log.raw(version, b'{"txnId": "t', ".crc")
            continue
        named = [domain(name, text, False) for name, text in state.domains.items()]
        log.checksum(
            version,
            state.protocol,
            state.metadata,
            txnId=f"t{version}" if kind == "honest" else "another",
            domainMetadata=[each["domainMetadata"] for each in named],
            inCommitTimestampOpt=version * 1000,
        )
    oldest = max((version for version in good if version <= made.cleaned), default=None)
    if oldest is None:
        return log, 0
    for version in range(oldest):
        log.path(version, ".json").unlink()
    # Delta keeps the commit of the checkpoint, too.
    return log, oldest


def assert_state(state: TableState, expected: Expected, made: Made, version: int) -> None:
    assert state.version == version
    assert state.protocol == Protocol.stored(expected.protocol["protocol"])
    assert state.metadata == Metadata.stored(expected.metadata["metaData"])
    if state.domains is not None:
        assert state.domains == expected.domains
        text = expected.domains.get(CLUSTERING)
        columns = () if text is None else ("id",) if "day" not in text else ("day", "id")
        assert state.clustering_columns == columns
    at_checkpoint = made.checkpoints.get(version, "damaged") != "damaged"
    if state.last_commit or not at_checkpoint:
        assert state.last_commit == made.commits[version][0]["commitInfo"]
        assert state.traces[Trace.COMMIT_TIMESTAMP] is True


@settings(max_examples=examples(50))
@given(made=logs(), checksums=st.booleans(), every=st.booleans())
def test_each_version_is_what_a_plain_replay_gives(
    made: Made, checksums: bool, every: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log, oldest = write(made, tmp_path_factory.getbasetemp() / "replayed")
    reader = LogReader(use_checksums=checksums, every_commit=every)
    newest = len(made.commits) - 1
    for version in range(newest + 1):
        if version < oldest and made.checkpoints.get(version, "damaged") == "damaged":
            with pytest.raises(TableError) as caught:
                reader.read(log.table, version)
            assert caught.value.code in (ErrorCode.NOT_FOUND, ErrorCode.CORRUPT_LOG)
            continue
        state = reader.read(log.table, version)
        assert_state(state, replayed(made, version), made, version)
        kinds = {note.kind for note in state.notes}
        assert NoteKind.CHECKPOINT_UNREADABLE not in kinds or "damaged" in made.checkpoints.values()
        lies = checksums and made.checksums.get(version) == "other"
        assert (NoteKind.CHECKSUM_CONTRADICTS in kinds) <= lies
    last = reader.read(log.table)
    assert last.version == newest
    assert_state(last, replayed(made, newest), made, newest)


@settings(max_examples=examples(40))
@given(made=logs())
def test_commits_and_changes_are_those_of_a_plain_reading(
    made: Made, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log, oldest = write(made, tmp_path_factory.getbasetemp() / "replayed")
    store = LocalLogStore(log.table)
    listing = build_listing(store.list())
    there = [version for version in range(len(made.commits)) if version >= oldest]
    found = [*read_commits(store, listing)]
    assert [each.version for each in found] == there[::-1]
    for each in found:
        actions = made.commits[each.version]
        assert each.info == actions[0]["commitInfo"]
        assert (each.operation, each.timestamp) == (f"OP{each.version}", each.version * 1000)
        stored = [action["protocol"] for action in actions if "protocol" in action]
        assert each.protocol == (Protocol.stored(stored[0]) if stored else None)
        kept = [action["metaData"] for action in actions if "metaData" in action]
        assert each.metadata == (Metadata.stored(kept[0]) if kept else None)
        assert each.problem is None
    newest = there[-1]
    expected = []
    if oldest:
        # The state before the first commit is in the checkpoint before it, or else its own.
        kind = made.checkpoints.get(oldest - 1, "damaged")
        base = oldest if kind == "damaged" else oldest - 1
        expected.append((base, Protocol.stored(replayed(made, base).protocol["protocol"])))
    for version in there:
        stored = [action["protocol"] for action in made.commits[version] if "protocol" in action]
        expected += [(version, Protocol.stored(each)) for each in stored]
    found_changes = protocol_changes(store, listing, newest)
    assert [(each.version, each.protocol) for each in found_changes] == expected
    assert [each.commit_info.get("operation") for each in found_changes[bool(oldest) :]] == [
        f"OP{version}" for version, _ in expected[bool(oldest) :]
    ]


def test_a_damaged_commit_is_a_problem_and_the_others_are_read(log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata()).raw(1, b"{").commit(
        2,
        commit_info("W", userName="ann", clientVersion="c"),
        {"txn": {"appId": "q", "version": 7}},
        {"txn": {"appId": "r", "version": "x"}},
    )
    log.raw(3, b'{"protocol":{"minReaderVersion":1}}')
    store = LocalLogStore(log.table)
    third, second, first, zero = read_commits(store, build_listing(store.list()))
    assert third.problem is not None
    assert third.problem.message.startswith(f"{3:020}.json: malformed protocol action")
    assert (second.transactions, second.user, second.engine) == ((("q", 7),), "ann", "c")
    assert second.timestamp == 1
    assert first.problem is not None
    assert (first.info, first.operation, first.timestamp) == ({}, "unknown", None)
    assert zero.protocol == Protocol(1, 2)
    assert (zero.engine, zero.user) == (None, None)


CHANGE = [{"fromType": "integer", "toType": "long"}]
WIDE = metadata({}, schema_string(column("id", delta__typeChanges=CHANGE)))
NARROW = metadata({}, schema_string(column("id")))


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        # The metaData of version 4 is the first with the change.
        (NARROW, 4),
        # It was there before; whoever recorded it is gone, and it may have been version 2.
        (WIDE, 2),
        (None, 4),
    ],
)
def test_a_checkpoint_shows_whether_a_type_change_is_older(
    checkpoint: dict[str, Any] | None, expected: int, log: Log
) -> None:
    for version, actions in {3: (add("a"),), 4: (WIDE,), 5: (add("b"),)}.items():
        log.commit(version, commit_info("W"), *actions)
    if checkpoint is not None:
        log.checkpoint(3, protocol(1, 2), checkpoint)
    store = LocalLogStore(log.table)
    listing = build_listing(store.list())
    wide, narrow = (Metadata.stored(each["metaData"]) for each in (WIDE, NARROW))
    assert last_type_change(store, listing, 5, wide) == expected
    assert last_type_change(store, listing, 3, wide) == 2
    assert last_type_change(store, listing, 5, narrow) is None
