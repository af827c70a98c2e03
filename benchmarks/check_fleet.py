"""`deltaproto check` of a saved fleet, as a whole process, against a plain loop."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import Any

from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, in_turns, mebibytes, processor, run
from benchmarks.peers import deltaproto
from benchmarks.scale import Scale
from deltaproto.render.interface import SCHEMA_VERSION

PEER = """
import json, sys
from collections import Counter
from deltaproto.inspection.saved import read_entry
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.clients.verdicts import evaluate_clients
from deltaproto.policy.document import load_policy
from deltaproto.policy.rules import all_rules
import datetime
policy = load_policy(sys.argv[2], rules=[r.id for r in all_rules()], today=datetime.date.today())
known = ClientCatalog()
clients = [(known.resolve(each.text), each.access) for each in policy.declared()]
with open(sys.argv[1], "rb") as file:
    tables = json.loads(file.read())["tables"]
counts = Counter()
for entry in tables:
    facts = read_entry(entry, sys.argv[1])
    for candidate, access in clients:
        counts.update(str(v.verdict) for v in evaluate_clients(candidate, access, facts.needs))
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


_TOLD = """
A saved inspection of {tables:,} tables with {kinds} kinds of protocol, and a policy with {clients}
clients. Whole processes. The peer is a script that reads the same file and judges every client on
every table anew, as deltaproto would without grouping tables by what they ask; it prints only
counts.
"""


def measured(folder: Path, scale: Scale) -> Section:
    tables = scale.saved
    print(f"check of {tables:,} saved tables", flush=True)
    policy, peer = folder / "policy.yaml", folder / "peer.py"
    policy.write_text(f"{declared()}{SETTINGS}")
    peer.write_text(PEER)
    kinds = list(inspected(folder / "kinds"))
    whole, half = folder / "whole.json", folder / "half.json"
    save(whole, kinds, tables)
    save(half, kinds, tables // 2)
    costs = in_turns(
        {
            "json": partial(check, whole, policy, "json"),
            "text": partial(check, whole, policy, "text"),
            "half": partial(check, half, policy, "json"),
            "loop": partial(run, [sys.executable, str(peer), str(whole), str(policy)]),
        },
        scale.pairs,
    )
    rows = [row("check / plain loop", costs["json"], costs["loop"], "processor", 0.5)]
    rows.append(row("check / plain loop", costs["json"], costs["loop"], "time"))
    rows.append(
        row("check / check of half as many", costs["json"], costs["half"], "processor", 2.3)
    )
    figures = []
    for format_ in ("json", "text"):
        used = statistics.median(processor(costs[format_])) / tables * 1000
        name = f"check --format {format_}: processor time of one table"
        figures.append(Figure(name, used, "ms", None if scale.quick else 1.0))
        peak = max(mebibytes(costs[format_]))
        figures.append(Figure(f"check --format {format_}: peak memory", peak, "MiB", 200.0))
    told = _TOLD.format(tables=tables, kinds=len(kinds), clients=len(CLIENTS))
    return Section("Check a saved fleet", told, rows, figures)


def declared() -> str:
    """A policy's clients."""
    return "policy_version: 1\nclients:\n" + "".join(f"  - client: {name}\n" for name in CLIENTS)


def check(saved: Path, policy: Path, format_: str) -> Cost:
    output = saved.with_name("verdicts")
    return deltaproto(
        *("check", saved, "--policy", policy, "--format", format_),
        *("--output", output, "--fail-on", "never"),
    )


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


def save(file: Path, kinds: list[dict[str, Any]], tables: int) -> None:
    """Write a saved inspection, laid out as `inspect` does it.

    Table by table: a child's peak memory, as the kernel counts it, starts from its parent's.
    """
    head = {
        "schema_version": SCHEMA_VERSION,
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


def named(entry: dict[str, Any], table: str) -> dict[str, Any]:
    found = [{**finding, "table": table} for finding in entry["findings"]]
    return {**entry, "table": table, "location": f"s3://lake/{table}", "findings": found}
