"""Spark Connect URLs, and what answers at them."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import deltaproto
from deltaproto.errors import ErrorCode, UsageError
from deltaproto.execution.runner import StatementRunner
from deltaproto.redaction import Redactor
from deltaproto.tables import spark_connect
from deltaproto.tables.engine_errors import first_line
from deltaproto.tables.spark import _refusal_error
from deltaproto.tables.spark_connect import ConnectServer, is_local, parse_remote
from tests.conftest import Ran
from tests.support.connect_server import outside
from tests.support.logs import Log, metadata, protocol

pytestmark = pytest.mark.rotating

SECRET = "nobody-may-see"
NO_URLS = (
    "sc:/host:15002",
    "SC://host",
    "http://host:15002",
    "host:15002",
    "localhost:15002",
    "local[2",
    "sc://",
    "sc://:15002",
    "sc://host:x",
    "sc://host:0",
    "sc://host:65536",
    f"sc://host:{'9' * 5000}",
    "sc://host:15002/path",
    "sc://ho st",
    f"sc://me:{SECRET}@host",
    f"sc://host;token={SECRET}",
    f"sc://host/?token={SECRET}",
    f"sc://host/;token={SECRET}=",
    f"sc://host/;token={SECRET};",
    "sc://host/;token",
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sc://host", ConnectServer("host", 15002, tls=False, token=False)),
        ("sc://host:443/", ConnectServer("host", 443, tls=False, token=False)),
        ("sc://[::1]:7/;user_id=me", ConnectServer("[::1]", 7, tls=False, token=False)),
        ("sc://host:7/;use_ssl=true", ConnectServer("host", 7, tls=True, token=False)),
        ("sc://localhost/;token=x", ConnectServer("localhost", 15002, tls=False, token=True)),
        ("sc://host/;token=x%3D;user_id=", ConnectServer("host", 15002, tls=True, token=True)),
    ],
)
def test_what_a_url_names(url: str, expected: ConnectServer) -> None:
    assert parse_remote(url) == expected
    # Spark's own client reads it in the same way.
    client = pytest.importorskip("pyspark.sql.connect.client")
    builder = client.DefaultChannelBuilder(url)
    assert builder.endpoint == f"{expected.host}:{expected.port}"
    assert (builder.token is not None) is expected.token
    assert builder.secure == (expected.tls or expected.token)


@pytest.mark.parametrize("url", NO_URLS)
def test_what_is_no_url_is_a_usage_error(url: str, cli: Callable[..., Ran], log: Log) -> None:
    table = log.commit(0, protocol(1, 2), metadata()).table
    ran = cli("inspect", table, "--format", "json", "--spark-remote", url)
    assert ran.code == 2
    assert ran.json["error"]["code"] == "usage"
    assert "Spark Connect URL" in ran.json["error"]["message"]
    assert "sc://host:15002" in ran.json["error"]["hint"]
    assert SECRET not in ran.out + ran.err
    with pytest.raises(UsageError):
        deltaproto.inspect_table(table, spark_remote=url)


def test_a_master_of_this_machine_is_no_url() -> None:
    for local in (None, "", "local", "local[*]", "local[2]", "local-cluster[2,1,1024]"):
        assert is_local(local)
    assert not any(is_local(url) for url in NO_URLS)


@contextmanager
def silent() -> Iterator[int]:
    """A port where somebody listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@contextmanager
def web() -> Iterator[int]:
    """A port where a web server answers."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.BaseHTTPRequestHandler
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def others() -> Iterator[list[str]]:
    """URLs of servers that are not Spark Connect servers."""
    with silent() as mute, web() as talking:
        yield [
            f"sc://127.0.0.1:{mute}",
            f"sc://127.0.0.1:{talking}",
            f"sc://127.0.0.1:{talking}/;use_ssl=true",
            f"sc://127.0.0.1:{talking}/;token={SECRET}",
        ]


def check_refusal(code: int, error: dict[str, str], url: str) -> None:
    assert (code, error["code"]) == (3, "engine-unavailable")
    secure = "with TLS" if "/;" in url else "without TLS"
    told = f"{url.partition('/;')[0]} is not a Spark Connect server {secure}"
    assert told in error["message"]
    assert error["hint"]


def test_a_server_of_another_kind_is_refused(
    cli: Callable[..., Ran], log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    monkeypatch.setattr(spark_connect, "CONNECT_SECONDS", 0.1)
    monkeypatch.setenv("GRPC_VERBOSITY", "NONE")
    table = log.commit(0, protocol(1, 2), metadata()).table
    with others() as urls:
        for url in urls:
            words = ("inspect", table, "--reader", "spark", "--format", "json")
            ran = cli(*words, "--spark-remote", url)
            check_refusal(ran.code, ran.table["error"], url)
            assert SECRET not in ran.out + ran.err
            assert "ssl_transport" not in ran.err


def test_a_server_that_stops_responding_is_given_up() -> None:
    stopped, calls, gone = threading.Event(), [0], threading.Event()

    def ask() -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise OSError("an answer as well")
        if calls[0] == 4:
            stopped.wait()

    watch = spark_connect.give_up_silent(ask, gone.set, 0.0, 0.1)
    watch.join()
    stopped.set()
    assert gone.is_set()
    assert calls == [4]


MUTE = """
import sys, threading
from concurrent import futures

