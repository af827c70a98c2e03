"""Unity Catalog's client, against a stand-in server whose responses the official models accept."""

from __future__ import annotations

import base64
import multiprocessing
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.catalog_roots import SCHEMAS, list_tables
from deltaproto.location import locate
from deltaproto.tables.catalogs.interface import CatalogFailure, CatalogTable, Tally
from deltaproto.tables.catalogs.unity import UnityCatalog, delta_api_credentials
from tests.support.retries import FakeClock
from tests.support.unity_server import Reply, UnityServer, refused, unity_server

AWS = {"access_key_id": "ASIATEMPORARY0000000", "secret_access_key": "s/cret", "session_token": "t"}


COMMITS = {"table_id": "id-of-main.s.t", "table_uri": "s3://lake/t", "start_version": "0"}


@pytest.fixture(autouse=True)
def _no_profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("UC_TOKEN", "UC_TOKEN_FILE", "DATABRICKS_TOKEN", "DATABRICKS_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DATABRICKS_CONFIG_PROFILE", raising=False)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "databrickscfg"))


@pytest.fixture
def server() -> Iterator[UnityServer]:
    with unity_server(page=3) as running:
        yield running


def listed(
    server: UnityServer, name: str = "", time: FakeClock | None = None
) -> tuple[list[CatalogTable], list[CatalogFailure], UnityCatalog]:
    client = UnityCatalog(server.authority, clock=(time or FakeClock()).clock())
    found = list(list_tables(client, locate(f"uc://{server.authority}/{name}")))
    tables = sorted(each for each in found if isinstance(each, CatalogTable))
    return tables, [each for each in found if isinstance(each, CatalogFailure)], client


def fill(server: UnityServer) -> None:
    for number in range(7):
        server.add(f"main.sales.t{number}", f"s3://lake/t{number}")
    server.add("main.hr.people", "s3://lake/people")
    server.add("dev.sales.t0", "s3://dev/t0")


@pytest.fixture(scope="module")
def models() -> Any:
    """The official models, whose import takes two seconds."""
    from unitycatalog.client import models

    return models


def test_the_official_models_accept_the_stand_in(server: UnityServer, models: Any) -> None:
    fill(server)
    server.credentials = {"aws_temp_credentials": AWS, "expiration_time": 1_800_000_000_000}
    page = {"max_results": "0"}
    schema = {"catalog_name": "main", "schema_name": "sales"}
    for path, query, model, known in (
        ("catalogs", page, models.ListCatalogsResponse, "catalogs"),
        ("schemas", {**page, **schema}, models.ListSchemasResponse, "schemas"),
        ("tables", {**page, **schema}, models.ListTablesResponse, "tables"),
        ("tables/main.sales.t0", {}, models.TableInfo, "table_id"),
        ("temporary-table-credentials", {}, models.TemporaryCredentials, "aws_temp_credentials"),
    ):
        body = server.reply(path, query, None).body
        read = model.from_dict(body)
        assert getattr(read, known), path
        assert not set(body) - set(model.model_fields), path


def test_every_page_of_every_schema(server: UnityServer) -> None:
    fill(server)
    tables, failures, client = listed(server)
    assert [each.name for each in tables] == [
        "dev.sales.t0",
        "main.hr.people",
        *(f"main.sales.t{number}" for number in range(7)),
    ]
    assert not failures
    expected = CatalogTable(
        "main.hr.people", "s3://lake/people", "external", "delta", "ann@example.com",
        "id-of-main.hr.people",
    )  # fmt: skip
    assert tables[1] == expected
    assert client.counts[Tally.REQUESTS] == sum(server.requests.values())
    assert server.requests["tables"] == 3 + 1 + 1
    assert [each.name for each in listed(server, "main.hr")[0]] == ["main.hr.people"]
    assert [each.name for each in listed(server, "main.hr.people")[0]] == ["main.hr.people"]
    assert len(listed(server, "dev")[0]) == 1


