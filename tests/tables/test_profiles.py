"""Credentials of S3 from profiles, and what a store says of wrong ones, on a real endpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran
from tests.support.lakes import Lake, s3_lake
from tests.support.logs import Log, metadata, protocol
from tests.support.retries import DELTA_RS_AT_ONCE, retry_at_once

pytestmark = [pytest.mark.storage, pytest.mark.usefixtures("no_cloud")]
Cli = Callable[..., Ran]
_SECONDS = 30


@pytest.fixture(scope="module")
def s3() -> Iterator[Lake]:
    with s3_lake() as running:
        yield running


@pytest.fixture
def table(s3: Lake, log: Log) -> str:
    log.commit(0, protocol(1, 2), metadata())
    return s3.upload(log.root, "profiles/orders")


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write both files of profiles, and let the environment name them."""

    def write(credentials: str, config: str = "") -> None:
        for name, text in (("SHARED_CREDENTIALS", credentials), ("CONFIG", config)):
            file = tmp_path / name.lower()
            file.write_text(text)
            monkeypatch.setenv(f"AWS_{name}_FILE", str(file))

    return write


def keys(of: dict[str, str]) -> str:
    return "\n".join(f"{name.lower()} = {value}" for name, value in of.items() if "KEY" in name)


def place(s3: Lake, *more: str) -> list[str]:
    """The options without credentials."""
    given = {k: v for k, v in s3.options.items() if "KEY" not in k and k not in more}
    return [word for item in given.items() for word in ("--storage-option", "=".join(item))]


def told(ran: Ran) -> dict[str, Any]:
    error: dict[str, Any] = ran.table["error"]
    assert ran.code == 3
    assert "\n" not in error["message"]
    return error


