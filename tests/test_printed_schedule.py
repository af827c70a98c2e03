"""The crontab lines of the guide to schedules run as printed, by the shell that cron would use."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deltaproto.cli.demo import DEMO_TABLES, RECIPES
from tests.conftest import Ran

Cli = Callable[..., Ran]
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-to/schedule.md").read_text(encoding="utf-8")
FIELD = r"(?:\*(?:/\d+)?|\d+)"
LINES = tuple(
    match[1]
    for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)
    for match in re.finditer(rf"^(?:{FIELD} +){{5}}(.*)$", block, re.M)
)
POLICY = """
policy_version: 1
clients: [{client: trino@476, access: [read]}]
tables: {"*": {require_properties: {team: sales}}}
rollout: {waves: [1]}
"""


class HookServer(http.server.HTTPServer):
    """A server on this machine, with what was posted to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.posted: list[Any] = []


class Hook(http.server.BaseHTTPRequestHandler):
    """A webhook that keeps what is posted."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, HookServer)
        self.server.posted.append(json.loads(content))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[HookServer]:
    server = HookServer()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def machine(cli: Cli, tmp_path: Path, hook: HookServer) -> Path:
    """The folders `data`, `etc`, `opt` and `var` of a machine, after a night with a change."""
    for name, recipe in DEMO_TABLES.items():
        RECIPES[recipe](tmp_path / "data" / name)
    for folder in ("etc", "opt", "var/lib/node_exporter"):
        (tmp_path / folder).mkdir(parents=True)
    inventory = f"{tmp_path}/data/_inventory"
    settings = f"roots: ['{tmp_path}/data']\ninventory: '{inventory}'\n"
    (tmp_path / "etc/deltaproto.yaml").write_text(settings)
    (tmp_path / "etc/policy.yaml").write_text(POLICY)
    (setting,) = re.findall(r"# (export \w+=)https://hooks", PAGE)
    address = f"http://127.0.0.1:{hook.server_address[1]}/"
    (tmp_path / "etc/deltaproto.env").write_text(f"{setting}{address}\n")
    alert = tmp_path / "opt/alert"
    alert.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/alerts\n')
    alert.chmod(0o755)
    assert cli("scan", f"{tmp_path}/data", "--inventory", inventory, "--quiet").code == 0
    known = (
        "--policy",
        f"{tmp_path}/etc/policy.yaml",
        "--write-baseline",
        f"{tmp_path}/etc/known.json",
    )
    assert cli("check", inventory, *known, "--quiet").code == 0
    RECIPES["enabled"](tmp_path / "data/events")
    plan = ("--policy", f"{tmp_path}/etc/policy.yaml", "--out", f"{tmp_path}/data/waves", "--quiet")
    assert cli("plan", f"{tmp_path}/data/events", *plan).code == 0
    return tmp_path


def test_the_lines_run_as_printed(machine: Path, hook: HookServer) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    without_spark = [line for line in LINES if " apply " not in line]
    assert (len(LINES), len(without_spark)) == (7, 6)
    settings = machine / "etc/deltaproto.yaml"
    (accepted,) = re.findall(r"^```yaml\n# /etc/deltaproto.yaml\n(.*?)^```", PAGE, re.M | re.S)
    for line in without_spark:
        if " check " in line:
            settings.write_text(settings.read_text() + accepted)
        line = re.sub(r"(?<=[ '\"])/(?=(?:data|etc|opt|var)/)", f"{machine}/", line)
        ran = subprocess.run(
            ["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode in (0, 1), (line, ran)
    # A feature appeared, which is an answer and not a failure.
    assert (machine / "alerts").read_text() == "deltaproto drift exit 1\n"
    assert len(hook.posted) == 1
    for name in ("rollout.prom", "fleet.prom"):
        assert "# EOF" in (machine / "var/lib/node_exporter" / name).read_text()
