"""Who uses many tables, from large logs: `discover` on this machine and on Spark, in turns.

    python benchmarks/discover_logs.py --tables 2000 --commits 200000 --lines 1000000

The full size is `--tables 10000 --commits 1000000 --lines 50000000`, about 25 GB of access logs.
Each run is a whole process. The tables are in a folder and the requests are to a bucket, so a run
matches the folder's tables with the bucket. The rows of both engines must be the same; their digest
is printed, to compare runs of one engine each.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.pairs import ratio
from deltaproto.fleet.seen.collect import LogOptions
from deltaproto.fleet.seen.run_discovery import DiscoveryRequest, run_discovery
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.render.discover import discovery_fields

_BUCKET = "s3://lake"
_BEGAN = datetime(2026, 9, 1, tzinfo=UTC)
_MOST_LINES = 200_000
"""lines of an access log file"""
_DAMAGED, _PACKED = 1000, 4
"""one line in this many is damaged, and one file in this many is compressed"""
_USERS, _READERS, _FILES = 200, 4, 4
"""users, and of each table its readers and the data files that they read"""
_WRITERS = (
    {"engineInfo": "Apache-Spark/3.5.3 Delta-Lake/3.2.1", "userName": "etl"},
    {"engineInfo": "Apache-Spark/4.0.1 Delta-Lake/4.0.0", "userName": "ada"},
    {
        "engineInfo": "Databricks-Runtime/15.4.x-photon-scala2.12",
        "userName": "bob@example.com",
        "job": {"jobId": "17", "jobName": "nightly"},
        "clusterId": "0108-110130-7h1qxtew",
    },
    {"engineInfo": "delta-rs:py-1.1.4", "clientVersion": "delta-rs.py-1.1.4"},
    {"clientVersion": "delta-rs.py-0.25.5"},
    {"clusterId": "trino-455-node", "userName": "trino", "operationParameters": {"queryId": "q"}},
    {"engineInfo": "Kernel-4.0.0/DeltaSink"},
    {"engineInfo": "loader 7"},
)
_AGENTS = (
    "object_store/0.12.5",
    "Hadoop 3.4.1, aws-sdk-java/2.24.6 md/io#sync",
    "duckdb/v1.4.1(linux_amd64) cli 8b2d1a6",
    "deltaproto.trino.476",
    "aws-sdk-java/2.29.24 md/io#sync lang/java#23",
    "Boto3/1.35.0 md/Botocore#1.35.0",
    'hostile "agent" \\x22 200 - 1 1 "-"',
)
_LINE = (
    "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be lake [{when}] 192.0.2.{ip} "
    "arn:aws:iam::123456789012:user/u{user} 3E57427F3EXAMPLE REST.GET.OBJECT {key} "
    '"GET /{key} HTTP/1.1" 200 - 2662992 3462992 70 10 "-" "{agent}" - '
    "s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 "
    "ECDHE-RSA-AES128-GCM-SHA256 AuthHeader lake.s3.us-east-1.amazonaws.com TLSv1.2 - -\n"
)


class Ran(NamedTuple):
    """One run of a whole process."""

    seconds: float
    mebibytes: float
    """peak of the proportional set sizes of all its processes together"""
    answer: str
    """digest of all rows"""
    commits: int
    lines: int


def main() -> int:
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--tables", type=int, default=2_000)
    parser.add_argument("--commits", type=int, default=200_000)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=2611)
    parser.add_argument("--folder", type=Path, help="keep the tables and logs here")
    parser.add_argument("--engines", nargs="+", default=["local", "spark"])
    parser.add_argument("--run", choices=["local", "spark"], help="used by this program itself")
    given = parser.parse_args()
    if given.run:
        return _run(given.folder, given.run)
    with nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if not (root / "logs").exists():
            _make(root, given.tables, given.commits, given.lines, random.Random(given.seed))
        return _compare(root, given.engines, given.rounds)


def _compare(root: Path, engines: list[str], rounds: int) -> int:
    ran: dict[str, list[Ran]] = {engine: [] for engine in engines}
    for number in range(rounds):
        for engine in reversed(engines) if number % 2 else engines:
            ran[engine].append(_measure(root, engine))
    for engine, runs in ran.items():
        seconds = statistics.median(each.seconds for each in runs)
        peak = max(each.mebibytes for each in runs)
        rate = (runs[0].commits + runs[0].lines) / seconds
        print(
            f"{engine}: {seconds:.1f} s for {runs[0].commits:,} commits and {runs[0].lines:,} "
            f"lines, {rate:,.0f} per second, peak {peak:,.0f} MiB, rows {runs[0].answer[:12]}"
        )
    if len(engines) == 2:
        ones, others = ([each.seconds for each in runs] for runs in ran.values())
        print(f"{' / '.join(engines)}: {ratio(ones, others).median:.2f} of the time")
    answers = [each.answer for runs in ran.values() for each in runs]
    same = len(set(answers)) == 1
    if len(answers) > 1:
        print("the rows are the same" if same else "THE ROWS DIFFER")
    return 0 if same else 1


def _measure(root: Path, engine: str) -> Ran:
    command = [sys.executable, __file__, "--run", engine, "--folder", str(root)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], _proportional_mebibytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, _ = process.communicate()
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"{engine} failed with exit code {process.returncode}")
    answer = json.loads(out.splitlines()[-1])
    print(f"{engine}: {seconds:.1f} s, peak {peak[0]:,.0f} MiB", flush=True)
    return Ran(seconds, peak[0], **answer)


def _proportional_mebibytes(process: int) -> float:
    """Return the memory of a process and its descendants; shared pages are counted once."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    waiting, total = [process], 0
    while waiting:
        each = waiting.pop()
        waiting += children.get(each, [])
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def _run(root: Path, engine: str) -> int:
    """Discover, and print counts and a digest of all rows."""
    # As in the process of a command.
    gc.set_threshold(50_000)
    tables = root / "tables"
    add = TableMatcher.add

    def add_in_bucket(matcher: TableMatcher, table: str, uri: str) -> None:
        add(matcher, table, uri.replace(tables.as_uri(), _BUCKET))

    TableMatcher.add = add_in_bucket  # type: ignore[method-assign]
    options = LogOptions({}, SparkSettings(), None, pseudonymize=False)
    request = DiscoveryRequest(
        [str(tables)], [str(root / "logs")], options, on_spark=engine == "spark"
    )
    found = run_discovery(request, None, lambda _: nullcontext(lambda _: None))
    text = json.dumps(discovery_fields(found), sort_keys=True)
    commits, requests = (source.lines for source in found.sources)
    answer = hashlib.sha256(text.encode()).hexdigest()
    print(json.dumps({"answer": answer, "commits": commits, "lines": requests}))
    return 0