def test_an_empty_page_is_not_the_last_one(server: UnityServer) -> None:
    server.add("main.sales.t", "s3://lake/t")

    def empty(path: str, query: dict[str, str]) -> Reply | None:
        begins = path == "tables" and "page_token" not in query
        return Reply(200, {"tables": [], "next_page_token": "0"}) if begins else None

    server.faults.append(empty)
    assert [each.name for each in listed(server)[0]] == ["main.sales.t"]


def test_what_is_not_a_delta_table_is_counted(server: UnityServer) -> None:
    server.add("main.s.delta", "s3://lake/delta", table_type="MANAGED")
    managed = {"delta.feature.catalogManaged": "supported"}
    server.add("main.s.owned", "s3://lake/owned", table_type="MANAGED", properties=managed)
    server.add("main.s.seen", "", table_type="VIEW", data_source_format=None)
    server.add("main.s.kept", "s3://x", table_type="MATERIALIZED_VIEW")
    server.add("main.s.csv", "s3://x", data_source_format="CSV")
    server.add("main.s.shared", "", data_source_format="DELTASHARING")
    server.add("main.s.hidden", "")
    server.add("main.information_schema.tables", "", data_source_format="CSV")
    tables, failures, client = listed(server)
    assert {each.name: each.type for each in tables} == {
        "main.s.delta": "managed",
        "main.s.owned": "catalog-managed",
    }
    assert [each.place for each in failures] == [f"uc://{server.authority}/main.s.hidden"]
    assert (client.counts[Tally.VIEWS], client.counts[Tally.OTHER_FORMATS]) == (2, 2)
    for name, code in (
        ("seen", ErrorCode.NOT_A_DELTA_TABLE),
        ("csv", ErrorCode.NOT_A_DELTA_TABLE),
        ("hidden", ErrorCode.NOT_FOUND),
        ("nobody", ErrorCode.NOT_FOUND),
    ):
        with pytest.raises(TableError) as refusal:
            client.table(("main", "s", name))
        assert refusal.value.code is code, name


def test_a_limited_rate_is_obeyed_and_counted(server: UnityServer) -> None:
    fill(server)
    left = ["7", "Thu, 01 Jan 1970 12:00:00 GMT", ""]

    def limits(path: str, query: dict[str, str]) -> Reply | None:
        if path != "catalogs" or not left:
            return None
        wait = left.pop(0)
        return refused(429, "slow down", **({"Retry_After": wait} if wait else {}))

    server.faults.append(limits)
    time = FakeClock()
    tables, failures, client = listed(server, time=time)
    assert (len(tables), failures) == (9, [])
    assert client.counts[Tally.THROTTLED] == 3
    # A number of seconds; a date in the past; no demand: the third pause of our own.
    assert time.pauses[0] == 7
    assert 0 < time.pauses[1] <= 0.5
    assert 0.5 <= time.pauses[2] <= 1


def test_a_server_that_never_recovers(server: UnityServer) -> None:
    fill(server)
    server.faults.append(
        lambda path, query: (
            refused(503, "out of order") if query.get("schema_name") == "hr" else None
        )
    )
    time = FakeClock()
    tables, failures, _ = listed(server, time=time)
    assert len(tables) == 8
    assert [each.place for each in failures] == [f"uc://{server.authority}/main.hr"]
    assert "returned HTTP 503: out of order" in failures[0].error.message
    assert len(time.pauses) == 6
    server.faults[:] = [lambda path, query: refused(429, "tomorrow", Retry_After="86400")]
    time = FakeClock()
    tables, failures, _ = listed(server, time=time)
    # A pause of a day is not waited for.
    assert (tables, len(failures), time.pauses) == ([], 1, [])


def test_one_row_for_what_may_not_be_listed(server: UnityServer) -> None:
    fill(server)
    server.faults.append(
        lambda path, query: (
            refused(403, "User does not have USE SCHEMA")
            if query.get("schema_name") == "hr" or query.get("catalog_name") == "dev"
            else None
        )
    )
    tables, failures, _ = listed(server)
    assert len(tables) == 7
    assert sorted((each.place, each.error.code) for each in failures) == [
        (f"uc://{server.authority}/dev", ErrorCode.PERMISSION_DENIED),
        (f"uc://{server.authority}/main.hr", ErrorCode.PERMISSION_DENIED),
    ]


