"""Provides a Spark session: an existing one, Spark Connect, or a local one with Delta's jars.

Spark startup failures are hard to read; each known one is detected here and reported in one line.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from deltaproto.errors import EngineError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import SUBSTITUTION, has_variable
from deltaproto.tables.engine_errors import (
    failure_cause,
    is_connection_lost,
    spark_message,
)
from deltaproto.tables.java import (
    SPARK_3_MINIMUM,
    SPARK_4_MINIMUM,
    connect_server_packages,
    file_system_packages,
    find_pyspark_jars,
    is_spark_3,
    require_java,
)
from deltaproto.tables.quick_start import QuickStart
from deltaproto.tables.spark_connect import configure_stores, connect_session, is_local
from deltaproto.tables.storage.through_spark import hadoop_conf_from_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
DATABRICKS_RUNTIME = "spark.databricks.clusterUsageTags.sparkVersion"
"""the setting with the version of a Databricks Runtime; other Sparks do not have it"""
_LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # Otherwise a table named victim${x} would be read and changed as victim.
    SUBSTITUTION: "false",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Each table is used for a short time, then another one. Delta would keep 10,000 of them in
    # memory, at one to two megabytes each, and Spark the plans of its last 1,000 queries.
    "spark.databricks.delta.delta.log.cacheSize": "64",
    "spark.sql.ui.retainedExecutions": "16",
    "spark.ui.retainedJobs": "16",
    "spark.ui.retainedStages": "16",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
}
PYSPARK_MISSING = "pyspark is not installed"
_APPLICATION = "deltaproto"
_MISSING_CATALOGS = (
    "deltaproto started this Spark, which has only the catalogs passed to it: for Hive, add "
    "--spark-conf spark.sql.catalogImplementation=hive; for a server, add --spark-remote; "
    "uc://HOST, hms://HOST and glue://REGION need no Spark"
)
_INTERPRETED = {
    "spark.sql.adaptive.enabled": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
    "spark.sql.codegen.wholeStage": ("false", "true"),
}
"""values for few rows, for which interpreting a plan is faster than compiling it, and values for
many rows
"""
_MANY_ROWS = 10_000
_PACKAGES = "spark.jars.packages"
_SUPPLIES_JARS = ("spark.jars", _PACKAGES, "spark.driver.extraClassPath")


def spark_session(settings: SparkSettings) -> SparkSession:
    """Return the active session if there is one (notebooks, jobs), else a new one.

    Raises:
        EngineError: names what is missing or wrong, and the remedy.
    """
    sql = _import_pyspark()
    if settings.remote and "spark.master" in settings.conf:
        raise EngineError(
            "spark.master cannot be combined with the address of a Spark",
            "remove the setting spark.master, or the address (--spark-remote)",
        )
    if settings.remote and is_local(settings.remote):
        java = _require_java()
        return _start_session(sql.SparkSession.builder.remote(settings.remote), settings, java)
    if settings.remote:
        return connect_session(sql, settings)
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        configure_stores(active, settings)
        return active
    java = _require_java()
    return _start_session(sql.SparkSession.builder.master("local[*]"), settings, java)


def expect_rows(session: SparkSession, rows: int) -> None:
    """Prefer a quick start for few rows and throughput for many, in a session of our own.

    Settings that the user passed stay as they are.
    """
    try:
        started_with = session.sparkContext.getConf()
    except Exception:
        # A Spark Connect session is not ours.
        return
    if started_with.get("spark.app.name") != _APPLICATION:
        return
    for key, (few, many) in _INTERPRETED.items():
        if not started_with.contains(key):
            session.conf.set(key, many if rows >= _MANY_ROWS else few)


def unknown_name_hint(hint: str, session: SparkSession) -> str:
    """Return the hint for a name that Spark does not know.

    To a Spark that deltaproto started without catalogs, it adds how to pass some.
    """
    try:
        ours = session.conf.get("spark.app.name") == _APPLICATION
        # Without a default: Spark refuses one that the setting could not have.
        kind = session.conf.get("spark.sql.catalogImplementation")
    except Exception:
        return hint
    return f"{hint}; {_MISSING_CATALOGS}" if ours and kind == "in-memory" else hint


def open_query(session: SparkSession, sql: str) -> DataFrame:
    """Return the result of a query as written.

    Raises:
        EngineError: when the session would replace `${…}` in it.
    """
    with without_substitution(session) if has_variable(sql) else contextlib.nullcontext():
        return session.sql(sql)


def sql_rows(session: SparkSession, sql: str, *columns: str) -> list[Row]:
    """Execute a statement exactly as written and return its rows.

    Args:
        columns: expressions over its columns; empty selects all columns.

    Raises:
        EngineError: when the session would replace `${…}` in it.
    """
    if not has_variable(sql):
        return _rows(session, sql, columns)
    with without_substitution(session):
        return _rows(session, sql, columns)


def _rows(session: SparkSession, sql: str, columns: tuple[str, ...]) -> list[Row]:
    frame = session.sql(sql)
    return list((frame.selectExpr(*columns) if columns else frame).collect())


@contextlib.contextmanager
def without_substitution(session: SparkSession) -> Iterator[None]:
    """Disable variable substitution for the block.

    Raises:
        EngineError: when the session does not allow that.
    """
    before = session.conf.get(SUBSTITUTION, "true")
    if str(before).lower() == "false":
        yield
        return
    try:
        session.conf.set(SUBSTITUTION, "false")
        off = str(session.conf.get(SUBSTITUTION, "true")).lower() == "false"
    except Exception as error:
        if is_connection_lost(spark_message(error)):
            raise
        off = False
    if not off:
        raise EngineError(
            "this Spark session replaces ${…} in statements, and would use a different name",
            f"set {SUBSTITUTION}=false where the session is created, or rename the table",
        )
    disconnected = False
    try:
        yield
    except Exception as error:
        # A disconnected session takes half a minute to fail, and there is nothing to restore.
        disconnected = is_connection_lost(spark_message(error))
        raise
    finally:
        if not disconnected:
            with contextlib.suppress(Exception):
                session.conf.set(SUBSTITUTION, str(before))


def explain_start_failure(output: str) -> EngineError | None:
    """Find a known error in the output of Spark's launcher, or return None."""
    failed = re.search(r"download failed: ([^!\s\]]+)", output)
    module = failed[1] if failed else ""
    if module and f"found {module} in local-m2-cache" in output:
        organisation, _, rest = module.partition("#")
        name, _, version = rest.partition(";")
        folder = "/".join(("~/.m2/repository", *organisation.split("."), name, version))
        return EngineError(
            f"Spark cannot resolve Delta's jars: ~/.m2 has the description of {name} {version} "
            "but not its jar",
            f"remove {folder} (an incomplete Maven download that Ivy treats as complete)",
        )
    unresolved = re.search(r"unresolved dependency: ([^:\s]+#[^:\s]+;[^:\s]+)", output)
    unreachable = re.search(r"Server access [Ee]rror|UnknownHostException", output)
    if failed or unresolved or unreachable:
        missing = module or (unresolved[1] if unresolved else "")
        return EngineError(
            "Spark cannot resolve Delta's jars"
            + (f" ({missing})" if missing else "")
            + ": they are not available from Maven Central or the Ivy cache",
            "start Spark once with access to Maven Central, or pass the jars with "
            "--spark-conf spark.jars=PATH,PATH",
        )
    if "UnsupportedClassVersionError" in output:
        return EngineError(
            "this Java is too old for this Spark", "install Java 17 or later and set JAVA_HOME"
        )
    return None


