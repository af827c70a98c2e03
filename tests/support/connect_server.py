"""A Spark Connect server of its own, that can be killed and started again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deltaproto.tables.java import connect_server_packages as server_package
from tests.support.engines import missing
from tests.support.spark_settings import SHORT_LIVED, SMALL_TABLES

_SECONDS = 120
_ROOT = Path(__file__).parents[2]
TOKEN = "token-that-nobody-may-see"
ASKS_FOR_TOKEN = missing("4.0", "a token without TLS") is None
_CONF = {
    **SMALL_TABLES,
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **({"spark.connect.authenticate.token": TOKEN} if ASKS_FOR_TOKEN else {}),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class Answer(NamedTuple):
    """What came of one command line."""

    code: int
    out: str
    err: str


def delta_package() -> str:
    """The Maven coordinates of Delta for the running Spark."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder: Any = configure_spark_with_delta_pip(SparkSession.Builder())
    return str(builder._options["spark.jars.packages"])


class ConnectServer:
    """One server on one port of this machine, which asks for a token where Spark can.

    Args:
        packages: Maven coordinates of Delta.
        folder: its working directory.
    """

    def __init__(self, packages: str, folder: Path) -> None:
        self.port = _free_port()
        self.address = f"sc://localhost:{self.port}"
        self.remote = f"{self.address}/;token={TOKEN}" if ASKS_FOR_TOKEN else self.address
        self._packages, self._folder = packages, folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import pyspark

        conf = {
            **_CONF,
            "spark.jars.packages": ",".join((self._packages, *server_package("local"))),
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        home = Path(pyspark.__file__).parent
        log = self._folder / "connect-server.log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [
                    str(home / "bin" / "spark-submit"),
                    *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                    *words,
                ],
                cwd=self._folder,
                env={
                    **outside(),
                    "SPARK_HOME": str(home),
                    "PYSPARK_PYTHON": sys.executable,
                    "JAVA_TOOL_OPTIONS": SHORT_LIVED,
                },
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(log.read_text()[-3000:])

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def group(self) -> int:
        """The group of its processes."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it with SIGKILL, as a machine that goes away would, even if it is stopped."""
        if self._process is not None and self.running:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def answers(self, *lines: Sequence[str], remote: str | None = None) -> list[Answer]:
        """Run `deltaproto` with each of these words, in one process; by default through here."""
        told = [[*words, "--spark-remote", remote or self.remote] for words in lines]
        return [Answer(*each) for each in child("tests.support.command_lines", told)]

    def sql(self, *statements: str) -> None:
        """Have the server execute statements."""
        child("tests.support.statements", {"remote": self.remote, "statements": statements})


def child(module: str, given: object, folder: Path = _ROOT) -> list[list[Any]]:
    """What a module of these makes of `given`, in a process of its own in `folder`."""
    ran = subprocess.run(
        [sys.executable, "-m", module],
        cwd=folder,
        env={**outside(), "PYTHONPATH": str(_ROOT)},
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answers: list[list[Any]] = json.loads(ran.stdout)
    return answers


def outside() -> dict[str, str]:
    """The environment without what the tests' own Spark put there, which a client would follow."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("PYSPARK") and key != "SPARK_REMOTE"
    }


@contextmanager
def connect_server(packages: str, folder: Path) -> Iterator[ConnectServer]:
    """A running server, and its end."""
    server = ConnectServer(packages, folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
