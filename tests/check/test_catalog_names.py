"""`check` of a table by its catalog name, through Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_name_is_judged_like_a_path(spark: SparkSession, cli: Callable[..., Ran]) -> None:
    spark.sql(
        "create table default.judged (id bigint) using delta "
        "tblproperties ('delta.enableDeletionVectors'='true')"
    )
    try:
        words = ("--client", "delta-spark@4.4.0", "--client", "delta-spark@2.2.0")
        ran = cli("check", "default.judged", *words, "--format", "json")
        assert ran.code == 1, ran.err
        verdicts = [(v["version"], v["access"], v["verdict"]) for v in ran.json["verdicts"]]
        assert verdicts == [
            ("4.4.0", "read", "ok"),
            ("4.4.0", "append", "ok"),
            ("2.2.0", "read", "refused"),
            ("2.2.0", "append", "refused"),
        ]
        assert {v["table"] for v in ran.json["verdicts"]} == {"default.judged"}
    finally:
        spark.sql("drop table default.judged")
