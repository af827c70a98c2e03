"""Which features can leave a protocol, and with which of Delta's errors the others stay."""

from __future__ import annotations

from deltaproto.planning.engine import Engine
from deltaproto.planning.predict.table import MAPPING_MODE, Table
from deltaproto.planning.search.droppable import find_droppable
from deltaproto.protocol.protocol import Protocol


def test_a_dependent_comes_before_column_names() -> None:
    # Delta looks for dependents first; whoever renames the columns is refused again.
    protocol = Protocol.carrying({"columnMapping", "icebergCompatV1"})
    table = Table(protocol, {MAPPING_MODE: "name"}, unmappable=("odd name",))
    stuck = find_droppable(table, Engine()).undroppable["columnMapping"]
    assert stuck.error == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"
    assert "icebergCompatV1" in stuck.reason


def test_without_a_dependent_the_column_names_are_what_stands_in_the_way() -> None:
    table = Table(
        Protocol.carrying({"columnMapping"}), {MAPPING_MODE: "name"}, unmappable=("odd name",)
    )
    stuck = find_droppable(table, Engine()).undroppable["columnMapping"]
    assert stuck.error == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
