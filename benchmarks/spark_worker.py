"""A Spark session that times DESCRIBE DETAIL on tables for the process that started it.

It reads `[PATH, …]` in a line, and answers with `{"seconds": N}`.
"""

from __future__ import annotations

import json
import sys
import time

from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session


def main() -> None:
    spark = spark_session(SparkSettings(conf={"spark.driver.memory": "4g"}))
    cache = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    for line in sys.stdin:
        tables = json.loads(line)
        cache.clearCache()
        began = time.perf_counter()
        for table in tables:
            spark.sql(f"DESCRIBE DETAIL delta.`{table}`").collect()
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
