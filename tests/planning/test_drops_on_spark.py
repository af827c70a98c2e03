"""DROP FEATURE as predicted, and as Spark does it: commits, protocol after each, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.outcome import Outcome, Rewrite
from deltaproto.protocol import feature_catalog
from deltaproto.tables.log.reader import LogReader
from tests.planning import log_files
from tests.planning.oracle import agree, execute, look, newest
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import RUNNING, needs_delta, needs_drop, needs_feature
from tests.support.tables import copy_table, recipes

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


@pytest.mark.parametrize("name", recipes(DROPPED_FROM))
def test_every_feature_of_a_real_table_is_dropped_as_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = copy_table(delta_spark, name, str(tmp_path / "t"))
    supported = LogReader().read(path).protocol.supported
    # Mapping last: Delta Spark 4.4 leaves physical names in the clustering domain when it goes, and
    # every later REORG of a clustered table fails.
    ordered = [*sorted(supported - {"columnMapping"}), *(supported & {"columnMapping"})]
    for feature in [*ordered, *(supported & {"domainMetadata"})]:
        said = drop_feature(look(path), feature, RUNNING)
        happened = execute(
            delta_spark, path, f"alter table delta.`{path}` drop feature `{feature}`"
        )
        if said.refusal is not None and said.refusal.retry and not RUNNING.fast_drop:
            # What history holds is not looked at here: both are possible.
            assert happened.error in (None, said.refusal.error), (said, happened)
            continue
        agree(said, happened)
        assert look(path).protocol == said.table.protocol
        if said.refusal is None:
            assert look(path).vectors is not True or feature != "deletionVectors"


# Made by a catalog only, or by a clause only (that one is among the recipes).
NOT_BY_PROPERTY = {"catalogManaged", "adaptiveMetadata-preview", "clustering"}
NAMES = [f.name for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)]


@pytest.mark.parametrize(
    "feature",
    [
        pytest.param(name, marks=needs_feature(name))
        for name in NAMES
        if name not in NOT_BY_PROPERTY
    ],
)
def test_a_feature_that_nothing_uses(feature: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} using delta "
        f"tblproperties ('delta.feature.{feature}'='supported') as select 1L id"
    )
    before = look(path)
    for truncate in (True, False):
        said = drop_feature(look(path), feature, RUNNING, truncate=truncate)
        history = " truncate history" if truncate else ""
        happened = execute(
            delta_spark, path, f"alter table {table} drop feature `{feature}`{history}"
        )
        if truncate and said.refusal is not None and said.refusal.retry:
            # What history holds is not looked at here: both are possible.
            assert happened.error in (None, said.refusal.error), (said, happened)
            continue
        agree(said, happened)
    assert before.protocol.supported >= {feature}


@needs_delta("4.0", "a drop of columnMapping that does not wait")
@pytest.mark.parametrize("first", ["", "alter table {t} cluster by none"])
def test_dropping_mapping_breaks_a_table_that_is_still_clustered(
    first: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} (id bigint) using delta cluster by (id) "
        "tblproperties ('delta.columnMapping.mode'='name')"
    )
    delta_spark.sql(f"insert into {table} values (1)")
    if first:
        delta_spark.sql(first.format(t=table))
    said = drop_feature(look(path), "columnMapping", RUNNING)
    agree(said, execute(delta_spark, path, f"alter table {table} drop feature columnMapping"))
    assert bool(said.warnings) is not bool(first)
    for later in (
        f"optimize {table}",
        f"describe detail {table}",
        f"alter table {table} cluster by (id)",
    ):
        assert (execute(delta_spark, path, later).error is None) is bool(first), later


@needs_drop("deletionVectors")
@pytest.mark.parametrize(
    ("made", "then"),
    [
        ("'delta.columnMapping.mode'='name'", "alter table {t} drop column word"),
        ("'delta.enableRowTracking'='true'", "alter table {t} drop feature rowTracking"),
        ("'delta.enableChangeDataFeed'='true'", "alter table {t} unset tblproperties ('any')"),
    ],
)
def test_columns_that_only_files_have_are_purged_with_the_vectors(
    made: str, then: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} (id bigint, word string) using delta "
        f"tblproperties ({made}, 'delta.enableDeletionVectors'='true')"
    )
    delta_spark.sql(f"insert into {table} select id, 'x' from range(4)")
    # A row that is written again keeps its id, or what became of it, in a column of its own.
    delta_spark.sql(f"update {table} set word = 'y' where id = 1")
    before = look(path)
    said = Outcome(before)
    if "rowTracking" in before.protocol.supported:
        said = drop_feature(before, "rowTracking", RUNNING)
    delta_spark.sql(then.format(t=table))
    now = (
        look(path)._replace(stray_columns=said.table.stray_columns) if said.commits else look(path)
    )
    assert now.stray_columns is None
    said = drop_feature(now, "deletionVectors", RUNNING)
    vectors, first = log_files.live_files(path).with_vectors, newest(path) + 1
    agree(said, execute(delta_spark, path, f"alter table {table} drop feature deletionVectors"))
    assert said.rewrites is Rewrite.SOME
    assert len(log_files.rewritten(log_files.commits(path, first))) > (vectors or 0)


@needs_drop("rowTracking")
@pytest.mark.parametrize("feature", ["deletionVectors", "rowTracking"])
def test_restore_adds_a_dropped_feature_again_and_removes_none(
    feature: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    table = f"delta.`{path}`"
    delta_spark.sql(
        f"create table {table} (id bigint) using delta "
        f"tblproperties ('delta.feature.{feature}'='supported')"
    )
    delta_spark.sql(f"alter table {table} drop feature {feature}")
    delta_spark.sql(
        f"alter table {table} set tblproperties ('delta.feature.vacuumProtocolCheck'='supported')"
    )
    assert feature not in look(path).protocol.supported
    delta_spark.sql(f"restore table {table} to version as of 0")
    assert {feature, "vacuumProtocolCheck"} <= look(path).protocol.supported
