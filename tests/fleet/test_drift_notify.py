"""`drift --notify` posts what changed to a webhook."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = pytest.mark.rotating

Cli = Callable[..., Ran]
VECTORS = ["deletionVectors"]
SECRET = "T000/B000/XXXXSECRET"


class Hook:
    """A webhook that keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.kinds: list[str | None] = []
        self.answer = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                outer.kinds.append(self.headers["Content-Type"])
                self.send_response(outer.answer)
                if outer.answer == 302:
                    self.send_header("Location", outer.url)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/{SECRET}"

    @property
    def text(self) -> str:
        (body,) = self.bodies
        (text,) = json.loads(body).values()
        return str(text)


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


@pytest.fixture
def changed(cli: Cli, tmp_path: Path) -> str:
    """An inventory of two scans, between which three tables changed."""
    names = ("a", "b", "<!channel> & co")
    logs = [Log(tmp_path / "lake" / name) for name in names]
    for log in logs:
        log.commit(0, commit_info(), protocol(1, 2), metadata())
    scan = ("scan", str(tmp_path / "lake"), "--inventory", str(tmp_path / "i"))
    cli(*scan)
    for log in logs:
        by = commit_info("SET TBLPROPERTIES", engineInfo="Databricks-Runtime/16.4", userName="job")
        log.commit(1, by, protocol(3, 7, VECTORS, VECTORS))
    cli(*scan)
    return str(tmp_path / "i")


def test_what_changed_is_posted(
    cli: Cli, changed: str, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTAPROTO_NOTIFY", hook.url)
    ran = cli("drift", changed)
    assert ran.code == 1
    assert hook.kinds == ["application/json"]
    assert hook.text.startswith(f"deltaproto: 3 tables changed in {changed}, ")
    assert "error: feature-appeared deletionVectors: 3 tables" in hook.text
    assert "by Databricks-Runtime/16.4, job (3)" in hook.text
    assert "<!channel>" not in hook.text
    assert SECRET not in ran.out + ran.err


def test_nothing_is_posted_if_nothing_changed(cli: Cli, changed: str, hook: Hook) -> None:
    lake = str(Path(changed).parent / "lake")
    cli("scan", lake, "--inventory", changed)
    ran = cli("drift", changed, "--notify", hook.url, "--notify-required")
    assert (ran.code, hook.bodies) == (0, [])


@pytest.mark.parametrize("answer", [302, 404, 500])
@pytest.mark.parametrize("required", [False, True])
def test_a_failed_post_is_a_warning_or_code_3(
    cli: Cli, changed: str, hook: Hook, answer: int, required: bool
) -> None:
    hook.answer = answer
    words = ("--notify-required",) if required else ()
    ran = cli("drift", changed, "--notify", hook.url, *words)
    assert ran.code == (3 if required else 1)
    assert f"cannot notify: the webhook answered {answer}" in ran.err
    assert len(hook.bodies) == 1
    assert SECRET not in ran.out + ran.err


def test_a_hook_that_nobody_answers(cli: Cli, changed: str) -> None:
    with socket.socket() as taken:
        # Bound, but not listening: connections are refused.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/{SECRET}"
        ran = cli("drift", changed, "--notify", url, "--notify-required")
    assert ran.code == 3
    assert "the webhook cannot be reached: Connection refused" in ran.err
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize("url", ["ftp://x/secret", "x", "http://", "http://[/secret", "http://a b"])
def test_what_is_no_hook_is_refused_and_not_repeated(cli: Cli, tmp_path: Path, url: str) -> None:
    ran = cli("drift", str(tmp_path), "--notify", url)
    assert ran.code == 2
    assert "--notify takes the address of a webhook" in ran.err
    assert "secret" not in ran.err
    ran = cli("drift", str(tmp_path), "--notify-required")
    assert (ran.code, "--notify-required needs --notify" in ran.err) == (2, True)
