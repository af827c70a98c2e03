"""A plan by a name of a Hive metastore: rehearsed, refused where the name moved, and applied."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.conftest import Ran
from tests.support.hive_metastore import _encoded
from tests.tables.test_thrift import reply, serving

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Cli = Callable[..., Ran]


def test_a_plan_by_name(cli: Cli, tmp_path: Path) -> None:
    ours, other = tmp_path / "a b", tmp_path / "other"
    for folder in (ours, other):
        write_deltalake(folder, pa.table({"id": [1, 2]}))
    now = [ours]

    def answer(method: str, number: int) -> bytes:
        place = {2: f"file:{now[0]}"}
        table = {1: "orders", 7: place, 9: {"spark.sql.sources.provider": "delta"}}
        kind, data = _encoded(table)
        return reply(method, number, struct.pack(">Bh", kind, 0) + data)

    with serving(answer) as authority:
        name, plan = f"hms://{authority}/sales.orders", str(tmp_path / "plan.json")
        words = ("--enable", "deletionVectors", "--format", "json", "--output", plan)
        assert cli("plan-upgrade", name, *words).code == 0
        assert cli("rehearse", plan).code == 0
        now[0] = other
        moved = cli("apply", plan, "--yes")
        assert moved.code == 3
        assert "is now at" in moved.out
        for folder in (ours, other):
            assert DeltaTable(folder).version() == 0
        now[0] = ours
        assert cli("apply", plan, "--yes").code == 0
        every = cli("inspect", name, "--reader", "all", "--format", "json").json["tables"][0]
        assert [each["version"] for each in every["readers"].values()] == [1, 1, 1]
    assert (DeltaTable(ours).version(), DeltaTable(other).version()) == (1, 0)
