"""Tables with in-commit timestamps whose newest commit has none, as other engines may write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.request import UpgradeRequest
from deltaproto.planning.upgrade import plan_upgrade
from tests.planning.oracle import execute, planned
from tests.planning.test_unlisted_on_spark import CREATED, ID, write_commit
from tests.recording.delta_spark import DeltaSpark
from tests.support.engines import needs_delta

MISSING = {"no timestamp": "DELTA_MISSING_COMMIT_TIMESTAMP", "no info": "DELTA_MISSING_COMMIT_INFO"}
OFF = "alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'false')"
REFUSED = (
    "alter table {t} set tblproperties ('team' = 'a')",
    "alter table {t} add constraint positive check (id > 0)",
    "alter table {t} drop feature vacuumProtocolCheck",
    "insert into {t} values (1)",
)


def write_log(path: Path, commit: str, *, enabled: str = "true") -> str:
    """A table without rows. Its only commit is `stamped`, or lacks one of `MISSING`."""
    names = ["inCommitTimestamp", "vacuumProtocolCheck"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol = {**versions, "readerFeatures": names[1:], "writerFeatures": names}
    properties = {"delta.enableInCommitTimestamps": enabled}
    info = {"inCommitTimestamp": CREATED} if commit == "stamped" else {}
    return write_commit(
        path, "unstamped", protocol, properties, ID, info=None if commit == "no info" else info
    )


@needs_delta("4.4", "what it was measured with")
@pytest.mark.parametrize("commit", MISSING)
def test_spark_refuses_every_write_until_the_remedy(
    commit: str, delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    path = write_log(tmp_path / "t", commit)
    missing = MISSING[commit]
    for statement in REFUSED:
        happened = execute(delta_spark, path, statement.format(t=f"delta.`{path}`"))
        assert (happened.error, happened.operations) == (missing, []), statement
    asked = DowngradeRequest(lowest=True, include_enabled=True)
    plan = plan_downgrade(planned(path), asked)
    assert not plan.steps
    assert [each.error for each in plan.blocked] == [missing]
    assert "'delta.enableInCommitTimestamps' = 'false'" in plan.blocked[0].remedy
    happened = execute(delta_spark, path, OFF.format(t=f"delta.`{path}`"))
    assert (happened.error, happened.operations) == (missing, ["SET TBLPROPERTIES"])
    plan = plan_downgrade(planned(path), asked)
    assert not plan.blocked
    for step in plan.steps:
        assert step.sql is not None
        assert execute(delta_spark, path, step.sql).error is None
    assert planned(path).table.protocol == plan.protocol_after


@pytest.mark.parametrize(
    ("commit", "enabled", "errors"),
    [
        *((commit, "true", [error]) for commit, error in MISSING.items()),
        *((commit, "false", []) for commit in MISSING),
        ("stamped", "true", []),
    ],
)
def test_such_plans_are_blocked(
    commit: str, enabled: str, errors: list[str], tmp_path: Path
) -> None:
    given = planned(write_log(tmp_path / "t", commit, enabled=enabled))
    plan = plan_upgrade(given, UpgradeRequest(set={"team": "a"}))
    assert [each.error for each in plan.blocked] == errors
