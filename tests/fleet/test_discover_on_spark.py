"""`discover` in many tasks: the same answer as in one process, and on Spark."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pickle
import random
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from deltaproto import UsageError, discover
from deltaproto.fleet.seen import log_files, log_lines, spark_discovery, table_tasks
from deltaproto.fleet.seen.collect import LogOptions, TableUses, read_here
from deltaproto.fleet.seen.find_logs import FailedTable, FoundLog, find_logs
from deltaproto.fleet.seen.log_files import (
    CountedFile,
    LogFile,
    RowsQuery,
    Span,
    find_files,
    has_plain_lines,
    read_requests,
)
from deltaproto.fleet.seen.log_formats import Place, Request, RequestKind, Store
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.requests import FileToCount, LogCounter, add_access_log, count_here
from deltaproto.fleet.seen.spark_discovery import SparkLogReader
from deltaproto.fleet.seen.system_tables import find_system_table
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.table_tasks import (
    read_in_processes,
    read_in_tasks,
    run_in_processes,
)
from deltaproto.fleet.seen.times import Times
from deltaproto.fleet.seen.uses import SeenUses, Usage
from deltaproto.protocol.table_state import SparkSettings
from tests.conftest import Ran
from tests.fleet.test_access_logs import AGENTS, AZURE, cloudtrail, google, s3_line
from tests.fleet.test_clients_seen import OLD_SPARK, RUNTIME, SPARK, made
from tests.fleet.test_system_tables import LINEAGE, TABLES, counted, linked, write_parquet
from tests.fleet.test_wrong_readers import BIN, HOUR, START
from tests.fleet.test_wrong_readers import Lake as WatchedTable
from tests.support.contract import documents
from tests.support.lakes import Lake, s3_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.connect_server import ConnectServer

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]


class OneProcess:
    """A session that runs each task here, with what a task of Spark gets: pickled values."""

    _jvm = "a session of this process"

    def __init__(self) -> None:
        self._frames: dict[str, list[pa.RecordBatch]] = {}

    def sql(self, query: str) -> OneProcess:
        self._tasks = self._frames[query]
        return self

    def range(self, start: int, end: int, step: int, partitions: int) -> OneProcess:
        assert (start, step, partitions) == (0, 1, end)
        self._tasks = [pa.RecordBatch.from_pydict({"id": [number]}) for number in range(end)]
        return self

    def mapInArrow(self, task: Any, schema: str) -> OneProcess:
        from pyspark import cloudpickle

        sent = cloudpickle.dumps(task)
        rows = (pickle.loads(sent)(iter([batch])) for batch in self._tasks)
        self._rows = [row for found in rows for batch in found for row in batch.to_pylist()]
        return self

    def toLocalIterator(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def persist(self) -> OneProcess:
        return self

    def unpersist(self) -> None:
        self._rows.clear()

    def count(self) -> int:
        return len(self._rows)


@pytest.fixture
def reader() -> SparkLogReader:
    return SparkLogReader(OneProcess())  # type: ignore[arg-type]


@pytest.fixture
def tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several jobs of several tasks, and large files of a few lines."""
    _limit(monkeypatch, 1500, files=3, job=2, tables=2)


