"""Columns in data files that the schema does not have: REORG rewrites such files.

Measured with Delta Spark 4.4.0 (`ReorgTableHelper.fileHasExtraColumns`).
"""

from __future__ import annotations

import pytest

from deltaproto.planning.engine import Engine
from deltaproto.planning.from_state import may_have_stray_columns
from deltaproto.planning.predict.drop_feature import drop_feature
from deltaproto.planning.predict.outcome import Rewrite
from deltaproto.planning.predict.table import MAPPING_MODE, ROW_ID_COLUMNS, Table
from deltaproto.planning.search.route import DropMode, DropSelection, build_route
from deltaproto.planning.statement import DropFeature, Purge, SetProperties, UnsetProperties
from deltaproto.protocol.protocol import Protocol

VECTORS = {"delta.enableDeletionVectors": "true"}
TRACKED = {"delta.enableRowTracking": "true", **dict.fromkeys(ROW_ID_COLUMNS, "_row-id-col")}


def plain(features: set[str], configuration: dict[str, str]) -> Table:
    return Table(
        Protocol.carrying(features),
        configuration,
        vectors=False,
        widened=False,
        v2_checkpoint=False,
        row_ids="rowTracking" in features,
        traced=frozenset(),
    )


def test_dropped_columns_are_purged_while_vectors_are_dropped() -> None:
    table = plain({"columnMapping", "deletionVectors"}, {MAPPING_MODE: "name", **VECTORS})
    said = drop_feature(table._replace(stray_columns=None), "deletionVectors", Engine())
    assert said.rewrites is Rewrite.SOME
    assert ("REORG", False) in [(commit.operation, commit.sure) for commit in said.commits]
    assert said.table.stray_columns is False
    assert drop_feature(table, "deletionVectors", Engine()).rewrites is Rewrite.NONE


def test_a_purge_of_one_s_own_takes_them_too() -> None:
    table = plain({"columnMapping"}, {MAPPING_MODE: "name"})._replace(stray_columns=None)
    assert Purge().outcome(table, Engine()).rewrites is Rewrite.SOME
    assert Purge().outcome(table._replace(stray_columns=False), Engine()).commits == ()


def test_row_tracking_leaves_columns_behind() -> None:
    table = plain({"rowTracking"}, TRACKED)
    assert drop_feature(table, "rowTracking", Engine()).table.stray_columns is None
    assert (
        drop_feature(plain({"rowTracking"}, {}), "rowTracking", Engine()).table.stray_columns
        is False
    )


def test_vectors_go_before_row_tracking_which_would_have_files_rewritten() -> None:
    choice = DropSelection(frozenset({"rowTracking", "deletionVectors", "domainMetadata"}))
    table = plain({*choice.dropped}, {**TRACKED, **VECTORS})
    for drops in DropMode:
        moves = build_route(table, choice, Engine(), drops)
        dropped = [m.statement.feature for m in moves if isinstance(m.statement, DropFeature)]
        assert dropped[-2:] == ["rowTracking", "domainMetadata"]
        assert {move.outcome.rewrites for move in moves} == {Rewrite.NONE}


def test_mapping_goes_after_row_tracking_and_leaves_nothing_behind() -> None:
    choice = DropSelection(frozenset({"rowTracking", "deletionVectors", "columnMapping"}))
    table = plain({*choice.dropped}, {**TRACKED, **VECTORS, MAPPING_MODE: "name"})
    moves = build_route(table, choice, Engine(), DropMode.FAST)
    dropped = [m.statement.feature for m in moves if isinstance(m.statement, DropFeature)]
    assert dropped == ["rowTracking", "columnMapping", "deletionVectors"]
    assert [m.outcome.rewrites for m in moves] == [Rewrite.NONE, Rewrite.ALL, Rewrite.NONE]


def test_materialized_partition_columns_are_left_behind_and_go_last() -> None:
    names = {"materializePartitionColumns", "deletionVectors"}
    table = plain(names, VECTORS)._replace(partition_columns=("p",))
    dropped = drop_feature(table, "materializePartitionColumns", Engine())
    assert dropped.table.stray_columns is None
    moves = build_route(table, DropSelection(frozenset(names)), Engine(), DropMode.FAST)
    order = [move.statement.feature for move in moves]
    assert order.index("deletionVectors") < order.index("materializePartitionColumns")
    whole = plain(names, VECTORS)
    assert drop_feature(whole, "materializePartitionColumns", Engine()).table.stray_columns is False


def test_the_change_data_feed_leaves_its_column_in_what_was_updated() -> None:
    assert may_have_stray_columns(Protocol.carrying({"changeDataFeed"}), {}, None) is None
    assert may_have_stray_columns(Protocol.carrying({"deletionVectors"}), {}, None) is False


def test_columns_were_dropped_where_more_were_numbered_than_are_there() -> None:
    mapped = Protocol.carrying({"columnMapping"})
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long"}]}
    numbered = {MAPPING_MODE: "name", "delta.columnMapping.maxColumnId": "1"}
    assert may_have_stray_columns(mapped, numbered, schema) is False
    assert (
        may_have_stray_columns(mapped, {**numbered, "delta.columnMapping.maxColumnId": "2"}, schema)
        is None
    )
    assert may_have_stray_columns(mapped, {**numbered, MAPPING_MODE: "none"}, None) is False


@pytest.mark.parametrize("off", ["false", "", None])
def test_row_ids_in_files_are_strays_once_row_tracking_is_off(off: str | None) -> None:
    # Recorded from seed 92020 of the oracle: the file that an UPDATE wrote is rewritten as well.
    protocol = Protocol.carrying({"rowTracking"})
    names = dict.fromkeys(ROW_ID_COLUMNS, "_row-id-col")
    stored = {**names, **({} if off is None else {"delta.enableRowTracking": off})}
    assert may_have_stray_columns(protocol, stored, {}) is None
    assert (
        may_have_stray_columns(protocol, {**names, "delta.enableRowTracking": "true"}, {}) is False
    )
    # Dropping rowTracking, and RESTORE after that, leave the columns, but not their names.
    assert may_have_stray_columns(protocol, {"delta.enableRowTracking": "false"}, {}) is None
    dropped = Protocol.carrying({"domainMetadata"})
    assert may_have_stray_columns(dropped, {}, {}) is None
    assert may_have_stray_columns(Protocol(1, 2), {}, {}) is False


@pytest.mark.parametrize(
    "statement",
    [
        SetProperties({"delta.enableRowTracking": "false"}),
        UnsetProperties(("delta.enableRowTracking",)),
    ],
)
def test_switching_row_tracking_off_makes_them_strays(
    statement: SetProperties | UnsetProperties,
) -> None:
    table = plain({"rowTracking"}, TRACKED)
    assert statement.outcome(table, Engine()).table.stray_columns is None
    untouched = plain({"rowTracking"}, {"delta.enableRowTracking": "true"})
    assert statement.outcome(untouched, Engine()).table.stray_columns is False
