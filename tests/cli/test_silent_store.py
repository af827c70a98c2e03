"""Ctrl-C while an object store does not answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.storage


@pytest.mark.parametrize(
    "command",
    [
        "inspect s3://lake/a",
        "inspect s3://lake/a s3://lake/b",
        "plan-downgrade s3://lake/a --lowest",
        "history s3://lake/a",
        "discover s3://lake/a",
        "scan s3://lake/a",
        "report s3://lake/inventory",
    ],
)
def test_it_ends_the_command_at_once(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        environment = {
            **os.environ,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.getsockname()[1]}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
        }
        # Nothing else ends the requests while the server keeps the connection.
        words = [*command.split(), "--storage-option", "timeout=3600s"]
        with subprocess.Popen(
            [sys.executable, "-m", "deltaproto", *words],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                asked, _ = server.accept()
                asked.recv(1)
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            finally:
                process.kill()
        asked.close()
    assert (process.returncode, errors.splitlines()[:1]) == (130, ["interrupted"])
