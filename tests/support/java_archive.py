"""An archive of Spark's loaded classes, which makes each start of Java a third faster.

As a script: makes it, unless it is there. Java ignores an archive of other classes or another Java.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).parents[2] / ".cache" / "java"


def java_options() -> str:
    """Return the options with which Java uses the archive; empty if there is none."""
    path = _path()
    return f"-XX:SharedArchiveFile={path} -Xlog:cds=off" if path.exists() else ""


def make_archive() -> None:
    """Start Spark, use a table, and let Java write the classes that it has loaded."""
    from pyspark import SparkContext

    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session
    from tests.support.spark_settings import SMALL_TABLES

    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as folder:
        written = Path(folder) / "classes.jsa"
        options = f"{SMALL_TABLES['spark.driver.extraJavaOptions']} -Xlog:cds=off"
        options += f" -XX:ArchiveClassesAtExit={written}"
        spark = spark_session(
            SparkSettings(conf={**SMALL_TABLES, "spark.driver.extraJavaOptions": options})
        )
        table = f"delta.`{folder}/t`"
        spark.sql(f"create table {table} (id bigint) using delta")
        spark.sql(f"insert into {table} values (1)")
        spark.sql(f"alter table {table} set tblproperties ('delta.appendOnly'='true')")
        spark.sql(f"select * from {table}").collect()
        spark.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        # Java ends with its standard input, and writes the archive before it does.
        gateway.proc.stdin.close()
        gateway.proc.wait()
        if written.exists():
            written.replace(_path())


def _path() -> Path:
    home = os.environ.get("JAVA_HOME")
    java = os.path.realpath(f"{home}/bin/java" if home else shutil.which("java") or "java")
    changed = os.path.getmtime(java) if os.path.exists(java) else 0
    key = f"{version('pyspark')} {version('delta-spark')} {java} {changed}"
    return FOLDER / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:12]}.jsa"


if __name__ == "__main__" and not _path().exists():
    print("preparing Java for the tests (once)", file=sys.stderr)
    make_archive()