import grpc

from deltaproto.cli.main import main
from deltaproto.tables import spark_connect

spark_connect.give_up_silent.__defaults__ = (0.5,)
hold = threading.Event()

class Mute(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda *_: hold.wait())

server = grpc.server(futures.ThreadPoolExecutor(32), handlers=[Mute()])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
try:
    code = main([*sys.argv[1:], "--spark-remote", f"sc://127.0.0.1:{port}"])
finally:
    hold.set()
    server.stop(None)
sys.exit(code)
"""


@pytest.mark.parametrize("command", ["inspect", "scan"])
def test_a_connect_server_that_answers_nothing_is_one_error(
    log: Log, tmp_path: Path, command: str
) -> None:
    """It accepts connections, as a server does whose process is suspended or has a deadlock."""
    pytest.importorskip("grpc")
    pytest.importorskip("pyspark")
    table = log.commit(0, protocol(1, 2), metadata()).table
    words = {
        "inspect": ("--reader", "spark", "--spark-conf", "a.b=c"),
        "scan": ("--engine", "spark", "--inventory", str(tmp_path / "inventory")),
    }[command]
    ran = subprocess.run(
        [sys.executable, "-c", MUTE, command, table, *words, "--format", "json"],
        env=outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(ran.stdout)
    error = document["error"] if command == "scan" else document["tables"][0]["error"]
    assert (ran.returncode, error["code"]) == (3, "engine-unavailable"), ran.stderr
    assert error["message"] == (
        "Spark disconnected: the Spark Connect server stopped responding (60 s without a response)"
    )
    assert error["hint"]
    assert "Warning" not in ran.stderr


def test_a_step_whose_server_was_given_up_is_lost() -> None:
    class Gone:
        conf = SimpleNamespace(get=lambda *_: None, set=lambda *_: None, unset=lambda *_: None)

        def sql(self, _: str) -> None:
            raise ValueError("Cannot invoke RPC on closed channel!")

    result = StatementRunner(Gone()).run("SELECT 1", "mark")  # type: ignore[arg-type]
    assert result.lost
    assert result.message.startswith("the Spark Connect server stopped responding")


@pytest.mark.slow
def test_what_listens_and_is_no_connect_server_is_told_in_time(log: Log, tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    table = log.commit(0, protocol(1, 2), metadata()).table
    with others() as urls:
        began = time.monotonic()
        running = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "deltaproto", "inspect", table, "--reader", "spark"),
                    *("--format", "json", "--spark-remote", url),
                ],
                env=outside(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for url in urls
        ]
        for url, process in zip(urls, running, strict=True):
            out, err = process.communicate(timeout=120)
            check_refusal(process.returncode, json.loads(out)["tables"][0]["error"], url)
            assert SECRET not in out + err
            assert "ssl_transport" not in err
        # Spark's own client would try for minutes.
        assert time.monotonic() - began < 60


def test_a_failed_call_is_told_by_its_status() -> None:
    text = (
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
        '\tdetails = "Socket closed"\n\tdebug_error_string = "UNKNOWN:Error"\n>'
    )
    assert first_line(Exception(text)) == "StatusCode.UNAVAILABLE: Socket closed"
    gone = _refusal_error(Exception(text), Redactor())
    assert gone.code is ErrorCode.ENGINE
    assert gone.message == "Spark disconnected: StatusCode.UNAVAILABLE: Socket closed"
