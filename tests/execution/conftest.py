"""A plan that waits, with an engine that needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.execution.plan_file import LoadedPlan, read_plans
from tests.conftest import Ran
from tests.execution.scripted import ON, VECTORS, Bench
from tests.support.logs import Log, commit_info


@pytest.fixture
def bench(log: Log, cli: Callable[..., Ran], tmp_path: Path) -> Bench:
    log.commit(0, commit_info("CREATE TABLE"), VECTORS, ON)
    path = str(tmp_path / "plan.json")
    words = ("--drop", "deletionVectors", "--history", "truncate", "--format", "json", "-o", path)
    assert cli("plan-downgrade", log.table, *words).code == 0
    (planned,) = read_plans(path)
    assert isinstance(planned, LoadedPlan)
    # The wait is no longer than a day in the plan, and its end is not known yet.
    return Bench(planned._replace(not_before=(None, None, None)), log, tmp_path / "records")
