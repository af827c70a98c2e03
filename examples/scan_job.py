"""A scan as a Spark job: for spark-submit, and for a Databricks job's Python task.

The arguments are those of `deltaproto scan`, and the session is that of the job. deltaproto must
also be installed on the executors.

    spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \\
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \\
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \\
        examples/scan_job.py /data --inventory /data/_inventory --policy policy.yaml
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from deltaproto.cli.main import main


def run(arguments: list[str]) -> int:
    """Scan with the session of the job, and return the exit code of the command."""
    SparkSession.builder.appName("deltaproto scan").getOrCreate()
    return main(["scan", "--engine", "spark", "--no-progress", *arguments])


if __name__ == "__main__":
    code = run(sys.argv[1:])
    # Databricks treats any SystemExit, even with 0, as a failure.
    if code:
        sys.exit(code)
