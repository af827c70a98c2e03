"""A real standalone Hive metastore, from pyspark's jars, with an embedded Derby database."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape

import pyspark

from deltaproto.tables.catalogs.thrift import ThriftConnection

_START_SECONDS = 120
_STRING, _STRUCT, _MAP, _LIST, _I32 = 11, 12, 13, 15, 8


@contextmanager
def metastore(folder: Path) -> Iterator[int]:
    """Run a metastore until the end of the block; gives its port on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    conf = folder / "conf"
    conf.mkdir(parents=True)
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
        "hive.metastore.schema.verification": "false",
        "hive.async.log.enabled": "false",
        "hive.metastore.warehouse.dir": f"{folder}/warehouse",
    }
    lines = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    )
    text = f"<configuration>{''.join(lines)}</configuration>"
    (conf / "hive-site.xml").write_text(text, encoding="utf-8")
    jars = Path(pyspark.__file__).parent / "jars"
    home = os.environ.get("JAVA_HOME")
    command = [
        f"{home}/bin/java" if home else "java",
        # It ends before optimized code pays off, and its database need not survive a crash.
        *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-Dderby.system.durability=test", "-cp", f"{conf}:{jars}/*"),
        "org.apache.hadoop.hive.metastore.HiveMetaStore",
        *("-p", str(port)),
    ]
    with open(folder / "log", "wb") as log:
        running = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            _wait_for(port, running, folder / "log")
            yield port
        finally:
            running.kill()
            running.wait()


def _wait_for(port: int, running: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if running.poll() is not None:
                break
            time.sleep(0.2)
    raise RuntimeError(f"no metastore: {log.read_text(errors='replace')[-2000:]}")


class Writer:
    """Registers databases and tables."""

    def __init__(self, port: int) -> None:
        self._connection = ThriftConnection("127.0.0.1", port, 60)

    def database(self, name: str, folder: Path) -> None:
        """Create a database."""
        self._call("create_database", {1: name, 3: f"file:{folder}/{name}"})

    def table(
        self,
        database: str,
        name: str,
        location: str,
        parameters: Mapping[str, str],
        serde: Mapping[str, str] = {},
        kind: str = "EXTERNAL_TABLE",
        columns: Mapping[str, str] = MappingProxyType({"id": "bigint"}),
    ) -> None:
        """Create a table."""
        listed = [{1: name, 2: type_} for name, type_ in columns.items()]
        information = {2: "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", 3: dict(serde)}
        storage = {1: listed, 2: location, 7: information}
        view = {10: "select 1", 11: "select 1"} if "VIEW" in kind else {}
        given = {"EXTERNAL": "TRUE", **parameters} if kind == "EXTERNAL_TABLE" else parameters
        table = {1: name, 2: database, 3: "ann", 7: storage, 9: dict(given), **view, 12: kind}
        self._call("create_table", table)

    def drop(self, database: str, name: str) -> None:
        """Drop a table, and keep its files."""
        connection = self._connection
        data = b"".join(_field(n, v) for n, v in ((1, database), (2, name)))
        _send(connection, "drop_table", data + struct.pack(">BhB", 2, 3, 0))

    def _call(self, method: str, value: Mapping[int, Any]) -> None:
        _send(self._connection, method, _field(1, value))


def _send(connection: ThriftConnection, method: str, fields: bytes) -> None:
    name = method.encode()
    head = struct.pack(">Ii", 0x80010001, len(name)) + name + struct.pack(">i", 0)
    connection._socket.sendall(head + fields + b"\0")
    connection._read(8 + len(name) + 4)
    refused = connection._struct({n: {1: {}} for n in range(1, 8)}, 0)
    assert not refused, refused


def _field(number: int, value: Any) -> bytes:
    kind, data = _encoded(value)
    return struct.pack(">Bh", kind, number) + data


def _encoded(value: Any) -> tuple[int, bytes]:
    if isinstance(value, str):
        data = value.encode()
        return _STRING, struct.pack(">i", len(data)) + data
    if isinstance(value, list):
        items = [_encoded(each) for each in value]
        head = struct.pack(">Bi", items[0][0] if items else _STRUCT, len(items))
        return _LIST, head + b"".join(data for _, data in items)
    if all(isinstance(key, int) for key in value) and value:
        return _STRUCT, b"".join(_field(n, v) for n, v in sorted(value.items())) + b"\0"
    pairs = b"".join(_encoded(k)[1] + _encoded(v)[1] for k, v in value.items())
    return _MAP, struct.pack(">BBi", _STRING, _STRING, len(value)) + pairs
