"""Starting Spark, and above all not being able to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaproto.errors import EngineError
from deltaproto.tables.java import main as java_main
from deltaproto.tables.java import require_java
from deltaproto.tables.session import (
    _configured_packages,
    _needs_delta,
    explain_start_failure,
    unknown_name_hint,
)
from tests.support.connect_server import delta_package
from tests.support.logs import Log, metadata, protocol
from tests.support.spark_settings import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A JVM that soon ends compiles little.
Process = Callable[..., subprocess.CompletedProcess[str]]
DEAD_PROXY = " ".join(
    f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort=9" for scheme in ("http", "https")
)


@pytest.fixture
def table(log: Log) -> str:
    return log.commit(0, protocol(1, 2), metadata()).table


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}


def error_of(ran: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert ran.returncode == 3, ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    (entry,) = json.loads(ran.stdout)["tables"]
    error: dict[str, str] = entry["error"]
    assert error["code"] == "engine-unavailable"
    assert "\n" not in error["message"]
    return error


def fake_java(folder: Path, version: str) -> str:
    """A JAVA_HOME whose java prints this version, as old ones do on standard error."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o755)
    return str(folder)


def test_without_java_one_line_says_what_to_install(
    table: str, process: Process, tmp_path: Path
) -> None:
    bare = environment(JAVA_HOME=str(tmp_path / "none"))
    ran = process("inspect", table, "--reader", "spark", "--format", "json", env=bare)
    error = error_of(ran)
    assert "Java" in error["message"]
    assert "install Java 17" in error["hint"]
    # Everything that needs no Spark still works.
    ran = process("inspect", table, "--format", "json", env=bare)
    assert ran.returncode == 0


def test_without_java_the_other_readers_still_compare(
    table: str, process: Process, tmp_path: Path
) -> None:
    bare = environment(JAVA_HOME=str(tmp_path / "none"))
    ran = process("inspect", table, "--reader", "all", "--format", "json", env=bare)
    assert ran.returncode == 3
    document = json.loads(ran.stdout)
    (entry,) = document["tables"]
    assert entry["protocol"]["minWriterVersion"] == 2
    assert entry["readers"]["spark"]["error"]["code"] == "engine-unavailable"
    assert entry["readers"]["delta-rs"]["version"] == 0
    assert document["complete"] is False


