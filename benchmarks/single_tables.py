"""Single tables for the benchmarks: short ones, and one whose checkpoint names very many files."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.fleet_tables import make_table

COLUMNS = 20
_KIND = 2
"""of the fleet's tables: the one with deletion vectors"""


def apart(make: Callable[..., None], *arguments: Any) -> None:
    """Make a table in a process of its own: a child's peak memory, as the kernel counts it,
    starts from its parent's, so the process that measures must stay small."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(make, *arguments).result()


def make_small(root: Path) -> None:
    """Three commits without checksums."""
    make_table(root, _KIND, checksum=False)


def make_with_commits(root: Path, commits: int) -> None:
    """So many commits after a checkpoint at version 0, each with its checksum."""
    make_table(root, _KIND, commits=1 + commits, checkpoint=0)


def make_with_files(root: Path, files: int) -> None:
    """A checkpoint of so many files with statistics, one commit after it, and no checksum."""
    from deltalake import DeltaTable

    log = root / "_delta_log"
    log.mkdir(parents=True)
    names = [f"column_{number}" for number in range(COLUMNS)]
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in names]
    metadata = {
        "id": "5f1d3c1e-0000-4000-8000-000000000000",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1,
    }
    with (log / f"{0:020d}.json").open("w") as file:
        file.write('{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n')
        file.write(json.dumps({"metaData": metadata}) + "\n")
        for number in range(files):
            low = dict.fromkeys(names[:4], number)
            stats = {"numRecords": 10, "minValues": low, "maxValues": low}
            add = {
                "path": f"part-{number:08d}-c000.snappy.parquet",
                "partitionValues": {},
                "size": 100_000 + number,
                "modificationTime": 1_700_000_000_000,
                "dataChange": True,
                "stats": json.dumps(stats),
            }
            file.write(json.dumps({"add": add}) + "\n")
    DeltaTable(str(root)).create_checkpoint()
    (log / f"{1:020d}.json").write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')
    (log / f"{0:020d}.json").unlink()