@pytest.fixture
def few_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with fewer tasks, as each takes its time on Spark."""
    _limit(monkeypatch, 60_000, files=9, job=4, tables=3)


def _limit(patched: pytest.MonkeyPatch, size: int, *, files: int, job: int, tables: int) -> None:
    patched.setattr(spark_discovery, "_BYTES", size)
    patched.setattr(spark_discovery, "_FILES", files)
    patched.setattr(spark_discovery, "JOB", job)
    patched.setattr(table_tasks, "JOB", job)
    patched.setattr(table_tasks, "_TABLES", tables)


def shown(usage: Usage) -> tuple[Any, ...]:
    def times(each: Times | None) -> Any:
        return each and (each.count, each.first, each.last, each.hours)

    return (
        sorted(usage.access),
        times(usage.commits),
        times(usage.requests),
        times(usage.files),
    )


def rows(uses: SeenUses) -> list[Any]:
    """Everything that was counted, in its order."""
    return [
        (
            client,
            shown(seen),
            (seen.confidence, seen.could_be, seen.setting, seen.forgotten, seen.marks),
            [(name, shown(each)) for name, each in seen.principals.items()],
            [
                (table, shown(usage), [(n, shown(each)) for n, each in usage.principals.items()])
                for table, usage in seen.tables.items()
            ],
        )
        for client, seen in uses.clients.items()
    ]


def traced(traces: ReadTraces) -> Any:
    def slots(each: Any) -> dict[str, Any]:
        found = {name: getattr(each, name) for name in type(each).__slots__}
        # Nothing is said about the agents of a reader whom no rule can accuse.
        return {**found, "agents": None} if found.get("other") else found

    return (
        {reader: slots(trace) for reader, trace in traces.readers.items() if not trace.settled},
        {reader for reader, trace in traces.readers.items() if trace.settled},
        {table: slots(trace) for table, trace in traces.tables.items()},
        (traces.first, traces._entries, traces._logs),
    )


LINES = st.one_of(
    st.sampled_from(
        [
            *(s3_line(f"gold/t{number}/part-0.parquet") for number in range(3)),
            *(s3_line(agent=f'"{agent}"') for agent in AGENTS),
            json.dumps(cloudtrail()),
            json.dumps({"Records": [cloudtrail(), {}]}),
            *("", "\r", "half a line", '{"eventSource": ', "[1, 2]", "x" * 3000),
        ]
    ),
    st.text(max_size=20),
)


@given(st.lists(LINES, min_size=1, max_size=8), st.lists(st.integers(1, 6000), max_size=4))
def test_a_line_is_read_by_the_part_in_which_it_begins(lines: list[str], cuts: list[int]) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        for module in (log_files, log_lines):
            patched.setattr(module, "LONGEST", 2500)
        # A first line that is too long to be read is no first line of lines.
        patched.setattr(log_files, "_LONGEST_FIRST", 2500)
        path = Path(folder) / "log"
        path.write_bytes(data)
        (file,) = find_files(str(path), {})
        if not has_plain_lines(file):
            return
        starts = sorted({0, *cuts})
        ends = [*starts[1:], None]
        parts = [
            each
            for start, end in zip(starts, ends, strict=True)
            for each in read_requests(file, Span(start, end))
        ]
        assert parts == list(read_requests(file))


def test_what_is_not_lines_is_read_as_a_whole(tmp_path: Path) -> None:
    sheet = io.StringIO()
    csv.writer(sheet).writerows([[*AZURE], [*AZURE.values()]])
    line = s3_line().encode() + b"\n"
    whole = {
        "csv": sheet.getvalue().encode(),
        "bom": b"\xef\xbb\xbf" + sheet.getvalue().encode(),
        "json": json.dumps({"Records": [cloudtrail()]}, indent=1).encode(),
        "gz": gzip.compress(line),
        "blank": b"\n" + line,
        "one": line.rstrip(),
        "none": b"",
    }
    split = {"s3": line, "junk": b"junk\n" + line, "lines": json.dumps(cloudtrail()).encode()}
    for name, data in {**whole, **split}.items():
        path = tmp_path / name
        path.write_bytes(data + b"\n" if name in split else data)
        (file,) = find_files(str(path), {})
        assert has_plain_lines(pickle.loads(pickle.dumps(file))) is (name in split), name


def access_logs(folder: Path) -> str:
    """Files of each format, with damage, and one that is larger than a part."""
    folder.mkdir()
    chance = random.Random(5)

    def lines(number: int) -> str:
        found = []
        for _ in range(number):
            key = f"gold/t{chance.randrange(3)}/part-{chance.randrange(4)}.parquet"
            if chance.random() < 0.3:
                key = f"gold/t{chance.randrange(3)}/_delta_log/{chance.randrange(9):020d}.json"
            user = f"arn:aws:iam::123456789012:user/u{chance.randrange(9)}"
            line = s3_line(key, f'"{chance.choice(AGENTS)}"', requester=user)
            found.append(line.replace(":17:00", f":{chance.randrange(24):02d}:00"))
        return "\n".join([*found, "junk", ""])

    (folder / "a.large").write_text(lines(300))
    for number in range(7):
        (folder / f"b{number}").write_text(lines(4))
    (folder / "c.gz").write_bytes(gzip.compress(lines(50).encode(), mtime=0))
    (folder / "d.gz").write_bytes(gzip.compress(lines(3000).encode(), mtime=0)[:-30])
    (folder / "e.json").write_text(json.dumps({"Records": [cloudtrail(), {}]}, indent=1))
    (folder / "f.jsonl").write_text(
        "\n".join(json.dumps(each) for each in (cloudtrail(), google())) * 20
    )
    sheet = io.StringIO()
    csv.writer(sheet).writerows([[*AZURE], *([*AZURE.values()],) * 30, ["too", "short"]])
    (folder / "g.csv").write_text(sheet.getvalue())
    place = linked(source_table_full_name=None, source_path="s3://lake/gold/t1")
    pq.write_table(pa.Table.from_pylist([place] * 5, LINEAGE), folder / "h.parquet")
    (folder / "i.parquet").write_bytes(b"PAR1 damaged")
    (folder / "j.large").write_text(lines(100))
    return str(folder)


@pytest.mark.parametrize("storing", [False, True])
def test_tasks_count_what_one_process_counts(
    tmp_path: Path, reader: SparkLogReader, tiny_tasks: None, storing: bool
) -> None:
    logs, found = access_logs(tmp_path / "logs"), []
    known = [file.key for file in find_files(logs, {}) if file.name.endswith(("b2", "j.large"))]
    for count_files in (count_here, reader.count_files):
        matcher = TableMatcher({})
        for number in range(3):
            matcher.add(f"t{number}", f"s3://lake/gold/t{number}")
        matcher.add("azure", "abfss://lake@acme.dfs.core.windows.net/gold/orders")
        uses, traces, lines = SeenUses(), ReadTraces(), list[int]()
        counts = add_access_log(
            *(logs, {}, matcher, uses, traces, None, lines.append, known),
            storing=storing,
            count_files=count_files,
        )
        failed = [(each.table, each.error.message) for each in counts.failed]
        plain = counts._replace(failed=(), broken=SeenUses())
        found.append((plain[:6], plain.known, failed, rows(counts.broken), traced(traces)))
        found[-1] += (rows(uses), lines[-1])
        assert (len(failed), counts.known) == (2, 2)
        assert bool(counts.broken.clients) is storing
    here, there = found
    assert here == there
    assert here[0][1] > 3400
    assert {client.id for client, *_ in here[-2]} >= {None, "databricks-runtime"}


def test_a_part_that_cannot_be_read_is_the_file_that_cannot(
    tmp_path: Path, reader: SparkLogReader, tiny_tasks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_text(f"{s3_line()}\n" * 100)

    def damaged(file: Any, span: Span) -> Iterator[Any]:
        for number, each in enumerate(whole(file, span)):
            if span.start > 6000 and number == 1:
                raise OSError("input/output error")
            yield each

    whole = log_files._read_span
    monkeypatch.setattr(log_files, "_read_span", damaged)
    matcher = TableMatcher({})
    matcher.add("orders", "s3://lake/gold/orders")
    uses = SeenUses()
    counts = add_access_log(
        *(str(tmp_path / "log"), {}, matcher, uses, ReadTraces(), None),
        storing=True,
        count_files=reader.count_files,
    )
    # A later run counts the file: none of its parts is stored.
    assert ([Path(each.table).name for each in counts.failed], counts.files) == (["log"], ())
    (broken,) = counts.broken.clients.values()
    assert (broken.requests.count, rows(uses)) == (counts.matched, [])
    assert 20 < counts.matched < 100


def test_traces_of_parts_are_those_of_all_requests(tmp_path: Path) -> None:
    """Nobody is accused because a part forgot a request, even if parts have no room."""
    chance = random.Random(11)
    keys = ("old.parquet", "new.parquet", BIN, f"_delta_log/{2:020d}.json", "metadata/v3.json")
    found = 0
    for number in range(60):
        table = WatchedTable(tmp_path / f"t{number}")
        asked: list[tuple[Any, ...]] = []
        for _ in range(chance.randrange(4, 40)):
            user, key = f"u{chance.randrange(5)}", chance.choices(keys, (9, 9, 1, 2, 1))[0]
            asked.append((user, key, chance.uniform(0, 30)))
        requests = [_request(*each) for each in sorted(asked, key=lambda each: each[2])]
        every = _replayed(table, [requests])
        cuts = sorted(chance.randrange(len(requests)) for _ in range(3))
        starts = (0, *cuts)
        parts = [requests[a:b] for a, b in zip(starts, (*cuts, None), strict=True)]
        joined = _replayed(table, parts)
        assert traced(joined) == traced(every)
        table.traces = every
        accused = table.accused()
        table.traces = joined
        assert table.accused() == accused
        found += len(accused)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("deltaproto.fleet.seen.read_traces._MOST_TRACES", 2)
            table.traces = _replayed(table, parts)
        assert table.accused() <= accused
    assert found > 20


def test_a_reader_that_a_part_forgot_is_not_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second part forgets that `a` reads the log and the vector, for want of room."""
    monkeypatch.setattr("deltaproto.fleet.seen.read_traces._MOST_TRACES", 3)
    log = f"_delta_log/{2:020d}.json"
    first = [_request("a", "old.parquet", 9)]
    for users in ("b", "bcd"):
        table = WatchedTable(tmp_path / users)
        second = [_request(user, "_delta_log/", 10) for user in users]
        second += [_request("a", key, 11) for key in (log, BIN)]
        table.traces = _replayed(table, [first, second])
        assert table.accused() == set()
    table.traces = _replayed(WatchedTable(tmp_path / "alone"), [first])
    assert table.accused() == {("DP401", "a")}


