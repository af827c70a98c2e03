"""Reports without a policy: the clients that the tables' own logs name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Ran]


def table(folder: Path, name: str, *features: str, **info: Any) -> None:
    """A table of one commit by a writer with these marks."""
    log = Log(folder / name)
    needs = protocol(3, 7, list(features), list(features)) if features else protocol(1, 2)
    log.commit(0, {"commitInfo": {"timestamp": 1, "operation": "WRITE", **info}}, needs, metadata())


@pytest.fixture
def scanned(cli: Cli, tmp_path: Path) -> Callable[[], str]:
    def scan() -> str:
        where = str(tmp_path / "inventory")
        ran = cli("scan", str(tmp_path / "lake"), "--inventory", where, "--fail-on", "never")
        assert ran.code == 0, ran.err
        return where

    return scan


def test_only_clients_that_wrote_are_evaluated(
    cli: Cli, tmp_path: Path, scanned: Callable[[], str]
) -> None:
    lake = tmp_path / "lake"
    table(lake, "a", clusterId="trino-455-node", userName="etl")
    table(lake, "b", "deletionVectors", engineInfo="delta-rs:py-0.22.0")
    table(lake, "c", engineInfo="Apache-Spark/3.5.0 Delta-Lake/3.1.0")
    table(lake, "d", engineInfo="DuckDB")
    table(lake, "e", engineInfo="loader of ours 7")
    table(lake, "f")
    inventory = scanned()
    report = cli("report", inventory, "--format", "json").json
    assert (report["policy"], report["unknown_writers"], report["tables"]) == (None, 3, 6)
    checked = {each["client"] for each in report["clients"]}
    # A commit does not say with which of deltalake's two paths it was made.
    paths = {"deltalake/pyarrow@0.22.0", "deltalake/engine@0.22.0"}
    assert checked == {"trino@455", "delta-spark@3.1.0", *paths}
    # The table with deletion vectors is one that delta-rs of that time cannot read.
    assert report["compliant"] == 5
    page = cli("report", inventory, "--format", "markdown").out
    assert "(delta-spark@3.1.0, deltalake@0.22.0, trino@455)" in page
    assert "Tables whose last writer is not known: 3." in page
    assert "**Usable by the clients that wrote last**: 5 of 6" in page
    assert "snowflake" not in page
    # A policy's clients are evaluated, and no others.
    policy = tmp_path / "policy.yaml"
    policy.write_text("policy_version: 1\nclients: [polars@2.1.0]\n")
    other = cli("report", inventory, "--policy", str(policy), "--format", "json").json
    assert {each["client"] for each in other["clients"]} == {
        *("polars/eager@2.1.0", "polars/scan@2.1.0")
    }
    assert other["unknown_writers"] is None


@pytest.mark.parametrize("format_", ["markdown", "html"])
def test_where_no_commit_names_a_client_nothing_is_called_usable(
    cli: Cli, tmp_path: Path, scanned: Callable[[], str], format_: str
) -> None:
    table(tmp_path / "lake", "a", "deletionVectors", engineInfo="loader of ours 7")
    page = cli("report", scanned(), "--format", format_).out
    assert "no client was checked" in page
    assert "Usable" not in page
    assert "Nothing to fix" not in page


def test_the_python_report_says_the_same(
    cli: Cli, tmp_path: Path, scanned: Callable[[], str]
) -> None:
    from deltaproto import Inventory

    table(tmp_path / "lake", "a", clusterId="trino-455-node")
    inventory = scanned()
    printed = cli("report", inventory, "--format", "json").json
    returned = json.loads(Inventory(inventory).report(format="json"))
    assert {**returned, "generated_at": printed["generated_at"]} == printed
