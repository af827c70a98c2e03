"""Which statements of Delta Spark find constraints whose property is not in lower case."""

from __future__ import annotations

from pathlib import Path

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from tests.planning.oracle import agree, execute, planned, predict
from tests.planning.test_unlisted_on_spark import ID, write_commit
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

MISSING = "DELTA_CONSTRAINT_DOES_NOT_EXIST"
VIOLATED = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
INSERT = "insert into {t} values (%d)"
DROP = "alter table {t} drop constraint Id_Positive"
STATEMENTS = (
    (DROP, MISSING),
    ("alter table {t} drop constraint if exists id_positive", None),
    ("alter table {t} drop feature checkConstraints", "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"),
    ("alter table {t} add constraint Id_Positive check (id > 1)", None),
    (DROP, None),
    (DROP, MISSING),
)


def make_table(folder: Path) -> str:
    protocol = {"minReaderVersion": 1, "minWriterVersion": 3}
    properties = {"delta.constraints.Id_Positive": "id > 0"}
    return write_commit(folder / "t", "named", protocol, properties, ID)


@needs_delta("4.4", "what it was measured with")
def test_only_the_lower_case_is_found(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    path = make_table(tmp_path)
    table = f"delta.`{path}`"

    def insert(value: int) -> str | None:
        return execute(delta_spark, path, INSERT.format(t=table) % value).error

    for statement, error in STATEMENTS:
        assert insert(-1) == VIOLATED, statement
        sql = statement.format(t=table)
        said = predict(path, sql)[1]
        happened = execute(delta_spark, path, sql)
        agree(said, happened)
        assert happened.error == error, statement
    plan = plan_downgrade(planned(path), DowngradeRequest(drop=("checkConstraints",)))
    for step in plan.steps:
        assert step.sql is not None
        assert execute(delta_spark, path, step.sql).error is None
    assert insert(-1) is None
    assert planned(path).table.protocol == plan.protocol_after
