"""Item 7 of issue 27: an inspection says which versions a table requires at least."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
ENGINES = ("databricks-runtime", "delta-spark", "delta-rs")
BASIC = ["appendOnly", "invariants"]
VECTORS = protocol(3, 7, ["deletionVectors"], [*BASIC, "deletionVectors"])


def made(folder: Path, stored: dict[str, object], configuration: dict[str, str]) -> str:
    log = Log(folder).commit(0, commit_info(), stored, metadata(configuration))
    return log.commit(1, add("a.parquet")).table


@pytest.mark.parametrize(
    ("stored", "configuration"),
    [
        (protocol(1, 1), {}),
        (protocol(2, 5), {"delta.columnMapping.mode": "name"}),
        (protocol(1, 4), {"delta.enableChangeDataFeed": "true"}),
        (VECTORS, {"delta.enableDeletionVectors": "true"}),
        (protocol(1, 7, None, [*BASIC, "clustering", "domainMetadata"]), {}),
        (protocol(3, 7, ["future"], [*BASIC, "future"]), {}),
    ],
    ids=["1-1", "2-5", "1-4", "vectors", "clustering", "unknown"],
)
def test_item_7_it_agrees_with_check(
    cli: Cli, tmp_path: Path, stored: dict[str, object], configuration: dict[str, str]
) -> None:
    table = made(tmp_path / "t", stored, configuration)
    document = cli("inspect", table, "--format", "json").json
    validate("inspect", document)
    least = document["tables"][0]["requires_at_least"]
    assert set(least) == set(ENGINES)
    usable = cli("check", table, "--format", "json").json["usability"]
    assert {
        (each["client"], each["access"]): (each["verdict"], each["since"], each["because"])
        for each in usable
        if each["client"] in ENGINES
    } == {
        (client, access): (found["verdict"], found["since"], found["because"])
        for client, accesses in least.items()
        for access, found in accesses.items()
    }


def test_item_7_in_text_and_markdown(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", VECTORS, {"delta.enableDeletionVectors": "true"})
    text = " ".join(cli("inspect", table).out.split())
    assert "to read requires at least Databricks Runtime 12.2, Delta Spark 2.3.0," in text
    assert "to append requires at least Databricks Runtime 12.2, Delta Spark 2.4.0," in text
    page = cli("inspect", table, "--format", "markdown").out
    assert "requires at least Databricks Runtime 12.2" in page


def test_item_7_what_nobody_knows(cli: Cli, tmp_path: Path) -> None:
    table = made(tmp_path / "t", protocol(3, 7, ["future"], [*BASIC, "future"]), {})
    text = " ".join(cli("inspect", table).out.split())
    assert "not the newest Delta Spark (refused because of future)" in text
    odd = made(tmp_path / "odd", protocol(1, 2), {"delta.checkpointPolicy": "v2"})
    text = " ".join(cli("inspect", odd).out.split())
    assert "to read unknown for Databricks Runtime, Delta Spark, delta-rs" in text
    old = made(tmp_path / "old", protocol(1, 1), {})
    assert "to read any known Databricks Runtime" in " ".join(cli("inspect", old).out.split())
