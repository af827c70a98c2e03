"""The JSON and CSV records of access logs: CloudTrail, Azure Storage and Google Cloud Storage.

Sources: "CloudTrail record contents" and "Amazon S3 CloudTrail events"; "Azure Blob Storage
monitoring data reference" (StorageBlobLogs, and the diagnostic logs with the same contents);
"Cloud Audit Logs with Cloud Storage".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from deltaproto.counts import shorten
from deltaproto.fleet.seen.log_formats import (
    LogFormat,
    Place,
    Request,
    RequestKind,
    Store,
    parse_query,
    strip_session,
)

_GCS_OBJECT = re.compile(r"projects/[^/]*/buckets/(?P<bucket>[^/]+)(?:/objects/(?P<key>.*))?", re.S)
_GOOGLE_SUFFIX = re.compile(r"(?:\s*\(gzip\))?,?gzip\(gfe\)$")
_ROLE_SESSION = re.compile(r"(AROA\w+):.*", re.S)
"""the id of a role, as another account's CloudTrail names a caller: it has no ARN there"""
_LARGEST_SECONDS = 10**11
"""seconds are in the year 5138 then, milliseconds in 1973"""
_MOST_DIGITS = 19
_LONGEST_TIME = 40
"""characters of a time that is not understood"""
_PORTAL_FORMS = (
    "%m/%d/%Y, %I:%M:%S.%f %p",
    "%m/%d/%Y, %I:%M:%S %p",
    "%d/%m/%Y, %H:%M:%S.%f",
    "%d/%m/%Y, %H:%M:%S",
)
"""US English; British English"""


def parse_record(record: Any) -> tuple[LogFormat, Request] | None:
    """Parse one JSON record of CloudTrail, Azure or Google; None for any other record."""
    if not isinstance(record, Mapping):
        return None
    if "eventSource" in record and "eventName" in record:
        return LogFormat.CLOUDTRAIL, _with_time(_cloudtrail(record), record.get("eventTime"))
    audit = record.get("protoPayload") or record.get("protopayload_auditlog")
    if isinstance(audit, Mapping) and "methodName" in audit:
        return LogFormat.GCS, _with_time(_google(record, audit), record.get("timestamp"))
    flat = _flatten_azure(record)
    if "operationname" in flat and ("uri" in flat or "objectkey" in flat):
        time = flat.get("timegenerated") or flat.get("time")
        return LogFormat.AZURE, _with_time(_parse_azure(flat), time)
    return None


def _with_time(request: Request, written: Any) -> Request:
    time = parse_time(written)
    return request._replace(time=time) if time is not None else mark_undated(request, written)


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
    if user is not None:
        user = strip_session(user)
    elif caller := _text(identity.get("principalId")):
        user = _ROLE_SESSION.sub(r"\1", caller)
    return Request(
        place,
        None,
        kind if own else RequestKind.OTHER,
        not record.get("errorCode"),
        agent or None,
        user,
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
        None,
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


def _flatten_azure(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a record with lowercase names, nested ones too, and without units."""
    identity = _members(record.get("identity"))
    flat: dict[str, Any] = {}
    for part in (_members(identity.get("requester")), _members(record.get("properties")), record):
        for name, value in part.items():
            # Exports of the portal name a column `TimeGenerated [UTC]`.
            flat[str(name).partition(" ")[0].lower()] = value
    return flat


def _parse_azure(flat: Mapping[str, Any]) -> Request:
    """Parse a record of StorageBlobLogs, or of a diagnostic log, with lowercase names."""
    address = _text(flat.get("calleripaddress"))
    if address is not None:
        address = re.sub(r"^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$", r"\1\2", address)
    users = ("requesterupn", "upn", "requesterobjectid", "objectid", "requesterappid", "appid")
    operation = _text(flat.get("operationname")) or ""
    status = _text(str(flat.get("statuscode", ""))) or _text(flat.get("statustext")) or ""
    return Request(
        _azure_place(_text(flat.get("uri")), _text(flat.get("objectkey")), operation),
        None,
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
        query = parse_query(parts.query)
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


def parse_time(value: Any) -> int | None:
    """Return a time in milliseconds since the epoch; None if `value` is not one."""
    if isinstance(value, datetime):
        return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _milliseconds(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return _milliseconds(int(text[:_MOST_DIGITS]))
    try:
        found: datetime | None = datetime.fromisoformat(_plain_iso(text))
    except ValueError:
        found = _portal_time(text)
    if found is None:
        return None
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def mark_undated(request: Request, written: Any) -> Request:
    """Return a request with the start of its time, which `parse_time` does not understand."""
    text = "" if written is None else str(written).strip()
    if text in ("", "-"):
        return request
    return request._replace(unread_time=shorten(text, _LONGEST_TIME))


def _milliseconds(value: float) -> int | None:
    """Return a time in seconds, milliseconds, microseconds or nanoseconds since the epoch."""
    if not isfinite(value):
        return None
    time = int(value)
    if abs(time) < _LARGEST_SECONDS:
        return time * 1000
    while abs(time) >= _LARGEST_SECONDS * 1000:
        time //= 1000
    return time


def _portal_time(value: str) -> datetime | None:
    """Parse `11/24/2026, 6:53:50.123 PM`, or with the day first and 24 hours.

    The portal exports times as the language of its user writes them.
    """
    for form in _PORTAL_FORMS:
        try:
            return datetime.strptime(value, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _plain_iso(value: str) -> str:
    """Return a time as Python reads it: with at most six digits after the point, and `+00:00`.

    BigQuery writes `2026-11-24 18:53:50.123 UTC`.
    """
    value = re.sub(r" (?=[+-]\d)", "", re.sub(r" ?UTC$", "+00:00", value))
    return re.sub(r"(\.\d{6})\d+", r"\1", value)


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value not in ("", "-") else None
