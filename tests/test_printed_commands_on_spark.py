"""The commands that README and the manual print and that need Spark, on real tables.

The catalog `main` of the examples is Spark's own here, and `/Volumes/ops` a folder of the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Ran
from tests.test_printed_commands import LINES, run_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Cli = Callable[..., Ran]
ELSEWHERE = {
    r" hms://": "tests/tables/test_hive_metastore.py",
    r"catalogImplementation=hive": "tests/tables/test_hive_on_spark.py",
    r"--spark-remote ": "tests/tables/test_remote.py",
    r" s3://": "tests/execution/test_apply_on_s3.py, tests/fleet/test_scan_on_spark.py",
    r"deltaproto apply (?!.*(--yes|--dry-run))": "asks at a terminal: tests/execution",
}
"""lines that do not run here, and the tests of what they do"""
HERE = tuple(
    each
    for each in LINES
    if each.engine and not each.elsewhere and not any(re.search(p, each.line) for p in ELSEWHERE)
)
PAGES = tuple(dict.fromkeys(each.page for each in HERE))


def test_every_other_line_is_known() -> None:
    for pattern in ELSEWHERE:
        assert any(re.search(pattern, each.line) for each in LINES if each.engine), pattern
    assert len(HERE) > 15


@pytest.fixture
def work(cli: Cli, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `orders`, which is also `sales.orders`, and the plans that drop its vectors."""
    monkeypatch.chdir(tmp_path)
    spark.sql(f"create schema sales location '{tmp_path}/warehouse'")
    for name in ("orders", "customers"):
        spark.sql(
            f"create table sales.{name} (id bigint) using delta location '{tmp_path}/{name}' "
            "tblproperties ('delta.enableDeletionVectors' = 'true')"
        )
        spark.sql(f"insert into sales.{name} select id from range(9)")
        spark.sql(f"delete from sales.{name} where id = 3")
    for name in ("policy.yaml", "platform.yaml"):
        client = "{client: databricks-runtime@16.4, access: [read]}"
        Path(name).write_text(f"policy_version: 1\nclients:\n  - {client}\n")
    Path("plans").mkdir()
    goal = ("--drop", "deletionVectors", "--format", "json", "--output")
    for name in ("plan.json", "orders.plan.json", "plans/orders.json"):
        assert cli("plan-downgrade", "orders", *goal, name).code == 0
    assert cli("plan-downgrade", "customers", *goal, "customers.plan.json").code == 0
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_as_printed(
    page: str, cli: Cli, spark: SparkSession, work: Path
) -> None:
    places = {"--catalog main ": "--catalog spark_catalog.sales ", "/Volumes/ops": str(work)}
    places["main.sales.orders"] = "spark_catalog.sales.orders"
    found = []
    try:
        for each in (each for each in HERE if each.page == page):
            ran = run_line(cli, each.line, places)
            if ran.code != 0:
                found.append((each.line, ran.code, (ran.err + ran.out)[-400:]))
    finally:
        spark.sql("drop schema sales cascade")
    assert found == []