def _make(root: Path, tables: int, commits: int, lines: int, chance: random.Random) -> None:
    print(f"making {commits:,} commits over {tables:,} tables, {lines:,} lines", flush=True)
    names = [f"db{number // 100:04}/t{number:06}" for number in range(tables)]
    for number, name in enumerate(names):
        # The commits are spread evenly.
        count = (number + 1) * commits // tables - number * commits // tables
        _make_table(root / "tables" / name, number, count, chance)
    (root / "logs").mkdir()
    hours = max(commits // tables, 1)
    requests = _requests(names, hours, lines, chance)
    for number in range(-(-lines // _MOST_LINES)):
        wanted = min(_MOST_LINES, lines - number * _MOST_LINES)
        text = "".join(next(requests) for _ in range(wanted)).encode()
        packed = number % _PACKED == _PACKED - 1
        path = root / "logs" / f"{number:06}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(text, 1, mtime=0) if packed else text)


def _make_table(folder: Path, number: int, commits: int, chance: random.Random) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    metadata = {
        "id": f"00000000-0000-4000-8000-{number:012}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[]}',
        "partitionColumns": [],
        "configuration": {},
    }
    first = (
        json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
        + f"\n{json.dumps({'metaData': metadata})}\n"
    )
    began = int(_BEGAN.timestamp() * 1000)
    writers = chance.sample(_WRITERS, 3)
    for version in range(commits):
        info = {
            "timestamp": began + version * 3_600_000 + number,
            "operation": chance.choice(("WRITE", "MERGE", "OPTIMIZE")),
            "operationParameters": {"mode": "Append"},
            **chance.choice(writers),
        }
        added = {"path": f"part-{version:05}.parquet", "size": 1000, "dataChange": True}
        added |= {"partitionValues": {}, "modificationTime": info["timestamp"]}
        text = f"{json.dumps({'commitInfo': info})}\n{'' if version else first}"
        (log / f"{version:020}.json").write_text(f"{text}{json.dumps({'add': added})}\n")


def _requests(names: list[str], commits: int, lines: int, chance: random.Random) -> Iterator[str]:
    """Yield the lines, which are one after the other in the hours of the commits."""
    seconds = commits * 3600
    for number in range(lines):
        if number % _DAMAGED == 7:
            yield "half a line of an access log\n"
            continue
        table, kind = chance.randrange(len(names)), chance.random()
        user = (table * 7 + chance.randrange(_READERS)) % _USERS
        # A few users never read a log.
        if kind < 0.4 and user % 50 != 7:
            below = f"_delta_log/{chance.randrange(commits):020}.json"
        else:
            below = f"part-{chance.randrange(_FILES):05}.parquet"
        name = names[table] if kind < 0.95 else "elsewhere"
        when = _BEGAN + timedelta(seconds=number * seconds // lines)
        yield _LINE.format(
            when=f"{when:%d/%b/%Y:%H:%M:%S} +0000",
            ip=user,
            user=user,
            key=f"{name}/{below}",
            agent=_AGENTS[user % len(_AGENTS)],
        )


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    sys.exit(main())