def test_a_token_that_expires(
    server: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server)
    file = tmp_path / "token"
    file.write_text("first-token\n", encoding="utf-8")
    monkeypatch.setenv("UC_TOKEN_FILE", str(file))
    server.tokens = {"first-token"}

    def expires(path: str, query: dict[str, str]) -> Reply | None:
        if query.get("page_token") == "3":
            server.tokens = {"second-token"}
        return None

    server.faults.append(expires)
    tables, failures, _ = listed(server, "main.sales")
    # The pages before it are kept, and one row says that the rest is missing.
    assert len(tables) == 3
    assert [each.place for each in failures] == [f"uc://{server.authority}/main.sales"]
    assert failures[0].error.code is ErrorCode.PERMISSION_DENIED
    assert "first-token" not in f"{failures[0].error}"
    server.tokens = {"first-token"}
    server.faults.append(lambda *_: file.write_text("second-token\n", encoding="utf-8") and None)
    tables, failures, _ = listed(server, "main.sales")
    assert (len(tables), failures) == (7, [])


def test_a_token_that_another_thread_has_read_again(
    server: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add("main.hr.people", "s3://lake/people")
    server.add("main.sales.t0", "s3://lake/t0")
    file = tmp_path / "token"
    file.write_text("first-token", encoding="utf-8")
    monkeypatch.setenv("UC_TOKEN_FILE", str(file))
    server.tokens = {"first-token"}
    renewed = threading.Event()

    def renew() -> None:
        file.write_text("second-token", encoding="utf-8")
        server.tokens = {"second-token"}

    both = threading.Barrier(2, renew)

    def expires(path: str, query: dict[str, str]) -> Reply | None:
        schema = query.get("schema_name")
        if "second-token" in server.sent_tokens:
            renewed.set()
        elif schema is not None:
            both.wait()
            # The token of this request is refused when the other thread has a new one.
            if schema == "sales":
                renewed.wait()
            return refused(401, "expired")
        return None

    server.faults.append(expires)
    tables, failures, _ = listed(server)
    assert ([each.name for each in tables], failures) == (["main.hr.people", "main.sales.t0"], [])


def test_where_the_token_is_read(
    server: UnityServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(server)
    profiles = tmp_path / "databrickscfg"
    profiles.write_text(
        "[DEFAULT]\nhost = https://elsewhere.example.com\ntoken = of-another\n"
        f"[here]\nhost = http://{server.authority}/\ntoken = of-profile\n",
        encoding="utf-8",
    )
    listed(server)
    assert server.sent_tokens == {"of-profile"}
    server.sent_tokens.clear()
    monkeypatch.setenv("DATABRICKS_TOKEN", "of-databricks")
    monkeypatch.setenv("DATABRICKS_HOST", "https://elsewhere.example.com")
    listed(server)
    assert server.sent_tokens == {"of-profile"}
    monkeypatch.setenv("DATABRICKS_HOST", f"http://{server.authority}")
    server.sent_tokens.clear()
    listed(server)
    assert server.sent_tokens == {"of-databricks"}
    monkeypatch.setenv("UC_TOKEN", "of-uc")
    server.sent_tokens.clear()
    listed(server)
    assert server.sent_tokens == {"of-uc"}
    monkeypatch.delenv("UC_TOKEN")
    monkeypatch.delenv("DATABRICKS_TOKEN")
    monkeypatch.setenv("DATABRICKS_CONFIG_PROFILE", "DEFAULT")
    with pytest.raises(TableError, match="is not for 127"):
        listed(server)
    profiles.write_text("[broken\ntoken = secret-in-it\n", encoding="utf-8")
    with pytest.raises(TableError) as refusal:
        listed(server)
    assert "secret-in-it" not in str(refusal.value)
    monkeypatch.setenv("UC_TOKEN", "two\nlines")
    with pytest.raises(TableError, match="UC_TOKEN does not contain a token"):
        listed(server)


def test_a_redirect_is_not_followed(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UC_TOKEN", "unmistakable")
    with unity_server() as elsewhere:
        away = {"Location": f"http://{elsewhere.authority}/api/2.1/unity-catalog/catalogs"}
        server.faults.append(lambda *_: Reply(302, {}, away))
        tables, failures, _ = listed(server)
        assert (tables, len(failures)) == ([], 1)
        assert not elsewhere.requests


def test_a_server_that_is_something_else(server: UnityServer) -> None:
    for catalogs in ("none", [1], [{}], [{"name": None}], [{"name": 5}], [{"name": "\ud800"}]):
        server.faults[:] = [lambda *_, found=catalogs: Reply(200, {"catalogs": found})]
        _, failures, _ = listed(server)
        assert "does not respond like Unity Catalog" in failures[0].error.message, catalogs
    server.faults[:] = [lambda *_: Reply(200, {"catalogs": [], "next_page_token": "again"})]
    assert "the same page token twice" in listed(server)[1][0].error.message
    authority = server.authority
    server.close()
    time = FakeClock()
    client = UnityCatalog(authority, clock=time.clock())
    (failure,) = list_tables(client, locate(f"uc://{authority}"))
    assert isinstance(failure, CatalogFailure)
    assert "does not answer: Connection refused" in failure.error.message
    assert len(time.pauses) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"catalog_name": None},
        {"schema_name": 5},
        {"properties": [1]},
        {"columns": 5},
        {"columns": ["id"]},
        {"storage_location": {"s3": "lake"}},
        {"table_id": [1]},
    ],
)
def test_an_entry_of_invalid_types_is_an_error_of_its_schema(
    server: UnityServer, fields: dict[str, Any]
) -> None:
    server.add("main.good.t", "s3://lake/good")
    server.add("main.s.t", "s3://lake/t", **fields)
    tables, failures, client = listed(server)
    assert [each.name for each in tables] == ["main.good.t"]
    assert [each.place for each in failures] == [f"uc://{server.authority}/main.s"]
    server.faults.append(lambda path, _: Reply(200, fields) if path.startswith("tables/") else None)
    with pytest.raises(TableError, match="does not respond like Unity Catalog"):
        client.table(("main", "s", "t"))