def _request(user: str, key: str, hours: float) -> Request:
    time = START + int(hours * HOUR)
    place = Place(Store.S3, "lake", f"t/{key}")
    return Request(place, time, RequestKind.READ, True, "agent/1", user, None)


def _replayed(table: WatchedTable, parts: list[list[Request]]) -> ReadTraces:
    """What is traced if each part is read apart, after the requests of the table's writer."""
    total = ReadTraces()
    total.include(pickle.loads(pickle.dumps(table.traces)))
    for requests in parts:
        part = ReadTraces()
        for each in requests:
            assert each.place is not None
            part.note(each, "t")
            part.add("t", each.place.key.removeprefix("t/"), each, "agent/1")
        total.include(pickle.loads(pickle.dumps(part)))
    return total


def test_tables_are_read_in_tasks_in_their_order(
    tmp_path: Path, reader: SparkLogReader, tiny_tasks: None
) -> None:
    for number in range(9):
        made(tmp_path / "lake" / f"t{number}", *((9 - each, SPARK) for each in range(number + 1)))
    (tmp_path / "lake" / "t3" / "_delta_log" / f"{2:020d}.json").write_bytes(b"{")
    options = LogOptions({}, SparkSettings(), None, pseudonymize=True, data_files=True)
    found = [
        [
            (each.table, each.uri, each.read.commits, rows(each.writers), each.files)
            if isinstance(each, TableUses)
            else (each.table, each.error.code)
            for each in read(
                find_logs([str(tmp_path / "lake"), str(tmp_path / "no")], {}, allow_empty=False),
                options,
            )
        ]
        for read in (read_here, reader.read_tables, partial(read_with_a_kill, tmp_path / "mark"))
    ]
    assert found[0] == found[1] == found[2]
    assert [each[2] for each in found[0][:9]] == [1, 2, 3, 3, 5, 6, 7, 8, 9]
    assert len(found[0]) == 10


