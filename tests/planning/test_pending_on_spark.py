"""Metadata that asks for more than the protocol has: as predicted, and as Spark does it.

deltalake 1.6.6 can store protocol properties as ordinary ones. No engine has to check what legacy
protocols lack.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.enable import FeatureToEnable
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.search.goals import HistoryChoice
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import agree, came_true, execute, look, planned, predict
from tests.planning.random_tables import Place
from tests.planning.test_unlisted_on_spark import CREATED, column, write_commit
from tests.planning.trial import carry_out
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
LISTED = ["appendOnly", "checkConstraints", "deletionVectors", "inCommitTimestamp", "invariants"]
MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
ICT = {"delta.enableInCommitTimestamps": "true"}

# By name: protocol, properties, columns.
TABLES: dict[str, tuple[tuple[int, int], dict[str, str], tuple[dict[str, Any], ...]]] = {
    "a feature": ((1, 2), {"delta.feature.deletionVectors": "supported"}, (ID,)),
    "features that it has": (
        (3, 7),
        {
            **{f"delta.feature.{name}": "supported" for name in LISTED[:4]},
            **{"delta.enableDeletionVectors": "true", **ICT},
        },
        (ID,),
    ),
    "versions": ((1, 2), {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}, (ID,)),
    "lower versions": (
        (3, 7),
        {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"},
        (ID,),
    ),
    "versions that it has": ((1, 4), {"delta.minWriterVersion": "4"}, (ID,)),
    "reader version": ((1, 2), {"delta.minReaderVersion": "3"}, (ID,)),
    "no version": ((1, 2), {"delta.minWriterVersion": "x"}, (ID,)),
    "unknown feature": ((1, 2), {"delta.feature.nope": "supported"}, (ID,)),
    "no status": ((1, 2), {"delta.feature.appendOnly": "disabled"}, (ID,)),
    "defaults ignored": ((1, 2), {"delta.ignoreProtocolDefaults": "true"}, (ID,)),
    "timestamp without zone": ((1, 2), {}, (ID, column("timestamp_ntz"))),
    "variant": ((1, 3), {}, (ID, column("variant"))),
    "not null": ((1, 1), {}, ({**ID, "nullable": False}, column("string"))),
    "generated": ((1, 2), {}, (ID, column("long", **{"delta.generationExpression": "id + 1"}))),
    "settings": (
        (1, 3),
        {"delta.enableDeletionVectors": "true", "delta.constraints.c": "id > 0"},
        (ID,),
    ),
    "mapped below its version": (
        (1, 5),
        {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"},
        ({**ID, "metadata": MAPPED},),
    ),
}
STATEMENTS = (
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} unset tblproperties ('delta.minReaderVersion', 'delta.minWriterVersion')",
    "alter table {t} add constraint positive check (id > 0)",
    "alter table {t} cluster by (id)",
)
MORE = (
    "alter table {t} unset tblproperties ('delta.feature.deletionVectors', "
    "'delta.enableDeletionVectors')",
    "alter table {t} set tblproperties ('delta.minWriterVersion' = '6')",
    "alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')",
    "alter table {t} add columns (n int)",
    "alter table {t} drop constraint c",
    "alter table {t} drop feature checkConstraints",
    "alter table {t} drop feature deletionVectors",
    "alter table {t} drop feature inCommitTimestamp",
)
REFUSED = (
    *("reader version", "no version", "unknown feature", "no status", "timestamp without zone"),
    "defaults ignored",
)
"""tables on which all the same happens"""


def write_log(path: Path, name: str) -> str:
    """A table without rows."""
    (reader, writer), properties, columns = TABLES[name]
    protocol: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if writer == 7:
        protocol |= {"readerFeatures": ["deletionVectors"], "writerFeatures": LISTED}
    info = {"inCommitTimestamp": CREATED} if properties.keys() >= ICT.keys() else {}
    return write_commit(path, "pending", protocol, properties, *columns, info=info)


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("name", TABLES)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    statements = STATEMENTS if name in REFUSED else (*STATEMENTS, *MORE)
    for number, statement in enumerate(statements):
        path = write_log(tmp_path / str(number), name)
        sql = statement.format(t=f"delta.`{path}`")
        before, said = predict(path, sql)
        agree(said, execute(delta_spark, path, sql))
        if said.commits and said.refusal is None:
            after = look(path)
            came_true(said, after, statement)
            # What Delta counts and generates is not predicted.
            known = before.configuration.keys() - {"delta.columnMapping.maxColumnId"}
            predicted, real = (
                {key: value for key, value in each.configuration.items() if key in known}
                for each in (said.table, after)
            )
            assert predicted == real, statement


@needs_delta("4.4", "every feature that the tables use")
def test_a_version_that_is_set_counts_with_the_stored_one(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    for name, writer, error in (
        ("lower versions", 6, None),
        ("reader version", 7, None),
        ("reader version", 6, "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE"),
    ):
        path = write_log(tmp_path / f"{name} {writer}", name)
        sql = (
            f"alter table delta.`{path}` set tblproperties ('delta.minWriterVersion' = '{writer}')"
        )
        _, said = predict(path, sql)
        happened = execute(delta_spark, path, sql)
        assert happened.error == error
        agree(said, happened)


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("history", [None, HistoryChoice.TRUNCATE])
@pytest.mark.parametrize("name", ["features that it has", "versions that it has", "variant"])
def test_a_downgrade_first_settles_the_table(
    name: str, history: HistoryChoice | None, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = write_log(tmp_path / "t", name)
    given = planned(path)
    asked = DowngradeRequest(drop=("checkConstraints",), history=history)
    if name == "features that it has":
        asked = DowngradeRequest(lowest=True, include_enabled=True, history=history)
    plan = plan_downgrade(given, asked)
    assert plan.steps[0].sql is not None
    assert "UNSET TBLPROPERTIES ('delta." in plan.steps[0].sql
    assert [*carry_out(delta_spark, Place(path, path), plan.steps, given)] == []
    after = planned(path)
    assert after.table.protocol == plan.protocol_after
    assert not plan_downgrade(after, asked).steps
    assert "checkConstraints" not in after.table.protocol.supported


def test_row_tracking_is_not_added_where_it_would_make_the_table_unreadable(
    tmp_path: Path,
) -> None:
    given = planned(write_log(tmp_path / "t", "variant"))
    wanted = FeatureToEnable("rowTracking")
    plan = plan_upgrade(given, UpgradeRequest(enable=(wanted,)))
    assert not plan.steps
    assert [each.error for each in plan.blocked] == ["DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"]
