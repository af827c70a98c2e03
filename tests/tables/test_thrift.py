"""The Thrift client of Hive metastores, on servers that answer wrongly or not at all."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_roots import list_tables
from deltaproto.location import locate
from deltaproto.tables.catalogs.hive import HiveMetastore
from deltaproto.tables.catalogs.interface import CatalogFailure, CatalogTable, Tally
from tests.support.hive_metastore import _encoded, _field
from tests.support.retries import FakeClock

Answer = Callable[[str, int], bytes]


def reply(method: str, number: int, fields: bytes, kind: int = 2) -> bytes:
    """A message."""
    name = method.encode()
    head = struct.pack(">Ii", 0x80010000 | kind, len(name)) + name
    return head + struct.pack(">i", number) + fields + b"\0"


def names(*found: str) -> bytes:
    """The result of a method that lists names."""
    kind, data = _encoded(list(found))
    return struct.pack(">Bh", kind, 0) + data


def tables(*found: str) -> bytes:
    """The result of a method that describes tables."""
    items = [
        {1: name, 7: {2: f"s3://lake/{name}"}, 9: {"spark.sql.sources.provider": "delta"}}
        for name in found
    ]
    kind, data = _encoded(items)
    return struct.pack(">Bh", kind, 0) + data


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server that answers each call with these bytes, and closes after no bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        def talk(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(1 << 16):
                    size = struct.unpack(">i", data[4:8])[0]
                    method, number = data[8 : 8 + size].decode(), data[8 + size : 12 + size]
                    back = answer(method, struct.unpack(">i", number)[0])
                    if not back:
                        return
                    connection.sendall(back)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        # Closed while the thread is about to accept, it would accept what the next server gets.
        server.shutdown(socket.SHUT_RDWR)
        serving.join()


def listed(authority: str, name: str = "") -> tuple[list[str], list[CatalogFailure], FakeClock]:
    time = FakeClock()
    client = HiveMetastore(authority, clock=time.clock())
    found = list(list_tables(client, locate(f"hms://{authority}/{name}")))
    shown = sorted(each.name for each in found if isinstance(each, CatalogTable))
    return shown, [each for each in found if isinstance(each, CatalogFailure)], time


def fleet(method: str, number: int) -> bytes:
    """Two databases, with 250 tables each."""
    all_ = [f"t{n:03}" for n in range(250)]
    match method:
        case "get_all_databases":
            return reply(method, number, names("a", "naïve"))
        case "get_all_tables":
            return reply(method, number, names(*all_))
        case _:
            return reply(method, number, tables("t000", "odd.name"))


def test_pages_and_names() -> None:
    with serving(fleet) as authority:
        found, failures, _ = listed(authority)
        # Two pages of each database, with two tables each.
        assert failures == []
        assert found == sorted(["a.t000", "a.`odd.name`", "`naïve`.t000", "`naïve`.`odd.name`"] * 2)


def test_one_row_for_each_failure() -> None:
    def denied(method: str, number: int) -> bytes:
        if method == "get_all_tables":
            return reply(method, number, _field(1, {1: "Permission denied: user=ann"}))
        return fleet(method, number)

    with serving(denied) as authority:
        found, failures, _ = listed(authority)
        assert found == []
        assert {each.place for each in failures} == {
            f"hms://{authority}/a",
            f"hms://{authority}/`naïve`",
        }
        assert len(failures) == 2
        assert {each.error.code for each in failures} == {ErrorCode.PERMISSION_DENIED}


def test_a_connection_that_breaks_is_opened_again() -> None:
    left = [b""]

    def breaks(method: str, number: int) -> bytes:
        if method == "get_table_objects_by_name" and left:
            return left.pop()
        return fleet(method, number)

    with serving(breaks) as authority:
        found, failures, time = listed(authority)
        assert (len(found), failures, len(time.pauses)) == (8, [], 1)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda m, n: b"HTTP/1.1 400 Bad Request\r\n\r\n", "binary protocol"),
        (lambda m, n: reply(m, n, b"", 3), "an error without a message"),
        (lambda m, n: reply(m, n, _field(1, "Invalid method name"), 3), "Invalid method name"),
        (lambda m, n: reply(m, n + 1, names("a")), "belongs to another call"),
        (lambda m, n: reply(m, n, b""), "has no result"),
        (lambda m, n: reply(m, n, b"\x0b\0\0\xff\xff\xff\xff"), "an invalid length"),
        (lambda m, n: reply(m, n, b"\x63\0\0"), "an unknown type"),
        (lambda m, n: reply(m, n, b"\x0c\0\1" * 40), "nested too deeply"),
        (lambda m, n: b"", "closed the connection"),
        (lambda m, n: reply(m, n, _field(0, "a")), "not a list of names"),
        (lambda m, n: reply(m, n, _field(0, {1: "a"})), "not a list of names"),
        (lambda m, n: reply(m, n, _field(0, [{1: "a"}])), "not a list of names"),
    ],
)
def test_a_server_that_is_something_else(answer: Answer, says: str) -> None:
    with serving(answer) as authority:
        found, failures, _ = listed(authority)
        assert found == []
        assert [each.place for each in failures] == [f"hms://{authority}"]
        assert says in failures[0].error.message
        assert "Kerberos" in failures[0].error.hint


@pytest.mark.parametrize(
    "entry",
    [{}, {1: {1: "t"}}, {1: "t", 7: "s3://lake/t"}, {1: "t", 9: "x"}],
)
def test_an_entry_of_invalid_types(entry: dict[int, Any]) -> None:
    def invalid(method: str, number: int) -> bytes:
        if method == "get_table_objects_by_name":
            return reply(method, number, _field(0, [entry]))
        return fleet(method, number)

    with serving(invalid) as authority:
        found, failures, _ = listed(authority)
        assert found == []
        assert "missing or invalid members" in failures[0].error.message


def test_nobody_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Bound, but nobody listens.
        _, failures, time = listed(f"127.0.0.1:{free.getsockname()[1]}")
    assert "does not answer: Connection refused" in failures[0].error.message
    assert len(time.pauses) == 2


def test_addresses() -> None:
    assert HiveMetastore("host")._at == ("host", 9083)
    assert HiveMetastore("host:9084")._at == ("host", 9084)
    assert HiveMetastore("[::1]:9084")._at == ("::1", 9084)
    assert HiveMetastore("[::1]")._at == ("::1", 9083)
    for wrong in ("host:", "host:x", "host:0", "host:70000"):
        with pytest.raises(TableError, match="is not a port"):
            HiveMetastore(wrong)
    assert HiveMetastore("host").counts[Tally.REQUESTS] == 0