def read_with_a_kill(
    mark: Path, found: Iterable[FoundLog | FailedTable], options: LogOptions
) -> Iterator[TableUses | FailedTable]:
    """Read tables in processes, the first of which is killed by its task."""

    def run(tasks: Sequence[Any], do: Callable[[Any], Any]) -> Iterator[Any]:
        yield from run_in_processes(tasks, partial(_kill_once, os.getpid(), mark, do))
        assert mark.exists()

    with pytest.MonkeyPatch.context() as patched:
        # Starting processes takes its time.
        patched.setattr(table_tasks, "JOB", 1000)
        yield from read_in_tasks(found, options, run)


def _kill_once(here: int, mark: Path, do: Callable[[Any], Any], task: Any) -> Any:
    if os.getpid() != here and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return do(task)


def test_little_is_read_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_tasks, "WorkerPool", None)
    for number in range(50):
        made(tmp_path / "lake" / f"t{number}", (1, SPARK))
    tables = find_logs([str(tmp_path / "lake")], {}, allow_empty=False)
    options = LogOptions({}, SparkSettings(), None, pseudonymize=False)
    assert len(list(read_in_processes(tables, options))) == 50


def test_a_failed_task_is_an_error(tmp_path: Path, reader: SparkLogReader) -> None:
    made(tmp_path / "t", (1, SPARK))
    (table,) = find_logs([str(tmp_path / "t")], {}, allow_empty=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            table_tasks, "read_here", lambda *_: (_ for _ in ()).throw(MemoryError("full"))
        )
        with pytest.raises(UsageError, match="Spark cannot read the logs: full"):
            list(reader.read_tables([table], LogOptions({}, SparkSettings(), None, False)))


# On Spark.


@pytest.fixture(scope="module")
def store() -> Iterator[Lake]:
    with s3_lake() as lake:
        yield lake


@pytest.fixture
def fleet(tmp_path: Path, store: Lake) -> tuple[str, str]:
    """Tables on an object store, and the access logs of their bucket, with one wrong reader."""
    made(tmp_path / "t0", (9, SPARK), (3, RUNTIME))
    made(tmp_path / "t1", (300, OLD_SPARK))
    write_deltalake(str(tmp_path / "t2"), pa.table({"id": [1]}))
    WatchedTable(tmp_path / "watched")
    for folder in ("t0", "t1", "t2", "watched"):
        root = store.upload(tmp_path / folder, f"gold/{folder}").rpartition("/")[0]
    logs = access_logs(tmp_path / "logs")
    put, first = "REST.PUT.OBJECT", "24/Nov/2025:17:00:38"
    asked = (
        (s3_line(f"gold/watched/_delta_log/{0:020d}.json", operation=put), "24/Nov/2025:16:00:00"),
        (s3_line(f"gold/watched/{BIN}", operation=put), "24/Nov/2025:19:00:00"),
        (s3_line("gold/watched/old.parquet", requester="pandas"), "25/Nov/2025:01:00:00"),
    )
    for number, (line, when) in enumerate(asked):
        (Path(logs) / f"w{number}").write_text(line.replace(first, when))
    for file in Path(logs).iterdir():
        store.put(f"logs/{file.name}", file.read_bytes())
    return root, logs


def answers(cli: Cli, *words: str) -> list[dict[str, Any]]:
    """The answers of both engines."""
    found = []
    for engine in ("local", "spark"):
        ran = cli("discover", *words, "--engine", engine, "--format", "json")
        # A wrong reader is an error, and a damaged file worse.
        assert ran.code == 3, ran.err
        (document,) = documents(ran, "discover")
        # Each run begins at its own time, from which days are counted.
        assert document.pop("generated_at")
        assert (document.pop("since") is None) is ("--days" not in words)
        found.append(document)
    return found


def inventory_of(
    cli: Cli, fleet: tuple[str, str], inventory: Path, engine: str, store: Lake
) -> tuple[Any, ...]:
    """What three runs answer and store, each with one more file of an access log."""
    (lake, logs), answered = fleet, []
    assert cli("scan", lake, "--inventory", str(inventory), "-q", *store.words()).code == 0
    words = (str(inventory), "--access-log", logs, "--engine", engine, *store.words())
    added = [Path(logs) / name for name in ("y0", "y1")]
    for file in (None, *added):
        if file is not None:
            file.write_text(s3_line(f"gold/t1/{file.name}.parquet"))
        ran = cli("discover", *words, "--format", "json")
        assert ran.code == 3, ran.err
        sources = [{**each, "name": Path(each["name"]).name} for each in ran.json["sources"]]
        answered.append((ran.json["clients"], ran.json["unidentified"], sources))
    for file in added:
        file.unlink()
    stored = DeltaTable(inventory / "clients_seen").to_pyarrow_table().to_pylist()
    runs = sorted({row["run_id"] for row in stored})
    assert len(runs) == 3
    assert answered[1][2][-1]["known_files"] > 10
    plain = [{**row, "run_id": runs.index(row["run_id"]), "ran_at": None} for row in stored]
    return answered, sorted(map(repr, plain))


