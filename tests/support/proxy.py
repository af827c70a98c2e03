"""A proxy before an object store that shows requests, refuses some, and cuts answers off."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive"}


class Faults:
    """What goes wrong, each as a share of requests."""

    def __init__(self) -> None:
        self.refused = self.cut = self.slow = 0.0
        self.chance = random.Random(5)
        self.met: Counter[str] = Counter()

    def draw(self) -> str:
        """What becomes of the next request."""
        number = self.chance.random()
        for name in ("refused", "cut", "slow"):
            share = getattr(self, name)
            if number < share:
                self.met[name] += 1
                return name
            number -= share
        return ""


class Exchange(NamedTuple):
    """A request that the endpoint has answered."""

    method: str
    path: str
    headers: Message
    status: int


class Proxy:
    """Passes S3 requests on to the endpoint `host:port`, and each answered one to `log`."""

    def __init__(
        self, host: str, port: int, log: Callable[[Exchange], object] = lambda _: None
    ) -> None:
        self.faults = Faults()
        self.log = log
        self.requests: list[tuple[str, str]] = []
        """kind (LIST, GET, HEAD, …) and key or prefix of each"""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, host, port))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def proxy(
    host: str, port: int, log: Callable[[Exchange], object] = lambda _: None
) -> Iterator[Proxy]:
    """A running proxy, and its end."""
    running = Proxy(host, port, log)
    try:
        yield running
    finally:
        running.close()


def _handler(proxy: Proxy, host: str, port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise a body waits 40 ms for the client to acknowledge the header.
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            proxy.requests.append(_kind(self.command, self.path))
            fate = proxy.faults.draw()
            if fate == "refused":
                self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
                return
            if fate == "slow":
                time.sleep(0.3)
            behind = http.client.HTTPConnection(host, port)
            behind.request(self.command, self.path, body, dict(self.headers))
            answer = behind.getresponse()
            data = answer.read()
            proxy.log(Exchange(self.command, self.path, self.headers, answer.status))
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in _HOP}
            if self.command == "HEAD":
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    self.send_header(name, value)
                self.end_headers()
                return
            self._answer(answer.status, headers, data, cut=fate == "cut" and len(data) > 1)
            behind.close()

        def _answer(
            self, status: int, headers: dict[str, str], data: bytes, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if cut else data)
            self.close_connection = cut

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815

        def log_message(self, *_: object) -> None:
            return

    return Handler


def _kind(command: str, path: str) -> tuple[str, str]:
    parts = urlsplit(path)
    query = parse_qs(parts.query, keep_blank_values=True)
    if command == "GET" and "list-type" in query:
        return "LIST", query.get("prefix", [""])[0]
    return command, parts.path.partition("/")[2].partition("/")[2]