def test_temporary_credentials(server: UnityServer) -> None:
    server.add("main.s.t", "s3://lake/t")
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    table = client.table(("main", "s", "t"))
    assert client.storage_options(table) == {}
    assert client.counts[Tally.OWN_CREDENTIALS] == 1
    server.credentials = {"aws_temp_credentials": AWS}
    assert client.storage_options(table) == {
        "aws_access_key_id": AWS["access_key_id"],
        "aws_secret_access_key": AWS["secret_access_key"],
        "aws_session_token": AWS["session_token"],
    }
    server.credentials = {"aws_temp_credentials": ["key"]}
    assert client.storage_options(table) == {}
    server.credentials = {"azure_user_delegation_sas": {"sas_token": "sig=x"}}
    assert client.storage_options(table) == {"azure_storage_sas_token": "sig=x"}
    own = UnityCatalog(server.authority, vends=False)
    asked = server.requests["temporary-table-credentials"]
    assert own.storage_options(table) == {}
    assert server.requests["temporary-table-credentials"] == asked


def test_commits_that_the_catalog_tracks(server: UnityServer, models: Any) -> None:
    server.add("main.s.t", "s3://lake/t")
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    table = client.table(("main", "s", "t"))
    # A server without this API reveals nothing.
    assert set(client.commits(table).values()) == {-1}
    times = {version: 1000 + version for version in range(3, 11)}
    for tracked, expected, asked in (
        ((-1, {}), {0: -1}, 1),
        ((7, {}), {7: -1}, 1),
        ((10, times), times, 3),
        ((12, times), {**times, 12: -1}, 4),
    ):
        server.commits["id-of-main.s.t"] = tracked
        before = server.requests["delta"]
        assert client.commits(table) == expected, tracked
        assert server.requests["delta"] - before == asked, tracked
    body = server.reply("delta/preview/commits", COMMITS, None).body
    assert models.DeltaGetCommitsResponse.from_dict(body).latest_table_version == 12
    assert not set(body) - set(models.DeltaGetCommitsResponse.model_fields)
    server.faults.append(lambda *_: Reply(200, {"commits": [{"version": 1}]}))
    with pytest.raises(TableError, match="commits without versions"):
        client.commits(table)