def test_tasks_add_to_an_inventory_what_one_process_adds(
    cli: Cli,
    fleet: tuple[str, str],
    tmp_path: Path,
    store: Lake,
    tiny_tasks: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[SparkSettings] = []
    monkeypatch.setattr(
        "deltaproto.tables.session.spark_session",
        lambda settings: started.append(settings) or OneProcess(),
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table_tasks, "_TABLES", 50)
        local = inventory_of(cli, fleet, tmp_path / "local", "local", store)
    in_tasks = inventory_of(cli, fleet, tmp_path / "spark", "spark", store)
    assert local == in_tasks
    assert len(started) == 3


@pytest.mark.parametrize("storing", [False, True])
@pytest.mark.parametrize("number", [0, 7])
def test_rows_that_a_session_finds_are_counted_by_its_tasks(
    reader: SparkLogReader, tiny_tasks: None, storing: bool, number: int
) -> None:
    found = []
    for schema, values in TABLES.values():
        table = find_system_table(schema.names)
        assert table is not None
        every = [*values] * number
        reader._session._frames["SELECT 1"] = [  # type: ignore[attr-defined]
            pa.RecordBatch.from_pylist(every[start : start + 9], schema)
            for start in range(0, len(every), 9)
        ]
        requests = partial(table.parsed, every)
        query = RowsQuery(table, "SELECT 1")
        for count_files in (count_here, reader.count_files):
            matcher, uses = TableMatcher({}), SeenUses()
            matcher.add("main.sales.orders", "s3://lake/gold/orders")
            total = LogCounter(uses, ReadTraces(), storing=storing)
            file = LogFile("main.system.t", open, 5, requests=requests, query=query)
            count_files([FileToCount(file, True)], total, matcher, None, lambda _: None)
            counts = (total.lines, total.matched, total.unparsed, total.formats)
            found.append((counts, rows(uses), total.files, total.failed))
    for here, there in zip(found[::2], found[1::2], strict=True):
        assert here == there
        assert (here[0][0], here[2]) == (4 * number, [CountedFile("main.system.t", 5)])


@pytest.mark.spark
@pytest.mark.slow
class TestOnSpark:
    def test_both_engines_give_the_same_answer(
        self, spark: SparkSession, cli: Cli, fleet: tuple[str, str], store: Lake, few_tasks: None
    ) -> None:
        lake, logs = fleet
        words = (lake, f"{lake}/missing", *store.words())
        here, there = answers(cli, *words, "--pseudonymize", "--days", "20", "--data-files")
        assert here == there
        assert len(here["clients"]) >= 2
        # The same logs from a folder and from the store.
        both = ("--access-log", logs, "--access-log", f"{store.roots[0]}/logs")
        here, there = answers(cli, *words, *both)
        assert here == there
        assert [each["rule"] for each in here["findings"]] == ["DP401"]
        assert here["sources"][1]["unparsed"] > 10
        assert sum(each["requests"] for each in here["unidentified"]) > 100

    def test_both_engines_add_the_same_to_an_inventory(
        self,
        spark: SparkSession,
        cli: Cli,
        fleet: tuple[str, str],
        tmp_path: Path,
        store: Lake,
        few_tasks: None,
    ) -> None:
        local, on_spark = (
            inventory_of(cli, fleet, tmp_path / engine, engine, store)
            for engine in ("local", "spark")
        )
        assert local == on_spark

    def test_from_python_and_over_spark_connect(
        self,
        spark: SparkSession,
        connect: ConnectServer,
        cli: Cli,
        fleet: tuple[str, str],
        store: Lake,
    ) -> None:
        lake, logs = fleet
        here, there = (
            discover(lake, access_logs=[logs], storage_options=store.options, engine=engine)
            for engine in ("local", "spark")
        )
        assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
        assert not there.complete
        words = ("discover", lake, "--access-log", logs, "--engine", "spark", "--format", "json")
        (answer,) = connect.answers([*words, *store.words()])
        remote = json.loads(answer.out)
        assert {key: remote[key] for key in here.to_dict()} == json.loads(
            json.dumps(here.to_dict())
        )

    def test_tables_that_only_the_session_finds(self, spark: SparkSession, tmp_path: Path) -> None:
        reader = SparkLogReader(spark)
        for format_, (schema, values) in TABLES.items():
            name = f"counted_{format_.replace('-', '_')}"
            frame = spark.read.parquet(write_parquet(tmp_path, schema, values * 5))
            frame.repartition(3).write.saveAsTable(name)
            for storing in (False, True):
                found = []
                for count_files in (count_here, reader.count_files):
                    uses, counts = counted(
                        f"spark_catalog.default.{name}",
                        spark=SparkSettings(),
                        storing=storing,
                        count_files=count_files,
                    )
                    found.append((counts._replace(broken=SeenUses())[:7], rows(uses)))
                assert found[0] == found[1], format_
                # The newest hours are held back, so there is nothing yet to store.
                assert (found[0][0][1], len(found[0][0][5])) == (0 if storing else 20, 1)
            spark.sql(f"DROP TABLE {name}")

    def test_an_unknown_engine_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="engine: unknown"):
            discover(tmp_path, engine="duckdb")
