"""`deltaproto check` of a saved fleet, as a whole process, against a plain loop.

Ten thousand tables with sixty kinds of protocol, and a policy with twenty clients. The peer is a
script that loads the whole file and judges every client on every table anew, as deltaproto would
without grouping tables by what they ask; it prints only counts. Pairs run back to back. Seconds
are the processor's, so that what else the machine does counts little. Run with `make bench`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

PEER = """
import json, sys
from collections import Counter
from deltaproto.checking.saved import read_entry
from deltaproto.clients.catalogue import Catalogue
from deltaproto.clients.verdicts import client_verdicts
from deltaproto.policy.document import load_policy
from deltaproto.policy.rules import all_rules
import datetime
policy = load_policy(sys.argv[2], rules=[r.id for r in all_rules()], today=datetime.date.today())
known = Catalogue()
clients = [(known.resolve(each.text), each.access) for each in policy.declared()]
with open(sys.argv[1], "rb") as file:
    tables = json.loads(file.read())["tables"]
counts = Counter()
for entry in tables:
    facts = read_entry(entry, sys.argv[1])
    for candidate, access in clients:
        counts.update(str(v.verdict) for v in client_verdicts(candidate, access, facts.needs))
print(counts)
"""
CLIENTS = (
    "databricks-runtime@12.2 LTS",
    "databricks-runtime@14.3 LTS",
    "databricks-runtime@16.4 LTS",
    "delta-spark@2.4.0",
    "delta-spark@3.3.0",
    "delta-spark@4.0.0",
    "deltalake/engine@0.25.0",
    "deltalake/engine@1.6.6",
    "deltalake/pyarrow@1.6.6",
    "polars@1.39.0",
    "duckdb@1.4.1",
    "trino@400",
    "trino@476",
    "presto@0.290",
    "athena@3",
    "bigquery",
    "redshift-spectrum",
    "snowflake-delta-direct@2026-03-02",
    "clickhouse@25.8",
    "delta-kernel-rs@0.16.0",
)
SETTINGS = (
    "tables:\n  '*': {max_reader_version: 3}\n"
    + "".join(f"  'sales/region_{n}/**': {{max_writer_version: 7}}\n" for n in range(20))
    + "waivers:\n"
    + "".join(
        f"  - {{rule: DP201, table: '**/region_{n}/*', client: trino, reason: it moves, "
        "expires: 2999-12-31}\n"
        for n in range(10)
    )
)
LEGACY = ((1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6))
FOR_READERS = ("deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint", "typeWidening")
FOR_WRITERS = ("changeDataFeed", "checkConstraints", "rowTracking", "inCommitTimestamp")
ENABLED_BY = {
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "changeDataFeed": {"delta.enableChangeDataFeed": "true"},
}
KINDS = 60


class Cost(NamedTuple):
    """One process: wall and processor seconds, and peak resident memory in MiB."""

    wall: float
    seconds: float
    mebibytes: float


class Limit(NamedTuple):
    """What a measurement is held against."""

    name: str
    measured: float
    bound: float

    @property
    def kept(self) -> bool:
        return self.measured <= self.bound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000, help="tables in the whole fleet")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of each comparison")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        limits = measured(Path(folder), arguments.tables, arguments.pairs)
    print(f"\n{'measured':52} {'':>9} {'bound':>9}")
    for limit in limits:
        verdict = "" if limit.kept else "  MISSED"
        print(f"{limit.name:52} {limit.measured:9.2f} <={limit.bound:7.2f}{verdict}")
    return 0 if all(limit.kept for limit in limits) else 1


def measured(folder: Path, tables: int, pairs: int) -> list[Limit]:
    policy, peer = folder / "policy.yaml", folder / "peer.py"
    declared = "".join(f"  - client: {name}\n" for name in CLIENTS)
    policy.write_text(f"policy_version: 1\nclients:\n{declared}{SETTINGS}")
    peer.write_text(PEER)
    kinds = list(inspected(folder / "kinds"))
    whole, half = folder / "whole.json", folder / "half.json"
    size = save(whole, kinds, tables)
    save(half, kinds, tables // 2)
    print(f"{tables:,} tables, {len(kinds)} kinds, {len(CLIENTS)} clients: {size >> 20} MiB saved")
    ours: dict[str, list[Cost]] = {"json": [], "text": []}
    shares, ratios = [], []
    for _ in range(pairs):
        base = run([sys.executable, str(peer), str(whole), str(policy)])
        for format_, costs in ours.items():
            costs.append(check(whole, policy, format_))
        shares.append(ours["json"][-1].seconds / base.seconds)
        ratios.append(ours["json"][-1].seconds / check(half, policy, "json").seconds)
    print(f"the last pair of {pairs}:")
    limits = []
    for name, last in (("plain loop", base), *((name, costs[-1]) for name, costs in ours.items())):
        print(
            f"  {name:10} {last.wall:6.1f} s, {last.seconds:6.1f} s of processor, "
            f"{last.mebibytes:4.0f} MiB"
        )
    for format_, costs in ours.items():
        seconds = statistics.median(cost.seconds for cost in costs)
        limits.append(Limit(f"{format_}: seconds of processor", seconds, 10.0))
        peak = max(cost.mebibytes for cost in costs)
        limits.append(Limit(f"{format_}: peak memory in MiB", peak, 200.0))
    limits.append(Limit("json: time for all / time for half", statistics.median(ratios), 2.3))
    limits.append(Limit("json: time / plain loop", statistics.median(shares), 0.5))
    return limits


def check(saved: Path, policy: Path, format_: str) -> Cost:
    output = saved.with_name("verdicts")
    command = [sys.executable, "-m", "deltaproto", "check", str(saved), "--policy", str(policy)]
    return run([*command, "--format", format_, "--output", str(output), "--fail-on", "never"])


def run(command: list[str]) -> Cost:
    """Run to the end and ask the kernel for this child's own processor time and peak memory."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def inspected(root: Path) -> Iterator[dict[str, Any]]:
    """One entry of `inspect --format json` for each kind of table."""
    for number, (protocol, configuration) in enumerate(itertools.islice(kinds(), KINDS)):
        make(root / str(number), protocol, configuration)
    names = [str(root / str(number)) for number in range(KINDS)]
    command = [sys.executable, "-m", "deltaproto", "inspect", *names, "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        yield from json.loads(line)["tables"]


def kinds() -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Protocols and properties: legacy pairs, then sets of features, each in use or not."""
    for reader, writer in LEGACY:
        yield {"minReaderVersion": reader, "minWriterVersion": writer}, {}
    for count, used in itertools.product(range(1, 4), (True, False)):
        for chosen in itertools.combinations((*FOR_READERS, *FOR_WRITERS), count):
            writers = {*chosen, "appendOnly", "invariants"}
            if "rowTracking" in writers:
                writers.add("domainMetadata")
            readers = sorted(writers & set(FOR_READERS))
            protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7}
            if readers:
                protocol |= {"minReaderVersion": 3, "readerFeatures": readers}
            on = [ENABLED_BY.get(name, {}) for name in chosen] if used else []
            merged = {key: value for properties in on for key, value in properties.items()}
            yield {**protocol, "writerFeatures": sorted(writers)}, merged


def make(root: Path, protocol: dict[str, Any], configuration: dict[str, str]) -> None:
    log = root / "_delta_log"
    log.mkdir(parents=True)
    fields = [
        {"name": f"column_{n}", "type": "long", "nullable": True, "metadata": {}} for n in range(20)
    ]
    metadata = {
        "id": "5f1d3c1e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.logRetentionDuration": "interval 30 days", **configuration},
    }
    lines = [{"protocol": protocol}, {"metaData": metadata}]
    (log / f"{0:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def save(file: Path, kinds: list[dict[str, Any]], tables: int) -> int:
    """Write a saved inspection, laid out as `inspect` does it, and return its size.

    Table by table: a child's peak memory, as the kernel counts it, starts from its parent's.
    """
    head = {
        "schema_version": "1.0",
        "tool": {"name": "deltaproto", "version": "0.1.0"},
        "command": "inspect",
        "generated_at": "2026-11-21T08:00:00Z",
        "complete": True,
    }
    with file.open("w") as out:
        out.write(json.dumps(head, indent=2)[: -len("\n}")] + ',\n  "tables": [')
        for number in range(tables):
            kind = kinds[number % len(kinds)]
            entry = named(kind, f"sales/region_{number % 97}/table_{number}")
            out.write((",\n" if number else "\n") + indent(json.dumps(entry, indent=2), " " * 4))
        out.write("\n  ]\n}\n")
    return file.stat().st_size


def named(entry: dict[str, Any], table: str) -> dict[str, Any]:
    found = [{**finding, "table": table} for finding in entry["findings"]]
    return {**entry, "table": table, "location": f"s3://lake/{table}", "findings": found}


if __name__ == "__main__":
    sys.exit(main())
