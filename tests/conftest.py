"""Fixtures for all tests. Spark is one session for the whole run."""

from __future__ import annotations

import gc
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support.connect_server import ConnectServer, connect_server, delta_package
from tests.support.engines import for_running
from tests.support.examples import PROFILE
from tests.support.logs import Log
from tests.support.spark_settings import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.recording.plugin"]

# A shell without job control starts its background jobs with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "deltaproto",
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# For `make test`; `make test-all` tries all examples.
settings.register_profile("quick", settings.get_profile("deltaproto"), max_examples=35)
# For `make mutation` and `make coverage`: the same few examples each time, none made smaller.
settings.register_profile(
    "few",
    settings.get_profile("deltaproto"),
    derandomize=True,
    database=None,
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile(PROFILE)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting all collected tests again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that starts a Spark session without being marked: two are slow on two cores."""
    before = _has_session()
    yield
    if _has_session() and not before and item.get_closest_marker("spark") is None:
        pytest.fail("it started a Spark session: mark it `spark`, and use the fixture")


def _has_session() -> bool:
    context = getattr(sys.modules.get("pyspark.core.context"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


class Ran(NamedTuple):
    """One run of the command line in this process."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def table(self) -> dict[str, Any]:
        """The only table of the output."""
        (only,) = self.json["tables"]
        return dict(only)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("DELTAPROTO_") or name in ("NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)


_folders = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one test, by a number of its own.

    pytest's fixture looks through the folders of all earlier tests for a free number.
    """
    name = re.sub(r"\W", "_", request.node.name)[:25]
    path = tmp_path_factory.getbasetemp() / "t" / f"{name}{next(_folders)}"
    path.mkdir(mode=0o700, parents=True)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """An empty log, to be written by hand."""
    return Log(tmp_path / "table")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `deltaproto` with these words in this process."""
    from deltaproto.cli.main import main

    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = main(list(for_running(words)))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `deltaproto` as a process of its own, with no terminal."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deltaproto", *for_running(words)],
            capture_output=True,
            text=True,
            check=False,
            **{"stdin": subprocess.DEVNULL, **options},
        )

    return run


@pytest.fixture(scope="session")
def real_tables(spark: SparkSession) -> Mapping[str, str]:
    """One table of each recipe; Spark makes it on first use. Nobody may change them."""
    from tests.support.tables import RealTables

    return RealTables(spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session, made by deltaproto itself."""
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session

    session = spark_session(SparkSettings(conf=SMALL_TABLES))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectServer]:
    """The one Spark Connect server of the whole run; who kills it starts it again."""
    with connect_server(delta_package(), tmp_path_factory.mktemp("connect")) as running:
        yield running
