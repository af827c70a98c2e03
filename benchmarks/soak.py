"""Plans applied while others write: nothing that was acknowledged is lost, nothing is twice.

Spark appends, Spark updates and merges, a streaming sink and a delta-rs appender write to one table
for some minutes, while features come and go by `apply`, again and again. Each writer either commits
or gets an exception that the plan's warning names.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
from deltalake import write_deltalake

from deltaproto.execution.verify import find_error_class
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session

PLANS = (
    ("plan-upgrade", "--enable", "checkConstraints"),
    ("plan-downgrade", "--drop", "checkConstraints"),
    ("plan-upgrade", "--set", "delta.checkpointInterval=20"),
    ("plan-upgrade", "--set", "delta.checkpointInterval=10"),
)
# Raised where a writer meets what is not a change of metadata or protocol: by the matrices.
AMONG_WRITERS = {"ConcurrentAppendException", "ConcurrentDeleteReadException"}
AMONG_WRITERS |= {"ConcurrentDeleteDeleteException", "ConcurrentTransactionException"}
CLASSES = {
    "DELTA_METADATA_CHANGED": "MetadataChangedException",
    "DELTA_PROTOCOL_CHANGED": "ProtocolChangedException",
    "DELTA_CONCURRENT_APPEND": "ConcurrentAppendException",
    "DELTA_CONCURRENT_DELETE_READ": "ConcurrentDeleteReadException",
    "DELTA_CONCURRENT_DELETE_DELETE": "ConcurrentDeleteDeleteException",
    "DELTA_CONCURRENT_TRANSACTION": "ConcurrentTransactionException",
    "DELTA_CONCURRENT_WRITE": "ConcurrentWriteException",
}


class Soak:
    """The table, its writers, and what each was told."""

    def __init__(self, root: Path, pause: tuple[float, float]) -> None:
        self.pause = pause
        self.spark = spark_session(SparkSettings())
        self.root, self.path = root, str(root / "table")
        self.name = f"delta.`{self.path}`"
        self.over = threading.Event()
        self.acknowledged: Counter[str] = Counter()
        self.raised: Counter[tuple[str, str]] = Counter()
        self.kept: list[tuple[int, int]] = []
        self.updated = 0
        self.streamed = 0
        self.lock = threading.Lock()
        self.spark.sql(
            f"create table {self.name} (writer string, id bigint, n bigint) using delta "
            "tblproperties ('delta.enableDeletionVectors'='false')"
        )
        self.spark.sql(f"insert into {self.name} values ('counter', 0, 0)")

    def run(self, minutes: float) -> int:
        writers: dict[str, Callable[[int], None]] = {
            "spark append": self.append,
            "spark update": self.update,
            "delta-rs append": self.append_by_delta_rs,
        }
        threads = [
            threading.Thread(target=self.write, args=(name, once), daemon=True)
            for name, once in writers.items()
        ]
        threads.append(threading.Thread(target=self.stream, daemon=True))
        for thread in threads:
            thread.start()
        until = time.monotonic() + minutes * 60
        named: set[str] = set()
        results: Counter[str] = Counter()
        number = 0
        while time.monotonic() < until:
            told, status = self.change(PLANS[number % len(PLANS)], number)
            named |= told
            results[status] += 1
            number += 1
            time.sleep(3)
        self.over.set()
        for thread in threads:
            thread.join()
        return self.verdict(named, results)

    def write(self, name: str, once: Callable[[int], None]) -> None:
        """Write again and again, and keep count of what was acknowledged."""
        number = 0
        while not self.over.is_set():
            number += 1
            try:
                once(number)
            except Exception as error:
                self.note(name, error)
                continue
            with self.lock:
                self.acknowledged[name] += 1
            # A DROP FEATURE needs a moment in which nobody commits.
            time.sleep(random.uniform(*self.pause))

    def note(self, name: str, error: BaseException) -> None:
        text = str(error)
        found = CLASSES.get(find_error_class(text).partition(".")[0], type(error).__name__)
        with self.lock:
            self.raised[name, found] += 1

    def append(self, number: int) -> None:
        self.spark.sql(f"insert into {self.name} values ('spark', {number}, 1)")
        self.kept.append((1, number))

    def update(self, number: int) -> None:
        if number % 2:
            self.spark.sql(f"update {self.name} set n = n + 1 where writer = 'counter'")
        else:
            self.spark.sql(
                f"merge into {self.name} t using (select 'counter' as writer) s "
                "on t.writer = s.writer when matched then update set n = t.n + 1"
            )
        self.updated += 1

    def append_by_delta_rs(self, number: int) -> None:
        row = {"writer": ["delta-rs"], "id": [number], "n": [1]}
        write_deltalake(self.path, pa.table(row), mode="append")
        self.kept.append((2, number))

    def stream(self) -> None:
        """A streaming sink, begun again from its checkpoint whenever it fails."""
        source = str(self.root / "source")
        self.spark.sql(f"create table delta.`{source}` using delta as select 1L as id")
        query: Any = None
        number = 1
        while not self.over.is_set():
            if query is None or not query.isActive:
                if query is not None and query.exception() is not None:
                    self.note("stream", query.exception())
                query = self.sink(source)
            number += 1
            self.spark.sql(f"insert into delta.`{source}` values ({number})")
            with self.lock:
                self.acknowledged["stream"] += 1
            time.sleep(self.pause[1])
        while True:
            try:
                query.processAllAvailable()
                break
            except Exception as error:
                self.note("stream", error)
                query = self.sink(source)
        query.stop()
        self.streamed = number

    def sink(self, source: str) -> Any:
        """Stream what the source has more than the checkpoint into the table."""
        return (
            self.spark.readStream.format("delta")
            .load(source)
            .selectExpr("'stream' as writer", "id", "1L as n")
            .writeStream.format("delta")
            .option("checkpointLocation", str(self.root / "checkpoint"))
            .trigger(processingTime="3 seconds")
            .start(self.path)
        )

    def change(self, words: tuple[str, ...], number: int) -> tuple[set[str], str]:
        """Plan and apply one change; the exceptions that its warning names, and how it ended."""
        file = self.root / f"plan-{number}.json"
        command, *rest = words
        output = ("--format", "json", "--output", str(file))
        subprocess.run(_deltaproto(command, self.path, *rest, *output), check=True)
        plan = json.loads(file.read_text())
        named = {
            conflict["exception"]
            for step in plan["steps"]
            for conflict in step["conflicts"]
            if conflict["loser"] == "writer"
        }
        ran = subprocess.run(
            _deltaproto("apply", str(file), "--yes", "--allow-irreversible", "--format", "json"),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            result = json.loads(ran.stdout)["results"][0]
        except (ValueError, LookupError):
            return named, f"no result: {ran.returncode} {ran.stderr[-300:]}"
        tries = sum(step["attempts"] > 1 for step in result["steps"])
        print(
            f"{' '.join(words)}: {result['status']}{', after retries' if tries else ''}", flush=True
        )
        lost = result["status"] == "failed" and " lost " in result["message"]
        return named, "lost the race" if lost else result["status"]

    def verdict(self, named: set[str], results: Counter[str]) -> int:
        """Print the counts, and compare them with the table."""
        wrong: list[str] = []
        frame = self.spark.read.format("delta").load(self.path)
        rows = frame.groupBy("writer", "id").count().collect()
        seen = {(row["writer"], row["id"]): row["count"] for row in rows}
        twice = [key for key, count in seen.items() if count > 1]
        if twice:
            wrong.append(f"rows that are there twice: {twice[:5]}")
        writers = {1: "spark", 2: "delta-rs"}
        expected = {(writers[who], number) for who, number in self.kept}
        expected |= {("stream", number) for number in range(1, self.streamed + 1)}
        lost = expected - set(seen)
        if lost:
            wrong.append(f"{len(lost)} acknowledged rows are lost: {sorted(lost)[:5]}")
        (counter,) = frame.where("writer = 'counter'").collect()
        if counter["n"] != self.updated:
            wrong.append(f"the counter is {counter['n']}, after {self.updated} updates")
        for (writer, exception), count in sorted(self.raised.items()):
            known = exception in named | AMONG_WRITERS
            print(f"{writer}: {exception} {count} times{'' if known else ', NOT NAMED'}")
            if not known:
                wrong.append(f"{writer} got {exception}, which no warning named")
        print(f"acknowledged: {dict(self.acknowledged)}; rows: {len(seen)}; plans: {dict(results)}")
        if set(results) - {"done", "nothing-to-do", "lost the race"} or not results["done"]:
            wrong.append(f"plans that did not end well: {dict(results)}")
        for text in wrong:
            print(f"WRONG: {text}")
        return 1 if wrong else 0


def _deltaproto(*words: str) -> list[str]:
    return [sys.executable, "-m", "deltaproto", *words]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--pause", type=float, default=4, help="seconds of a writer, on average")
    arguments = parser.parse_args()
    pause = arguments.pause * 0.5, arguments.pause * 1.5
    with tempfile.TemporaryDirectory(prefix="deltaproto-soak-") as scratch:
        return Soak(Path(scratch), pause).run(arguments.minutes)


if __name__ == "__main__":
    sys.exit(main())
