"""Connections to object stores and catalogs that fail, and certificates of a private authority."""

from __future__ import annotations

import ipaddress
import ssl
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from deltaproto.errors import ErrorCode, TableError
from deltaproto.fleet.workers import with_retries
from deltaproto.tables.catalogs.unity import UnityCatalog
from deltaproto.tables.storage.interface import Deadline
from deltaproto.tables.storage.objects import ObjectLogStore
from tests.conftest import Ran
from tests.support.emulators import listening
from tests.support.logs import Log, add, commit_info, metadata, protocol
from tests.support.retries import FakeClock
from tests.support.unity_server import unity_server

Cli = Callable[..., Ran]
KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
pytestmark = [pytest.mark.storage, pytest.mark.usefixtures("no_cloud")]


class Files(NamedTuple):
    """A server's certificate and key, and the certificate of the authority that issued it."""

    certificate: str
    key: str
    authority: str


def issue(name: str, key: ec.EllipticCurvePrivateKey, by: x509.Name) -> x509.CertificateBuilder:
    """A certificate for a day, not signed."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("certificates")
    root, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    authority = (
        issue("authority", root, by)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(root, hashes.SHA256())
    )
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = issue("server", own, by).add_extension(here, critical=False)
    signed = certificate.sign(root, hashes.SHA256())
    found = Files(*(str(folder / name) for name in ("server.pem", "key.pem", "authority.pem")))
    Path(found.certificate).write_bytes(signed.public_bytes(Encoding.PEM))
    Path(found.authority).write_bytes(authority.public_bytes(Encoding.PEM))
    key = own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(found.key).write_bytes(key)
    return found


@pytest.fixture(scope="module")
def endpoint(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """moto with that certificate, and a table at s3://lake/t."""
    folder = tmp_path_factory.mktemp("tls") / "t"
    Log(folder).commit(0, commit_info(), protocol(1, 2), metadata(), add())
    server = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with listening([*server, "-c", files.certificate, "-k", files.key], "Running on") as url:
        address = {"endpoint_url": url, "region_name": "us-east-1"}
        client = boto3.client("s3", verify=files.authority, **address, **KEYS)
        client.create_bucket(Bucket="lake")
        for file in (folder / "_delta_log").iterdir():
            key = f"t/_delta_log/{file.name}"
            client.put_object(Bucket="lake", Key=key, Body=file.read_bytes())
        yield url


def inspect(cli: Cli, reader: str, endpoint: str) -> Ran:
    given = {"aws_endpoint_url": endpoint, "aws_region": "us-east-1", **KEYS, "max_retries": "0"}
    words = [word for item in given.items() for word in ("--storage-option", "=".join(item))]
    return cli("inspect", "s3://lake/t", "--reader", reader, *words)


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_the_authority_of_the_environment(
    cli: Cli, endpoint: str, files: Files, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    ran = inspect(cli, reader, endpoint)
    assert ran.code == 3
    shown = " ".join((ran.out + ran.err).split())
    assert f"connect to {endpoint}: its certificate is not trusted (UnknownIssuer)" in shown
    assert "hint: set SSL_CERT_FILE" in shown
    monkeypatch.setenv("SSL_CERT_FILE", files.authority)
    ran = inspect(cli, reader, endpoint)
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
@pytest.mark.parametrize(
    ("endpoint", "cause", "hint"),
    [
        ("https://127.0.0.1:1", "connect to https://127.0.0.1:1: Connection refused", "network"),
        ("http://127.0.0.1:1", "its endpoint is not encrypted", "allow_http=true"),
    ],
)
def test_the_cause_is_shown(cli: Cli, reader: str, endpoint: str, cause: str, hint: str) -> None:
    ran = inspect(cli, reader, endpoint)
    shown = " ".join((ran.out + ran.err).split())
    assert ran.code == 3
    assert cause in shown
    assert hint in shown


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_an_endpoint_without_tls(cli: Cli, reader: str) -> None:
    with unity_server() as server:
        endpoint = f"https://{server.authority}"
        ran = inspect(cli, reader, endpoint)
    shown = " ".join((ran.out + ran.err).split())
    assert ran.code == 3
    assert f"cannot connect to {endpoint}: it does not use TLS" in shown
    assert "hint: pass the endpoint with http://" in shown


def test_a_wrong_scheme_or_certificate_is_not_tried_again() -> None:
    asked = []

    def ask(endpoint: str, tried: int) -> None:
        asked.append(tried)
        options = {"aws_endpoint_url": endpoint, "max_retries": "0", **KEYS}
        ObjectLogStore("s3://lake/t", options).list()

    with unity_server() as server:
        for endpoint in ("http://127.0.0.1:1", f"https://{server.authority}"):
            with pytest.raises(TableError) as refused:
                with_retries(partial(ask, endpoint), Deadline(10))
            assert refused.value.code is ErrorCode.STORAGE
    assert asked == [0, 0]


def test_unity_catalog_with_a_certificate(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UC_TOKEN", "testing")
    # Servers on this machine are reached without TLS.
    module = "deltaproto.tables.catalogs.unity_api"
    monkeypatch.setattr(f"{module}.base_url", lambda authority: f"https://{authority}")
    context, made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context
    context.load_cert_chain(files.certificate, files.key)
    loaded: list[None] = []

    def counted() -> ssl.SSLContext:
        loaded.append(None)
        return made()

    with unity_server(tls=context) as server:
        server.add("main.s.t", "s3://lake/t")
        monkeypatch.setattr(f"{module}.os.getpid", lambda: -1)
        client = UnityCatalog(server.authority, clock=FakeClock().clock())
        with pytest.raises(TableError, match="certificate verify failed") as refused:
            client.table(("main", "s", "t"))
        assert "SSL_CERT_FILE" in refused.value.hint
        # Certificates are loaded once in each process.
        monkeypatch.setattr(f"{module}.os.getpid", lambda: -2)
        monkeypatch.setattr(ssl, "create_default_context", counted)
        monkeypatch.setenv("SSL_CERT_FILE", files.authority)
        for _ in range(3):
            assert client.table(("main", "s", "t")).location == "s3://lake/t"
    assert len(loaded) == 1
