"""obstore against pyarrow.fs as the client of the log reader, on a real S3 endpoint (moto).

For each table: one listing of its log and two small reads, 32 at a time. The endpoint is slow, so
what counts is the client's own processor time, its requests, and what its import takes.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import boto3
from moto.server import ThreadedMotoServer

from benchmarks.fleet_tables import make_tables
from tests.support.proxy import Proxy, proxy

BUCKET, THREADS, TABLES = "lake", 32, 400
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
    """Look at every table, and print processor and wall microseconds for one."""
    look = {"obstore": with_obstore, "pyarrow.fs": with_pyarrow}[name](endpoint)
    look(logs[0])
    began, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(look, logs))
    wall, used = time.perf_counter() - began, time.process_time() - used
    print(used / len(logs) * 1e6, wall / len(logs) * 1e6)


def measured(name: str, logs: Sequence[str], between: Proxy) -> None:
    """Print what one client takes, in a process of its own."""
    between.requests.clear()
    command = [sys.executable, __file__, name, between.url]
    ran = subprocess.run(command, input="\n".join(logs), capture_output=True, text=True, check=True)
    used, wall = map(float, ran.stdout.split())
    requests = len(between.requests) / (len(logs) + 1)
    print(
        f"{name:10} {used:7.0f} us of processor and {wall:7.0f} us of time a table, "
        f"{requests:.1f} requests"
    )


def imported(module: str) -> float:
    """Seconds that a process takes to import it, beyond an empty one's; the best of five."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.append(time.perf_counter() - began)
        return min(times)

    return best(f"import {module}") - best("pass")


def main() -> int:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    s3 = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **SECRETS
    )
    s3.create_bucket(Bucket=BUCKET)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tables = [Path(table) for table in make_tables(root, TABLES)]
        for file in root.rglob("*"):
            if file.is_file():
                key = str(file.relative_to(root))
                s3.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
        logs = [f"{table.relative_to(root)}/_delta_log" for table in tables]
    with proxy(host, port) as between:
        for _ in range(3):
            for name in ("obstore", "pyarrow.fs"):
                measured(name, logs, between)
    for module in ("obstore.store", "pyarrow.fs"):
        print(f"import {module:14} {imported(module) * 1e3:6.0f} ms")
    server.stop()
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        client(sys.argv[1], sys.argv[2], sys.stdin.read().split())
    else:
        sys.exit(main())
