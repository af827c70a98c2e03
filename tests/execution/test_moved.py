"""Statements on a clone in place of their table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.errors import UsageError
from deltaproto.execution.plan_file import LoadedPlan, read_plans
from deltaproto.execution.rehearse import retarget_plan
from deltaproto.location import locate
from deltaproto.planning.plan import Plan
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
CLONE = locate("/scratch/clone")


def planned(cli: Cli, log: Log, sql: str) -> Plan:
    log.commit(0, commit_info("CREATE TABLE"), protocol(1, 2), metadata())
    file = Path(log.table).parent / "plan.json"
    words = ("--sql", sql.format(t=log.table), "--format", "json", "--output", str(file))
    ran = cli("plan-upgrade", log.table, *words)
    assert ran.code == 0, ran
    (found,) = read_plans(str(file))
    assert isinstance(found, LoadedPlan)
    assert json.loads(file.read_text())["steps"]
    return found.plan


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE orders SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "OPTIMIZE Delta.`{t}/`",
        "DELETE FROM delta.`{t}` WHERE id = 1",
        "INSERT INTO delta.`{t}` SELECT * FROM delta.`{t}`",
    ],
)
def test_each_statement_is_on_the_clone(sql: str, cli: Cli, log: Log) -> None:
    plan = retarget_plan(planned(cli, log, sql), CLONE)
    assert plan.location == "file:///scratch/clone"
    (step,) = plan.steps
    assert step.sql is not None
    # Only the table that it changes; what it reads is the source itself.
    there = f"delta.`{log.table}`"
    (source,) = planned(cli, log, sql).steps
    assert step.sql == (source.sql or "").replace(there, "delta.`/scratch/clone`", 1)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM delta.`{t}/` WHERE id = 1",
        "INSERT INTO Delta.`{t}` VALUES (1)",
        "INSERT INTO delta . `{t}` SELECT * FROM delta.`{t}`",
        "TRUNCATE TABLE orders",
    ],
)
def test_what_would_change_the_table_itself_is_refused(sql: str, cli: Cli, log: Log) -> None:
    plan = planned(cli, log, sql)
    with pytest.raises(UsageError, match="s1 cannot be rehearsed") as raised:
        retarget_plan(plan, CLONE)
    assert f"delta.`{log.table}`" in raised.value.message
