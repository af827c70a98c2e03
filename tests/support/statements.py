"""Has a Spark of its own execute statements: how to reach it, and they, come as JSON."""

from __future__ import annotations

import json
import sys

from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session

if __name__ == "__main__":
    given = json.load(sys.stdin)
    session = spark_session(SparkSettings(given.get("remote"), given.get("conf", {})))
    for statement in given["statements"]:
        session.sql(statement).collect()
    print("[]")
