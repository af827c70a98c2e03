"""Which releases of Delta Spark the log shows, and what plans make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltaproto.inspection.activity import parse_releases
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("engine", "release"),
    [
        ("Apache-Spark/3.5.1 Delta-Lake/3.2.0", "3.2.0"),
        ("Apache-Spark/4.2.0 Delta-Lake/4.4.0-SNAPSHOT", "4.4.0-SNAPSHOT"),
        ("Apache-Spark/3.4.3.5.3.20250511.1 Delta-Lake/2.4.0.24", "2.4.0.24"),
        ("Kernel-4.4.0/Apache-Spark/4.2.0 Delta-Lake/4.4.0", "4.4.0"),
        ("Kernel-4.4.0/Delta-Spark-DSv2/4.4.0", None),
        ("Databricks-Runtime/18.1.x-photon-scala2.13", None),
        ("delta-rs:py-1.6.6", None),
        ("Delta-Lake/<unknown>", None),
        ("Delta-Lake/" + "9" * 400, None),
        ("", None),
        (None, None),
    ],
)
def test_the_release_is_read_from_the_engine(engine: str | None, release: str | None) -> None:
    assert parse_releases([engine]) == ({release} if release else frozenset())


@pytest.mark.parametrize(
    ("engines", "who"),
    [
        (["Apache-Spark/3.5.7 Delta-Lake/3.3.2"], "by Delta Spark 3.3.2,"),
        (
            ["Apache-Spark/4.0.1 Delta-Lake/4.0.1", "Apache-Spark/3.5.7 Delta-Lake/3.3.2"],
            "by Delta Spark 3.3.2 and 4.0.1,",
        ),
        (["Apache-Spark/4.2.0 Delta-Lake/4.4.0"], None),
        (["delta-rs:py-1.6.6"], "by Delta Spark before 4.1,"),
        ([], "by Delta Spark before 4.1,"),
    ],
)
@pytest.mark.parametrize("by", ["4.4.0", "3.3.2"])
def test_a_plan_names_the_writers_that_the_log_shows(
    engines: list[str], who: str | None, by: str, log: Log, cli: Cli
) -> None:
    log.commit(0, protocol(1, 2), metadata())
    for version, engine in enumerate(engines, 1):
        log.commit(version, commit_info(engineInfo=engine, operation="WRITE"))
    ran = cli(
        "plan-upgrade",
        log.table,
        *("--enable", "deletionVectors", "--engine", f"delta-spark@{by}", "--format", "json"),
    )
    (step,) = ran.json["steps"]
    hit = [
        each["who"]
        for each in step["conflicts"]
        if each["engine"] == "delta-spark" and "blind appends" in each["who"]
    ]
    assert len(hit) == (who is not None)
    assert who is None or who in hit[0]
    if who is None:
        assert any("the recent log shows Delta Spark 4.4.0" in c["why"] for c in step["conflicts"])