@pytest.mark.parametrize(
    ("version", "fine"), [("1.8.0_392", False), ("11.0.2", False), ("21", True)]
)
def test_javas_version_is_read(
    version: str, fine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    if fine:
        assert require_java() == 21
        assert java_main() == 0
        return
    with pytest.raises(EngineError, match="too old"):
        require_java()
    assert java_main() == 3


@pytest.mark.parametrize("remote", ["local[2]", "sc://localhost:1"])
def test_a_master_beside_an_address_is_refused(remote: str, table: str, cli: Any) -> None:
    words = ("--reader", "spark", "--spark-remote", remote, "--spark-conf", "spark.master=local[1]")
    ran = cli("inspect", table, *words)
    assert ran.code == 3
    assert "spark.master cannot be combined with the address of a Spark" in ran.out + ran.err


def test_without_pyspark_the_extra_is_named(table: str, cli: Any, monkeypatch: Any) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyspark", None)
    ran = cli("inspect", table, "--reader", "spark", "--format", "json")
    assert ran.code == 3
    assert "delta-spark<4.4.1" in ran.table["error"]["hint"]


@pytest.mark.spark
@pytest.mark.slow
def test_jars_that_cannot_be_fetched(table: str, process: Process, tmp_path: Path) -> None:
    options = f"-Duser.home={tmp_path} {DEAD_PROXY} {SHORT_LIVED}"
    ran = process(
        *("inspect", table, "--reader", "spark", "--format", "json"),
        *("--spark-conf", f"spark.jars.ivy={tmp_path}/ivy"),
        env=environment(JAVA_TOOL_OPTIONS=options),
    )
    error = error_of(ran)
    assert "jars" in error["message"]
    assert "Maven Central" in error["message"]
    assert error["hint"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("configured", [False, True])
def test_the_packages_of_a_connector_come_with_those_of_delta(
    configured: bool, table: str, process: Process, tmp_path: Path
) -> None:
    # Delta depends on it, so it is in Ivy's cache.
    package = "org.roaringbitmap:shims:0.9.25"
    (tmp_path / "spark-defaults.conf").write_text(f"spark.jars.packages {package}\n")
    ran = process(
        *("inspect", table, "--reader", "spark", "--format", "json"),
        *(() if configured else ("--spark-conf", f"spark.jars.packages={package}")),
        env=environment(
            JAVA_TOOL_OPTIONS=SHORT_LIVED,
            **({"SPARK_CONF_DIR": str(tmp_path)} if configured else {}),
        ),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["tables"][0]["reader"] == "spark"


def test_packages_in_the_defaults_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert _configured_packages() == {}
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert _configured_packages() == {}
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text("# spark.jars.packages c:d:1\nspark.jars /x\nspark.jars.packages_ e:f:1\n")
    assert _configured_packages() == {}
    for line in ("spark.jars.packages a:b:1", "  spark.jars.packages\t= a:b:1 "):
        defaults.write_text(f"spark.master local\n{line}\nspark.jars /x\n")
        assert _configured_packages() == {"spark.jars.packages": "a:b:1"}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _configured_packages() == {}
    (tmp_path / "spark-defaults.conf").write_bytes(b"spark.jars.packages \xff")
    assert _configured_packages() == {}


@pytest.mark.parametrize(
    ("conf", "needed"),
    [
        ({}, True),
        ({"spark.jars.packages": "io.unitycatalog:unitycatalog-spark_4.2_2.13:0.6.0"}, True),
        ({"spark.jars.packages": "a:b:1,io.delta:delta-spark_4.2_2.13:4.4.0"}, False),
        ({"spark.jars.packages": "a:b:1", "spark.jars": "/opt/all.jar"}, False),
        ({"spark.driver.extraClassPath": "/opt/jars/*"}, False),
    ],
)
def test_settings_that_need_the_jars_of_delta(conf: dict[str, str], needed: bool) -> None:
    assert _needs_delta(conf) is needed


@pytest.mark.spark
@pytest.mark.slow
def test_a_half_filled_maven_repository_is_recognised(
    table: str, process: Process, tmp_path: Path
) -> None:
    version = delta_package().split(":")[-1]
    folder = tmp_path / ".m2" / "repository" / "io" / "delta" / "delta-storage" / version
    folder.mkdir(parents=True)
    (folder / f"delta-storage-{version}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>io.delta</groupId>"
        f"<artifactId>delta-storage</artifactId><version>{version}</version></project>"
    )
    ran = process(
        *("inspect", table, "--reader", "spark", "--format", "json"),
        *("--spark-conf", f"spark.jars.packages=io.delta:delta-storage:{version}"),
        *("--spark-conf", f"spark.jars.ivy={tmp_path}/ivy"),
        env=environment(JAVA_TOOL_OPTIONS=f"-Duser.home={tmp_path} {SHORT_LIVED}"),
    )
    error = error_of(ran)
    assert "delta-storage" in error["message"]
    assert f"~/.m2/repository/io/delta/delta-storage/{version}" in error["hint"]


STARTING = """
import sys, tempfile
from deltaproto.cli.progress import count_steps, show_waiting
from deltaproto.tables.session import _redirect_child_output
with count_steps("tables", first="the first second", show=True):
    pass
with tempfile.TemporaryFile() as log, _redirect_child_output(log.fileno()):
    with show_waiting("while the JVM starts", show=True):
        pass
    log.seek(0)
    hidden = log.read()
assert hidden == b"", hidden
"""


def test_item_17_progress_is_visible_while_spark_starts() -> None:
    """A terminal shows progress before and while the output of child processes is redirected."""
    ours, theirs = os.openpty()
    ran = subprocess.run(
        [sys.executable, "-c", STARTING],
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        check=False,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError), open(ours, "rb", buffering=0) as terminal:
        while piece := terminal.read(4096):
            shown += piece
    assert ran.returncode == 0, shown
    assert b"the first second" in shown
    assert b"while the JVM starts" in shown


EXPECTING = """
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import expect_rows, spark_session
conf = {"spark.sql.adaptive.enabled": "false", "spark.driver.defaultJavaOptions": JAVA}
session = spark_session(SparkSettings(conf=conf))
keys = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode", *conf)
for rows in (100, 100_000, 9_999):
    expect_rows(session, rows)
    print(*(session.conf.get(key) for key in keys[:3]))
"""


JAVA_OPTIONS = """
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
session = spark_session(SparkSettings(conf=CONF))
runtime = session._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
print(*[each for each in runtime.getInputArguments() if "Tiered" in each])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_item_17_java_starts_with_one_compiler_unless_the_user_says_otherwise() -> None:
    two = "-XX:TieredStopAtLevel=4"
    for conf, options in (
        ({}, "-XX:TieredStopAtLevel=1"),
        ({"spark.driver.extraJavaOptions": two}, f"-XX:TieredStopAtLevel=1 {two}"),
        ({"spark.driver.defaultJavaOptions": two}, two),
    ):
        script = JAVA_OPTIONS.replace("CONF", repr(conf))
        ran = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert ran.stdout.split() == options.split()


@pytest.mark.spark
@pytest.mark.slow
def test_item_17_plans_for_few_rows_are_interpreted_and_for_many_compiled() -> None:
    """A setting that the user passed stays."""
    script = EXPECTING.replace("JAVA", repr(SHORT_LIVED))
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    few, many = "false NO_CODEGEN false", "true FALLBACK false"
    assert ran.stdout.splitlines() == [few, many, few]


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_does_not_keep_every_table_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Delta's cache would otherwise fill the driver after a thousand tables."""
    spark.sql(f"create table delta.`{tmp_path / 'first'}` (id bigint) using delta")
    delta: Any = spark._jvm.org.apache.spark.sql.delta  # type: ignore[union-attr]
    delta_log = getattr(getattr(delta, "DeltaLog$"), "MODULE$")
    for number in range(200):
        copy = shutil.copytree(tmp_path / "first", tmp_path / f"copy{number}")
        opened = delta_log.forTable(spark._jsparkSession, str(copy))
        assert opened.unsafeVolatileSnapshot().version() == 0
    assert 0 < delta_log.cacheSize() <= 64


def test_other_failures_are_left_to_the_caller() -> None:
    assert explain_start_failure("Exception in thread main: something new") is None
    old = explain_start_failure("java.lang.UnsupportedClassVersionError: org/apache/spark/X")
    assert old is not None
    assert "too old" in old.message


def test_a_connect_server_that_is_not_there(table: str, process: Process) -> None:
    ran = process(
        *("inspect", table, "--reader", "spark", "--format", "json"),
        *("--spark-remote", "sc://127.0.0.1:9"),
        env=environment(GRPC_VERBOSITY="NONE"),
    )
    assert "sc://127.0.0.1:9" in error_of(ran)["message"]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_connect_gives_the_same_answer(
    spark: SparkSession, process: Process, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    spark.sql(
        f"create table delta.`{path}` (id bigint) using delta cluster by (id) "
        "tblproperties ('delta.enableDeletionVectors'='true')"
    )
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    ran = process(
        *("inspect", path, "--reader", "all", "--format", "json", "--spark-remote", "local[1]"),
        env={**outside, "JAVA_TOOL_OPTIONS": SHORT_LIVED},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (entry,) = json.loads(ran.stdout)["tables"]
    seen = entry["readers"]["spark"]
    assert seen["protocol"] == entry["protocol"]
    assert seen["clustering_columns"] == ["id"]


def test_reading_leaves_nothing_behind(table: str, process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    before = sorted(p.name for p in Path(table).rglob("*"))
    assert process("inspect", table, cwd=folder).returncode == 0
    assert list(folder.iterdir()) == []
    assert sorted(p.name for p in Path(table).rglob("*")) == before


@pytest.mark.spark
@pytest.mark.slow
def test_reading_through_spark_leaves_nothing_behind(
    table: str, process: Process, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    env = environment(JAVA_TOOL_OPTIONS=SHORT_LIVED)
    ran = process("inspect", table, "--reader", "spark", cwd=folder, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert list(folder.iterdir()) == []
    assert not list(Path(table).rglob("*.crc"))


class SessionSettings:
    """A session of which only the settings are asked for."""

    def __init__(self, name: str, catalogs: str) -> None:
        self.conf = {"spark.app.name": name, "spark.sql.catalogImplementation": catalogs}


@pytest.mark.parametrize(
    ("name", "catalogs", "hinted"),
    [
        ("deltaproto", "in-memory", True),
        ("deltaproto", "hive", False),
        ("a job", "in-memory", False),
    ],
)
def test_a_spark_without_catalogs_names_the_settings_that_add_one(
    name: str, catalogs: str, hinted: bool
) -> None:
    session: Any = SessionSettings(name, catalogs)
    hint = unknown_name_hint("check the name", session)
    assert ("--spark-conf spark.sql.catalogImplementation=hive" in hint) is hinted
    assert (hint == "check the name") is not hinted


def test_a_session_that_does_not_show_its_settings_gets_no_hint() -> None:
    session: Any = None
    assert unknown_name_hint("check the name", session) == "check the name"
