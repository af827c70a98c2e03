"""The records of access logs: S3, CloudTrail, Azure Storage and Google Cloud Storage.

Sources: "Amazon S3 server access log format"; "CloudTrail record contents" and "Amazon S3
CloudTrail events"; "Azure Blob Storage monitoring data reference" (StorageBlobLogs, and the
diagnostic logs with the same contents); "Cloud Audit Logs with Cloud Storage".
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit


class LogFormat(StrEnum):
    """A format of access logs."""

    S3 = "s3-server-access-log"
    CLOUDTRAIL = "cloudtrail"
    AZURE = "azure-storage-log"
    GCS = "gcs-audit-log"


class RequestKind(StrEnum):
    """What a request did with an object."""

    READ = "read"
    LIST = "list"
    WRITE = "write"
    DELETE = "delete"
    OTHER = "other"


class Store(StrEnum):
    """Stores with names of their own for buckets."""

    S3 = "s3"
    GCS = "gs"
    AZURE = "azure"


class Place(NamedTuple):
    """An object, or the prefix of a listing."""

    store: Store
    bucket: str
    """Azure: account and container, separated by a slash"""
    key: str


class Request(NamedTuple):
    """One request to a store."""

    place: Place | None
    """None for a request that names no object"""
    time: int | None
    """milliseconds since the epoch"""
    kind: RequestKind
    ok: bool
    """whether it succeeded; a refused reader has read nothing"""
    agent: str | None
    user: str | None
    address: str | None
    """the caller's IP address"""


# A hostile user agent or referrer can contain quotes: the last quote of a line ends the agent, and
# what precedes the status ends the URI.
_S3_LINE = re.compile(
    r"(?P<owner>\S+) (?P<bucket>\S+) (?:\[(?P<time>[^\]]*)\]|-) (?P<ip>\S+) (?P<requester>\S+) "
    r"(?P<id>\S+) (?P<operation>\S+) (?P<key>\S+) (?P<uri>\".*?\"|-) (?P<status>\d{3}|-) "
    r"(?P<error>\S+) (?P<bytes>\d+|-) (?P<size>\d+|-) (?P<total>\d+|-) (?P<turnaround>\d+|-) "
    r"(?P<referrer>\".*?\"|-) (?P<agent>\".*\"|-)(?P<rest>(?: [^\s\"]+)*)\s*",
    re.ASCII,
)
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_S3_OPERATION = re.compile(r"(?:REST|WEBSITE|SOAP|BATCH|S3)\.(?P<verb>[A-Z]+)\.(?P<what>[A-Z_]+)")
_ASSUMED_ROLE = re.compile(r"(arn:[\w-]+:sts::\d*:assumed-role/[^/]+)/.*", re.ASCII | re.DOTALL)
_GCS_OBJECT = re.compile(r"projects/[^/]*/buckets/(?P<bucket>[^/]+)(?:/objects/(?P<key>.*))?", re.S)
_GOOGLE_SUFFIX = re.compile(r"(?:\s*\(gzip\))?,?gzip\(gfe\)$")


def parse_s3_line(line: str) -> Request | None:
    """Parse a line of an S3 server access log; None if it is not one."""
    found = _S3_LINE.fullmatch(line)
    if found is None:
        return None
    time = found["time"]
    moment = None if time in (None, "-") else _parse_s3_time(time)
    if time not in (None, "-") and moment is None:
        return None
    operation = _S3_OPERATION.fullmatch(found["operation"])
    kind = (
        RequestKind.OTHER if operation is None else _s3_kind(operation["verb"], operation["what"])
    )
    bucket, key = found["bucket"], found["key"]
    if key == "-" and kind is RequestKind.LIST:
        key = _listed_prefix(found["uri"])
    place = None if "-" in (bucket, key) else Place(Store.S3, bucket, key)
    agent, user, address = _unquote(found["agent"]), found["requester"], found["ip"]
    return Request(
        place,
        moment,
        kind,
        found["status"][0] == "2",
        None if agent == "-" else agent,
        None if user == "-" else _role(user),
        None if address == "-" else address,
    )


def _s3_kind(verb: str, what: str) -> RequestKind:
    if what in ("BUCKET", "BUCKETVERSIONS", "LOCATION", "UPLOADS") and verb == "GET":
        return RequestKind.LIST if what.startswith("BUCKET") else RequestKind.OTHER
    if what in ("OBJECT", "PART", "UPLOAD", "UPLOADS", "MULTI_OBJECT_DELETE", "OBJECT_CONTENT"):
        if verb == "DELETE" or what == "MULTI_OBJECT_DELETE":
            return RequestKind.DELETE
        if verb in ("GET", "SELECT"):
            return RequestKind.READ
        return RequestKind.WRITE if verb in ("PUT", "POST", "COPY") else RequestKind.OTHER
    return RequestKind.OTHER


