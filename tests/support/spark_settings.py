"""How Spark is set for tables of a few rows."""

from __future__ import annotations

# Of tables of a few rows: one partition is enough, generating code for a plan takes longer than
# interpreting it, and a stage whose size is looked at first is a job of its own. Both compilers
# of Java stay: without the second the whole run takes less processor, but more time.
SMALL_TABLES = {
    "spark.master": "local[4]",
    "spark.driver.memory": "2g",
    # Hadoop runs chmod and readlink for every file that it writes.
    "spark.driver.extraJavaOptions": "-Djdk.lang.Process.launchMechanism=VFORK",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java's options for a process that does little and ends"""