_SERVER_RESPONSES = {
    "table": {
        "metadata": {"table-type": "MANAGED", "location": "s3://lake/t"},
        "commits": [
            {
                "version": 2,
                "timestamp": 1700000002000,
                "file-name": "00000000000000000002.42a929af-9007-4ed8-ab11-e41bc5ef4d3e.json",
                "file-size": 192,
                "file-modification-timestamp": 1700000002000,
            },
            {
                "version": 1,
                "timestamp": 1700000001000,
                "file-name": "00000000000000000001.b327ea50-8fd4-48c6-865b-57ba3a8bacf0.json",
                "file-size": 192,
                "file-modification-timestamp": 1700000001000,
            },
        ],
        "latest-table-version": 2,
    },
    "credentials": {
        "storage-credentials": [
            {
                "prefix": "s3://lake/t",
                "operation": "READ",
                "config": {
                    "s3.access-key-id": "AK",
                    "s3.secret-access-key": "SK",
                    "s3.session-token": "TOK",
                },
                "expiration-time-ms": None,
            }
        ]
    },
}
"""what Unity Catalog 0.7.0-SNAPSHOT (c9ed6b142) returned, without most of the metadata"""
_DELTA_API = "delta/v1/catalogs/main/schemas/s/tables/t"


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    return [_shape(each) for each in value] if isinstance(value, list) else type(value)


def test_the_stand_in_responds_like_the_delta_api(server: UnityServer) -> None:
    server.delta_api_only = True
    server.credentials = {"aws_temp_credentials": AWS}
    server.add("main.s.t", "s3://lake/t", table_type="MANAGED")
    server.commits["id-of-main.s.t"] = (2, {1: 1_700_000_001_000, 2: 1_700_000_002_000})
    table = server.reply(_DELTA_API, {}, None).body
    assert _shape(table) == _shape(_SERVER_RESPONSES["table"])
    assert [each["version"] for each in table["commits"]] == [2, 1]
    credentials = server.reply(f"{_DELTA_API}/credentials", {"operation": "READ"}, None).body
    assert _shape(credentials) == _shape(_SERVER_RESPONSES["credentials"])


def test_managed_tables_of_a_server_with_only_the_delta_api(server: UnityServer) -> None:
    server.delta_api_only = True
    server.credentials = {"aws_temp_credentials": AWS}
    server.add("main.s.t", "s3://lake/t", table_type="MANAGED")
    server.add("main.s.external", "s3://lake/e")
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    table = client.table(("main", "s", "t"))
    options = {
        "aws_access_key_id": AWS["access_key_id"],
        "aws_secret_access_key": AWS["secret_access_key"],
        "aws_session_token": AWS["session_token"],
    }
    server.commits["id-of-main.s.t"] = (2, {1: 1001, 2: 1002})
    assert client.commits(table) == {1: 1001, 2: 1002}
    assert client.storage_options(table) == options
    asked = Counter(server.requests)
    server.commits["id-of-main.s.t"] = (9, {})
    assert client.commits(table) == {9: -1}
    assert client.storage_options(table) == options
    # What the server refused once is not requested again.
    assert dict(server.requests - asked) == {"delta": 2}
    assert client.storage_options(client.table(("main", "s", "external"))) == options
    gone = table._replace(name="main.s.gone")
    assert set(client.commits(gone).values()) == {-1}
    assert client.storage_options(gone) == {}
    server.faults.append(lambda path, _: Reply(200, {"metadata": {}}) if "v1" in path else None)
    with pytest.raises(TableError, match="commits without versions"):
        client.commits(table)


