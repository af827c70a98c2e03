"""Access logs: their formats, hostile lines, and the tables of their requests."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import boto3
import deltalake
import pyarrow.fs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.fleet.seen.collect import Discovery, Source
from deltaproto.fleet.seen.log_files import (
    LogFile,
    find_files,
    has_plain_lines,
    read_requests,
)
from deltaproto.fleet.seen.log_formats import LogFormat, Place, Request, RequestKind, Store
from deltaproto.fleet.seen.log_records import parse_time
from deltaproto.fleet.seen.read_traces import ReadTraces
from deltaproto.fleet.seen.requests import LogCounts, add_access_log
from deltaproto.fleet.seen.table_matcher import TableMatcher
from deltaproto.fleet.seen.uses import SeenUses
from deltaproto.render.discover import notices
from tests.conftest import Ran
from tests.support.contract import documents

Cli = Callable[..., Ran]
SECRET = "s3cr3tSignature0123456789"
OWNER = "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be"
TAIL = (
    "s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 "
    "ECDHE-RSA-AES128-GCM-SHA256 AuthHeader lake.s3.us-east-1.amazonaws.com TLSv1.2 - -"
)


def s3_line(
    key: str = "gold/orders/part-0.parquet",
    agent: str = '"object_store/0.12.5"',
    *,
    operation: str = "REST.GET.OBJECT",
    requester: str = "arn:aws:iam::123456789012:user/ada",
    ip: str = "192.0.2.3",
    uri: str | None = None,
    status: str = "200",
    referrer: str = '"-"',
    bucket: str = "lake",
    tail: str = f" - {TAIL}",
) -> str:
    """A line by the documented grammar."""
    asked = f'"GET /{key}?x=1 HTTP/1.1"' if uri is None else uri
    return (
        f"{OWNER} {bucket} [24/Nov/2025:17:00:38 +0000] {ip} {requester} 3E57427F3EXAMPLE "
        f"{operation} {key} {asked} {status} - 2662992 3462992 70 10 {referrer} {agent}{tail}"
    )


def read(data: bytes, tmp_path: Path) -> list[tuple[LogFormat, Request] | None]:
    path = tmp_path / "log"
    path.write_bytes(data)
    (file,) = find_files(str(path), {})
    return list(read_requests(file))


def one(line: str, tmp_path: Path) -> Request:
    (found,) = read(line.encode(), tmp_path)
    assert found is not None, line
    return found[1]


ORDERS = Place(Store.S3, "lake", "gold/orders/part-0.parquet")
NOVEMBER = 1_764_003_638_000


def test_the_documented_line_of_s3(tmp_path: Path) -> None:
    assert read(s3_line().encode(), tmp_path) == [
        (
            LogFormat.S3,
            Request(
                ORDERS,
                NOVEMBER,
                RequestKind.READ,
                True,
                "object_store/0.12.5",
                "arn:aws:iam::123456789012:user/ada",
                "192.0.2.3",
            ),
        )
    ]


LONG = "A" * 10_000
AGENTS = [
    'say "hello" to "us"',
    '" 200 - 1 1 1 1 "-" "duckdb/v1.4.1(linux_amd64) cli',
    "back\\slash \\x22 \\u0022 %22",
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "tab\there",
    "\x1b[2J\x00",
    LONG,
    "größe \u202e",
    "-",
    "",
]


def test_hostile_user_agents_change_no_other_field(tmp_path: Path) -> None:
    for agent in AGENTS:
        for tail in (" -", f" - {TAIL}", f" v1 {TAIL} us-west-2", ""):
            found = one(s3_line(agent=f'"{agent}"', tail=tail), tmp_path)
            assert found.agent == (None if agent == "-" else agent)
            assert found._replace(agent="") == one(s3_line(agent='""'), tmp_path)


def test_a_line_break_in_a_user_agent_is_two_damaged_lines(tmp_path: Path) -> None:
    text = s3_line(agent='"a\nb"') + "\n" + s3_line()
    assert [each is None for each in read(text.encode(), tmp_path)] == [True, True, False]


def test_other_fields_of_s3(tmp_path: Path) -> None:
    session = "arn:aws:sts::123456789012:assumed-role/etl/i-0abc/x"
    assert one(s3_line(requester=session), tmp_path).user == (
        "arn:aws:sts::123456789012:assumed-role/etl"
    )
    assert one(s3_line(ip="2001:db8::8a2e:370:7334"), tmp_path).address == "2001:db8::8a2e:370:7334"
    assert one(s3_line(referrer='"http://x/?a="b" c"'), tmp_path).agent == "object_store/0.12.5"
    assert not one(s3_line(status="403"), tmp_path).ok
    assert one(s3_line(status="206"), tmp_path).ok
    kinds = {
        "REST.GET.OBJECT": RequestKind.READ,
        "REST.HEAD.OBJECT": RequestKind.OTHER,
        "REST.PUT.OBJECT": RequestKind.WRITE,
        "REST.PUT.PART": RequestKind.WRITE,
        "REST.COPY.OBJECT": RequestKind.WRITE,
        "REST.DELETE.OBJECT": RequestKind.DELETE,
        "BATCH.DELETE.OBJECT": RequestKind.DELETE,
        "S3.EXPIRE.OBJECT": RequestKind.OTHER,
        "WEBSITE.GET.OBJECT": RequestKind.READ,
        "REST.GET.ACL": RequestKind.OTHER,
        "-": RequestKind.OTHER,
    }
    assert {name: one(s3_line(operation=name), tmp_path).kind for name in kinds} == kinds
    asked = '"GET /?list-type=2&prefix=gold%2Forders%2F_delta_log%2F HTTP/1.1"'
    listing = one(s3_line("-", operation="REST.GET.BUCKET", uri=asked), tmp_path)
    assert listing.kind is RequestKind.LIST
    assert listing.place == Place(Store.S3, "lake", "gold/orders/_delta_log/")


def test_any_field_can_be_a_hyphen(tmp_path: Path) -> None:
    fields = s3_line(tail=" -").split(" ")
    assert len(fields) == 21
    # The time, the URI and the protocol in it take more than one part.
    joined = [
        *fields[:2],
        " ".join(fields[2:4]),
        *fields[4:9],
        " ".join(fields[9:12]),
        *fields[12:],
    ]
    for position in range(len(joined)):
        changed = [*joined[:position], "-", *joined[position + 1 :]]
        assert len(read(" ".join(changed).encode(), tmp_path)) == 1
        assert one(" ".join(changed), tmp_path) is not None, position
    nothing = one(" ".join("-" for _ in joined), tmp_path)
    assert nothing == Request(None, None, RequestKind.OTHER, False, None, None, None)


def cloudtrail(name: str = "GetObject", **fields: Any) -> dict[str, Any]:
    return {
        "eventVersion": "1.11",
        "userIdentity": {
            "type": "AssumedRole",
            "arn": "arn:aws:sts::123456789012:assumed-role/etl/session",
            "principalId": "AROA:session",
        },
        "eventTime": "2025-11-24T17:00:38Z",
        "eventSource": "s3.amazonaws.com",
        "eventName": name,
        "sourceIPAddress": "192.0.2.3",
        "userAgent": "[object_store/0.12.5]",
        "requestParameters": {"bucketName": "lake", "key": ORDERS.key, "Host": "x"},
        "readOnly": True,
        **fields,
    }


def test_cloudtrail_in_each_form(tmp_path: Path) -> None:
    other = {"eventSource": "sts.amazonaws.com", "eventName": "AssumeRole", "userAgent": "x"}
    records = [cloudtrail(), other, cloudtrail(errorCode="AccessDenied")]
    whole = {"Records": records}
    forms = (
        json.dumps(whole).encode(),
        json.dumps(whole, indent=2).encode(),
        gzip.compress(json.dumps(whole).encode()),
        "\n".join(map(json.dumps, records)).encode(),
        json.dumps(records).encode(),
        b"\xef\xbb\xbf" + json.dumps(whole).encode(),
    )
    wanted = Request(
        ORDERS,
        NOVEMBER,
        RequestKind.READ,
        True,
        "object_store/0.12.5",
        "arn:aws:sts::123456789012:assumed-role/etl",
        "192.0.2.3",
    )
    for data in forms:
        first, second, third = read(data, tmp_path)
        assert first == (LogFormat.CLOUDTRAIL, wanted)
        assert second is not None
        assert (second[1].place, second[1].kind) == (None, RequestKind.OTHER)
        assert third is not None
        assert third[1] == wanted._replace(ok=False)
    listing = cloudtrail(
        "ListObjects", requestParameters={"bucketName": "lake", "prefix": "gold/orders/"}
    )
    assert one(json.dumps(listing), tmp_path).place == Place(Store.S3, "lake", "gold/orders/")


def test_callers_of_another_account_are_one_role_each(tmp_path: Path) -> None:
    # "CloudTrail userIdentity element": an AWSAccount has neither an ARN nor a name.
    callers = {
        "AROAIDPPEZS35WEXAMPLE:i-0driver": "AROAIDPPEZS35WEXAMPLE",
        "AROAIDPPEZS35WEXAMPLE:i-0executor": "AROAIDPPEZS35WEXAMPLE",
        "AIDAJ45Q7YFFAREXAMPLE": "AIDAJ45Q7YFFAREXAMPLE",
        "123456789012:ada": "123456789012:ada",
    }
    for caller, user in callers.items():
        identity = {"type": "AWSAccount", "principalId": caller, "accountId": "123456789012"}
        assert one(json.dumps(cloudtrail(userIdentity=identity)), tmp_path).user == user


def test_digests_of_cloudtrail_have_no_requests(tmp_path: Path) -> None:
    digest = {"awsAccountId": "1", "digestS3Object": "k", "logFiles": [{"s3Object": "k"}]}
    assert read(json.dumps(digest).encode(), tmp_path) == []
    assert read(gzip.compress(json.dumps(digest, indent=1).encode()), tmp_path) == []


SAS = f"https://acme.blob.core.windows.net:443/lake/gold/orders/part-0.parquet?sv=2023&sig={SECRET}"
AZURE = {
    "TimeGenerated": "2025-11-24T17:00:38.1234567Z",
    "AccountName": "acme",
    "OperationName": "GetBlob",
    "StatusCode": "206",
    "StatusText": "Success",
    "CallerIpAddress": "192.0.2.3:50123",
    "Uri": SAS,
    "ObjectKey": "/acme/lake/gold/orders/part-0.parquet",
    "UserAgentHeader": "APN/1.0 Azure Blob FS/3.4.0 (JavaJRE 17; Linux; nightly/job) MSFT",
    "RequesterObjectId": "11111111-2222-3333-4444-555555555555",
    "RequesterAppId": "",
    "RequesterUpn": "ada@example.com",
}
AZURE_PLACE = Place(Store.AZURE, "acme/lake", "gold/orders/part-0.parquet")


def test_azure_in_each_form(tmp_path: Path) -> None:
    diagnostic = {
        "time": AZURE["TimeGenerated"],
        "category": "StorageRead",
        "operationName": "GetBlob",
        "statusCode": 206,
        "statusText": "Success",
        "callerIpAddress": "192.0.2.3:50123",
        "uri": SAS,
        "identity": {"type": "OAuth", "requester": {"upn": "ada@example.com", "appId": "x"}},
        "properties": {
            "accountName": "acme",
            "userAgentHeader": AZURE["UserAgentHeader"],
            "objectKey": AZURE["ObjectKey"],
        },
    }
    query = {
        "tables": [{"columns": [{"name": name} for name in AZURE], "rows": [[*AZURE.values()]]}]
    }
    sheet = io.StringIO()
    names = ["TimeGenerated [UTC]", *list(AZURE)[1:]]
    csv.writer(sheet).writerows([names, ["11/24/2025, 5:00:38.123 PM", *list(AZURE.values())[1:]]])
    forms = (
        json.dumps(AZURE),
        json.dumps([AZURE], indent=1),
        json.dumps(diagnostic),
        json.dumps({"records": [diagnostic]}),
        json.dumps(query),
        sheet.getvalue(),
        "\ufeff" + sheet.getvalue(),
    )
    for text in forms:
        (found,) = read(text.encode(), tmp_path)
        assert found is not None
        assert found[0] is LogFormat.AZURE
        assert found[1] == Request(
            AZURE_PLACE,
            NOVEMBER + 123,
            RequestKind.READ,
            True,
            AZURE["UserAgentHeader"],
            "ada@example.com",
            "192.0.2.3",
        ), text


def test_places_and_callers_of_azure(tmp_path: Path) -> None:
    def azure(**fields: str) -> Request:
        return one(json.dumps({**AZURE, **fields}), tmp_path)

    assert azure(ObjectKey="").place == AZURE_PLACE
    listed = "https://acme.dfs.core.windows.net/lake?directory=gold/orders/_delta_log&sig=x"
    assert azure(OperationName="ListFilesystemDir", Uri=listed).place == Place(
        Store.AZURE, "acme/lake", "gold/orders/_delta_log"
    )
    assert azure(Uri="https://[broken", ObjectKey="").place is None
    assert azure(CallerIpAddress="[2001:db8::1]:443").address == "2001:db8::1"
    assert azure(CallerIpAddress="2001:db8::1").address == "2001:db8::1"
    assert azure(RequesterUpn="", RequesterObjectId="").user is None
    assert not azure(StatusCode="403", StatusText="AuthorizationFailure").ok
    nothing = azure(**dict.fromkeys(AZURE, "-"))
    assert nothing == Request(None, None, RequestKind.OTHER, False, None, None, None)


def google(**fields: Any) -> dict[str, Any]:
    return {
        "insertId": "x",
        "timestamp": "2025-11-24T17:00:38.123456789Z",
        "resource": {"type": "gcs_bucket", "labels": {"bucket_name": "lake"}},
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "status": {},
            "authenticationInfo": {"principalEmail": "etl@example.com"},
            "requestMetadata": {
                "callerIp": "192.0.2.3",
                "callerSuppliedUserAgent": "object_store/0.12.5,gzip(gfe)",
            },
            "serviceName": "storage.googleapis.com",
            "methodName": "storage.objects.get",
            "resourceName": "projects/_/buckets/lake/objects/gold/orders/part-0.parquet",
            **fields,
        },
    }


def test_times_in_the_forms_that_vendors_write() -> None:
    for text in (
        "2025-11-24 17:00:38 UTC",
        "2025-11-24 17:00:38.000 UTC",
        "2025-11-24T17:00:38.000000000Z",
        "2025-11-24T17:00:38+0000",
        "2025-11-24 18:00:38 +0100",
        "11/24/2025, 5:00:38.000 PM",
        "24/11/2025, 17:00:38.000",
        "24/11/2025, 17:00:38",
        "1764003638",
        "1764003638000",
        1764003638,
        1764003638.0,
        1764003638000,
        1764003638000000,
        1764003638000000000,
    ):
        assert parse_time(text) == NOVEMBER, text
    for text in ("yesterday", "24.11.2025 17:00", "", None, True, float("nan"), [1], "9" * 5000):
        parse_time(text)
    assert parse_time("yesterday") is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_files_of_powershell_are_read(tmp_path: Path, encoding: str) -> None:
    sheet = io.StringIO()
    csv.writer(sheet).writerows([[*AZURE], *[[*AZURE.values()]] * 400])
    for text, rows in ((sheet.getvalue(), 400), (json.dumps(AZURE) + "\r\n", 1), ("", 0)):
        data = ("" if encoding == "utf-16" else "\ufeff") + text
        for packed in (data.encode(encoding), gzip.compress(data.encode(encoding))):
            found = read(packed, tmp_path)
            assert [each and each[0] for each in found] == [LogFormat.AZURE] * rows
        (tmp_path / "log").write_bytes(data.encode(encoding))
        (file,) = find_files(str(tmp_path / "log"), {})
        assert not has_plain_lines(file)


def test_google_audit_logs(tmp_path: Path) -> None:
    (found,) = read(json.dumps([google()], indent=2).encode(), tmp_path)
    assert found == (
        LogFormat.GCS,
        Request(
            Place(Store.GCS, "lake", "gold/orders/part-0.parquet"),
            NOVEMBER + 123,
            RequestKind.READ,
            True,
            "object_store/0.12.5",
            "etl@example.com",
            "192.0.2.3",
        ),
    )
    assert not one(json.dumps(google(status={"code": 7})), tmp_path).ok
    created = one(json.dumps(google(methodName="storage.objects.create")), tmp_path)
    assert created.kind is RequestKind.WRITE
    bucket = one(json.dumps(google(resourceName="projects/_/buckets/lake")), tmp_path)
    assert bucket.place is None


def matcher(**locations: str) -> TableMatcher:
    found = TableMatcher({"azure_storage_account_name": "acme"})
    for table, uri in locations.items():
        found.add(table, uri)
    return found


def test_requests_are_matched_by_location() -> None:
    tables = matcher(
        orders="s3a://lake/gold/orders/",
        inner="s3://lake/gold/orders/inner",
        spaced="s3://lake/gold/a b",
        percent="s3://lake/gold/a%20b",
        whole="gs://bucket",
        azure="abfss://lake@acme.dfs.core.windows.net/gold/orders",
        short="az://other/gold/orders",
        blob="https://acme.blob.core.windows.net/third/orders",
        local="file:///lake/gold/orders",
    )
    rows = [
        (Place(Store.S3, "lake", "gold/orders/a.parquet"), ("orders", "a.parquet")),
        (Place(Store.S3, "lake", "gold/orders/d%3D1/a"), ("orders", "d%3D1/a")),
        (Place(Store.S3, "lake", "gold/orders/inner/a"), ("inner", "a")),
        (Place(Store.S3, "lake", "gold/orders/_delta_log/"), ("orders", "_delta_log/")),
        (Place(Store.S3, "lake", "gold/orders"), None),
        (Place(Store.S3, "lake", "gold/orders2/a"), None),
        (Place(Store.S3, "lake", "gold/a%20b/x"), ("percent", "x")),
        (Place(Store.S3, "lake", "gold/a%2520b/x"), ("percent", "x")),
        (Place(Store.S3, "lake", "gold/a b/x"), ("spaced", "x")),
        (Place(Store.S3, "LAKE", "gold/orders/a"), None),
        (Place(Store.GCS, "bucket", "a/b"), ("whole", "a/b")),
        (Place(Store.S3, "bucket", "a/b"), None),
        (Place(Store.AZURE, "acme/lake", "gold/orders/a"), ("azure", "a")),
        (Place(Store.AZURE, "else/lake", "gold/orders/a"), None),
        (Place(Store.AZURE, "acme/other", "gold/orders/a"), ("short", "a")),
        (Place(Store.AZURE, "acme/third", "orders/a"), ("blob", "a")),
    ]
    wrong = [(place, found) for place, wanted in rows if (found := tables.find(place)) != wanted]
    assert wrong == []
    # Without a storage option the account of az:// is not known.
    unnamed = TableMatcher({})
    unnamed.add("t", "az://other/gold/orders")
    assert unnamed.find(Place(Store.AZURE, "any/other", "gold/orders/a")) == ("t", "a")
    assert unnamed.find(Place(Store.AZURE, "any/else", "gold/orders/a")) is None


def counted(path: Path, uses: SeenUses | None = None) -> LogCounts:
    tables = matcher(orders="s3://lake/gold/orders")
    seen = SeenUses() if uses is None else uses
    return add_access_log(str(path), {}, tables, seen, ReadTraces(), None)


def test_damaged_and_foreign_lines_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "1").write_text(
        "\n".join(
            [
                "half a line " + s3_line()[30:],
                s3_line(),
                s3_line("silver/x"),
                "",
                '{"eventSource": "s3.amazonaws.com", "eventNa',
                json.dumps(cloudtrail()),
                '127.0.0.1 - - [24/Nov/2025:17:00:38 +0000] "GET / HTTP/1.1" 200 5',
                "[1, 2]",
                "null",
                s3_line(status="403"),
                s3_line().replace("24/Nov", "99/Nov"),
                "\x00\xff",
            ]
        ),
        encoding="latin-1",
    )
    (folder / "2").write_text('{"first": \n' + s3_line() + "\n" + "x\n")
    (folder / "3").write_bytes(b"")
    (folder / "4.gz").write_bytes(gzip.compress(s3_line().encode() * 3 + b"\n")[:-20])
    uses = SeenUses()
    found = counted(folder, uses)
    assert found.format == "s3-server-access-log"
    # Of the first file, 12 records; of the second, 3.
    assert (found.lines, found.matched, found.unparsed) == (15, 3, 10)
    assert [Path(each.table).name for each in found.failed] == ["4.gz"]
    assert sum(each.requests.count for each in uses.clients.values()) == 3
    gone = counted(tmp_path / "gone")
    assert (gone.lines, [each.error.code for each in gone.failed]) == (0, ["not-found"])


def test_a_line_longer_than_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deltaproto.fleet.seen.log_lines.LONGEST", 1000)
    data = s3_line(agent=f'"{LONG}"') + "\n" + s3_line() + "\n"
    assert [each is None for each in read(data.encode(), tmp_path)] == [True, False]


def test_a_damaged_row_of_a_table(tmp_path: Path) -> None:
    rows = [[*AZURE], [*AZURE.values()], ["too", "short"], [*AZURE.values()]]
    sheet = io.StringIO()
    csv.writer(sheet).writerows(rows)
    found = read(sheet.getvalue().encode(), tmp_path)
    assert [each is None for each in found] == [False, True, False]
    quoted = io.StringIO()
    hostile = {**AZURE, "UserAgentHeader": 'a "quoted",\r\nbroken\n"agent'}
    csv.writer(quoted).writerows([[*hostile], [*hostile.values()]])
    assert one(quoted.getvalue(), tmp_path).agent == hostile["UserAgentHeader"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
NAMES = (
    *("eventSource", "eventName", "userIdentity", "requestParameters", "userAgent", "eventTime"),
    *("protoPayload", "timestamp", "methodName", "resourceName", "requestMetadata", "status"),
    *("OperationName", "Uri", "ObjectKey", "StatusCode", "identity", "properties", "time"),
    *("TimeGenerated", "CallerIpAddress", "Records", "tables"),
)
RECORDS = st.dictionaries(
    st.sampled_from(NAMES), JSON | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=4)
)


@given(st.lists(RECORDS, max_size=3), st.binary(max_size=200), st.integers(0, 400))
def test_any_file_is_read_or_counted(records: list[dict[str, Any]], junk: bytes, cut: int) -> None:
    text = "\n".join([*(json.dumps(each) for each in records), s3_line(), json.dumps(cloudtrail())])
    uses, tables = SeenUses(), matcher(orders="s3://lake/gold/orders")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(text.encode()[cut:] + b"\n" + junk)
        found = add_access_log(str(path), {}, tables, uses, ReadTraces(), None)
    assert found.lines >= found.matched + found.unparsed
    assert found.matched <= 2


class Endpoint:
    """An S3 endpoint without objects, which logs its requests as S3 does."""

    def __init__(self, log: Path) -> None:
        lines = log.open("a")

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, _ = self.path.partition("?")
                bucket, _, key = path.lstrip("/").partition("/")
                operation = "OBJECT" if key else "BUCKET"
                lines.write(
                    s3_line(
                        key or "-",
                        f'"{self.headers.get("User-Agent") or "-"}"',
                        operation=f"REST.GET.{operation}",
                        uri=f'"GET {self.path} HTTP/1.1"',
                        bucket=bucket,
                    )
                    + "\n"
                )
                lines.flush()
                self.send_response(403)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.options = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    running = Endpoint(tmp_path / "access.log")
    yield running
    running.server.shutdown()


def discovered(cli: Cli, endpoint: Endpoint, *words: str) -> dict[str, Any]:
    given = [f"{name}={value}" for name, value in endpoint.options.items()]
    options = [word for each in given for word in ("--storage-option", each)]
    ran = cli("discover", *words, *options, "--format", "json")
    assert SECRET not in ran.out + ran.err
    (document,) = documents(ran, "discover")
    return document


def test_real_readers_and_the_setting_that_identifies_them(
    cli: Cli, endpoint: Endpoint, tmp_path: Path
) -> None:
    for more in ({}, {"user_agent": "deltaproto.deltalake.1.6.6"}):
        with pytest.raises(Exception, match="rror"):
            deltalake.DeltaTable("s3://lake/orders", storage_options={**endpoint.options, **more})
    files = pyarrow.fs.S3FileSystem(
        access_key="testing",
        secret_key=SECRET,
        endpoint_override=endpoint.url.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
    )
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        files.open_input_file("lake/orders/part-0.parquet")
    client = boto3.client(
        "s3",
        endpoint_url=endpoint.url,
        aws_access_key_id="testing",
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
    )
    with pytest.raises(Exception, match="403"):
        client.get_object(Bucket="lake", Key="orders/part-0.parquet")
    # As if each had found what it wanted.
    log = tmp_path / "access.log"
    log.write_text(log.read_text().replace(" 404 ", " 200 "))
    read_so_far = tmp_path / "saved.log"
    read_so_far.write_text(log.read_text())
    # The table's own log cannot be read, but its location is known.
    found = discovered(cli, endpoint, "s3://lake/orders", "--access-log", str(read_so_far))
    assert not found["complete"]
    (seen,) = found["clients"]
    assert (seen["client"], seen["version"]) == ("deltalake", "1.6.6")
    assert (seen["confidence"], seen["access"]) == ("likely", ["read"])
    marks = {each["mark"].partition("/")[0]: each for each in found["unidentified"]}
    assert set(marks) == {"object_store", "AWS SDK for C++", "Boto3"}
    assert "deltalake" in marks["object_store"]["could_be"]
    assert "user_agent" in marks["object_store"]["setting"]
    users = [each["principals"] for each in marks.values()]
    assert {each["name"] for names in users for each in names} == {
        "arn:aws:iam::123456789012:user/ada"
    }
    logs, source = found["sources"]
    assert logs["name"] == "table logs"
    assert source["name"] == str(read_so_far)
    assert source["format"] == "s3-server-access-log"
    assert source["unparsed"] == 0
    assert 0 < source["matched"] <= source["lines"]


def test_secrets_in_logged_addresses_never_reach_an_output(
    cli: Cli, endpoint: Endpoint, tmp_path: Path
) -> None:
    signed = f"X-Amz-Signature={SECRET}&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE"
    agents = [f"x/1 https://user:{SECRET}@host/?sig={SECRET}", f"sig={SECRET}", "y" * 10_000]
    log = tmp_path / "log"
    lines = [
        s3_line(
            "orders/a.parquet",
            f'"{agent}"',
            uri=f'"GET /orders/a.parquet?{signed} HTTP/1.1"',
            referrer=f'"https://x/?{signed}"',
            requester=f"https://user:{SECRET}@host",
        )
        for agent in agents
    ]
    log.write_text("\n".join([*lines, json.dumps({**AZURE, "RequesterUpn": f"a?sig={SECRET}"})]))
    words = ("s3://lake/orders", "abfss://lake@acme.dfs.core.windows.net/gold/orders")
    for format_ in ("text", "json", "markdown", "html"):
        given = ("--access-log", str(log), "--format", format_)
        options = ("--storage-option", f"AWS_ENDPOINT_URL={endpoint.url}")
        more = ("--storage-option", "AWS_ALLOW_HTTP=true", "--storage-option", "AWS_REGION=x")
        keys = ("--storage-option", "AWS_SECRET_ACCESS_KEY=k", "--storage-option")
        ran = cli("discover", words[0], *given, *options, *more, *keys, "AWS_ACCESS_KEY_ID=k")
        assert ran.code == 3
        assert SECRET not in ran.out + ran.err, format_
        assert "AKIAIOSFODNN7EXAMPLE" not in ran.out + ran.err
        assert "y" * 300 not in ran.out


def test_a_file_that_is_no_access_log_is_an_incomplete_answer(cli: Cli, tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path / "t"), pyarrow.table({"id": [1]}))
    other = tmp_path / "notes.txt"
    other.write_text("nothing\nof the kind\n")
    ran = cli("discover", str(tmp_path / "t"), "--access-log", str(other), "--format", "json")
    assert ran.code == 3
    (document,) = documents(ran, "discover")
    assert document["sources"][1] == {
        **{"name": str(other), "format": "unknown"},
        **{"lines": 2, "matched": 0, "unparsed": 2, "known_files": 0},
        **{"undated": 0, "undated_example": None},
    }


def test_access_logs_without_a_request_to_a_table_show_nothing(cli: Cli, tmp_path: Path) -> None:
    """A log of another bucket or time does not show that nobody reads a table."""
    deltalake.write_deltalake(str(tmp_path / "t"), pyarrow.table({"id": [1]}))
    foreign, empty = tmp_path / "foreign.log", tmp_path / "empty.log"
    foreign.write_text(s3_line() + "\nof the kind\n")
    empty.touch()
    words = ("discover", str(tmp_path / "t"), "--access-log", str(foreign))
    ran = cli(*words, "--access-log", str(empty), "--format", "json")
    assert ran.code == 3
    (document,) = documents(ran, "discover")
    assert [each["error"]["message"] for each in document["errors"]] == [
        "no request to these tables",
        "no lines",
    ]
    assert len(document["clients"]) == 1
    # One damaged line among others is a notice.
    ran = cli(*words, "--allow-empty")
    assert ran.code == 0
    assert "1 of 2 lines not understood" in ran.err


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_setting_can_be_copied_at_any_width(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    settings = cli("discover", "--how-to-identify", "--format", "json").json["settings"]
    out = cli("discover", "--how-to-identify").out
    assert all(f"{each['setting']}\n" in out for each in settings)


def test_the_settings_that_identify_clients(cli: Cli) -> None:
    for format_ in ("text", "markdown", "html"):
        ran = cli("discover", "--how-to-identify", "--format", format_)
        assert ran.code == 0
        assert "fs.s3a.user.agent.prefix" in ran.out
    (document,) = documents(
        cli("discover", "--how-to-identify", "--format", "json"), "discover-settings"
    )
    assert {client for each in document["settings"] for client in each["clients"]} >= {
        *("delta-spark", "trino", "deltalake", "duckdb")
    }


def test_the_files_below_a_folder_and_their_order(tmp_path: Path) -> None:
    beside = ("a/_SUCCESS", "a/.9.crc", "_committed_1", "_started_1")
    for name in ("b/2", "b/1", "a/9", "c", *beside):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(formatdate())
    found: list[LogFile] = list(find_files(str(tmp_path / "logs"), {}))
    assert [str(Path(each.name).relative_to(tmp_path / "logs")) for each in found] == [
        *("c", "a/9", "b/1", "b/2")
    ]


def test_times_that_are_not_understood_are_counted_with_an_example(tmp_path: Path) -> None:
    times = ["11/24/2025, 5:00:38.123 PM", "24.11.2025 17:00:39", "24.11.2025 17:00:40", ""]
    records = [{**AZURE, "TimeGenerated": time} for time in times]
    records.append({**AZURE, "TimeGenerated": "?", "ObjectKey": "/other/x/y", "Uri": ""})
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, part in enumerate((records[:2], records[2:])):
        (folder / f"{number}.json").write_text(json.dumps(part))
    matcher = TableMatcher({"azure_storage_account_name": "acme"})
    matcher.add("orders", "az://lake/gold/orders")
    uses = SeenUses()
    found = add_access_log(str(folder), {}, matcher, uses, ReadTraces(), None)
    assert (found.lines, found.matched, found.unparsed) == (5, 4, 0)
    assert (found.undated, found.undated_example) == (2, "24.11.2025 17:00:39")
    source = Source("logs", "azure-storage-log", 5, 4, 0, 0, 2, found.undated_example)
    (notice,) = notices(cast(Discovery, SimpleNamespace(sources=[source])))
    assert notice.startswith(
        'logs: 2 requests have times in an unknown format, such as "24.11.2025 17:00:39"; they '
        "count in every period"
    )
