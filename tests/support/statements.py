"""Has a Spark Connect server execute statements: its URL and they come as JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

if __name__ == "__main__":
    remote, *statements = json.load(sys.stdin)
    session = SparkSession.builder.remote(remote).getOrCreate()
    for statement in statements:
        session.sql(statement).collect()
    print("[]")