def _require_java() -> int:
    return require_java(SPARK_3_MINIMUM if is_spark_3() else SPARK_4_MINIMUM)


def _import_pyspark() -> Any:
    try:
        from pyspark import sql
    except ImportError:
        raise EngineError(
            PYSPARK_MISSING, "pip install 'delta-spark<4.4.1', which brings pyspark"
        ) from None
    # A warning about pandas, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    return sql


def _start_session(builder: Any, settings: SparkSettings, java: int) -> SparkSession:
    # Lets Spark's Python workers import the same modules as this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.appName(_APPLICATION)
    reached = {**hadoop_conf_from_environment(settings.stores), **settings.hadoop}
    hadoop = {f"spark.hadoop.{key}": value for key, value in reached.items()}
    conf = {**_configured_packages(), **settings.conf}
    more = conf.pop(_PACKAGES, "") if _needs_delta(conf) else ""
    packages = [
        *file_system_packages(reached, settings.stores),
        *connect_server_packages(settings.remote),
        *filter(None, map(str.strip, more.split(","))),
    ]
    quick_start = QuickStart(packages, settings.conf)
    ours = {**quick_start.java_options(java), **_LOCAL_CONF, **_temporary_warehouse()}
    for key, value in {**ours, **hadoop, **conf}.items():
        builder = builder.config(key, value)
    complete = not packages and find_pyspark_jars("delta-spark")
    supplied = complete or any(key in conf for key in _SUPPLIES_JARS)
    jars = [] if supplied else quick_start.jars()
    if not supplied:
        try:
            # The import also converts Delta's errors to Python exceptions.
            from delta import configure_spark_with_delta_pip
        except ImportError:
            raise EngineError(
                "delta-spark is not installed",
                "pip install 'delta-spark<4.4.1', or pass its jars with --spark-conf spark.jars=…",
            ) from None
        if jars:
            builder = builder.config("spark.jars", ",".join(jars))
        else:
            builder = configure_spark_with_delta_pip(builder, packages)
    with tempfile.TemporaryFile() as log:
        try:
            with _redirect_child_output(None if settings.show_log else log.fileno()):
                session = builder.getOrCreate()
        except Exception as error:
            log.seek(0)
            output = log.read().decode("utf-8", "replace") + str(error)
            raise explain_start_failure(output) or EngineError(
                f"cannot start Spark: {settings.redact(failure_cause(error))}",
                "run again with --debug to see Spark's output",
            ) from None
    if not (supplied or jars):
        quick_start.keep_jars(session)
    if not settings.show_log:
        logging.getLogger().addFilter(_drop_failed_calls)
    return session


