"""`check --after`: what changes when a client is upgraded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from tests.conftest import Ran
from tests.fleet.test_forecast import V2, Cli, Lake
from tests.support import contract
from tests.support.logs import protocol
from tests.support.unity_server import unity_server


@pytest.fixture
def lake(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setenv("UC_TOKEN", "token")
    with unity_server() as running:
        yield Lake(cli, running, tmp_path)


def checked(lake: Lake, *words: str, code: int = 0) -> dict[str, list[dict[str, Any]]]:
    """The findings of DP407 by the last part of the table's name."""
    ran = lake.cli("check", *words, "--format", "json")
    assert ran.code == code, (ran.out, ran.err)
    (document,) = contract.documents(ran, "check")
    found: dict[str, list[dict[str, Any]]] = {}
    for each in document["findings"]:
        if each["rule"] == "DP407":
            found.setdefault(each["table"].rpartition(".")[2], []).append(each)
    return found


def keys_of(findings: list[dict[str, Any]]) -> set[tuple[str, str | None, str | None]]:
    return {(each["severity"], each.get("feature"), each.get("client")) for each in findings}


OLD, NEW = "databricks-runtime@12.2", "databricks-runtime@19"
READER = ("--client", "athena@3", "--access", "read")


def test_an_upgraded_runtime_no_longer_delays_a_feature(lake: Lake) -> None:
    lake.table("mine")
    lake.table("theirs", kind="EXTERNAL")
    lake.table("used", stored=protocol(3, 7, V2, V2), **{"delta.checkpointPolicy": "v2"})
    lake.scan()
    words = (lake.inventory, "--client", OLD, *READER, "--after", NEW)
    found = checked(lake, *words, code=1)
    assert keys_of(found["mine"]) == {
        ("error", "v2Checkpoint", "athena@3"),
        ("info", "rowTracking", None),
        ("info", "columnMapping", None),
        ("warning", "catalogManaged", "athena@3"),
    }
    assert "theirs" not in found
    # The runtime itself gains access to this table.
    assert ("info", None, OLD) in keys_of(found["used"])
    assert ("error", "v2Checkpoint", "athena@3") not in keys_of(found["used"])


def test_a_runtime_that_knows_a_feature_delays_nothing_today(lake: Lake) -> None:
    lake.table("mine")
    lake.scan()
    found = checked(lake, lake.inventory, "--client", "databricks-runtime@14.3", "--after", NEW)
    features = {each["feature"] for each in found["mine"] if each["feature"]}
    assert features == {"columnMapping", "catalogManaged"}
    newest = ("--client", "databricks-runtime@16.4", "--after", NEW)
    assert checked(lake, lake.inventory, *newest) == {}
    # 13.0 does not know the feature yet.
    older = checked(lake, lake.inventory, "--client", OLD, "--after", "databricks-runtime@13.0")
    assert older == {}


def test_any_client_can_be_upgraded(lake: Lake) -> None:
    policy = {"delta.checkpointPolicy": "v2"}
    log = lake.table("mine", stored=protocol(3, 7, V2, V2), kind=None, **policy)
    words = (log.table, "--client", "trino@400", "--after", "trino@483")
    ran = lake.cli("check", *words, "--access", "read")
    assert "trino@483: read is ok instead of wrong with trino@400" in " ".join(ran.out.split())
    assert "automatic upgrades" not in ran.out
    down = (log.table, "--client", "trino@483", "--after", "trino@400", "--access", "read")
    (finding,) = checked(lake, *down, code=1)[log.table]
    assert finding["severity"] == "error"
    assert finding["message"].startswith("trino@400: read is wrong instead of ok with trino@483: ")


def test_what_is_not_known_is_said(lake: Lake) -> None:
    log = lake.table("mine", kind=None)
    ran = lake.cli("check", log.table, "--client", "athena@3", "--after", NEW)
    text = " ".join(ran.out.split())
    assert "no record states what a runtime itself turns on in existing tables" in text
    assert "no version of databricks-runtime is declared" in text
    unknown = ("--client", "databricks-runtime@16.4", "--after", "databricks-runtime@77")
    ran = lake.cli("check", log.table, *unknown)
    assert ran.code == 1
    assert "read is unknown instead of ok" in " ".join(ran.out.split())


def test_severities_and_waivers_apply(lake: Lake) -> None:
    lake.table("mine")
    lake.scan()
    policy = lake.policy(f"clients: ['{OLD}']\nseverities: {{DP407: off}}\n")
    assert checked(lake, lake.inventory, "--policy", policy, "--after", NEW) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--after", NEW), "--after compares with declared clients"),
        (("--client", "athena@3", "--after", "trino@476"), "no version of trino is declared"),
        (("--client", OLD, "--after", "databricks-runtime"), "requires a version"),
        (("--client", OLD, "--after", "nobody@1"), "unknown client nobody"),
    ],
)
def test_mistakes(lake: Lake, words: tuple[str, ...], message: str) -> None:
    ran: Ran = lake.cli("check", lake.table("mine", kind=None).table, *words)
    assert (ran.code, message in ran.err, "hint: " in ran.err) == (2, True, True)


def test_from_python(lake: Lake) -> None:
    lake.table("mine")
    lake.scan()
    inventory = deltaproto.Inventory(lake.inventory)
    found = inventory.check(clients=[OLD, "athena@3"], access=["read"], after=NEW).findings
    rows = {
        (each["severity"], each["feature"], each["client"])
        for each in found
        if each["rule"] == "DP407"
    }
    assert ("error", "v2Checkpoint", "athena@3") in rows
    policy = {"delta.checkpointPolicy": "v2"}
    log = lake.table("other", stored=protocol(3, 7, V2, V2), kind=None, **policy)
    (checked,) = deltaproto.check(
        log.table, clients=["trino@400"], access=["read"], after="trino@483"
    )
    (finding,) = (each for each in checked.findings if each.rule == "DP407")
    assert "trino@483: read is ok instead of wrong with trino@400" in finding.message
    with pytest.raises(deltaproto.UsageError, match="unknown client spark-x"):
        deltaproto.check(log.table, clients=["trino@400"], after="spark-x@1")
    with pytest.raises(deltaproto.UsageError, match="no version of athena is declared"):
        deltaproto.check(log.table, clients=["trino@400"], after="athena@3")
