"""What the log shows of paths is what the paths of the live files show, with checkpoints or not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.protocol.feature import Trace
from deltaproto.tables.log.reader import LogReader
from tests.support.examples import examples
from tests.support.logs import Log, add, column, commit_info, metadata, protocol, schema_string

PATHS = {
    "file:///elsewhere/part-0.parquet": "a",
    "part-1.parquet": "a",
    "p=%C3%A9/part-2.parquet": "é",
    "p=é/part-3.parquet": "é",
    "p=a/part-4.parquet": "a",
    "s3://bucket/p=a/part-5.parquet": "a",
    "p=a%2520b/part-6.parquet": "a b",
}
SCHEMA = schema_string(column("p", "string"))


def make(folder: Path, random: Random) -> tuple[str, set[str]]:
    """A table with random commits, perhaps a checkpoint, and its live files."""
    log, live = Log(folder), dict[str, str]()
    partitioned = metadata(schema=SCHEMA, partition_columns=["p"])
    versions = random.randint(1, 5)
    checkpoint = random.choice([None, *range(versions)])
    for version in range(versions):
        actions = [commit_info(txnId=str(version))]
        actions += [protocol(1, 2), partitioned] if version == 0 else []
        for path in random.sample(sorted(PATHS), random.randint(0, 3)):
            values = {"p": PATHS[path]}
            if live.pop(path, None) is not None:
                partition = random.choice([{}, {"partitionValues": values}])
                actions.append({"remove": {"path": path, "dataChange": True, **partition}})
            else:
                actions.append(add(path, partitionValues=values))
                live[path] = PATHS[path]
        log.commit(version, *actions)
        if version == checkpoint:
            files = (add(path, partitionValues={"p": value}) for path, value in live.items())
            log.checkpoint(version, protocol(1, 2), partitioned, *files)
    if random.random() < 0.4:
        log.checksum(versions - 1, protocol(1, 2), partitioned, txnId=str(versions - 1))
    if random.random() < 0.5:
        for version in range(checkpoint or 0):
            log.path(version, ".json").unlink()
    return log.table, set(live)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(60), deadline=None)
def test_only_live_files_count(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, live = make(Path(folder) / "t", Random(seed))
        found = LogReader(every_commit=True).read(table).traces
        assert {trace: found[trace] for trace in SHOWN} == {
            trace: any(map(shows, live)) for trace, shows in SHOWN.items()
        }


SHOWN = {
    Trace.ABSOLUTE_PATHS: lambda path: ":" in path,
    Trace.NON_ASCII_PATHS: lambda path: not path.isascii(),
    Trace.ESCAPED_PATHS: lambda path: "%" in path,
}