def _configured_packages() -> dict[str, str]:
    """Return the packages in spark-defaults.conf as a setting: Delta's would replace them."""
    folder, home = os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME")
    folder = folder or (home and os.path.join(home, "conf"))
    if not folder:
        return {}
    try:
        with open(os.path.join(folder, "spark-defaults.conf"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    pattern = rf"\s*{re.escape(_PACKAGES)}\s*[=:\s]\s*(.*)"
    found = [each[1].strip() for line in lines if (each := re.fullmatch(pattern, line))]
    return {_PACKAGES: found[-1]} if found else {}


def _needs_delta(conf: Mapping[str, str]) -> bool:
    """Return True if the user's packages are a catalog's connector, say, but not Delta."""
    others = any(key in conf for key in _SUPPLIES_JARS if key != _PACKAGES)
    return not others and "delta" not in conf.get(_PACKAGES, "").lower()


def _drop_failed_calls(record: logging.LogRecord) -> bool:
    """Silence py4j, which logs a traceback for each call to a dead JVM in addition to raising."""
    return record.module != "java_gateway"


def _temporary_warehouse() -> dict[str, str]:
    # Spark creates its warehouse folder in the working directory even if it only reads.
    folder = tempfile.mkdtemp(prefix="deltaproto-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.sql.warehouse.dir": folder}


@contextlib.contextmanager
def _redirect_child_output(descriptor: int | None) -> Iterator[None]:
    """Redirect the output of child processes to `descriptor`: otherwise the JVM's log lines
    would be mixed with the data on a terminal. Progress stays visible on a terminal."""
    if descriptor is None:
        yield
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved, stderr = (os.dup(1), os.dup(2)), sys.stderr
    kept = open(saved[1], "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    try:
        if stderr.isatty():
            sys.stderr = kept
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        kept.flush()
        sys.stderr = stderr
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def remove_folder(session: SparkSession, uri: str) -> bool:
    """Remove a folder through Spark's file system. Return False if the session exposes none."""
    return _ask_file_system(session, uri, lambda system, path: system.delete(path, True))


def folder_exists(session: SparkSession, uri: str) -> bool:
    """Return True if Spark's file system has a folder; False also if the session exposes none."""
    return _ask_file_system(session, uri, lambda system, path: system.exists(path))


def _ask_file_system(session: SparkSession, uri: str, ask: Callable[[Any, Any], object]) -> bool:
    """Call `ask` with Hadoop's file system and path of a URI. Return False if that fails."""
    jvm = getattr(session, "_jvm", None)
    if jvm is None:
        return False
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        conf = session._jsparkSession.sessionState().newHadoopConf()
        return bool(ask(path.getFileSystem(conf), path))
    except Exception:
        return False