def _unquote(field: str) -> str:
    return field[1:-1] if field.startswith('"') else field


def _listed_prefix(uri: str) -> str:
    parts = _unquote(uri).split(" ")
    query = urlsplit(parts[1]).query if len(parts) > 1 and parts[1].startswith("/") else ""
    return next(iter(_query(query).get("prefix", ["-"])))


def _query(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(text, max_num_fields=50)
    except ValueError:
        return {}


def _parse_s3_time(text: str) -> int | None:
    """Parse `06/Feb/2019:00:00:38 +0000`."""
    try:
        clock, zone = text[12:20], text[21:]
        hours, minutes, seconds = int(clock[:2]), int(clock[3:5]), int(clock[6:8])
        if len(text) != 26 or text[11] != ":" or zone[0] not in "+-":
            return None
        away = (int(zone[1:3]) * 60 + int(zone[3:5])) * (1 if zone[0] == "+" else -1)
        day = _parse_day(text[:11])
    except (ValueError, KeyError):
        return None
    return (day + hours * 3600 + minutes * 60 + seconds - away * 60) * 1000


@lru_cache(maxsize=64)
def _parse_day(text: str) -> int:
    moment = datetime(int(text[7:11]), _MONTHS[text[3:6]], int(text[:2]), tzinfo=UTC)
    return timegm(moment.timetuple())


def _role(arn: str) -> str:
    """Return an assumed role without its session, of which each process has another."""
    found = _ASSUMED_ROLE.fullmatch(arn)
    return arn if found is None else found[1]


def parse_record(record: Any) -> tuple[LogFormat, Request] | None:
    """Parse one JSON record of CloudTrail, Azure or Google; None if it is of none of them."""
    if not isinstance(record, Mapping):
        return None
    if "eventSource" in record and "eventName" in record:
        return LogFormat.CLOUDTRAIL, _cloudtrail(record)
    audit = record.get("protoPayload") or record.get("protopayload_auditlog")
    if isinstance(audit, Mapping) and "methodName" in audit:
        return LogFormat.GCS, _google(record, audit)
    flat = flatten_azure(record)
    if "operationname" in flat and ("uri" in flat or "objectkey" in flat):
        return LogFormat.AZURE, parse_azure(flat)
    return None


def _cloudtrail(record: Mapping[str, Any]) -> Request:
    name, parameters = str(record["eventName"]), _members(record.get("requestParameters"))
    bucket, identity = _text(parameters.get("bucketName")), _members(record.get("userIdentity"))
    key = _text(parameters.get("key"))
    kind = _CLOUDTRAIL.get(name, RequestKind.OTHER)
    if key is None and kind is RequestKind.LIST:
        key = _text(parameters.get("prefix"))
    own = record["eventSource"] == "s3.amazonaws.com"
    place = Place(Store.S3, bucket, key) if own and bucket and key else None
    agent = _text(record.get("userAgent"))
    if agent is not None and agent.startswith("[") and agent.endswith("]"):
        agent = agent[1:-1]
    user = _text(identity.get("arn")) or _text(identity.get("invokedBy"))
    return Request(
        place,
        _parse_time(record.get("eventTime")),
        kind if own else RequestKind.OTHER,
        not record.get("errorCode"),
        agent or None,
        _role(user) if user else _text(identity.get("principalId")),
        _text(record.get("sourceIPAddress")),
    )


_CLOUDTRAIL = {
    **dict.fromkeys(("GetObject", "SelectObjectContent"), RequestKind.READ),
    **dict.fromkeys(("ListObjects", "ListObjectsV2", "ListObjectVersions"), RequestKind.LIST),
    **dict.fromkeys(
        ("PutObject", "CopyObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy"),
        RequestKind.WRITE,
    ),
    "CompleteMultipartUpload": RequestKind.WRITE,
    **dict.fromkeys(("DeleteObject", "DeleteObjects"), RequestKind.DELETE),
}


def _google(record: Mapping[str, Any], audit: Mapping[str, Any]) -> Request:
    found = _GCS_OBJECT.fullmatch(_text(audit.get("resourceName")) or "")
    metadata = _members(audit.get("requestMetadata"))
    method = (_text(audit.get("methodName")) or "").rpartition(".")[2]
    own = str(audit["methodName"]).startswith("storage.objects.")
    kind = _GOOGLE.get(method, RequestKind.OTHER) if own else RequestKind.OTHER
    place = None
    if found is not None and found["key"]:
        place = Place(Store.GCS, found["bucket"], found["key"])
    agent = _text(metadata.get("callerSuppliedUserAgent"))
    return Request(
        place,
        _parse_time(record.get("timestamp")),
        kind,
        not _members(audit.get("status")).get("code"),
        None if agent is None else _GOOGLE_SUFFIX.sub("", agent),
        _text(_members(audit.get("authenticationInfo")).get("principalEmail")),
        _text(metadata.get("callerIp")),
    )


_GOOGLE = {
    "get": RequestKind.READ,
    "list": RequestKind.LIST,
    **dict.fromkeys(("create", "compose", "copy", "rewrite", "insert"), RequestKind.WRITE),
    "delete": RequestKind.DELETE,
}


def flatten_azure(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a record with lowercase names, nested ones too, and without units."""
    identity = _members(record.get("identity"))
    flat: dict[str, Any] = {}
    for part in (_members(identity.get("requester")), _members(record.get("properties")), record):
        for name, value in part.items():
            # Exports of the portal name a column `TimeGenerated [UTC]`.
            flat[str(name).partition(" ")[0].lower()] = value
    return flat


def parse_azure(flat: Mapping[str, Any]) -> Request:
    """Parse a record of StorageBlobLogs, or of a diagnostic log, with lowercase names."""
    address = _text(flat.get("calleripaddress"))
    if address is not None:
        address = re.sub(r"^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$", r"\1\2", address)
    users = ("requesterupn", "upn", "requesterobjectid", "objectid", "requesterappid", "appid")
    operation = _text(flat.get("operationname")) or ""
    status = _text(str(flat.get("statuscode", ""))) or _text(flat.get("statustext")) or ""
    return Request(
        _azure_place(_text(flat.get("uri")), _text(flat.get("objectkey")), operation),
        _parse_time(flat.get("timegenerated") or flat.get("time")),
        _azure_kind(operation),
        status.startswith("2") or "success" in status.lower(),
        _text(flat.get("useragentheader")),
        next((user for name in users if (user := _text(flat.get(name)))), None),
        address,
    )


def _azure_kind(operation: str) -> RequestKind:
    if operation in ("GetBlob", "ReadFile", "QueryBlobContents"):
        return RequestKind.READ
    for kind, words in _AZURE.items():
        if operation.startswith(words):
            return kind
    return RequestKind.OTHER


_AZURE = {
    RequestKind.LIST: ("ListBlobs", "ListFilesystemDir", "ListPaths"),
    RequestKind.WRITE: ("PutBl", "CreatePath", "AppendFile", "FlushFile", "CopyBlob", "Rename"),
    RequestKind.DELETE: ("DeleteBlob", "DeletePath", "DeleteFile"),
}


def _azure_place(uri: str | None, object_key: str | None, operation: str) -> Place | None:
    """Return the account, container and path of a request.

    The query of the URI may have a signature, so only the prefix of a listing is read from it.
    """
    parts = None
    try:
        parts = urlsplit(uri) if uri else None
    except ValueError:
        pass
    if parts is not None and parts.netloc and _azure_kind(operation) is RequestKind.LIST:
        query = _query(parts.query)
        prefix = next(iter([*query.get("prefix", []), *query.get("directory", [])]), "")
        container = parts.path.strip("/").partition("/")[0]
        account = parts.netloc.partition(".")[0]
        return Place(Store.AZURE, f"{account}/{container}", prefix) if container else None
    if object_key:
        account, _, rest = object_key.strip("/").partition("/")
        container, _, key = rest.partition("/")
    elif parts is not None and parts.netloc:
        account = parts.netloc.partition(".")[0]
        container, _, key = parts.path.lstrip("/").partition("/")
    else:
        return None
    return Place(Store.AZURE, f"{account}/{container}", key) if container and key else None


def _parse_time(value: Any) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        found: datetime | None = datetime.fromisoformat(_digits(value))
    except ValueError:
        found = _portal_time(value)
    if found is None:
        return None
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _portal_time(value: str) -> datetime | None:
    """Parse `11/24/2026, 6:53:50.123 PM`, as the portal exports times."""
    for form in ("%m/%d/%Y, %I:%M:%S.%f %p", "%m/%d/%Y, %I:%M:%S %p"):
        try:
            return datetime.strptime(value, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _digits(value: str) -> str:
    """Return a time with at most six digits after the point, as Python reads it."""
    return re.sub(r"(\.\d{6})\d+", r"\1", value)


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in ("", "-") else None
