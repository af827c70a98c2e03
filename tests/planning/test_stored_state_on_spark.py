"""Tables whose stored properties or columns make Delta Spark fail, or add features.

Other engines, and SET TBLPROPERTIES itself, can store such properties. Tables without columns are
what CREATE TABLE leaves that names none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.predict.table import MAX_COLUMN_ID, ROW_ID_COLUMNS
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import agree, came_true, execute, look, planned, predict
from tests.planning.test_unlisted_on_spark import CREATED, ID, a_struct, column, write_commit
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

ENABLED = "delta.enableInCommitTimestamps"
VERSION = "delta.inCommitTimestampEnablementVersion"
TIME = "delta.inCommitTimestampEnablementTimestamp"
TRACKED, SUSPENDED = "delta.enableRowTracking", "delta.rowTrackingSuspended"
ON = {ENABLED: "true"}
BOTH = {**ON, VERSION: "1", TIME: "5"}
COORDINATOR = {"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"}
DOMAINS = ("domainMetadata",)
MAPPED = {"delta.columnMapping.mode": "name"}
NUMBERED = {**MAPPED, MAX_COLUMN_ID: "3"}
LISTED = {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"}
FROM_CATALOG = {"delta.feature.catalogManaged": "supported"}
CONDITION = {"delta.invariants": json.dumps({"expression": {"expression": "id > 0"}})}
LIMITED = {**ID, "metadata": CONDITION}


def mapped(name: str, number: int, physical: str, kind: Any = "long") -> dict[str, Any]:
    """A column with this column mapping id and physical name."""
    numbers = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": numbers}


# By name: writer features or a legacy pair, properties, columns.
TABLES: dict[
    str, tuple[tuple[str, ...] | tuple[int, int], Mapping[str, str], tuple[dict[str, Any], ...]]
] = {
    "timestamps since": (("inCommitTimestamp",), BOTH, (ID,)),
    "timestamps since creation": (("inCommitTimestamp",), ON, (ID,)),
    "timestamps since half": (("inCommitTimestamp",), {**ON, TIME: "5"}, (ID,)),
    "no timestamps": ((1, 2), {VERSION: "1"}, (ID,)),
    "tracked without the feature": ((1, 2), {TRACKED: "true"}, (ID,)),
    "tracked without names": (("domainMetadata", "rowTracking"), {TRACKED: "true"}, (ID,)),
    "tracked with one name": (
        ("domainMetadata", "rowTracking"),
        {TRACKED: "true", ROW_ID_COLUMNS[0]: "_row-id-col-1"},
        (ID,),
    ),
    "tracked and suspended": (
        ("domainMetadata", "rowTracking"),
        {TRACKED: "true", SUSPENDED: "true", **{name: f"_{name}" for name in ROW_ID_COLUMNS}},
        (ID,),
    ),
    "tracked and suspended without the feature": (
        (1, 2),
        {TRACKED: "true", SUSPENDED: "true"},
        (ID,),
    ),
    "tracked with a column's name": (
        ("domainMetadata", "rowTracking"),
        {TRACKED: "true", ROW_ID_COLUMNS[0]: "id", ROW_ID_COLUMNS[1]: "_row-version"},
        (ID,),
    ),
    "not tracked with a column's name": (
        ("domainMetadata", "rowTracking"),
        {ROW_ID_COLUMNS[1]: "id"},
        (ID,),
    ),
    "invariant": ((1, 1), {}, (LIMITED,)),
    "invariant in a struct": ((1, 1), {}, (ID, column(a_struct({**LIMITED, "name": "n"})))),
    "invariant with its feature": ((1, 2), {}, (LIMITED,)),
    "invariant of another kind": ((1, 2), {}, ({**ID, "metadata": {"delta.invariants": "{}"}},)),
    "invariant that is not JSON": (
        (1, 1),
        {},
        ({**ID, "metadata": {"delta.invariants": "id > 0"}},),
    ),
    "no columns": ((1, 2), {}, ()),
    "coordinator without the feature": ((1, 2), COORDINATOR, (ID,)),
    "coordinator without the listed feature": (("domainMetadata",), COORDINATOR, (ID,)),
    "mapped without ids": ((2, 5), MAPPED, (ID,)),
    "mapped without ids or the feature": ((1, 2), MAPPED, (ID,)),
    "mapped with an id twice": ((2, 5), NUMBERED, (mapped("id", 1, "a"), mapped("c", 1, "b"))),
    "mapped with two equal names": ((2, 5), NUMBERED, (mapped("id", 1, "a"), mapped("c", 2, "a"))),
    "mapped in a struct with an id twice": (
        (2, 5),
        NUMBERED,
        (mapped("id", 1, "a"), mapped("c", 2, "b", a_struct(mapped("x", 1, "a")))),
    ),
    "mapped in a struct with equal names": (
        (2, 5),
        MAPPED,
        (mapped("id", 1, "a"), mapped("c", 2, "b", a_struct(mapped("x", 3, "a")))),
    ),
    "versions that exclude each other": ((1, 2), LISTED, (ID,)),
    "catalog's feature": ((1, 2), FROM_CATALOG, (ID,)),
    "catalog's listed feature": (("domainMetadata",), FROM_CATALOG, (ID,)),
}
OF_TIMESTAMPS = (
    f"alter table {{t}} unset tblproperties ('{VERSION}')",
    f"alter table {{t}} unset tblproperties ('{TIME}')",
    f"alter table {{t}} unset tblproperties ('{VERSION}', '{TIME}')",
    f"alter table {{t}} unset tblproperties ('{ENABLED}')",
    f"alter table {{t}} unset tblproperties ('{ENABLED}', '{VERSION}')",
    f"alter table {{t}} set tblproperties ('{VERSION}' = '7')",
    f"alter table {{t}} set tblproperties ('{ENABLED}' = 'true')",
    f"alter table {{t}} set tblproperties ('{ENABLED}' = 'false', '{TRACKED}' = 'true')",
    "alter table {t} drop feature inCommitTimestamp",
    "delete from {t}",
)
OF_TRACKING = (
    f"alter table {{t}} unset tblproperties ('{TRACKED}')",
    f"alter table {{t}} unset tblproperties ('{SUSPENDED}')",
    f"alter table {{t}} set tblproperties ('{TRACKED}' = 'false')",
    "alter table {t} drop constraint if exists small",
    "alter table {t} drop feature rowTracking",
    "delete from {t} where id = 1",
    "update {t} set id = 2",
)
OF_COLUMNS = (
    "alter table {t} add columns (n int)",
    "alter table {t} set tblproperties ('delta.enableDeletionVectors' = 'true')",
    f"alter table {{t}} set tblproperties ('{TRACKED}' = 'true')",
    "alter table {t} cluster by (id)",
    "alter table {t} replace columns (id bigint, n int)",
    "insert into {t} (id) values (1)",
    "insert into {t} (nowhere) values (1)",
    "update {t} set nowhere = 1",
    "merge into {t} using (select 1 as n) s on true when matched then delete",
)
OF_OTHERS = (
    "alter table {t} add columns (n int)",
    "alter table {t} unset tblproperties ('delta.feature.catalogManaged', 'team')",
    "alter table {t} set tblproperties ('delta.minWriterVersion' = '4')",
    f"alter table {{t}} set tblproperties ('{TRACKED}' = 'true')",
    "alter table {t} cluster by (id)",
    "optimize {t}",
    "delete from {t} where id = 1",
)
OF_MAPPING = (
    "alter table {t} add columns (n int)",
    "alter table {t} unset tblproperties ('delta.columnMapping.mode')",
    "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'none')",
    "alter table {t} drop feature columnMapping",
    "alter table {t} drop feature columnMapping truncate history",
    "alter table {t} alter column id comment 'x'",
    "insert overwrite {t} values (1)",
    "update {t} set id = 2",
    "merge into {t} using (select 1 as id) s on s.id = {t}.id when not matched then insert *",
    "optimize {t}",
)
OF_IDS = (
    "alter table {t} add columns (n int)",
    "alter table {t} unset tblproperties ('delta.columnMapping.mode')",
    "alter table {t} set tblproperties ('delta.columnMapping.mode' = 'none')",
    "alter table {t} drop feature columnMapping",
    "optimize {t}",
)
OF_SAME_ID = (
    "alter table {t} rename column c to d",
    "alter table {t} drop column c",
)
OF_VERSIONS = (
    "alter table {t} set tblproperties ('delta.minWriterVersion' = '2')",
    "alter table {t} set tblproperties ('delta.minReaderVersion' = '1')",
    "alter table {t} set tblproperties ('delta.minReaderVersion'='1','delta.minWriterVersion'='5')",
    "alter table {t} unset tblproperties ('delta.minReaderVersion')",
    "alter table {t} unset tblproperties ('delta.minWriterVersion')",
)
OF_ALL = (
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} add constraint small check (1 < 9)",
    "insert into {t} values (1)",
)


def statements(name: str) -> tuple[str, ...]:
    groups = {
        "timestamps": OF_TIMESTAMPS,
        "tracked": OF_TRACKING,
        "twice": (*OF_IDS, *OF_SAME_ID),
        "equal": OF_IDS,
        "coordinator": OF_OTHERS,
        "catalog": OF_OTHERS,
        "mapped": OF_MAPPING,
        "versions": OF_VERSIONS,
    }
    more = next((groups[word] for word in groups if word in name), OF_COLUMNS)
    listed = ("alter table {t} drop feature domainMetadata",) if "listed" in name else ()
    return (*OF_ALL, *more, *listed)


def written(supported: tuple[int, int] | tuple[str, ...]) -> dict[str, Any]:
    """Return a protocol action of a legacy pair, or of writer features."""
    if isinstance(supported[0], int):
        return {"minReaderVersion": supported[0], "minWriterVersion": supported[1]}
    return {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": supported}


def write_log(path: Path, name: str) -> str:
    """A table without rows."""
    supported, properties, columns = TABLES[name]
    protocol = written(supported)
    info = {"inCommitTimestamp": CREATED} if ENABLED in properties else {}
    return write_commit(path, "stored", protocol, properties, *columns, info=info)


@needs_delta("4.4", "every feature that the tables use")
@pytest.mark.parametrize("name", TABLES)
def test_each_statement_does_what_was_predicted(
    name: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    for number, statement in enumerate(statements(name)):
        path = write_log(tmp_path / str(number), name)
        sql = statement.format(t=f"delta.`{path}`")
        _, said = predict(path, sql)
        happened = execute(delta_spark, path, sql)
        if said.refusal is not None and not said.refusal.sure and happened.error is None:
            continue
        agree(said, happened)
        if said.commits and said.refusal is None:
            after = look(path)
            came_true(said, after, statement)
            assert (said.table.domains or after.domains) == after.domains, statement
            # Delta chooses the values, the names of the columns with row ids, and the column ids.
            assert said.table.configuration.keys() == {
                key
                for key in after.configuration
                if key in said.table.configuration
                or not (key.startswith("delta.rowTracking.") or key == MAX_COLUMN_ID)
            }, statement


@needs_delta("4.4", "the checks of this release")
def test_a_column_without_a_physical_name_is_not_renamed(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = write_log(tmp_path / "t", "mapped without ids")
    sql = f"alter table delta.`{path}` rename column id to x"
    _, said = predict(path, sql)
    assert said.refusal is not None
    assert not said.refusal.sure
    assert execute(delta_spark, path, sql).operations == ["RENAME COLUMN"]
    schema = look(path).schema
    assert schema is not None
    assert [column.name for column in schema.columns] == ["id"]


@pytest.mark.parametrize(
    "name", ["timestamps since half", "tracked and suspended", "tracked without the feature"]
)
def test_a_plan_of_such_a_table(name: str, tmp_path: Path) -> None:
    given = planned(write_log(tmp_path / "t", name))
    plan = plan_upgrade(given, UpgradeRequest(set={"team": "a"}))
    # A metadata commit adds the feature that is only enabled.
    assert bool(plan.blocked) is (name != "tracked without the feature")
    assert bool(plan.steps) is not bool(plan.blocked)


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        (COORDINATOR, ""),
        (FROM_CATALOG, ""),
        (
            {"delta.feature.catalogOwned-preview": "supported"},
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        ),
        ({"delta.feature.rowTracking": "off"}, "DELTA_UNSUPPORTED_FEATURE_STATUS"),
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        {"lowest": True, "include_enabled": True},
        {"to": (1, 2)},
        {"drop": ("domainMetadata", "checkpointProtection")},
    ],
)
def test_nothing_is_dropped_if_every_change_fails(
    stored: dict[str, str], error: str, asked: dict[str, Any], tmp_path: Path
) -> None:
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7}
    droppable = ["checkpointProtection", "domainMetadata"]
    protocol |= {"writerFeatures": ["appendOnly", *droppable, "invariants"]}
    path = write_commit(tmp_path / "t", "stored", protocol, stored, ID)
    plan = plan_downgrade(planned(path), DowngradeRequest(**asked))
    assert not plan.steps
    stays = {(each.feature, each.error) for each in (*plan.blocked, *plan.kept)}
    assert stays >= {(name, error) for name in droppable}


@needs_delta("4.4", "the checks of this release")
@pytest.mark.parametrize(
    ("protocol", "stored", "asked", "drops"),
    [
        ((2, 5), MAPPED, {"drop": ("columnMapping",)}, 1),
        (DOMAINS, {"delta.feature.nope": "supported"}, {"drop": DOMAINS}, 1),
        (DOMAINS, {"delta.minWriterVersion": "x"}, {"drop": DOMAINS}, 1),
        (DOMAINS, {"delta.feature.v2Checkpoint": "supported"}, {"to": (1, 2)}, 2),
        (DOMAINS, {"delta.feature.v2Checkpoint": "supported"}, {"lowest": True}, 2),
        ((1, 4), {"delta.feature.v2Checkpoint": "supported"}, {"drop": ("checkConstraints",)}, 1),
    ],
)
def test_drops_follow_a_change_that_settles_the_metadata(
    protocol: tuple[int, int] | tuple[str, ...],
    stored: dict[str, str],
    asked: dict[str, Any],
    drops: int,
    delta_spark: DeltaSpark,
    tmp_path: Path,
) -> None:
    path = write_commit(tmp_path / "t", "stored", written(protocol), stored, ID)
    plan = plan_downgrade(planned(path), DowngradeRequest(**asked))
    assert not plan.blocked
    assert [step.action for step in plan.steps] == ["unset-properties", *["drop-feature"] * drops]
    for step in plan.steps:
        assert step.sql is not None
        happened = execute(delta_spark, path, step.sql)
        assert (happened.error, look(path).protocol) == (step.expects, step.protocol_after)
    assert not plan_downgrade(planned(path), DowngradeRequest(**asked)).steps


def test_a_goal_that_stored_features_exclude_is_blocked(tmp_path: Path) -> None:
    stored = {"delta.feature.timestampNtz": "supported"}
    path = write_commit(tmp_path / "t", "stored", written(DOMAINS), stored, ID)
    plan = plan_downgrade(planned(path), DowngradeRequest(to=(1, 2)))
    assert plan.blocked
    assert not plan.steps


def test_a_plan_names_the_coordinator_that_the_session_needs(tmp_path: Path) -> None:
    features = ("coordinatedCommits-preview", "inCommitTimestamp", "vacuumProtocolCheck")
    protocol: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"writerFeatures": features}
    protocol |= {"readerFeatures": ["vacuumProtocolCheck"]}
    stored = {**COORDINATOR, **ON}
    info = {"inCommitTimestamp": CREATED}
    path = write_commit(tmp_path / "t", "stored", protocol, stored, ID, info=info)
    plan = plan_upgrade(planned(path), UpgradeRequest(set={"team": "a"}))
    assert plan.steps
    assert any("commitCoordinator-preview = dynamodb" in text for text in plan.warnings)
