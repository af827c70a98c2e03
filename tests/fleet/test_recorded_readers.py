"""Requests of real readers, recorded on an S3 endpoint: each is identified, or one of its marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deltaproto.clients.catalog import shipped_client_ids
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.requests import add_access_log
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.uses import SeenUses
from tests.fleet.test_access_logs import s3_line

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "recordings" / "readers.json").read_text()
)


def line(method: str, path: str, status: int, agent: str) -> str:
    key = path.partition("?")[0].removeprefix("/lake").lstrip("/") or "-"
    what = "BUCKET" if key == "-" else "OBJECT"
    uri = f'"{method} {path} HTTP/1.1"'
    operation = f"REST.{method}.{what}"
    return s3_line(key, f'"{agent}"', operation=operation, uri=uri, status=str(status))


def label(each: dict[str, Any]) -> str:
    return f"{each['client']} {each['version']}, {each['with']}"


@pytest.mark.parametrize("recorded", RECORDED, ids=label)
def test_a_reader_is_identified_or_could_be(tmp_path: Path, recorded: dict[str, Any]) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(line(*request) for request in recorded["requests"]))
    matcher, uses = TableMatcher({}), SeenUses()
    matcher.add("t", "s3://lake/t")
    found = add_access_log(str(log), {}, matcher, uses, ReadTraces(), None)
    assert (found.unparsed, found.lines) == (0, len(recorded["requests"]))
    known = recorded["client"] in shipped_client_ids()
    for client, seen in uses.clients.items():
        if client.id is not None:
            assert client.id == recorded["client"]
            assert client.version in (None, recorded["version"])
        elif known:
            assert recorded["client"] in seen.could_be, client
    readers = {client.id for client, seen in uses.clients.items() if "read" in seen.access}
    if recorded["client"] in ("duckdb", "polars"):
        # They name themselves when they read data files.
        assert recorded["client"] in readers
    if "setting" in recorded["with"]:
        labels = {client.label for client in uses.clients}
        assert f"{recorded['client']}@{recorded['version']}" in labels


def test_the_recordings_have_several_readers_and_releases() -> None:
    releases = {(each["client"], each["version"]) for each in RECORDED}
    assert {client for client, _ in releases} == {
        *("daft", "deltalake", "duckdb", "polars", "pyarrow")
    }
    assert len(releases) == 8
