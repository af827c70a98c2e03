"""Planted secrets are in nothing that a run writes: outputs, saved answers, plans, inventories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from deltalake import DeltaTable

from deltaproto.cli.main import main
from deltaproto.render.interface import PageFormat
from deltaproto.tables.log.reader import LogReader
from tests.support.canaries import Watch
from tests.support.lakes import Lake
from tests.support.logs import Log, add, metadata, protocol
from tests.support.retries import DELTA_RS_AT_ONCE, retry_at_once

pytestmark = [
    pytest.mark.storage,
    pytest.mark.usefixtures("no_cloud"),
    pytest.mark.timeout(1500),
    pytest.mark.rotating,
]
CANARY = "c4n4ry/V4lue+9"
SAS = f"sv=2021-08-06&ss=b&srt=sco&sp=rl&se=2039-01-01T00:00:00Z&sig={CANARY}"
KEY_FILE = json.dumps(
    {
        "type": "service_account",
        "client_email": "lake@example.com",
        "private_key_id": f"{CANARY}-id",
        "private_key": f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n",
    }
)
POLICY = "policy_version: 1\nclients:\n  - client: trino@452\n    access: [read]\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    watched = Watch(tmp_path / "watched", [CANARY])
    for name, value in watched.places().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(watched.root)
    return watched


@pytest.fixture
def run(watch: Watch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line here; what the libraries below Python print is looked at, too."""

    def command(*words: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(list(words))
        out, err = capfd.readouterr()
        watch.look(out, err)
        return code, out, err

    return command


@pytest.fixture
def given(lake: Lake, log: Log, tmp_path: Path) -> tuple[str, Path]:
    """A table in each store, and a folder for what may hold secrets."""
    log.commit(0, protocol(2, 5), metadata({"delta.columnMapping.mode": "name"}), add())
    log.commit(1, protocol(3, 7, ["deletionVectors"], ["deletionVectors"]))
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    return lake.upload(log.root, f"canaries/{tmp_path.name}"), folder


@pytest.mark.parametrize("how", ["options", "environment"])
def test_every_command_that_reads(
    lake: Lake,
    watch: Watch,
    run: Run,
    given: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    table, folder = given
    watch.add(lake.secrets)
    options = lake.words() if how == "options" else []
    for name, value in lake.environment.items() if how == "environment" else ():
        monkeypatch.setenv(name, value)
    policy = ("--policy", str(folder / "policy.yaml"))
    for format_ in PageFormat:
        more = ("--format", format_, *options)
        code, out, _ = run("inspect", table, "--reader", "log", *more)
        assert code in (0, 1), out
        assert table.rpartition("/")[2] in out
        run("history", table, *more)
        code, out, _ = run("plan-downgrade", table, "--lowest", *more)
        assert code in (0, 1), out
    for format_ in ("text", "json", "sarif", "junit", "github", "gitlab"):
        run("check", table, *policy, "--format", format_, *options)
    run("conflicts", table, *options)
    run("inspect", table, "--reader", "delta-rs", "--format", "json", *options)
    run("inspect", table, "--format", "json", "--output", "saved.json", *options)
    assert run("check", "saved.json", *policy)[0] in (0, 1)
    more = ("--format", "json", "--output", "plan.json", *options)
    assert run("plan-downgrade", table, "--lowest", *more)[0] in (0, 1)
    for format_ in ("markdown", "html"):
        run("runbook", "plan.json", "--format", format_, *options)
    root = table.rpartition("/")[0]
    assert run("scan", root, "--inventory", "inventory", *policy, *options)[0] in (0, 1)
    for format_ in ("html", "json", "markdown"):
        assert run("report", "inventory", "--format", format_)[0] in (0, 1)


def test_a_scan_with_a_file_of_settings(
    lake: Lake, watch: Watch, run: Run, given: tuple[str, Path]
) -> None:
    table, folder = given
    watch.add(lake.secrets)
    settings = {"roots": [table], "to": str(watch.root / "inventory")}
    for wrong in ({}, lake.denied):
        scan = {**settings, "storage_options": {**lake.options, **wrong}}
        (folder / "deltaproto.yaml").write_text(json.dumps({"scan": scan}))
        code, out, _ = run("scan", "--config", str(folder / "deltaproto.yaml"), "--format", "json")
        assert (code == 3) == bool(wrong), out


PLANTED: dict[str, tuple[str, dict[str, str]]] = {
    "s3 secret": ("s3://lake/t", {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": CANARY}),
    "s3 key": ("s3://lake/t", {"AWS_ACCESS_KEY_ID": CANARY, "AWS_SECRET_ACCESS_KEY": "my-own"}),
    "s3 token": (
        "s3://lake/t",
        {
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": "my-own",
            "AWS_SESSION_TOKEN": CANARY,
        },
    ),
    "azure key": ("az://lake/t", {"AZURE_STORAGE_ACCOUNT_KEY": f"{CANARY}+no-base64!"}),
    "azure sas": ("az://lake/t", {"AZURE_STORAGE_SAS_TOKEN": SAS}),
    "azure odd sas": ("az://lake/t", {"AZURE_STORAGE_SAS_TOKEN": CANARY}),
    "azure secret": (
        "abfss://lake@me.dfs.core.windows.net/t",
        {
            "AZURE_STORAGE_CLIENT_ID": "me",
            "AZURE_STORAGE_CLIENT_SECRET": CANARY,
            "AZURE_STORAGE_TENANT_ID": "us",
        },
    ),
    "google key": ("gs://lake/t", {"GOOGLE_SERVICE_ACCOUNT_KEY": KEY_FILE}),
    "google odd key": ("gs://lake/t", {"GOOGLE_SERVICE_ACCOUNT_KEY": CANARY}),
}


class _Echo(BaseHTTPRequestHandler):
    """Refuses, and repeats all that it was told."""

    def do_GET(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        said = f"{self.requestline}\n{self.headers}\n{sent}\n{unquote(self.path)} {unquote(sent)}"
        body = f"<Error><Code>{'Odd' * 3}</Code><Message>{said}</Message></Error>".encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Be silent."""


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def endpoints(scheme: str, echo: str) -> dict[str, str]:
    if scheme == "s3":
        return {"AWS_ENDPOINT_URL": echo, "AWS_REGION": "us-east-1"}
    if scheme == "gs":
        return {"GOOGLE_BASE_URL": echo}
    account = {"AZURE_STORAGE_ENDPOINT": f"{echo}/me", "AZURE_STORAGE_ACCOUNT_NAME": "me"}
    return {**account, "AZURE_AUTHORITY_HOST": echo}


def refused(
    run: Run, echo: str, monkeypatch: pytest.MonkeyPatch, name: str, how: str, **more: str
) -> None:
    """Read a table with a planted secret by each command; the store refuses every request."""
    table, secret = PLANTED[name]
    options = {**secret, **endpoints(table.partition(":")[0], echo)}
    words = as_options(options)
    if how == "environment":
        words = []
        for key, value in options.items():
            monkeypatch.setenv(key, value)
    words += as_options({"allow_http": "true", **more})
    for reader in ("log", "delta-rs"):
        for format_ in ("text", "json"):
            code, _, _ = run("inspect", table, "--reader", reader, "--format", format_, *words)
            assert code == 3
    code, _, _ = run("plan-downgrade", table, "--lowest", "--format", "json", *words)
    assert code == 3
    code, _, _ = run("scan", table, "--inventory", "inventory", *words)
    assert code == 3
    DeltaTable("inventory/errors").to_pyarrow_table()


def as_options(options: dict[str, str]) -> list[str]:
    return [word for item in options.items() for word in ("--storage-option", "=".join(item))]


@pytest.mark.parametrize("how", ["options", "environment"])
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_what_fails(
    run: Run, echo: str, monkeypatch: pytest.MonkeyPatch, name: str, how: str
) -> None:
    retry_at_once(monkeypatch)
    refused(run, echo, monkeypatch, name, how, **DELTA_RS_AT_ONCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["s3 token", "azure secret", "google key"])
def test_what_fails_with_pauses_between_retries(
    run: Run, echo: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    refused(run, echo, monkeypatch, name, "environment")


@pytest.mark.parametrize("debug", [False, True])
def test_a_defect(
    run: Run, watch: Watch, log: Log, monkeypatch: pytest.MonkeyPatch, debug: bool
) -> None:
    """A fault of ours whose text holds everything that the run knows."""
    log.commit(0, protocol(1, 2), metadata())
    key = f"AWS_SECRET_ACCESS_KEY={CANARY}"
    words = ["--storage-option", key, "--spark-conf", f"spark.hadoop.fs.s3a.secret.key={CANARY}"]
    fault = (
        "import os, sys\n"
        "from deltaproto.tables.log.reader import LogReader\n"
        "def fails(*_):\n"
        "    try:\n"
        "        raise KeyError(str(dict(os.environ)))\n"
        "    except KeyError as error:\n"
        "        raise ValueError(' '.join(sys.argv)) from error\n"
        "LogReader.read = fails\n"
        "from deltaproto.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    for around in ({"AWS_SECRET_ACCESS_KEY": CANARY}, {"DELTAPROTO_STORAGE_OPTION": key}):
        for more in (["--format", "json"], ["--format", "text"]):
            said = ["--debug"] if debug else []
            ran = subprocess.run(
                [sys.executable, "-c", fault, "inspect", log.table, *words, *more, *said],
                capture_output=True,
                text=True,
                check=False,
                env={**watch.environment(), **around, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            watch.look(ran.stdout, ran.stderr)
            assert ("Traceback" in ran.stderr) == debug, ran
            assert "ValueError" in (ran.stderr if debug else ran.stdout)


def test_a_defect_on_one_table_of_a_scan(
    run: Run, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.commit(0, protocol(1, 2), metadata())

    def fails(self: LogReader, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"{vars(self)} {os.environ['AZURE_STORAGE_ACCOUNT_KEY']}")

    for name in [name for name in vars(LogReader) if not name.startswith("__")]:
        monkeypatch.setattr(LogReader, name, fails)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", CANARY)
    words = ("--storage-option", f"aws_secret_access_key={CANARY}", "--format", "json")
    code, out, _ = run("scan", log.table, "--inventory", "inventory", *words)
    assert code == 3
    (error,) = DeltaTable("inventory/errors").to_pyarrow_table().to_pylist()
    assert "internal error" in error["message"], out


@pytest.mark.parametrize(
    "table",
    [
        f"s3://me:{CANARY.replace('/', '')}@lake/t",
        f"s3a://:{CANARY.replace('/', '')}@lake/t",
        f"delta.`s3://me:{CANARY.replace('/', '')}@lake/t`",
        f"https://me.blob.core.windows.net/lake/t?{SAS}",
        "abfss://lake:c4n4ry@me.dfs.core.windows.net/t",
    ],
)
def test_an_address_with_credentials(watch: Watch, run: Run, table: str, tmp_path: Path) -> None:
    watch.add([CANARY.replace("/", ""), "c4n4ry"])
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    listed = tmp_path / "tables.txt"
    listed.write_text(f"{table}\n")
    for words in (
        ("inspect", table),
        ("inspect", table, "--reader", "delta-rs"),
        ("history", table),
        ("check", table, "--policy", str(policy)),
        ("plan-downgrade", table, "--lowest"),
        ("plan-upgrade", table, "--enable", "deletionVectors", "--output", "plan.json"),
        ("conflicts", table),
        ("scan", table, "--inventory", "inventory"),
        ("scan", ".", "--inventory", table),
        ("scan", "--list", str(listed), "--inventory", "inventory"),
        ("report", table),
    ):
        for format_ in ("text", "json") if words[0] != "report" else ("json",):
            code, out, err = run(*words, "--format", format_)
            assert code in (2, 3), (words, out, err)


def unreachable(run: Run, log: Log, **more: str) -> None:
    """Name endpoints, proxies and servers with a planted secret, where nobody listens."""
    log.commit(0, protocol(1, 2), metadata())
    secret = CANARY.replace("/", "%2F")
    for name in ("aws_endpoint_url", "proxy_url"):
        given = {
            name: f"http://me:{secret}@127.0.0.1:9",
            "aws_access_key_id": "me",
            "aws_secret_access_key": "mine",
            "allow_http": "true",
        }
        for reader in ("log", "delta-rs"):
            words = ("--reader", reader, *as_options({**given, **more}))
            assert run("inspect", "s3://lake/t", *words)[0] == 3
    remote = f"sc://127.0.0.1:9/;token={CANARY}"
    for words in (("inspect", "a.b.c"), ("inspect", log.table, "--reader", "spark")):
        assert run(*words, "--spark-remote", remote, "--format", "json")[0] == 3


def test_endpoints_proxies_and_tokens(run: Run, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    retry_at_once(monkeypatch)
    unreachable(run, log, **DELTA_RS_AT_ONCE)


@pytest.mark.slow
def test_endpoints_proxies_and_tokens_with_pauses_between_retries(run: Run, log: Log) -> None:
    unreachable(run, log)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "t", "--storage-option", CANARY),
        ("inspect", "t", f"--storage-options=aws_secret_access_key={CANARY}"),
        ("inspect", "t", "--storage", f"aws_secret_access_key={CANARY}"),
        ("inspect", "t", "--spark-conf", CANARY, "--format", "json"),
    ],
)
def test_mistyped_options(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words)[0] == 2
