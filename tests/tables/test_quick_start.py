"""Item 17: a Spark session starts sooner after the first start, and the user's settings win."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deltaproto.tables import quick_start
from deltaproto.tables.quick_start import QuickStart

ONE_COMPILER = "-XX:TieredStopAtLevel=1"
COLLECTOR = "-XX:+UseSerialGC"
_OUTSIDE = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", *_OUTSIDE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(quick_start, "_processors", lambda: 2)
    return tmp_path / "deltaproto"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier start has kept its jars."""
    monkeypatch.setattr(QuickStart, "jars", lambda _: ["/delta.jar"])


def options(conf: dict[str, str] | None = None, java: int = 17) -> list[str]:
    set_ = QuickStart((), conf or {}).java_options(java)
    return set_.get("spark.driver.defaultJavaOptions", "").split()


def test_options_of_a_configured_spark_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ONE_COMPILER in options()
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert options() == []


def test_options_that_java_would_refuse_beside_the_users_are_left_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "spark.driver.extraJavaOptions"
    assert options({"spark.driver.defaultJavaOptions": "-Xmx1g"}) == []
    for theirs in ("-XX:+UseG1GC", "-XX:SharedArchiveFile=a.jsa", "-Xshare:off", "-Xlog:gc"):
        assert options({more: theirs}) == [ONE_COMPILER], theirs
    assert not cache.exists()
    assert COLLECTOR in options({more: "-Xss4m"})
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseZGC")
    assert options() == [ONE_COMPILER]


def test_one_thread_collects_garbage_only_on_few_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert COLLECTOR in options()
    monkeypatch.setattr(quick_start, "_processors", lambda: 3)
    assert COLLECTOR not in options()


def test_the_first_start_writes_no_archive(cache: Path) -> None:
    assert options() == [ONE_COMPILER, COLLECTOR]
    assert not list(cache.glob("*.jsa*"))


@pytest.mark.usefixtures("started")
def test_one_start_writes_the_archive_and_later_ones_use_it(cache: Path) -> None:
    first = options()
    (new,) = cache.glob("*.jsa.new")
    assert f"-XX:ArchiveClassesAtExit={new}" in first
    assert [each for each in options() if "Archive" in each] == []  # Java is writing it

    new.write_bytes(bytes(4096))
    age(new, 60)
    assert [each for each in options() if "Archive" in each] == []  # without a header
    new.write_bytes(b"\xa8\xba\x0b\xf0" + bytes(4096))
    age(new, 60)
    (old := cache / "spark-old.jsa").write_bytes(b"1")
    age(old, 40 * 86400)
    use = options()
    (archive,) = cache.iterdir()
    assert f"-XX:SharedArchiveFile={archive}" in use
    assert options() == use

    archive.write_bytes(b"\xa8\xba\x0b\xf0")  # cut off: Java would crash
    assert f"-XX:ArchiveClassesAtExit={new}" in options()


@pytest.mark.usefixtures("started")
def test_other_properties_need_no_other_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    (archive,) = [each for each in options() if "Archive" in each]
    new = Path(archive.partition("=")[2])
    age(new, 2 * 3600)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Duser.home=/elsewhere")
    assert archive in options()


@pytest.mark.usefixtures("started")
def test_an_archive_that_java_never_completed_is_written_again(cache: Path) -> None:
    first = options()
    (new,) = cache.glob("*.jsa.new")
    age(new, 2 * 3600)
    assert options() == first


@pytest.mark.parametrize("place", ["a file", "with space"])
def test_a_cache_that_cannot_be_used_is_not(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / place))
    if place == "a file":
        (tmp_path / place).touch()
    assert options() == [ONE_COMPILER, COLLECTOR]
    assert options(java=11) == [ONE_COMPILER, COLLECTOR]


def test_resolved_jars_are_named_until_one_changes(tmp_path: Path) -> None:
    jars = [tmp_path / "a b.jar", tmp_path / "c.jar"]
    for jar in jars:
        jar.write_bytes(b"jar")
    named = ",".join(jar.as_uri() for jar in jars)
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(getConf=lambda: {"spark.jars": named})
    )
    QuickStart(("a:b:1",), {"spark.jars.repositories": "https://example.com"}).keep_jars(session)
    assert QuickStart(("a:b:1",), {}).jars() == []
    QuickStart(("a:b:1",), {}).keep_jars(session)
    assert QuickStart(("a:b:1",), {}).jars() == [str(jar) for jar in jars]
    assert QuickStart(("a:b:2",), {}).jars() == []
    assert QuickStart(("a:b:1",), {"spark.jars.ivy": "/ivy"}).jars() == []
    jars[1].write_bytes(b"another")
    assert QuickStart(("a:b:1",), {}).jars() == []


SESSION = """
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
session = spark_session(SparkSettings(conf={"spark.master": "local[1]"}))
runtime = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
print(*[each.split("=")[0] for each in runtime.getInputArguments() if "Archive" in each])
print(len(session.sparkContext.getConf().get("spark.jars").split(",")))
print(session.sparkContext.getConf().get("spark.jars.packages") is None)
from pyspark.errors.exceptions import captured
print(captured.convert_exception.__name__)  # errors of Delta stay errors of Delta
from pyspark import SparkContext
gateway = SparkContext._gateway
session.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_the_second_start_resolves_no_jars_and_the_third_uses_its_archive(cache: Path) -> None:
    shown = []
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", SESSION], capture_output=True, text=True, check=True
        )
        shown.append(ran.stdout.split())
        for new in cache.glob("*.new"):
            age(new, 60)
    (jars, resolved, converts), *others = shown
    assert (resolved, converts) == ("False", "convert_delta_exception")
    archives = ("-XX:ArchiveClassesAtExit", "-XX:SharedArchiveFile")
    assert others == [[archive, jars, "True", converts] for archive in archives]


def age(path: Path, seconds: int) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))
