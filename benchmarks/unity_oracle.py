"""Statements on a table that Unity Catalog manages, each predicted before Spark executes it.

It needs a server of Unity Catalog without authorization, on this machine, and its connector for
Spark, both built from their source (`build/sbt package`). The schema must exist, in a catalog with
a storage root. A new table is created in it, and kept. Every difference is a line that begins with
DIFFERENT, and fails the run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("authority", help="host and port of the server")
    parser.add_argument("schema", help="catalog and schema, such as main.sales")
    parser.add_argument("--connector", required=True, help="jar of the connector")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from deltaproto import Table
    from tests.planning.test_unity_contract import IN_ORDER

    catalog = arguments.schema.split(".")[0]
    name = f"{arguments.schema}.deltaproto_{time.time_ns()}"
    table, different = Table(f"uc://{arguments.authority}/{name}"), 0
    with tempfile.TemporaryDirectory() as configuration:
        spark = _session(configuration, arguments.authority, catalog, arguments.connector)
        spark.sql(
            f"create table {name} (id int, name string, extra string) using delta "
            "tblproperties ('delta.feature.catalogManaged' = 'supported')"
        )
        spark.sql(f"insert into {name} values (1, 'a', 'x'), (2, 'b', 'y')")
        for pattern, _ in IN_ORDER:
            sql = pattern.replace("table t ", f"table {name} ")
            plan = table.plan_upgrade(sql=[sql])
            error = _execute(spark, sql)
            done = plan.protocol_after.supported == table.inspect().protocol.supported
            same = bool(plan.blocked) == bool(error) and (done or bool(error))
            different += not same
            expected = plan.blocked[0].reason if plan.blocked else "ok"
            print(
                "same" if same else "DIFFERENT",
                sql,
                f"{expected}; Spark: {error or 'ok'}",
                sep="; ",
            )
    return different > 0


def _session(folder: str, authority: str, catalog: str, connector: str) -> SparkSession:
    """Return a session as a user configures it, in spark-defaults.conf."""
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session

    own = f"spark.sql.catalog.{catalog}"
    lines = (
        f"{own} io.unitycatalog.spark.UCSingleCatalog",
        f"{own}.uri http://{authority}",
        f"{own}.token none",
        f"spark.jars {os.path.abspath(connector)}",
    )
    Path(folder, "spark-defaults.conf").write_text("\n".join(lines))
    os.environ["SPARK_CONF_DIR"] = folder
    return spark_session(SparkSettings())


def _execute(spark: SparkSession, sql: str) -> str:
    """Return the first line of the error; empty if there is none."""
    try:
        spark.sql(sql).collect()
    except Exception as error:
        return str(error).splitlines()[0]
    return ""


if __name__ == "__main__":
    sys.exit(main())
