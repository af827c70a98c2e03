"""Without declared clients, a runbook is about those that the tables' own logs name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.contract import plan
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
ENABLE = ("--enable", "deletionVectors")


def chapter(cli: Cli, file: Path) -> str:
    text = cli("runbook", str(file), "--no-activity").out
    return " ".join(text.partition("## Who gains")[2].partition("\n## ")[0].split())


def planned(cli: Cli, log: Log, tmp_path: Path, *words: str) -> Path:
    file = tmp_path / "plan.json"
    goal = (*ENABLE, *words, "--format", "json", "--output", str(file))
    assert cli("plan-upgrade", log.table, *goal).code == 0
    return file


def test_only_the_clients_in_the_log_are_checked(cli: Cli, log: Log, tmp_path: Path) -> None:
    engines = ("Apache-Spark/3.5.1 Delta-Lake/3.2.0", "delta-rs:py-0.25.5", "made at home 3")
    log.commit(0, commit_info(engineInfo=engines[0]), protocol(1, 2), metadata())
    for number, engine in enumerate(engines, 1):
        log.commit(number, commit_info(engineInfo=engine), add(f"{number}.parquet"))
    found = chapter(cli, planned(cli, log, tmp_path))
    assert "No client is declared" in found
    assert "`delta-spark@3.2.0`" in found
    assert "- [ ] `deltalake/engine@0.25.5` (in the log): append" in found
    # Not the newest version, and nobody else of the catalog.
    for other in ("trino", "deltalake/engine@1", "kafka", "synapse"):
        assert other not in found


def test_a_log_that_names_nobody(cli: Cli, log: Log, tmp_path: Path) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata()).commit(1, add())
    found = chapter(cli, planned(cli, log, tmp_path))
    assert "none is known from the tables' logs, so no client was checked" in found
    assert "- [ ]" not in found


@pytest.mark.parametrize("named", ["trino@400", "deltalake@0.25.5"])
def test_declared_clients_are_those_of_the_runbook(
    cli: Cli, log: Log, tmp_path: Path, named: str
) -> None:
    log.commit(0, commit_info(engineInfo="delta-rs:py-0.25.5"), protocol(1, 2), metadata())
    log.commit(1, add())
    found = chapter(cli, planned(cli, log, tmp_path, "--client", named))
    assert "No client is declared" not in found
    assert "in the log" not in found
    assert named.partition("@")[2] in found


def test_a_plan_shows_the_versions_in_the_log(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(engineInfo="delta-rs:py-0.25.5"), protocol(1, 2), metadata())
    log.commit(1, add())
    found = plan(cli("plan-upgrade", log.table, *ENABLE, "--format", "json"))
    assert found["clients_declared"] is False
    seen = {each["client"] for each in found["clients"] if each["label"] == "in the log"}
    assert seen == {"deltalake/engine@0.25.5", "deltalake/pyarrow@0.25.5"}
    # The newest versions of the catalog stay, without a label.
    assert any(each["client"].startswith("trino@") for each in found["clients"])
    same = ("--set", "delta.minReaderVersion=1")
    nothing = cli("plan-upgrade", log.table, *same, "--format", "json")
    assert plan(nothing)["steps"] == plan(nothing)["clients"] == []
    declared = cli("plan-upgrade", log.table, *ENABLE, "--client", "trino@400", "--format", "json")
    assert plan(declared)["clients_declared"] is True


def test_the_newest_version_in_the_log_is_listed_once(cli: Cli, log: Log) -> None:
    log.commit(0, commit_info(engineInfo="delta-rs:py-1.6.6"), protocol(1, 2), metadata())
    log.commit(1, add())
    found = plan(cli("plan-upgrade", log.table, *ENABLE, "--format", "json"))
    named = [(c["client"], c["access"]) for c in found["clients"]]
    assert len(named) == len({*named})
    labels = {c["label"] for c in found["clients"] if c["client"].startswith("deltalake")}
    assert labels == {"in the log"}
