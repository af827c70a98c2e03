"""Principals that read deleted or stale rows, and those that must not be accused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deltaproto.fleet.seen.log_formats import Place, Request, RequestKind, Store
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.wrong_readers import find_candidates, find_wrong_readers
from deltaproto.location import locate
from deltaproto.policy.finding import Finding, Severity
from deltaproto.tables.open import OpenedLog
from deltaproto.tables.storage import open_log
from tests.support.logs import Log, add, commit_info, metadata, protocol

HOUR = 3_600_000
START = 1_764_000_000_000 // HOUR * HOUR
VECTORS = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
STORED = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
INLINE = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
ELSEWHERE = {"storageType": "p", "pathOrInlineDv": "s3://x/y.bin", "sizeInBytes": 1}


class Lake:
    """A table with a log and the access log of its store.

    Version 0 adds old.parquet; version 1, after 3 hours, gives it a deletion vector; version 2,
    after 5 hours, adds new.parquet.
    """

    def __init__(
        self,
        folder: Path,
        vector: dict[str, Any] | None = STORED,
        *,
        watched: bool = True,
        **settings: str,
    ) -> None:
        self.log = Log(folder)
        self.traces = ReadTraces()
        self.matcher = TableMatcher({})
        self.matcher.add("t", "s3://lake/t")
        marked = add("old.parquet", deletionVector=vector) if vector else add("old.parquet")
        removed = {"remove": {"path": "old.parquet", "dataChange": True}}
        self.commit(0, 0, VECTORS, metadata(settings), add("old.parquet"))
        self.commit(1, 3, removed, marked)
        if watched and vector is STORED:
            self.ask("writer", BIN, 3, RequestKind.WRITE)
        self.commit(2, 5, add("new.parquet"))

    def commit(self, version: int, hours: float, *actions: dict[str, Any]) -> None:
        time = START + int(hours * HOUR)
        self.log.commit(version, commit_info(timestamp=time), *actions)
        self.ask("writer", f"_delta_log/{version:020d}.json", hours, RequestKind.WRITE)

    def ask(
        self,
        user: str | None,
        key: str,
        hours: float,
        kind: RequestKind = RequestKind.READ,
        *,
        ok: bool = True,
        table: str = "t",
    ) -> None:
        """Make a request so many hours after the start."""
        place = Place(Store.S3, "lake", f"{table}/{key}")
        time = START + int(hours * HOUR)
        request = Request(place, time, kind, ok, "agent/1", user, "192.0.2.3")
        found = self.matcher.find(place)
        self.traces.note(request, None if found is None else found[0])
        if found is not None:
            self.traces.add(*found, request, "agent/1")

    def honest(self, user: str, hours: float, *, version: int = 2) -> None:
        """Read a snapshot as an engine does that supports deletion vectors."""
        self.ask(user, "_delta_log/", hours, RequestKind.LIST)
        for each in range(version + 1):
            self.ask(user, f"_delta_log/{each:020d}.json", hours)
        if version:
            self.ask(user, BIN, hours)
        self.ask(user, "old.parquet", hours)
        if version == 2:
            self.ask(user, "new.parquet", hours)

    def raw(self, user: str, hours: float) -> None:
        """Read the Parquet files of the folder."""
        self.ask(user, "", hours, RequestKind.LIST)
        self.ask(user, "old.parquet", hours)
        self.ask(user, "new.parquet", hours)

    def ignoring(self, user: str, hours: float) -> None:
        """Read the log, and ignore deletion vectors."""
        self.ask(user, f"_delta_log/{2:020d}.json", hours)
        self.ask(user, "old.parquet", hours)
        self.ask(user, "new.parquet", hours)

    def findings(self) -> list[Finding]:
        location = locate(self.log.table)
        opened = OpenedLog(location, open_log(location, {}))
        return [
            each
            for found in find_candidates(self.traces).values()
            for each in find_wrong_readers(
                found,
                self.traces,
                opened,
                {reader.user: reader.user for reader, _ in found.readers},
            )
        ]

    def accused(self) -> set[tuple[str, str | None]]:
        return {(each.rule, each.detail) for each in self.findings()}


BIN = "ab/deletion_vector_6c2350e3-b1d3-427b-813f-7429d7ea49f1.bin"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def test_readers_of_the_folder_and_readers_without_vectors_are_found(lake: Lake) -> None:
    lake.honest("spark", 8)
    lake.raw("pandas", 9)
    for hours in (9, 12):
        lake.ignoring("old engine", hours)
    found = {each.detail: each for each in lake.findings()}
    assert {(each.rule, each.severity) for each in found.values()} == {
        ("DP401", Severity.ERROR),
    }
    assert set(found) == {"pandas", "old engine"}
    pandas = found["pandas"]
    assert pandas.table == "t"
    assert "pandas reads 1 data file without the deletion vectors" in pandas.message
    assert "last 2025-11-25T01:00Z" in pandas.message
    assert pandas.evidence == "old.parquet; user agent agent/1"


def test_a_table_without_vectors_still_shows_who_never_reads_its_log(tmp_path: Path) -> None:
    for number, vector in enumerate((None, INLINE, ELSEWHERE)):
        lake = Lake(tmp_path / f"t{number}", vector)
        lake.honest("spark", 8)
        lake.raw("pandas", 9)
        lake.ignoring("fine", 9)
        lake.ignoring("fine", 12)
        (finding,) = lake.findings()
        assert (finding.rule, finding.severity) == ("DP402", Severity.ERROR)
        assert (finding.detail, finding.evidence) == (
            "pandas",
            "new.parquet; user agent agent/1",
        )
        # Perhaps one engine, of which the driver reads the log.
        lake.ask("driver", f"_delta_log/{2:020d}.json", 9)
        (finding,) = lake.findings()
        assert finding.severity is Severity.WARNING


Behavior = Callable[[Lake], None]


def _time_travel(lake: Lake) -> None:
    for hours in (8, 11, 14):
        lake.honest("x", hours, version=0)


def _lagging_stream(lake: Lake) -> None:
    for version in (0, 1, 2):
        lake.ask("x", f"_delta_log/{version:020d}.json", 9)
    lake.ask("x", "old.parquet", 10)
    lake.ask("x", "new.parquet", 13)


def _long_query(lake: Lake) -> None:
    lake.ask("x", f"_delta_log/{0:020d}.json", 2.9)
    lake.ask("x", "old.parquet", 3.4)


def _restarted_stream(lake: Lake) -> None:
    for hours in (9, 9.5):
        lake.ignoring("x", hours)


def _cached_vectors(lake: Lake) -> None:
    lake.honest("x", 8)
    for hours in (9, 12, 15):
        lake.ignoring("x", hours)


def _writer(lake: Lake) -> None:
    lake.ask("x", "new.parquet", 5, RequestKind.WRITE)
    lake.raw("x", 9)


def _iceberg_reader(lake: Lake) -> None:
    lake.ask("x", "metadata/v3.metadata.json", 9)
    lake.raw("x", 9)


def _manifest_reader(lake: Lake) -> None:
    lake.ask("x", "_symlink_format_manifest/manifest", 9)
    lake.raw("x", 9)


def _reader_of_a_clone(lake: Lake) -> None:
    lake.ask("x", f"_delta_log/{0:020d}.json", 9, table="clone")
    lake.raw("x", 9)


def _nameless(lake: Lake) -> None:
    lake.ask(None, "old.parquet", 9)
    lake.ask(None, "new.parquet", 9)


def _refused(lake: Lake) -> None:
    for key in ("old.parquet", "new.parquet"):
        lake.ask("x", key, 9, ok=False)


def _metadata_only(lake: Lake) -> None:
    for hours in (8, 12):
        lake.ask("x", "_delta_log/", hours, RequestKind.LIST)


def _two_identities(lake: Lake) -> None:
    """One reads log and vectors, the other the data."""
    lake.ask("driver", f"_delta_log/{2:020d}.json", 9)
    lake.ask("driver", BIN, 9)
    lake.ask("x", "old.parquet", 9)


def _session_with_a_cached_log(lake: Lake) -> None:
    """Only files from before the access log, which it may know for long."""
    lake.ask("x", "older.parquet", 9)


INNOCENT = [
    _time_travel,
    _lagging_stream,
    _long_query,
    _restarted_stream,
    _cached_vectors,
    _writer,
    _iceberg_reader,
    _manifest_reader,
    _reader_of_a_clone,
    _nameless,
    _refused,
    _metadata_only,
    _two_identities,
    _session_with_a_cached_log,
]


@pytest.mark.parametrize("behavior", INNOCENT, ids=lambda each: each.__name__.strip("_"))
def test_nobody_is_accused_who_may_read_correctly(tmp_path: Path, behavior: Behavior) -> None:
    for vector in (STORED, None):
        lake = Lake(tmp_path / ("with" if vector else "without"), vector)
        lake.honest("spark", 7)
        behavior(lake)
        assert lake.accused() == set()


def test_logs_that_leave_out_vectors_or_the_log_accuse_nobody(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", watched=False)
    # Nobody's request of a vector is in the access log: reads may be all that it has.
    for hours in (9, 12, 15):
        lake.ignoring("x", hours)
    assert lake.accused() == set()
    unwatched = Lake(tmp_path / "other")
    unwatched.traces = ReadTraces()
    unwatched.ask("y", "elsewhere", 0)
    unwatched.raw("x", 9)
    assert unwatched.accused() == set()


def test_vectors_from_before_the_access_log_accuse_nobody(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    lake.traces = ReadTraces()
    lake.honest("spark", 7)
    lake.raw("x", 9)
    assert lake.accused() == set()


def test_tables_with_iceberg_metadata_are_left_out(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t", None, **{"delta.universalFormat.enabledFormats": "iceberg"})
    lake.honest("spark", 7)
    lake.raw("x", 9)
    assert lake.accused() == set()


def test_a_commit_with_a_wrong_clock_counts_from_when_it_was_written(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    # The writer's clock is 20 hours behind; its request is not.
    removed = {"remove": {"path": "new.parquet", "dataChange": True}}
    late = commit_info(timestamp=START - 15 * HOUR)
    lake.log.commit(3, late, removed, add("new.parquet", deletionVector=STORED))
    lake.ask("writer", f"_delta_log/{3:020d}.json", 12, RequestKind.WRITE)
    lake.ask("writer", BIN, 12, RequestKind.WRITE)
    lake.ask("x", "new.parquet", 9)
    assert ("DP401", "x") not in lake.accused()


def test_memory_is_bounded_and_readers_that_are_right_cost_none(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaproto.fleet.seen.read_traces._MOST_ENTRIES", 700)
    for number in range(2_000):
        for user in ("a", "b", "spark"):
            lake.ask(user, f"part-{number}.parquet", 9)
    kept = {reader.user: len(trace.files) for reader, trace in lake.traces.readers.items()}
    assert kept == {"writer": 0, "a": 234, "b": 233, "spark": 233}
    lake.honest("spark", 10)
    for number in range(100):
        lake.ask("c", f"part-{number}.parquet", 11)
        lake.ask("spark", f"part-{number}.parquet", 11)
    kept = {reader.user: len(trace.files) for reader, trace in lake.traces.readers.items()}
    assert kept == {"writer": 0, "a": 234, "b": 233, "spark": 0, "c": 100}


class Run(NamedTuple):
    """One of the mixed runs: who reads how."""

    lake: Lake
    guilty: set[str]


def mixed_runs(tmp_path: Path) -> Iterator[Run]:
    chance = random.Random(31)
    for number in range(200):
        lake = Lake(tmp_path / f"r{number}", chance.choice([STORED, STORED, None]))
        guilty = set()
        lake.honest("spark", 7)
        for reader in range(chance.randint(2, 8)):
            user, hours = f"u{reader}", chance.uniform(7.5, 40)
            match chance.choice(["honest", "honest", "raw", "ignoring", "innocent", "past"]):
                case "honest":
                    for _ in range(chance.randint(1, 4)):
                        lake.honest(user, hours + chance.uniform(0, 20))
                case "past":
                    lake.honest(user, hours, version=chance.randint(0, 1))
                case "raw":
                    lake.raw(user, hours)
                    guilty.add(user)
                case "ignoring":
                    for times in range(3):
                        lake.ignoring(user, hours + 4 * times)
                    guilty.add(user)
                case "innocent":
                    lake.ask(user, f"_delta_log/{2:020d}.json", hours, table=f"other{reader}")
                    lake.raw(user, hours)
        yield Run(lake, guilty)


def test_no_false_accusation_in_mixed_runs(tmp_path: Path) -> None:
    accused = possible = 0
    for run in mixed_runs(tmp_path):
        found = {user for _, user in run.lake.accused()}
        assert found <= run.guilty
        accused, possible = accused + len(found), possible + len(run.guilty)
    # Readers that ignore vectors in tables without any are right, and not accused.
    assert accused > 0.7 * possible
