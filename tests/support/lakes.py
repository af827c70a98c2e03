"""Object stores on this machine, each with one bucket or container, and how to reach them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from urllib.request import Request, urlopen

import boto3

from tests.support.emulators import azurite, fake_gcs, listening

BUCKET = "lake"
_ACCOUNT = "lakeaccount"
_API = "2021-08-06"
_PORTS = 3
"""attempts to find a port that is still free when the server starts"""


class Lake(NamedTuple):
    """A store, and two ways to give its credentials."""

    roots: tuple[str, ...]
    """the URIs of the same bucket"""
    options: dict[str, str]
    environment: dict[str, str]
    secrets: tuple[str, ...]
    put: Callable[[str, bytes], object]
    denied: dict[str, str]
    """what to change in `options` so that the store refuses; empty: it never does"""

    def upload(self, root: Path, prefix: str) -> str:
        """Copy a folder; gives its URI."""
        for file in root.rglob("*"):
            if file.is_file():
                self.put(f"{prefix}/{file.relative_to(root)}", file.read_bytes())
        return f"{self.roots[0]}/{prefix}"

    def words(self, **changes: str) -> list[str]:
        """The options for a command line."""
        given = {**self.options, **changes}
        return [word for item in given.items() for word in ("--storage-option", "=".join(item))]


@contextmanager
def azure_lake() -> Iterator[Lake]:
    """Azurite, with an account of its own.

    Raises:
        Missing: when it cannot be installed.
    """
    key = base64.b64encode(hashlib.sha512(b"of this test").digest()).decode()
    quiet = ("--silent", "--skipApiVersionCheck", "--disableTelemetry")
    command = [*azurite(), "--inMemoryPersistence", "--blobPort", "0", *quiet]
    with listening(command, "listens on", AZURITE_ACCOUNTS=f"{_ACCOUNT}:{key}") as url:
        endpoint = f"{url}/{_ACCOUNT}"

        def put(name: str, data: bytes = b"", query: str = "", **headers: str) -> None:
            path, kind = f"{BUCKET}/{quote(name)}".rstrip("/"), "application/octet-stream"
            stamped = {"x-ms-date": _http_date(), "x-ms-version": _API, **headers}
            known = "".join(f"{each}:{stamped[each]}\n" for each in sorted(stamped))
            length = len(data) or ""
            resource = f"/{_ACCOUNT}/{_ACCOUNT}/{path}" + query.replace("?", "\n").replace("=", ":")
            text = f"PUT\n\n\n{length}\n\n{kind}\n\n\n\n\n\n\n{known}{resource}"
            signed = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
            said = f"SharedKey {_ACCOUNT}:{base64.b64encode(signed).decode()}"
            sent = {**stamped, "Authorization": said, "Content-Type": kind}
            _send(Request(f"{endpoint}/{path}{query}", data, sent, method="PUT"))

        put("", query="?restype=container")
        options = {
            "azure_storage_account_name": _ACCOUNT,
            "azure_storage_account_key": key,
            "azure_storage_endpoint": endpoint,
            "allow_http": "true",
        }
        wrong = base64.b64encode(b"of another account, and longer").decode()
        yield Lake(
            (f"az://{BUCKET}", f"abfss://{BUCKET}@{_ACCOUNT}.dfs.core.windows.net"),
            options,
            {
                "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
                "AZURE_STORAGE_ACCOUNT_KEY": key,
                "AZURE_STORAGE_ENDPOINT": endpoint,
                "AZURE_ALLOW_HTTP": "true",
            },
            (key,),
            lambda name, data: put(name, data, **{"x-ms-blob-type": "BlockBlob"}),
            {"azure_storage_account_key": wrong},
        )


@contextmanager
def google_lake() -> Iterator[Lake]:
    """fake-gcs-server, which asks nobody who they are.

    Raises:
        Missing: when it cannot be built.
    """
    with _google_server() as url:
        made = json.dumps({"name": BUCKET}).encode()
        _send(Request(f"{url}/storage/v1/b", made, {"Content-Type": "application/json"}))
        # What the library takes in place of a key, to ask nobody for a token.
        key = {"gcs_base_url": url, "disable_oauth": True, "private_key": "unmistakable-private"}
        key |= {"client_email": "lake@example.com", "private_key_id": "unmistakable-id"}
        account = json.dumps(key)

        def put(name: str, data: bytes) -> None:
            upload = f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name="
            plain = {"Content-Type": "application/octet-stream"}
            _send(Request(upload + quote(name, safe=""), data, plain, method="POST"))

        yield Lake(
            (f"gs://{BUCKET}",),
            {"google_service_account_key": account, "allow_http": "true"},
            {"GOOGLE_SERVICE_ACCOUNT_KEY": account, "GOOGLE_ALLOW_HTTP": "true"},
            ("unmistakable-private", "unmistakable-id"),
            put,
            {},
        )


@contextmanager
def _google_server() -> Iterator[str]:
    """fake-gcs-server, which must know its port before it starts; gives its address."""
    with ExitStack() as running:
        for left in reversed(range(_PORTS)):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = str(free.getsockname()[1])
            where = ("-host", "127.0.0.1", "-port", port, "-public-host", f"127.0.0.1:{port}")
            command = [*fake_gcs(), "-scheme", "http", *where, "-backend", "memory"]
            try:
                url = running.enter_context(listening(command, "started at"))
            except RuntimeError:
                # Another process took the port in the meantime.
                if not left:
                    raise
                continue
            break
        yield url


@contextmanager
def s3_lake() -> Iterator[Lake]:
    """moto, which looks at signatures and at what a user may; `poor` is a user who may nothing."""
    # A process of its own: in this one, other tests' endpoints would look at signatures, too.
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with listening(command, "Running on") as url:
        root = {"aws_access_key_id": "root", "aws_secret_access_key": "root"}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **root)
        client.create_bucket(Bucket=BUCKET)
        iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", **root)
        rich, poor = _user(iam, "rich", "s3:*"), _user(iam, "poor", "sqs:*")
        _look(url, "0")

        def put(name: str, data: bytes) -> None:
            _look(url, "inf")
            client.put_object(Bucket=BUCKET, Key=name, Body=data)
            _look(url, "0")

        place = {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        given = {**place, **rich}
        yield Lake((f"s3://{BUCKET}",), given, given, tuple(rich.values()), put, poor)


def _user(iam: Any, name: str, action: str) -> dict[str, str]:
    """A user who may do `action`; the keys of it."""
    iam.create_user(UserName=name)
    allowed = {"Effect": "Allow", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {
        "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
    }


def trust(lake: Lake) -> None:
    """Have moto look at signatures no more."""
    _look(lake.options["AWS_ENDPOINT_URL"], "inf")


def distrust(lake: Lake) -> None:
    """Have moto look at signatures again, and at what a user may do."""
    _look(lake.options["AWS_ENDPOINT_URL"], "0")


def _look(url: str, unseen: str) -> None:
    """moto looks at signatures once it has done so many requests."""
    headers = {"Content-Type": "application/json"}
    _send(Request(f"{url}/moto-api/reset-auth", unseen.encode(), headers, method="POST"))


def _send(request: Request) -> None:
    with urlopen(request, timeout=30) as answer:
        answer.read()


def _http_date() -> str:
    return datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
