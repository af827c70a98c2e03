"""`conflicts --exception NAME --at TIME`: the commits that can have raised it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltaproto.conflicts.operation import ExceptionName
from deltaproto.conflicts.suspects import WINDOW, filter_suspects
from deltaproto.tables.log.commits import Commit
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
MINUTE = 60_000
NOON = 1_793_534_400_000
AT = "2026-11-01T12:00"


@pytest.fixture
def busy(log: Log) -> Log:
    def info(operation: str, minutes: int, **more: Any) -> dict[str, Any]:
        return commit_info(operation, **{"timestamp": NOON + minutes * MINUTE, **more})

    log.commit(0, info("CREATE TABLE", -600), protocol(1, 2), metadata())
    log.commit(1, info("SET TBLPROPERTIES", -300), metadata({"a": "b"}))
    log.commit(2, info("WRITE", -9, operationParameters={"mode": "Append"}))
    log.commit(3, info("SET TBLPROPERTIES", -8, userName="ann", engineInfo="e/1"), metadata())
    log.commit(4, info("WRITE", -7, operationParameters={"mode": "Overwrite"}))
    log.commit(5, info("OPTIMIZE", -6))
    stream = {"txn": {"appId": "q", "version": 3}}
    log.commit(6, info("STREAMING UPDATE", -5), stream)
    log.commit(7, info("UPGRADE PROTOCOL", -1), protocol(1, 3))
    return log.commit(8, info("DELETE", 30))


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("MetadataChanged", [3]),
        ("ProtocolChanged", [7]),
        ("ConcurrentAppend", [6, 5, 4, 2]),
        ("ConcurrentDeleteRead", [5, 4]),
        ("ConcurrentDeleteDelete", [5, 4]),
        ("ConcurrentTransaction", [6]),
        ("ConcurrentWrite", [7, 6, 5, 4, 3, 2]),
    ],
)
def test_the_commits_that_can_have_raised_it(
    cli: Cli, busy: Log, name: str, versions: list[int]
) -> None:
    for at in (AT, f"{AT}Z", "2026-11-01T13:00+01:00"):
        words = ("conflicts", busy.table, "--exception", name, "--at", at)
        ran = cli(*words, "--format", "json")
        assert ran.code == 0
        (document,) = documents(ran, "conflicts")
        assert [suspect["version"] for suspect in document["suspects"]] == versions
    for format_ in ("text", "markdown"):
        out = cli(*words, "--format", format_).out
        assert all(f"version {version}, 2026-11-01T11:5" in out for version in versions)


def test_who_did_it(cli: Cli, busy: Log) -> None:
    words = ("--exception", "MetadataChanged", "--at", AT, "--format", "json")
    (suspect,) = cli("conflicts", busy.table, *words).json["suspects"]
    assert (suspect["engine"], suspect["user"]) == ("e/1", "ann")
    assert suspect["timestamp"].startswith("2026-11-01T11:52:00")


def test_nobody_did_it(cli: Cli, busy: Log) -> None:
    words = ("conflicts", busy.table, "--exception", "MetadataChanged", "--at", "2026-11-02")
    assert "No commit within ten minutes" in cli(*words).out
    assert cli(*words, "--format", "json").json["suspects"] == []


def test_a_damaged_commit_makes_the_answer_incomplete(cli: Cli, busy: Log) -> None:
    busy.commit(10, commit_info(timestamp=NOON)).raw(9, b"{", ".json")
    busy.checkpoint(10, protocol(1, 3), metadata())
    ran = cli(
        "conflicts", busy.table, "--exception", "ConcurrentAppend", "--at", AT, "--format", "json"
    )
    assert ran.code == 3
    assert ran.json["complete"] is False
    assert ran.json["suspects"][0]["version"] == 10


@pytest.mark.parametrize(
    ("operation", "raises"),
    [
        ("TRUNCATE", {"ConcurrentDeleteRead", "ConcurrentDeleteDelete", "ConcurrentWrite"}),
        ("COPY INTO", {"ConcurrentAppend", "ConcurrentWrite"}),
    ],
)
def test_what_only_removes_or_only_adds(operation: str, raises: set[str]) -> None:
    commit = Commit(1, {"timestamp": NOON, "operation": operation}, None, None)
    found = {name for name in ExceptionName if filter_suspects([commit], name, NOON).found}
    assert found == {f"{name}Exception" for name in raises}


def test_reading_stops_early() -> None:
    def log() -> Any:
        yield Commit(2, {"timestamp": NOON}, None, None)
        yield Commit(1, {"timestamp": NOON - 9 * WINDOW}, None, None)
        raise AssertionError("read too far")

    assert len(filter_suspects(log(), ExceptionName.WRITE, NOON).found) == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--at", AT), "needs a table"),
        (("--exception", "ConcurrentWrite", "--at", AT), "needs a table"),
        (("TABLE", "--exception", "ConcurrentWrite", "--at", "noon"), "not a time"),
        (("TABLE", "--exception", "ConcurrentWrite", "--at", "0001-01-01T00:00+14:00"), ""),
    ],
)
def test_mistakes(cli: Cli, words: tuple[str, ...], hint: str) -> None:
    ran = cli("conflicts", *words)
    assert ran.code in (2, 3)
    assert hint in ran.err
