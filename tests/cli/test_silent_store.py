"""Ctrl-C while an object store or a catalog does not answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.lakes import s3_lake, trust
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.proxy import Exchange, Proxy, proxy
from tests.support.unity_server import Reply, unity_server

pytestmark = [pytest.mark.storage, pytest.mark.rotating]


@pytest.mark.parametrize(
    "command",
    [
        "inspect s3://lake/a",
        "inspect s3://lake/a s3://lake/b",
        "plan-downgrade s3://lake/a --lowest",
        "history s3://lake/a",
        "discover s3://lake/a",
        "scan s3://lake/a",
        "report s3://lake/inventory",
    ],
)
def test_it_ends_the_command_at_once(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        # Nothing else ends the requests while the server keeps the connection.
        words = [*command.split(), "--storage-option", "timeout=3600s"]
        with _started(words, endpoint, tmp_path) as process:
            asked, _ = server.accept()
            asked.recv(1)
            _interrupt(process)
        asked.close()


@pytest.mark.parametrize("kind", ["catalogs", "schemas", "tables", "temporary-table-credentials"])
def test_a_catalog_that_falls_silent(kind: str, tmp_path: Path) -> None:
    silent, end = threading.Event(), threading.Event()

    def wait(path: str, query: dict[str, str]) -> Reply | None:
        if path.partition("/")[0] == kind:
            silent.set()
            end.wait()
        return None

    with unity_server() as server:
        server.add("main.sales.t", "s3://lake/t")
        server.faults.append(wait)
        words = ["scan", f"uc://{server.authority}"]
        with _started(words, "http://127.0.0.1:1", tmp_path) as process:
            assert silent.wait(60)
            _interrupt(process)
        end.set()


class _Store:
    """An object store that falls silent at the first request for a place."""

    def __init__(self) -> None:
        self.place: tuple[str, str] | None = None
        self.silent, self.end = threading.Event(), threading.Event()
        self.proxy: Proxy

    def log(self, exchange: Exchange) -> None:
        path = urlsplit(exchange.path).path
        if self.place and exchange.method == self.place[0] and self.place[1] in path:
            self.silent.set()
            self.end.wait()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Store]:
    """A store with three tables, and an inventory with two scans of them."""
    found, folder = _Store(), tmp_path_factory.mktemp("silent")
    for name in "abc":
        Log(folder / name).commit(0, commit_info(), protocol(1, 2), metadata(), add())
    with s3_lake() as lake:
        lake.upload(folder, "tables")
        # The proxy changes what is signed.
        trust(lake)
        url = urlsplit(lake.options["AWS_ENDPOINT_URL"])
        assert url.hostname
        assert url.port
        with proxy(url.hostname, url.port, found.log) as found.proxy:
            words = ["scan", "s3://lake/tables", "--inventory", "s3://lake/inventory", "--full"]
            for _ in range(2):
                with _started(words, found.proxy.url, folder) as process:
                    _, errors = process.communicate(timeout=60)
                    assert process.returncode == 0, errors
            yield found


_SCAN = "scan s3://lake/tables --inventory s3://lake/inventory"


@pytest.mark.parametrize(
    ("command", "method", "place"),
    [
        ("drift s3://lake/inventory", "GET", "inventory/tables/scan_id"),
        (_SCAN, "GET", "inventory/scans/scan_id"),
        (_SCAN, "PUT", "inventory/tables/scan_id"),
        (_SCAN, "PUT", "inventory/scans/_delta_log"),
        ("inspect s3://lake/tables/a --reader delta-rs", "GET", "tables/a/_delta_log/"),
    ],
)
def test_a_store_that_falls_silent(
    command: str, method: str, place: str, store: _Store, tmp_path: Path
) -> None:
    store.place = method, place
    store.silent.clear()
    store.end.clear()
    try:
        words = [*command.split(), "--storage-option", "timeout=3600s"]
        with _started(words, store.proxy.url, tmp_path) as process:
            assert store.silent.wait(60)
            _interrupt(process)
    finally:
        store.place = None
        store.end.set()


@contextmanager
def _started(words: Sequence[str], endpoint: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        # Scans that did not end leave their rows there.
        "XDG_CACHE_HOME": str(folder),
    }
    command = [sys.executable, "-m", "deltaproto", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, cwd=folder, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _interrupt(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.splitlines()[:1]) == (130, ["interrupted"])
