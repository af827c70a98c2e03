"""Getting a Spark session: an existing one, Spark Connect, or a local one with Delta's jars.

Starting Spark fails in few but unreadable ways; each is told apart here and named in one line.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deltaproto.errors import EngineError
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.java import SPARK_3_MINIMUM, SPARK_4_MINIMUM, require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_SUPPLIES_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def spark_session(settings: SparkSettings) -> SparkSession:
    """The active session where there is one (notebooks, jobs), else a new one.

    Raises:
        EngineError: naming what is missing or wrong, and the remedy.
    """
    sql = _pyspark()
    if settings.remote and settings.remote.startswith("local"):
        require_java()
        return _started(sql.SparkSession.builder.remote(settings.remote), settings)
    if settings.remote:
        return _connect(sql, settings)
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    import pyspark

    major = int(pyspark.__version__.split(".")[0])
    require_java(SPARK_4_MINIMUM if major >= 4 else SPARK_3_MINIMUM)
    return _started(sql.SparkSession.builder.master("local[*]"), settings)


def explain_start_failure(output: str) -> EngineError | None:
    """The error behind what Spark's launcher printed; None when it is none of the known ones."""
    if re.search(r"\.m2[/\\]repository", output) and re.search(
        r"NOT FOUND|download failed", output
    ):
        jar = re.search(r"download failed: (\S+)", output) or re.search(r"!(\S+\.jar)", output)
        return EngineError(
            "Spark cannot resolve Delta's jars: the local Maven repository ~/.m2 is half-filled"
            + (f" ({jar[1]})" if jar else ""),
            "remove ~/.m2/repository/io/delta and ~/.m2/repository/org/antlr, or run with "
            "--spark-conf spark.jars.ivySettings=FILE that leaves ~/.m2 out",
        )
    if re.search(r"unresolved dependency|Server access [Ee]rror|UnknownHostException", output):
        missing = re.search(r"unresolved dependency: ([^:\s]+#[^:\s]+;\S+)", output)
        return EngineError(
            "Spark cannot resolve Delta's jars"
            + (f" ({missing[1].rstrip(':')})" if missing else "")
            + ": Maven Central does not answer, and they are not in the Ivy cache",
            "run once with a network (make setup does), or give the jars with "
            "--spark-conf spark.jars=PATH,PATH",
        )
    if "UnsupportedClassVersionError" in output:
        return EngineError(
            "this Java is too old for this Spark", "install Java 17 or later and set JAVA_HOME"
        )
    return None


def _pyspark() -> Any:
    try:
        from pyspark import sql
    except ImportError:
        raise EngineError(
            "pyspark is not installed", "pip install 'deltaproto[spark]', or use --reader log"
        ) from None
    return sql


def _connect(sql: Any, settings: SparkSettings) -> SparkSession:
    try:
        builder = sql.SparkSession.builder.remote(settings.remote)
        for key, value in settings.conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        _ = session.version
    except Exception as error:
        raise EngineError(
            f"no Spark Connect server answers at {settings.remote}: {first_line(error)}",
            "check the URL (sc://host:15002) and that pyspark[connect] is installed",
        ) from None
    return session


def _started(builder: Any, settings: SparkSettings) -> SparkSession:
    builder = builder.appName("deltaproto")
    for key, value in {**_LOCAL_CONF, **settings.conf}.items():
        builder = builder.config(key, value)
    if not any(key in settings.conf for key in _SUPPLIES_JARS):
        try:
            from delta import configure_spark_with_delta_pip
        except ImportError:
            raise EngineError(
                "delta-spark is not installed",
                "pip install 'deltaproto[spark]', or give its jars with --spark-conf spark.jars=…",
            ) from None
        builder = configure_spark_with_delta_pip(builder)
    with tempfile.TemporaryFile() as log:
        try:
            with _output_to(None if settings.show_log else log.fileno()):
                session = builder.getOrCreate()
        except Exception as error:
            log.seek(0)
            output = log.read().decode("utf-8", "replace") + str(error)
            raise explain_start_failure(output) or EngineError(
                f"Spark does not start: {first_line(error)}",
                "run again with --debug to see Spark's own output",
            ) from None
    return session


@contextlib.contextmanager
def _output_to(descriptor: int | None) -> Iterator[None]:
    """Give child processes `descriptor` for their output, which they keep: the JVM's log lines
    would otherwise land between the lines of data on a terminal."""
    if descriptor is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type's name."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
