"""DROP FEATURE as predicted, and as Spark does it: commits, protocol after each, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from deltaproto.planning.drop import drop_feature
from deltaproto.planning.engine import Engine
from deltaproto.planning.observe import observe
from deltaproto.planning.outcome import Outcome
from deltaproto.planning.table import Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.protocol import Protocol
from deltaproto.tables.log.reader import LogReader
from tests.support.tables import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Happened(NamedTuple):
    """What Spark did: operation and protocol of each commit, and its refusal's error class."""

    operations: list[str]
    protocols: list[Protocol]
    error: str | None


def look(path: str) -> Table:
    return observe(LogReader(look_in_files=True).read(path))


def execute(spark: SparkSession, path: str, statement: str) -> Happened:
    before = newest(path)
    protocol = LogReader().read(path).protocol
    error = None
    try:
        spark.sql(statement).collect()
    except Exception as raised:
        java = getattr(raised, "java_exception", None)
        text = str(raised) if java is None else str(java.toString())
        found = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", text)
        error = found[1] if found else text
    operations, protocols = [], []
    for version in range(before + 1, newest(path) + 1):
        actions = [json.loads(line) for line in commit(path, version).read_text().splitlines()]
        for action in actions:
            if "protocol" in action:
                protocol = Protocol.parse(action["protocol"])
        (info,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
        operations.append(info["operation"])
        protocols.append(protocol)
    return Happened(operations, protocols, error)


def commit(path: str, version: int) -> Path:
    return Path(path) / "_delta_log" / f"{version:020d}.json"


def newest(path: str) -> int:
    names = (file.stem for file in (Path(path) / "_delta_log").glob("*.json"))
    return max(int(name) for name in names if name.isdecimal())


def agree(said: Outcome, happened: Happened) -> None:
    assert happened.error == (said.refusal.error if said.refusal else None), (said, happened)
    assert said.fewest <= len(happened.operations) <= said.most, (said.commits, happened)
    expected = [c for c in said.commits if c.sure or c.operation in happened.operations]
    assert [c.operation for c in expected] == happened.operations
    assert [c.protocol for c in expected] == happened.protocols


DROPPED_FROM = [
    "constraint",
    "mapping_by_name",
    "vectors_used",
    "vectors_off_again",
    "row_tracking",
    "iceberg",
    "commit_timestamps",
    "v2_checkpoint",
    "widening_unused",
    "widening_used",
    "legacy_2_5",
    "everything",
]


@pytest.mark.parametrize("name", DROPPED_FROM)
def test_every_feature_of_a_real_table_is_dropped_as_predicted(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = make_table(spark, name, tmp_path / "t")
    supported = LogReader().read(path).protocol.supported
    # Mapping last: Delta Spark 4.4 leaves physical names in the clustering domain when it goes, and
    # every later REORG of a clustered table fails.
    ordered = [*sorted(supported - {"columnMapping"}), *(supported & {"columnMapping"})]
    for feature in [*ordered, *(supported & {"domainMetadata"})]:
        said = drop_feature(look(path), feature, Engine())
        happened = execute(spark, path, f"alter table delta.`{path}` drop feature `{feature}`")
        agree(said, happened)
        assert look(path).protocol == said.table.protocol
        if said.refusal is None:
            assert look(path).vectors is not True or feature != "deletionVectors"


@pytest.mark.parametrize("feature", [f.name for f in catalogue.all_features()])
def test_a_feature_that_nothing_uses(feature: str, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    try:
        spark.sql(
            f"create table {table} (id bigint) using delta "
            f"tblproperties ('delta.feature.{feature}'='supported')"
        )
        spark.sql(f"insert into {table} values (1)")
    except Exception:
        pytest.skip("Delta Spark makes no such table")
    before = look(path)
    for truncate in (True, False):
        said = drop_feature(look(path), feature, Engine(), truncate=truncate)
        history = " truncate history" if truncate else ""
        happened = execute(spark, path, f"alter table {table} drop feature `{feature}`{history}")
        if truncate and said.refusal is not None and said.refusal.retry:
            # What history holds is not looked at here: both are possible.
            assert happened.error in (None, said.refusal.error), (said, happened)
            continue
        agree(said, happened)
    assert before.protocol.supported >= {feature}
