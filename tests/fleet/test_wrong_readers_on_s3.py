"""Real readers of a table with deletion vectors on an S3 endpoint that logs its requests."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import boto3
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from tests.conftest import Ran
from tests.support.contract import documents
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.proxy import Exchange, proxy

pytestmark = pytest.mark.storage
Cli = Callable[..., Ran]
HOUR = 3_600_000
START = 1_764_000_000_000 // HOUR * HOUR
VECTOR = uuid.UUID("6c2350e3-b1d3-427b-813f-7429d7ea49f1")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    """Base85 as the protocol writes the ids of deletion vectors."""
    text = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        text += "".join(_Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def write_table(folder: Path) -> None:
    """A table of three rows, of which the first is deleted by a vector, and of a newer file."""
    log = Log(folder)
    for name, ids in (("old.parquet", [1, 2, 3]), ("new.parquet", [4])):
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), folder / name)
    # The portable form of a 64-bit Roaring bitmap with the number 0.
    bitmap = struct.pack("<QIIIHHIH", 1, 0, 12346, 1, 0, 0, 16, 0)
    data = struct.pack("<I", 1681511377) + bitmap
    framed = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / f"deletion_vector_{VECTOR}.bin").write_bytes(framed)
    vector = {
        "storageType": "u",
        "pathOrInlineDv": z85(VECTOR.bytes),
        "offset": 1,
        "sizeInBytes": len(data),
        "cardinality": 1,
    }
    sizes = {name: (folder / name).stat().st_size for name in ("old.parquet", "new.parquet")}
    stats = {"stats": '{"numRecords":3}'}
    old = {"size": sizes["old.parquet"], **stats}
    removed = {"remove": {"path": "old.parquet", "dataChange": True, "deletionTimestamp": START}}
    for version, actions in enumerate(
        [
            [
                protocol(3, 7, ["deletionVectors"], ["deletionVectors"]),
                metadata({"delta.enableDeletionVectors": "true"}),
                add("old.parquet", **old),
            ],
            [removed, add("old.parquet", **old, deletionVector=vector)],
            [add("new.parquet", size=sizes["new.parquet"], stats='{"numRecords":1}')],
        ]
    ):
        info = {
            "timestamp": START + 2 * version * HOUR,
            "engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0",
        }
        log.commit(version, commit_info(**info), *actions)


class Bucket:
    """An S3 endpoint that logs its requests as S3 does, as if they were made at `time`."""

    def __init__(self, log: Path) -> None:
        self.time, self.log, self.url = START, log, ""

    def options(self, user: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            # The user of a request is in its signature.
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
        }

    def write(self, exchange: Exchange) -> None:
        moment = f"{datetime.fromtimestamp(self.time / 1000, UTC):%d/%b/%Y:%H:%M:%S +0000}"
        key = exchange.path.partition("?")[0].lstrip("/").partition("/")[2]
        signed = exchange.headers.get("Authorization", "")
        user = signed.partition("Credential=")[2].partition("/")[0] or "-"
        operation = f"REST.{exchange.method}.{'OBJECT' if key else 'BUCKET'}"
        agent = exchange.headers.get("User-Agent", "-")
        with self.log.open("a") as file:
            file.write(
                f"{'0' * 64} lake [{moment}] 192.0.2.3 {user} ID {operation} "
                f'{quote(unquote(key)) or "-"} "{exchange.method} {exchange.path} HTTP/1.1" '
                f'{exchange.status} - 1 1 1 1 "-" "{agent}" '
                "- x SigV4 x AuthHeader lake.s3 TLSv1.2 - -\n"
            )


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    running = Bucket(tmp_path / "access.log")
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    with proxy(*server.get_host_and_port(), running.write) as endpoint:
        running.url = endpoint.url
        upload(running, tmp_path / "table")
        yield running
    server.stop()


def upload(bucket: Bucket, table: Path) -> None:
    client: Any = boto3.client(
        "s3",
        endpoint_url=bucket.url,
        aws_access_key_id="writer",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="lake")
    write_table(table)
    for file in sorted(table.rglob("*")):
        if file.is_file():
            # The vector and the second commit, and the new file and the third.
            bucket.time = START + (2 * HOUR if file.suffix == ".bin" else 0)
            if file.suffix == ".json":
                bucket.time = START + 2 * int(file.stem) * HOUR
            key = f"t/{file.relative_to(table)}"
            client.put_object(Bucket="lake", Key=key, Body=file.read_bytes())


# It keeps the lock of the interpreter while it waits for the endpoint, which is in this process.
_QUERY = """
import json, sys, deltalake, pyarrow
table = deltalake.DeltaTable("s3://lake/t", storage_options=json.loads(sys.argv[1]))
rows = deltalake.QueryBuilder().register("t", table).execute("select id from t").read_all()
print(json.dumps(sorted(pyarrow.table(rows)["id"].to_pylist())))
"""


def read_with_deltalake(bucket: Bucket, user: str) -> list[int]:
    words = [sys.executable, "-c", _QUERY, json.dumps(bucket.options(user))]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[int] = json.loads(ran.stdout)
    return found


def read_with_pyarrow(bucket: Bucket, user: str) -> list[int]:
    files = pyarrow.fs.S3FileSystem(
        access_key=user,
        secret_key="testing",
        endpoint_override=bucket.url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    listed = files.get_file_info(pyarrow.fs.FileSelector("lake/t"))
    names = [each.path for each in listed if each.path.endswith(".parquet")]
    found = pyarrow.dataset.dataset(names, format="parquet", filesystem=files)
    return sorted(found.to_table()["id"].to_pylist())


def test_a_reader_of_parquet_files_is_told_from_an_engine(
    cli: Cli, bucket: Bucket, tmp_path: Path
) -> None:
    bucket.time = START + 8 * HOUR
    assert read_with_deltalake(bucket, "engine") == [2, 3, 4]
    bucket.time = START + 9 * HOUR
    # What the finding is about: a deleted row.
    assert read_with_pyarrow(bucket, "script") == [1, 2, 3, 4]
    saved = tmp_path / "saved.log"
    saved.write_bytes(bucket.log.read_bytes())
    options = [
        word
        for pair in bucket.options("admin").items()
        for word in ("--storage-option", "=".join(pair))
    ]
    ran = cli("discover", "s3://lake/t", "--access-log", str(saved), *options, "--format", "json")
    assert ran.code == 1, ran.err
    (document,) = documents(ran, "discover")
    (finding,) = document["findings"]
    assert (finding["rule"], finding["severity"]) == ("DP401", "error")
    assert finding["table"] == "s3://lake/t"
    assert finding["message"].startswith("script reads 1 data file without the deletion vectors")
    assert finding["evidence"].startswith("old.parquet; user agent aws-sdk-cpp/")
    (spark,) = document["clients"]
    assert (spark["client"], spark["version"], spark["commits"]) == ("delta-spark", "4.0.0", 3)
    marks = {each["mark"].partition("/")[0]: each["access"] for each in document["unidentified"]}
    assert marks == {"object_store": ["read"], "AWS SDK for C++": ["read"], "Boto3": []}
    assert document["sources"][1]["unparsed"] == 0
    # The same with the log in the bucket.
    client = boto3.client(
        "s3",
        endpoint_url=bucket.url,
        aws_access_key_id="admin",
        aws_secret_access_key="testing",
        region_name="us-east-1",
    )
    client.put_object(Bucket="lake", Key="logs/2025", Body=saved.read_bytes())
    again = cli(
        *("discover", "s3://lake/t", "--access-log", "s3://lake/logs/", *options),
        *("--format", "json", "--fail-on", "never"),
    )
    assert again.code == 0, again.err
    assert again.json["findings"] == document["findings"]
    assert again.json["clients"] == document["clients"]