class TestProfiles:
    def test_one_that_is_named(
        self, cli: Cli, s3: Lake, table: str, profiles: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        profiles(f"[lake]\n{keys(s3.options)}\n", "[profile lake]\nregion = us-east-1\n")
        how = ("--format", "json", *place(s3, "AWS_REGION"))
        ran = cli("inspect", table, *how, "--storage-option", "aws_profile=lake")
        assert ran.code == 0, ran
        monkeypatch.setenv("AWS_PROFILE", "lake")
        ran = cli("inspect", table, *how)
        assert ran.code == 0, ran
        # deltalake asks profiles of an endpoint of one's own only when it is told to.
        force = ("--storage-option", "aws_force_credential_load=true", "--reader", "delta-rs")
        ran = cli("inspect", table, *how, *force)
        assert ran.code == 0, ran

    def test_the_default_one(self, cli: Cli, s3: Lake, table: str, profiles: Any) -> None:
        profiles("", f"[default]\nregion = us-east-1\n{keys(s3.options)}\n")
        assert cli("inspect", table, *place(s3)).code == 0

    def test_keys_elsewhere_come_first(
        self, cli: Cli, s3: Lake, table: str, profiles: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        profiles(f"[lake]\n{keys(s3.denied)}\n")
        monkeypatch.setenv("AWS_PROFILE", "lake")
        assert cli("inspect", table, *s3.words()).code == 0
        assert cli("inspect", table, *place(s3)).code == 3
        for name, value in s3.options.items():
            monkeypatch.setenv(name, value)
        assert cli("inspect", table).code == 0

    def test_a_program_that_knows_them(
        self, cli: Cli, s3: Lake, table: str, profiles: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        access, secret = s3.secrets
        said = f'{{"Version": 1, "AccessKeyId": "{access}", "SecretAccessKey": "{secret}"}}'
        profiles("", f"[profile lake]\ncredential_process = echo '{said}'\n")
        monkeypatch.setenv("AWS_PROFILE", "lake")
        assert cli("inspect", table, *place(s3)).code == 0

    @pytest.mark.parametrize(
        ("files", "cause", "hint"),
        [
            (("",), "the AWS profile lake does not exist", "AWS_PROFILE"),
            (("", "[profile lake]\nregion = x\n"), "has no keys", "add them to"),
            (("", "[profile lake]\nsso_session = us\n"), "but sso_session", "export-credentials"),
            (
                ("[lake]\naws_secret_access_key c4n4ry\n",),
                "not a file of AWS profiles",
                "correct it",
            ),
        ],
        ids=["no such", "no keys", "sso", "malformed"],
    )
    def test_one_that_is_no_use(
        self,
        cli: Cli,
        s3: Lake,
        table: str,
        profiles: Any,
        monkeypatch: pytest.MonkeyPatch,
        files: tuple[str, ...],
        cause: str,
        hint: str,
    ) -> None:
        profiles(*files)
        monkeypatch.setenv("AWS_PROFILE", "lake")
        ran = cli("inspect", table, *place(s3), "--format", "json")
        error = told(ran)
        assert error["code"] == "permission-denied"
        assert cause in error["message"]
        assert hint in error["hint"]
        assert "c4n4ry" not in ran.out + ran.err


WRONG = {
    "key": ({"AWS_ACCESS_KEY_ID": "AKIAAAAAAAAAAAAAAAAA"}, "the access key is unknown"),
    "secret": ({"AWS_SECRET_ACCESS_KEY": "c4n4ry/c4n4ry"}, "does not match the access key"),
    "token": ({"AWS_SESSION_TOKEN": "c4n4ry/c4n4ry"}, "no permission to read"),
    "user": (None, "access denied (AccessDenied)"),
}


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_credentials(cli: Cli, s3: Lake, table: str, reader: str, name: str) -> None:
    changes, cause = WRONG[name]
    words = s3.words(**(s3.denied if changes is None else changes))
    began = time.monotonic()
    ran = cli("inspect", table, "--reader", reader, *words, "--format", "json")
    error = told(ran)
    assert error["code"] == "permission-denied", error
    assert cause in error["message"]
    assert error["hint"]
    assert time.monotonic() - began < _SECONDS
    assert "c4n4ry" not in ran.out + ran.err


class _Expired(BaseHTTPRequestHandler):
    """S3's documented answer to a token that has expired: it repeats the token."""

    def do_GET(self) -> None:
        token = self.headers["x-amz-security-token"]
        body = (
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>ExpiredToken</Code><Message>The "
            f"provided token has expired.</Message><Token-0>{token}</Token-0></Error>"
        ).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Be silent."""


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_an_expired_token(cli: Cli, s3: Lake, reader: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Expired)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        words = s3.words(AWS_ENDPOINT_URL=url, AWS_SESSION_TOKEN="c4n4ry/c4n4ry+=")
        ran = cli("inspect", "s3://lake/t", "--reader", reader, *words, "--format", "json")
    finally:
        server.shutdown()
        server.server_close()
    error = told(ran)
    assert error["code"] == "permission-denied", error
    assert "the session token has expired" in error["message"]
    assert "c4n4ry" not in ran.out + ran.err


@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_nobody_listens(cli: Cli, s3: Lake, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    retry_at_once(monkeypatch)
    words = s3.words(AWS_ENDPOINT_URL="http://127.0.0.1:9", **DELTA_RS_AT_ONCE)
    ran = cli("inspect", "s3://lake/t", "--reader", reader, *words, "--format", "json")
    assert told(ran)["code"] == "storage"


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["log", "delta-rs"])
def test_nobody_listens_with_pauses_between_retries(cli: Cli, s3: Lake, reader: str) -> None:
    began = time.monotonic()
    words = s3.words(AWS_ENDPOINT_URL="http://127.0.0.1:9")
    ran = cli("inspect", "s3://lake/t", "--reader", reader, *words, "--format", "json")
    assert told(ran)["code"] == "storage"
    assert time.monotonic() - began < _SECONDS


def test_http_must_be_allowed(cli: Cli, s3: Lake, table: str) -> None:
    words = s3.words(AWS_ALLOW_HTTP="false")
    error = told(cli("inspect", table, *words, "--format", "json"))
    assert "not encrypted" in error["message"]
    assert "allow_http=true" in error["hint"]
