"""obstore against pyarrow.fs as the client of the log reader, on a real S3 endpoint (moto)."""

from __future__ import annotations

import io
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

from benchmarks.fleet_tables import make_tables
from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, in_turns, run
from benchmarks.scale import FleetScale
from tests.support.proxy import Proxy, proxy

BUCKET, THREADS = "lake", 32
_CLIENTS = ("obstore", "pyarrow.fs")
_MODULES = ("obstore.store", "pyarrow.fs")
_MEASURES = ("processor", "time")
_TOLD = """
For each table one listing of its log and two small reads, 32 tables at a time, at an S3 endpoint on
this machine. The endpoint is slow, so what counts is the client's own processor time and its
requests. Imports are whole processes of Python, the import being all that they do.
"""
SECRETS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}


def with_obstore(endpoint: str) -> Callable[[str], None]:
    import obstore
    from obstore.store import from_url

    store = from_url(
        f"s3://{BUCKET}",
        config={**SECRETS, "aws_region": "us-east-1", "aws_endpoint": endpoint},
        client_options={"allow_http": True},
    )

    def look(log: str) -> None:
        names = [each["path"] for each in obstore.list_with_delimiter(store, log)["objects"]]
        for name in wanted(names):
            bytes(obstore.get(store, name).bytes())

    return look


def with_pyarrow(endpoint: str) -> Callable[[str], None]:
    from pyarrow import fs

    store = fs.S3FileSystem(
        access_key="testing",
        secret_key="testing",
        region="us-east-1",
        endpoint_override=endpoint.removeprefix("http://"),
        scheme="http",
    )

    def look(log: str) -> None:
        found = store.get_file_info(fs.FileSelector(f"{BUCKET}/{log}"))
        for name in wanted([each.path for each in found]):
            with store.open_input_stream(name) as file:
                io.BytesIO(file.read())

    return look


def wanted(names: Sequence[str]) -> list[str]:
    """The newest commit and its checksum."""
    shown = sorted(name for name in names if "/." not in name)
    return [max(n for n in shown if n.endswith(end)) for end in (".json", ".crc")]


def client(name: str, endpoint: str, logs: Sequence[str]) -> None:
    """Look at every table, and print processor and wall seconds for one."""
    look = {"obstore": with_obstore, "pyarrow.fs": with_pyarrow}[name](endpoint)
    look(logs[0])
    began, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(look, logs))
    wall, used = time.perf_counter() - began, time.process_time() - used
    print(used / len(logs), wall / len(logs))


def measured(scale: FleetScale) -> Section:
    """Both clients in turns, each time in a process of its own."""
    print(f"object store clients on {scale.on_store} tables", flush=True)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    logs = _uploaded(f"http://{host}:{port}", scale.on_store)
    asked: dict[str, list[int]] = {name: [] for name in _CLIENTS}
    with proxy(host, port) as between:
        sides = {name: partial(_looked, name, logs, between, asked[name]) for name in _CLIENTS}
        costs = in_turns(sides, 1 + scale.rounds // 2)
    server.stop()
    ours, theirs = (costs[name] for name in _CLIENTS)
    rows = [row("obstore / pyarrow.fs, of one table", ours, theirs, of) for of in _MEASURES]
    figures = [
        Figure(f"{name}: requests for one table", statistics.median(counts) / (len(logs) + 1))
        for name, counts in asked.items()
    ]
    imports = in_turns({module: partial(_imported, module) for module in _MODULES}, 5)
    first, second = (imports[each] for each in _MODULES)
    rows.append(row("import obstore.store / pyarrow.fs", first, second))
    return Section("Clients of the log reader on an object store", _TOLD, rows, figures)


def _looked(name: str, logs: Sequence[str], between: Proxy, asked: list[int]) -> Cost:
    between.requests.clear()
    command = [sys.executable, "-m", "benchmarks.object_clients", name, between.url]
    ran = subprocess.run(command, input="\n".join(logs), capture_output=True, text=True, check=True)
    asked.append(len(between.requests))
    used, wall = map(float, ran.stdout.split())
    return Cost(wall, used)


def _imported(module: str) -> Cost:
    """A process that imports it and ends."""
    return run([sys.executable, "-c", f"import {module}"])


def _uploaded(endpoint: str, tables: int) -> list[str]:
    """The logs of new tables in the bucket."""
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **SECRETS)
    s3.create_bucket(Bucket=BUCKET)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = [Path(table) for table in make_tables(root, tables)]
        for file in filter(Path.is_file, root.rglob("*")):
            key = str(file.relative_to(root))
            s3.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
        return [f"{table.relative_to(root)}/_delta_log" for table in made]


if __name__ == "__main__":
    client(sys.argv[1], sys.argv[2], sys.stdin.read().split())