@pytest.mark.parametrize(
    ("prefixes", "chosen"),
    [
        (["s3://lake/t"], 0),
        (["s3://lake", "s3://lake/t/", "s3://lake/t/sub"], 1),
        (["s3://lake/tables", "s3://lake/"], 1),
        (["s3://other", "s3://lake/t1"], None),
        ([], None),
    ],
)
def test_the_longest_matching_prefix_has_the_credentials(
    prefixes: list[str], chosen: int | None
) -> None:
    given = [
        {"prefix": prefix, "config": {"azure.sas-token": f"sig={number}", "s3.session-token": None}}
        for number, prefix in enumerate(prefixes)
    ]
    expected = {} if chosen is None else {"azure_storage_sas_token": f"sig={chosen}"}
    assert delta_api_credentials({"storage-credentials": given}, "s3://lake/t") == expected


def test_a_table_whose_credentials_are_refused_has_none(server: UnityServer) -> None:
    server.add("main.s.t", "s3://lake/t", table_type="MANAGED")
    server.faults.append(
        lambda path, _: refused(403, "no SELECT") if path.startswith("temporary") else None
    )
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    assert client.storage_options(client.table(("main", "s", "t"))) == {}
    assert server.requests["delta"] == 0


def test_names_that_are_none() -> None:
    client = UnityCatalog("localhost:1")
    for name in ("a..b", "a.b.c.d", "a.`b"):
        (failure,) = list_tables(client, locate(f"uc://localhost:1/{name}"))
        assert isinstance(failure, CatalogFailure)
        assert failure.error.code is ErrorCode.NOT_FOUND, name
    assert client.counts[Tally.REQUESTS] == 0


def test_a_table_on_disk_needs_no_credentials(server: UnityServer) -> None:
    server.add("main.s.t", "file:///data/t")
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    assert client.storage_options(client.table(("main", "s", "t"))) == {}
    assert server.requests["temporary-table-credentials"] == 0
    assert client.counts[Tally.OWN_CREDENTIALS] == 0


def test_requests_share_connections(server: UnityServer) -> None:
    fill(server)
    for _ in range(3):
        listed(server)
    requests = sum(server.requests.values())
    assert requests > 15
    assert len(server.connected) <= SCHEMAS + 1


def test_a_forked_process_opens_connections_of_its_own(server: UnityServer) -> None:
    fill(server)
    client = UnityCatalog(server.authority, clock=FakeClock().clock())
    client.table(("main", "sales", "t0"))
    before = len(server.connected)
    child = multiprocessing.get_context("fork").Process(
        target=client.table, args=(("main", "sales", "t1"),)
    )
    child.start()
    child.join()
    assert child.exitcode == 0
    assert len(server.connected) == before + 1
    assert client.table(("main", "sales", "t2")).location == "s3://lake/t2"
    assert len(server.connected) == before + 1


def test_a_proxy_of_the_environment(server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add("main.s.t", "s3://lake/t")
    sent: list[str | None] = []
    server.on_headers = lambda headers: sent.append(headers.get("Proxy-Authorization"))
    # Nothing listens at the port of the catalog itself.
    monkeypatch.setenv("http_proxy", f"http://ann:p%40ss@{server.authority}")
    monkeypatch.setenv("no_proxy", "")
    client = UnityCatalog("localhost:1", clock=FakeClock().clock())
    assert client.table(("main", "s", "t")).location == "s3://lake/t"
    assert sent == [f"Basic {base64.b64encode(b'ann:p@ss').decode()}"]
    monkeypatch.setenv("no_proxy", "localhost")
    with pytest.raises(TableError, match="localhost:1 does not answer: Connection refused"):
        client.table(("main", "s", "t"))
