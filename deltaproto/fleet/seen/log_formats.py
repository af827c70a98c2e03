"""Requests in access logs, and the lines of S3 server access logs.

Source: "Amazon S3 server access log format". `log_records` has the other formats.
"""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from deltaproto.fleet.seen.uses import PrincipalKind


class LogFormat(StrEnum):
    """A format of access logs."""

    S3 = "s3-server-access-log"
    CLOUDTRAIL = "cloudtrail"
    AZURE = "azure-storage-log"
    GCS = "gcs-audit-log"
    DATABRICKS_AUDIT = "databricks-audit"
    DATABRICKS_LINEAGE = "databricks-table-lineage"
    DATABRICKS_QUERIES = "databricks-query-history"


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


_SCHEMES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), Store.S3),
    **dict.fromkeys(("gs", "gcs"), Store.GCS),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"), Store.AZURE),
}
_AZURE_HOSTS = (".blob.", ".dfs.")


def find_place(uri: str, account: str = "") -> Place | None:
    """Return the place of a URI; None if it is not on an object store.

    Args:
        account: the account for a URI without one, such as `az://container/path`.
    """
    scheme, separator, rest = uri.partition("://")
    authority, _, key = rest.partition("/")
    store, key = _SCHEMES.get(scheme.lower()), key.strip("/")
    if not separator:
        return None
    if store is Store.AZURE:
        container, at, host = authority.partition("@")
        account = host.partition(".")[0] if at else account
        return Place(store, f"{account}/{container}", key)
    try:
        host = urlsplit(uri).hostname or "" if store is None else ""
    except ValueError:
        return None
    if any(part in host for part in _AZURE_HOSTS):
        container, _, key = key.partition("/")
        return Place(Store.AZURE, f"{host.partition('.')[0]}/{container}", key)
    return None if store is None else Place(store, authority, key)


class TableUse(NamedTuple):
    """A use of a table from a platform's own log, which names the table instead of an object."""

    name: str | None
    """`catalog.schema.table`"""
    client: str | None = None
    """id in the client catalog; None: the user agent shows it"""
    principals: tuple[tuple[PrincipalKind, str], ...] = ()
    """without the user"""
    evidence: tuple[str, str] | None = None
    """column and value"""


class Request(NamedTuple):
    """One request to a store, or one use of a table."""

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
    use: TableUse | None = None
    """for a use of a table, whose location is `place` if it is known"""
    others: tuple[Request, ...] = ()
    """uses of other tables in the same event"""
    unread_time: str | None = None
    """the time as it was written, if it is not understood"""


# A hostile user agent or referrer can contain quotes: the last quote of a line ends the agent, and
# what precedes the status ends the URI.
_S3_LINE = re.compile(
    r"(?P<owner>\S+) (?P<bucket>\S+) (?:\[(?P<time>[^\]]*)\]|-) (?P<ip>\S+) (?P<requester>\S+) "
    r"(?P<id>\S+) (?P<operation>\S+) (?P<key>\S+) (?P<uri>\".*?\"|-) (?P<status>\d{3}|-) "
    r"(?P<error>\S+) (?P<bytes>\d+|-) (?P<size>\d+|-) (?P<total>\d+|-) (?P<turnaround>\d+|-) "
    r"(?P<referrer>\".*?\"|-) (?P<agent>\".*\"|-)(?P<rest>(?: [^\s\"]+)*)\s*",
    re.ASCII,
)
_S3_FIELDS = ("bucket", "time", "ip", "requester", "operation", "key", "status", "agent")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_S3_OPERATION = re.compile(r"(?:REST|WEBSITE|SOAP|BATCH|S3)\.(?P<verb>[A-Z]+)\.(?P<what>[A-Z_]+)")
_ASSUMED_ROLE = re.compile(r"(arn:[\w-]+:sts::\d*:assumed-role/[^/]+)/.*", re.ASCII | re.DOTALL)


def parse_s3_line(line: str) -> Request | None:
    """Parse a line of an S3 server access log; None if it is not one."""
    found = _S3_LINE.fullmatch(line)
    if found is None:
        return None
    bucket, time, address, user, operation, key, status, agent = found.group(*_S3_FIELDS)
    moment = None if time in (None, "-") else _parse_s3_time(time)
    if time not in (None, "-") and moment is None:
        return None
    kind = _s3_kind(operation)
    if key == "-" and kind is RequestKind.LIST:
        key = _listed_prefix(found["uri"])
    place = None if "-" in (bucket, key) else Place(Store.S3, bucket, key)
    agent = _unquote(agent)
    return Request(
        place,
        moment,
        kind,
        status[0] == "2",
        None if agent == "-" else agent,
        None if user == "-" else strip_session(user),
        None if address == "-" else address,
    )


@lru_cache(maxsize=256)
def _s3_kind(operation: str) -> RequestKind:
    found = _S3_OPERATION.fullmatch(operation)
    if found is None:
        return RequestKind.OTHER
    verb, what = found.groups()
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
    return next(iter(parse_query(query).get("prefix", ["-"])))


def parse_query(text: str) -> dict[str, list[str]]:
    """Return the parameters of a query; empty for one with too many."""
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


def strip_session(arn: str) -> str:
    """Return an assumed role without its session, which differs for each process."""
    found = _ASSUMED_ROLE.fullmatch(arn) if ":assumed-role/" in arn else None
    return arn if found is None else found[1]
