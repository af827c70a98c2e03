"""A Spark Connect server of its own, that can be killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.spark_settings import SHORT_LIVED, SMALL_TABLES

_SECONDS = 120
_CONF = {
    **SMALL_TABLES,
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class ConnectServer:
    """One server on one port of this machine.

    Args:
        packages: Maven coordinates of Delta.
        folder: its working directory.
    """

    def __init__(self, packages: str, folder: Path) -> None:
        self.port = _free_port()
        self.remote = f"sc://127.0.0.1:{self.port}"
        self._packages, self._folder = packages, folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        import pyspark

        conf = {
            **_CONF,
            "spark.jars.packages": self._packages,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        home = Path(pyspark.__file__).parent
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
        environment.pop("SPARK_REMOTE", None)
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
                    **environment,
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

    def kill(self) -> None:
        """End it with SIGKILL, as a machine that goes away would."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


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
