"""The JSON of tables that cannot be read, and of several readers at once."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaproto.errors import ErrorCode
from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def store() -> Iterator[Callable[[int], int]]:
    """Starts an object store that answers everything with one status; gives its port."""
    servers = []

    def start(status: int) -> int:
        class Refusal(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Refusal)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server.server_port

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def at_port(port: int) -> list[str]:
    """The storage options for an S3 endpoint on this machine."""
    options = (
        f"aws_endpoint=http://127.0.0.1:{port}",
        "aws_allow_http=true",
        "aws_access_key_id=a",
        "aws_secret_access_key=secret",
        "aws_region=us-east-1",
    )
    return [word for option in options for word in ("--storage-option", option)]


def _gap(log: Log) -> str:
    log.commit(0, protocol(1, 2), metadata()).commit(2, commit_info())
    return log.table


def _too_new(log: Log) -> str:
    log.commit(0, protocol(4, 8), metadata())
    return log.table


def _catalog(log: Log) -> str:
    names = ["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"]
    info = {
        "commitInfo": {"inCommitTimestamp": 1, "timestamp": 1, "operation": "WRITE", "txnId": "t"}
    }
    properties = {"delta.enableInCommitTimestamps": "true"}
    readers = ["catalogManaged", "vacuumProtocolCheck"]
    log.commit(0, info, protocol(3, 7, readers, names), metadata(properties))
    return log.table


def _empty(log: Log) -> str:
    return log.table


class TestErrors:
    @pytest.mark.parametrize(
        ("code", "make", "words"),
        [
            ("not-found", lambda log: log.table + "-missing", []),
            ("not-a-delta-table", _empty, []),
            ("corrupt-log", _gap, []),
            ("unsupported-protocol", _too_new, []),
            ("catalog-managed", _catalog, ["--reader", "delta-rs"]),
            ("storage", lambda log: "nosuchscheme://bucket/table", []),
            ("engine-unavailable", lambda log: "main.sales.orders", []),
            ("engine-unavailable", _too_new, ["--reader", "spark"]),
        ],
    )
    @pytest.mark.usefixtures("no_spark")
    def test_each_code_with_a_cause_and_exit_code_3(
        self,
        cli: Cli,
        log: Log,
        code: str,
        make: Callable[[Log], str],
        words: list[str],
    ) -> None:
        name = make(log)
        for format_ in ("json", "jsonl"):
            ran = cli("inspect", name, "--format", format_, *words)
            (document,) = documents(ran, "inspect")
            (entry,) = document["tables"]
            assert entry["table"] == name
            assert entry["error"]["code"] == code
            assert entry["error"]["message"]
            assert "\n" not in entry["error"]["message"]
            assert document["complete"] is False
            assert ran.code == 3

    def test_permission_denied(self, cli: Cli, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        log.commit(0, protocol(1, 2), metadata())
        listdir = os.listdir

        def refused(path: Any = ".") -> Any:
            if str(path) == str(log.folder):
                raise PermissionError(13, "Permission denied", str(path))
            return listdir(path)

        # Root may read everything, so a folder without permissions would not do.
        monkeypatch.setattr(os, "listdir", refused)
        ran = cli("inspect", log.table, "--format", "json")
        documents(ran, "inspect")
        assert ran.table["error"]["code"] == "permission-denied"
        assert ran.table["error"]["hint"]

    def test_timeout(self, cli: Cli, silent_port: int) -> None:
        words = [*at_port(silent_port), "--storage-option", "timeout=50ms"]
        ran = cli("inspect", "s3://bucket/table", "--format", "json", *words)
        documents(ran, "inspect")
        assert ran.table["error"]["code"] == "timeout"
        assert ran.code == 3
        assert "secret" not in ran.out + ran.err

    @pytest.mark.parametrize(
        ("answer", "code"), [(403, "permission-denied"), (404, "not-found"), (400, "storage")]
    )
    def test_a_store_that_refuses_to_list(
        self, cli: Cli, store: Callable[[int], int], answer: int, code: str
    ) -> None:
        ran = cli("inspect", "s3://bucket/table", "--format", "json", *at_port(store(answer)))
        documents(ran, "inspect")
        assert ran.table["error"]["code"] == code

    def test_every_code_of_the_schema_is_provoked_here(self) -> None:
        provoked = {
            case[0]
            for mark in TestErrors.test_each_code_with_a_cause_and_exit_code_3.pytestmark
            if mark.name == "parametrize"
            for case in mark.args[1]
        }
        assert provoked | {"permission-denied", "timeout", "internal", "no-tables"} == set(
            ErrorCode
        )

    def test_a_protocol_from_the_future_is_shown_with_the_refusal(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        log.commit(0, protocol(1, 2), metadata())
        log.commit(1, protocol(4, 8, ["b", "a"], ["b", "a"]))
        entry = inspected(log.table)
        assert entry["version"] == 1
        assert entry["protocol"] == {
            "minReaderVersion": 4,
            "minWriterVersion": 8,
            "readerFeatures": ["a", "b"],
            "writerFeatures": ["a", "b"],
        }

    def test_an_error_entry_has_no_answer_in_it(
        self, inspected: Callable[..., dict[str, Any]], log: Log
    ) -> None:
        assert set(inspected(log.table)) == {"table", "error"}


@pytest.mark.usefixtures("no_spark")
class TestAllReaders:
    def test_a_missing_engine_is_an_incomplete_answer_but_no_finding(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        table = tmp_path / "real"
        write_deltalake(table, pa.table({"id": [1]}))
        for format_ in ("json", "jsonl"):
            ran = cli("inspect", str(table), "--reader", "all", "--format", format_)
            (document,) = documents(ran, "inspect")
            (entry,) = document["tables"]
            assert ran.code == 3
            assert document["complete"] is False
            assert entry["complete"] is False
            assert entry["reader"] == "log"
            assert entry["findings"] == []
            readers = entry["readers"]
            assert list(readers) == ["log", "delta-rs", "spark"]
            assert readers["spark"]["error"]["code"] == "engine-unavailable"
            assert readers["log"] == {**readers["delta-rs"], "clustering_columns": []}
            assert readers["log"]["protocol"] == entry["protocol"]

    def test_a_refusal_is_a_finding(self, cli: Cli, log: Log) -> None:
        log.commit(0, protocol(3, 7, ["fromTheFuture"], ["fromTheFuture"]), metadata())
        ran = cli("inspect", log.table, "--reader", "all", "--format", "json")
        documents(ran, "inspect")
        assert ran.table["readers"]["delta-rs"]["error"]["code"] == "unsupported-protocol"
        (refused,) = [f for f in ran.table["findings"] if f["rule"] == "DP120"]
        assert refused["message"].startswith("delta-rs ")
        assert "fromTheFuture" in refused["message"]

    def test_no_answer_at_all_keeps_every_reason(self, cli: Cli, log: Log) -> None:
        ran = cli("inspect", log.table, "--reader", "all", "--format", "json")
        documents(ran, "inspect")
        assert ran.code == 3
        codes = {name: reader["error"]["code"] for name, reader in ran.table["readers"].items()}
        assert codes == {
            "log": "not-a-delta-table",
            "delta-rs": "not-a-delta-table",
            "spark": "engine-unavailable",
        }
        assert ran.table["error"] == ran.table["readers"]["log"]["error"]
