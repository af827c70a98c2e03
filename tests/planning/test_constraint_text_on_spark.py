"""Expressions of ADD CONSTRAINT: Delta's grammar reads other tokens than Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.ddl.constraint_text import restorable_text, stored_text
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from tests.planning.oracle import agree, came_true, execute, look, planned, predict
from tests.planning.test_unlisted_on_spark import ID, column, write_commit
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

KEY = "delta.constraints.c"
CREATE = "create table {t} (id bigint, s string, st struct<x: int>) using delta"
# By the text of a statement: the stored text.
STORED = {
    "s <> 'it''s'": "s <> 'it' 's'",
    's <> "a""b"': 's <> "a" "b"',
    "st.x>1.5D and length(s)<=1e3": "st . x > 1.5D and length ( s ) <= 1e3",
    "id >= 0 -- at least": "id >= 0",
    "id >/* more */0": "id > 0",
    "s <> '-- \\' /* x */'": "s <> '-- \\' /* x */'",
    "!(id>3)or id!=4": "! ( id > 3 ) or id != 4",
}
REFUSED = (
    *("s = r'x'", 's <> R"x"', "s = r'\\d'", "id > 1.5f", "id > .5F", "id::int > 0"),
    *("id << 1 > 0", "exists(array(id), x -> x > 1)"),
)


@needs_delta("4.4", "its grammar")
@pytest.mark.parametrize("expression", [*STORED, *REFUSED])
def test_a_constraint_is_stored_as_predicted(
    expression: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    delta_spark.sql(CREATE.format(t=f"delta.`{path}`"))
    sql = f"alter table delta.`{path}` add constraint c check ({expression}\n)"
    _, said = predict(path, sql)
    agree(said, execute(delta_spark, path, sql))
    assert (said.refusal is not None) is (expression in REFUSED)
    if said.refusal is None:
        after = look(path)
        came_true(said, after, sql)
        assert after.configuration[KEY] == said.table.configuration[KEY] == STORED[expression]


@needs_delta("4.4", "its grammar")
@pytest.mark.parametrize(
    ("stored", "fits", "violates"),
    [
        ("s <> 'it''s'", "its", "it\\'s"),
        ("s <> r'a\\d'", "ad", "a\\\\d"),
        ("s <> 'x' -- 'no\n", "y", "x"),
        ("s <> 'x' /* no /* x */ */", "y", "x"),
    ],
)
def test_a_rollback_adds_the_same_constraint(
    stored: str, fits: str, violates: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """Other engines store expressions that Delta Spark's grammar would change."""
    path = write_commit(
        tmp_path / "t",
        "constrained",
        {"minReaderVersion": 1, "minWriterVersion": 3},
        {KEY: stored},
        *(ID, {**column("string"), "name": "s"}),
    )
    plan = plan_downgrade(planned(path), DowngradeRequest(lowest=True, include_enabled=True))
    (drop, _) = plan.steps
    assert drop.sql is not None
    assert drop.undo is not None
    assert not drop.losses
    for sql in (drop.sql, drop.undo):
        assert execute(delta_spark, path, sql).error is None
    insert = f"insert into delta.`{path}` values (1, '{{}}')"
    assert execute(delta_spark, path, insert.format(fits)).error is None
    assert execute(delta_spark, path, insert.format(violates)).error is not None


@pytest.mark.parametrize("stored", ["id::int > 0", "größe > 1", "id > 1.5f", "true) or (true"])
def test_no_rollback_is_printed_for_what_delta_spark_cannot_read(
    stored: str, tmp_path: Path
) -> None:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 3}
    path = write_commit(tmp_path / "t", "constrained", protocol, {KEY: stored}, ID)
    plan = plan_downgrade(planned(path), DowngradeRequest(lowest=True, include_enabled=True))
    assert plan.steps[0].undo is None
    assert "no rollback is printed" in plan.steps[0].losses[0]


@pytest.mark.parametrize("expression", STORED)
def test_a_stored_text_stays_as_it_is(expression: str) -> None:
    stored = stored_text(expression)
    assert stored_text(stored) == stored
    assert restorable_text(stored) == stored
