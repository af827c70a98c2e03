"""A stand-in for a Unity Catalog server: in memory, with pages, tokens, and faults on demand.

Its responses are checked against the official client's models (tests/tables/test_unity.py).
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

API = "/api/2.1/unity-catalog"


class Reply(NamedTuple):
    """One response."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = MappingProxyType({})


Fault = Callable[[str, dict[str, str]], Reply | None]
"""may replace the response to a path below the API and its query"""


def refused(status: int, message: str, **headers: str) -> Reply:
    """An error as the server writes it; `Retry_After` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error_code": "ERROR", "message": message, "details": []}, named)


def _disabled(endpoint: str) -> Reply:
    setting = "server.managed-table.use-delta-api-only"
    return refused(
        400, f"This Unity Catalog endpoint is disabled when {setting}=true. Use {endpoint}."
    )


def _described(commits: dict[int, int]) -> list[dict[str, Any]]:
    """Return commits as the server describes them, oldest first."""
    return [
        {
            "version": version,
            "timestamp": time,
            "file_name": f"{version:020d}.uuid.json",
            "file_size": 1,
            "file_modification_timestamp": time,
        }
        for version, time in sorted(commits.items())
    ]


class UnityServer:
    """Catalogs, schemas and tables, and what to answer to whom."""

    def __init__(self, page: int = 50, tls: ssl.SSLContext | None = None) -> None:
        self.page = page
        self.tables: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.tokens: set[str] = set()
        """the valid tokens; empty: none is required"""
        self.credentials: dict[str, Any] | None = None
        """temporary credentials for every table; None: there are none"""
        self.commits: dict[str, tuple[int, dict[int, int]]] = {}
        """by table id: the newest version, and unpublished ones with their in-commit timestamps"""
        self.delta_api_only = False
        """whether managed tables have commits and credentials only in the Delta API"""
        self.faults: list[Fault] = []
        self.requests: Counter[str] = Counter()
        self.connected: list[socket.socket] = []
        """every connection that was ever opened"""
        self.on_headers: Callable[[Message], object] = lambda _: None
        self.sent_tokens: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if tls is not None:
            # Otherwise a failed handshake would end the server.
            late = {"server_side": True, "do_handshake_on_connect": False}
            self._server.socket = tls.wrap_socket(self._server.socket, **late)
        self.authority = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, name: str, location: str, **fields: Any) -> dict[str, Any]:
        """Register catalog.schema.table, an external Delta table by default."""
        catalog, schema, table = name.split(".")
        entry = {
            "name": table,
            "catalog_name": catalog,
            "schema_name": schema,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": [],
            "storage_location": location,
            "properties": {},
            "owner": "ann@example.com",
            "created_at": 1_700_000_000_000,
            "table_id": f"id-of-{name}",
            **fields,
        }
        self.tables.setdefault((catalog, schema), []).append(entry)
        return entry

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for each in self.connected:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def reply(self, path: str, query: dict[str, str], token: str | None) -> Reply:
        kind, _, name = path.partition("/")
        self.requests[kind] += 1
        if token is not None:
            self.sent_tokens.add(token)
        for fault in self.faults:
            if (found := fault(path, query)) is not None:
                return found
        if self.tokens and token not in self.tokens:
            return refused(401, f"token {token} is not valid")
        match kind:
            case "catalogs":
                names = dict.fromkeys(catalog for catalog, _ in self.tables)
                return self._paged(kind, [{"name": each} for each in names], query)
            case "schemas":
                catalog = query["catalog_name"]
                found = [
                    {"name": s, "catalog_name": c, "full_name": f"{c}.{s}"}
                    for c, s in self.tables
                    if c == catalog
                ]
                return self._paged(kind, found, query)
            case "tables" if name:
                return self._one(unquote(name))
            case "tables":
                where = query["catalog_name"], query["schema_name"]
                if where not in self.tables:
                    return refused(404, f"Schema not found: {'.'.join(where)}")
                return self._paged(kind, self.tables[where], query)
            case "delta" if name.startswith("v1/"):
                return self._delta_api(name)
            case "delta" if self.delta_api_only:
                return _disabled("GET /delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}")
            case "temporary-table-credentials" if self._is_disabled(query.get("table_id")):
                return _disabled("GET …/tables/{table}/credentials")
            case "temporary-table-credentials" if self.credentials is not None:
                return Reply(200, self.credentials)
            case "delta" if (tracked := self.commits.get(query["table_id"])) is not None:
                return self._commits(*tracked, int(query["start_version"]))
        return refused(501, "not configured")

    def _is_disabled(self, table_id: str | None) -> bool:
        entries = (each for schema in self.tables.values() for each in schema)
        managed = (
            each["table_type"] == "MANAGED" and each["table_id"] == table_id for each in entries
        )
        return self.delta_api_only and any(managed)

    def _delta_api(self, path: str) -> Reply:
        """Respond as Unity Catalog 0.7 does, whose own responses tests/tables/test_unity.py has."""
        _, _, catalog, _, schema, _, name, *credentials = map(unquote, path.split("/"))
        found = self._one(f"{catalog}.{schema}.{name}")
        if not self.delta_api_only or found.status != 200:
            return refused(404, "no such endpoint, or no such table")
        location = found.body["storage_location"]
        if credentials:
            aws = (self.credentials or {}).get("aws_temp_credentials") or {}
            config = {f"s3.{key.replace('_', '-')}": value for key, value in aws.items()}
            one = {"prefix": location, "operation": "READ", "config": config}
            return Reply(200, {"storage-credentials": [{**one, "expiration-time-ms": None}]})
        newest, known = self.commits.get(found.body["table_id"], (0, {}))
        listed = [
            {key.replace("_", "-"): value for key, value in each.items()}
            for each in reversed(_described(known))
        ]
        kind = {"table-type": found.body["table_type"], "location": location}
        body = {"metadata": kind, "commits": listed, "latest-table-version": newest}
        return Reply(200, body)

    def _commits(self, newest: int, known: dict[int, int], start: int) -> Reply:
        listed = [each for each in _described(known) if each["version"] >= start]
        return Reply(200, {"commits": listed[: self.page], "latest_table_version": newest})

    def _one(self, name: str) -> Reply:
        for entries in self.tables.values():
            for each in entries:
                if name == ".".join(each[k] for k in ("catalog_name", "schema_name", "name")):
                    return Reply(200, each)
        return refused(404, f"Table not found: {name}")

    def _paged(self, kind: str, found: list[dict[str, Any]], query: dict[str, str]) -> Reply:
        assert query["max_results"] == "0"
        begin = int(query.get("page_token", "0"))
        end = begin + self.page
        token = str(end) if end < len(found) else ""
        return Reply(200, {kind: found[begin:end], "next_page_token": token})


@contextmanager
def unity_server(page: int = 50, tls: ssl.SSLContext | None = None) -> Iterator[UnityServer]:
    """A running server, and its end."""
    running = UnityServer(page, tls)
    try:
        yield running
    finally:
        running.close()


def _handler(server: UnityServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            server.connected.append(self.request)
            super().setup()

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._answer(json.loads(self.rfile.read(length)) if length else {})

        def do_POST(self) -> None:
            self.do_GET()

        def _answer(self, body: dict[str, str]) -> None:
            server.on_headers(self.headers)
            url = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(url.query).items()}
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            reply = server.reply(url.path.removeprefix(f"{API}/"), {**query, **body}, token)
            data = json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler
