"""AWS Glue's client, on a real endpoint (moto)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.core.responses import ActionResult
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_roots import list_tables
from deltaproto.location import locate
from deltaproto.tables.catalogs.glue import GlueCatalog
from deltaproto.tables.catalogs.interface import CatalogFailure, CatalogTable, Tally
from tests.support.retries import FakeClock

pytestmark = [pytest.mark.storage, pytest.mark.rotating]
REGION = "eu-west-1"
SPARK = {"spark.sql.sources.provider": "delta"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    running = ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def glue(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty Data Catalog, and the environment that reaches it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unmistakable-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("glue", region_name=REGION)
    yield client
    for database in client.get_databases()["DatabaseList"]:
        client.delete_database(Name=database["Name"])


def add(
    glue: Any,
    database: str,
    name: str,
    location: str,
    parameters: dict[str, str] | None = None,
    path: str | None = None,
    **fields: Any,
) -> None:
    known = {each["Name"] for each in glue.get_databases()["DatabaseList"]}
    if database not in known:
        glue.create_database(DatabaseInput={"Name": database})
    serde = {"Parameters": {"path": path}} if path else {}
    storage = {"Location": location, "SerdeInfo": serde, "Columns": []}
    entry = {
        "Name": name,
        "Owner": "hadoop",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": SPARK if parameters is None else parameters,
        "StorageDescriptor": storage,
        **fields,
    }
    glue.create_table(DatabaseName=database, TableInput=entry)


def listed(
    name: str = "",
) -> tuple[dict[str, CatalogTable], list[CatalogFailure], GlueCatalog]:
    client = GlueCatalog(REGION, {}, clock=FakeClock().clock())
    found = list(list_tables(client, locate(f"glue://{REGION}/{name}")))
    tables = {each.name: each for each in found if isinstance(each, CatalogTable)}
    return tables, [each for each in found if isinstance(each, CatalogFailure)], client


def test_what_each_engine_writes(glue: Any) -> None:
    add(glue, "sales", "spark", "s3://lake/spark-__PLACEHOLDER__", path="s3://lake/spark")
    add(glue, "sales", "owned", "s3://lake/owned", TableType="MANAGED_TABLE")
    add(glue, "sales", "trino", "s3://lake/trino", {"spark.sql.sources.provider": "DELTA"})
    add(glue, "sales", "athena", "s3://lake/athena", {"table_type": "DELTA"})
    add(glue, "sales", "crawled", "s3://lake/crawled", {"classification": "delta"})
    manifest = "s3://lake/links/_symlink_format_manifest"
    add(glue, "sales", "links", manifest, {"classification": "parquet"})
    add(glue, "sales", "ice", "s3://lake/ice", {"table_type": "ICEBERG"})
    add(glue, "sales", "logs", "s3://lake/logs", {"classification": "parquet"})
    add(glue, "sales", "plain", "s3://lake/plain", {})
    add(glue, "sales", "seen", "", {}, TableType="VIRTUAL_VIEW")
    add(glue, "sales", "lost", "s3://lake/lost-__PLACEHOLDER__")
    add(glue, "hr", "people", "file:/data/a%20b/people")
    tables, failures, client = listed()
    assert {name: each.location for name, each in tables.items()} == {
        "sales.spark": "s3://lake/spark",
        "sales.owned": "s3://lake/owned",
        "sales.trino": "s3://lake/trino",
        "sales.athena": "s3://lake/athena",
        "sales.crawled": "s3://lake/crawled",
        "sales.links": "s3://lake/links",
        # Hadoop's paths are not encoded.
        "hr.people": "/data/a%20b/people",
    }
    assert tables["sales.owned"].type == "managed"
    assert (tables["sales.spark"].type, tables["sales.spark"].owner) == ("external", "hadoop")
    assert [each.place for each in failures] == [f"glue://{REGION}/sales.lost"]
    assert (client.counts[Tally.VIEWS], client.counts[Tally.OTHER_FORMATS]) == (1, 3)
    assert set(listed("hr")[0]) == {"hr.people"}
    assert set(listed("sales.athena")[0]) == {"sales.athena"}
    for name, code in (
        ("sales.seen", ErrorCode.NOT_A_DELTA_TABLE),
        ("sales.ice", ErrorCode.NOT_A_DELTA_TABLE),
        ("sales.nobody", ErrorCode.NOT_FOUND),
        ("nobody", ErrorCode.NOT_FOUND),
        ("a.b.c", ErrorCode.NOT_FOUND),
    ):
        tables, failures, _ = listed(name)
        assert (tables, [each.error.code for each in failures]) == ({}, [code]), name


def test_names_of_any_letters(glue: Any) -> None:
    add(glue, "naïve db", "a.b`c", "s3://lake/odd")
    name = "`naïve db`.`a.b``c`"
    assert set(listed()[0]) == {name}
    assert listed(name)[0][name].location == "s3://lake/odd"
    assert set(listed("`naïve db`")[0]) == {name}


def test_a_resource_link_is_followed(glue: Any) -> None:
    add(glue, "sales", "orders", "s3://lake/orders")
    glue.create_database(DatabaseInput={"Name": "links"})
    for name, target in (("orders", "orders"), ("gone", "nobody")):
        to = {"CatalogId": "123456789012", "DatabaseName": "sales", "Name": target}
        glue.create_table(DatabaseName="links", TableInput={"Name": name, "TargetTable": to})
    tables, failures, _ = listed("links")
    assert {name: each.location for name, each in tables.items()} == {
        "links.orders": "s3://lake/orders"
    }
    assert [each.place for each in failures] == [f"glue://{REGION}/links.gone"]
    assert tables["links.orders"].link
    # A link may also be to a whole database.
    to = {"CatalogId": "123456789012", "DatabaseName": "sales"}
    glue.create_database(DatabaseInput={"Name": "shared", "TargetDatabase": to})
    add(glue, "shared", "orders", "s3://lake/orders")
    assert {name: each.link for name, each in listed()[0].items()} == {
        "links.orders": True,
        "shared.orders": True,
        "sales.orders": False,
    }


def test_pages_arrive_as_they_are_read(glue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    add(glue, "many", "t000", "s3://lake/t000")
    storage = {"Location": "s3://lake/t"}
    for number in range(1, 530):
        entry = {"Name": f"t{number:03}", "Parameters": SPARK, "StorageDescriptor": storage}
        glue.create_table(DatabaseName="many", TableInput=entry)
    whole = GlueResponse.get_tables

    def page(self: Any) -> Any:
        # Glue returns at most 100 tables at a time; moto all of them.
        tables = whole(self).result["TableList"]
        begin = int(self.parameters.get("NextToken") or 0)
        more = {"NextToken": str(begin + 100)} if begin + 100 < len(tables) else {}
        return ActionResult({"TableList": tables[begin : begin + 100], **more})

    monkeypatch.setattr(GlueResponse, "get_tables", page)
    client = GlueCatalog(REGION, {}, clock=FakeClock().clock())
    found = list_tables(client, locate(f"glue://{REGION}/many"))
    next(found)
    # The first page, and the one that is fetched beside it.
    assert client.counts[Tally.REQUESTS] <= 2
    assert 1 + sum(isinstance(each, CatalogTable) for each in found) == 530
    assert client.counts[Tally.REQUESTS] == 6


class Refusing:
    """A botocore client that refuses its first calls."""

    def __init__(self, real: Any, *refusals: Exception) -> None:
        self._real, self._left = real, list(refusals)

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self._real, name)

        def call(**where: Any) -> Any:
            if self._left:
                raise self._left.pop(0)
            return operation(**where)

        return call


def refusal(code: str, message: str = "", status: int = 400, **headers: str) -> Exception:
    from botocore.exceptions import ClientError

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    meta = {"HTTPStatusCode": status, "HTTPHeaders": named}
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": meta}
    return ClientError(answer, "GetTables")


def test_refusals(glue: Any) -> None:
    from botocore.exceptions import EndpointConnectionError, NoCredentialsError

    add(glue, "sales", "orders", "s3://lake/orders")
    throttled = refusal("ThrottlingException", "Rate exceeded", retry_after="9")
    for refusals, code, pauses in (
        ([throttled, refusal("ThrottlingException")], None, 2),
        ([refusal("InternalServiceException", status=500)] * 7, ErrorCode.STORAGE, 6),
        ([refusal("ExpiredTokenException", "of k")], ErrorCode.PERMISSION_DENIED, 0),
        ([refusal("AccessDeniedException", status=400)], ErrorCode.PERMISSION_DENIED, 0),
        ([EndpointConnectionError(endpoint_url="http://x")] * 3, ErrorCode.STORAGE, 2),
        ([NoCredentialsError()], ErrorCode.PERMISSION_DENIED, 0),
    ):
        time = FakeClock()
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "of k"}
        client = GlueCatalog(REGION, keys, clock=time.clock())
        client._client = Refusing(client._client, *refusals)
        (found,) = list_tables(client, locate(f"glue://{REGION}/sales"))
        what = str(refusals[0])
        assert len(time.pauses) == pauses, what
        if code is None:
            assert isinstance(found, CatalogTable)
            assert (client.counts[Tally.THROTTLED], time.pauses[0]) == (2, 9)
        else:
            assert isinstance(found, CatalogFailure), what
            assert found.error.code is code, what
            assert "of k" not in str(found.error), what


def test_the_users_keys_and_profile_are_used(
    glue: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    client = GlueCatalog(REGION, {})
    with pytest.raises(TableError, match="Unable to locate credentials"):
        list(client.schemas(()))
    keys = {"AWS_ACCESS_KEY_ID": "of-options", "AWS_SECRET_ACCESS_KEY": "s"}
    signer = GlueCatalog(REGION, keys)._client._request_signer
    assert signer._credentials.access_key == "of-options"
    (tmp_path / "credentials").write_text(
        "[night]\naws_access_key_id = of-profile\naws_secret_access_key = s\n", encoding="utf-8"
    )
    signer = GlueCatalog(REGION, {"aws_profile": "night"})._client._request_signer
    assert signer._credentials.get_frozen_credentials().access_key == "of-profile"
    with pytest.raises(TableError, match="nobody"):
        GlueCatalog(REGION, {"aws_profile": "nobody"})


def test_the_region_of_the_store(glue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    client = GlueCatalog(REGION, {})
    table = CatalogTable("a.b", "s3://lake/t", "external")
    assert client.storage_options(table) == {"aws_region": REGION}
    assert client.storage_options(table._replace(location="/data")) == {}
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert client.storage_options(table) == {}
