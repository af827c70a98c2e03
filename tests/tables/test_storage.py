"""Tables on an object store: a real S3 endpoint on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from moto.server import ThreadedMotoServer

from deltaproto.errors import ErrorCode, TableError
from deltaproto.tables.delta_rs import DeltaRsReader
from deltaproto.tables.log.reader import LogReader
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.surveys import survey_table

pytestmark = pytest.mark.storage
BUCKET = "lake"


class Store(NamedTuple):
    client: Any
    options: dict[str, str]

    def upload(self, log: Log, prefix: str) -> str:
        """Copy a hand-made log and return its table's URI."""
        for file in log.root.rglob("*"):
            if file.is_file():
                key = f"{prefix}/{file.relative_to(log.root)}"
                self.client.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
        return f"s3://{BUCKET}/{prefix}"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    secrets = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **secrets)
    client.create_bucket(Bucket=BUCKET)
    yield Store(
        client,
        {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_S3_LOCKING_PROVIDER": "dynamodb",
        },
    )
    server.stop()


@pytest.fixture
def checkpointed(log: Log) -> Log:
    log.checkpoint(3, add(), protocol(1, 4), metadata()).commit(3, add())
    return log.commit(4, commit_info("SET TBLPROPERTIES", txnId="t4"), protocol(1, 5))


def test_the_same_answer_as_on_disk(store: Store, checkpointed: Log) -> None:
    uri = store.upload(checkpointed, "a/checkpointed")
    remote, local = LogReader(store.options).read(uri), LogReader().read(checkpointed.table)
    assert (remote.version, remote.protocol) == (local.version, local.protocol)
    assert (remote.metadata, remote.location) == (local.metadata, uri)
    older = LogReader(store.options).read(uri, 3)
    assert older.protocol.min_writer_version == 4


def test_a_survey_and_its_times(store: Store, checkpointed: Log) -> None:
    checkpointed.commit(5, metadata({"delta.columnMapping.mode": "name"}))
    checkpointed.commit(6, protocol(2, 5), metadata())
    uri = store.upload(checkpointed, "a/survey")
    remote, local = survey_table(uri, store.options), survey_table(checkpointed.table)
    assert remote.census == local.census
    assert remote.traces.none == local.traces.none
    found = remote.traces.seen["columnMapping"].file
    assert found.version == local.traces.seen["columnMapping"].file.version == 5
    for version, modified in remote.aging.commits.items():
        key = f"a/survey/_delta_log/{version:020d}.json"
        head = store.client.head_object(Bucket=BUCKET, Key=key)
        assert modified == int(head["LastModified"].timestamp() * 1000)


def test_a_checkpoint_beyond_the_simple_reader(store: Store, log: Log) -> None:
    import pyarrow.parquet as pq

    from tests.support.logs import action_table

    rows = (add(), protocol(3, 7, ["deletionVectors"], ["deletionVectors"]), metadata())
    name = log.path(0, ".checkpoint.parquet")
    pq.write_table(action_table(rows), name, compression="zstd")
    log.commit(0, add())
    uri = store.upload(log, "a/zstd")
    assert LogReader(store.options).read(uri).protocol.min_reader_version == 3


def test_delta_rs_takes_the_same_options(store: Store, log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata())
    uri = store.upload(log, "a/plain")
    options = {key: value for key, value in store.options.items() if "LOCKING" not in key}
    assert DeltaRsReader(options).read(uri).version == 0


@pytest.mark.parametrize("prefix", ["a/with space", "a/p%20q", "a/täble"])
def test_keys_are_taken_literally(store: Store, tmp_path: Path, prefix: str) -> None:
    store.upload(Log(tmp_path / "other").commit(0, protocol(1, 2), metadata()), "a/p q")
    log = Log(tmp_path / "odd").commit(0, protocol(1, 3), metadata())
    uri = store.upload(log, prefix)
    assert LogReader(store.options).read(uri).protocol.min_writer_version == 3


def test_what_is_not_there(store: Store) -> None:
    with pytest.raises(TableError) as raised:
        LogReader(store.options).read(f"s3://{BUCKET}/nothing/here")
    assert raised.value.code is ErrorCode.NOT_A_DELTA_TABLE
    with pytest.raises(TableError) as raised:
        LogReader(store.options).read("s3://no-such-bucket/table")
    assert raised.value.code is ErrorCode.NOT_FOUND


def test_an_unknown_scheme(cli: Any) -> None:
    ran = cli("inspect", "gopher://host/table", "--format", "json")
    assert ran.code == 3
    assert ran.table["error"]["code"] == "storage"


def test_the_command_line_reads_it(store: Store, checkpointed: Log, cli: Any) -> None:
    uri = store.upload(checkpointed, "a/cli")
    words = [w for k, v in store.options.items() for w in ("--storage-option", f"{k}={v}")]
    ran = cli("inspect", uri, "--format", "json", *words)
    assert ran.code == 0, ran.err
    assert ran.table["version"] == 4
    assert "testing" not in json.dumps(ran.json)
