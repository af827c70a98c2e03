"""How Spark is set for tables of a few rows."""

from __future__ import annotations

from deltaproto.certification.verify_writes import FEW_ROWS
from tests.support.java_archive import java_options

SMALL_TABLES = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    # Both compilers: without the second a run of minutes takes less processor, but more time.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=4",
    # Hadoop runs chmod and readlink for every file that it writes. Collecting garbage with several
    # threads costs more than it saves on two cores.
    "spark.driver.extraJavaOptions": "-Djdk.lang.Process.launchMechanism=VFORK -XX:+UseSerialGC "
    + java_options(),
    **FEW_ROWS,
}

SHORT_LIVED = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {java_options()}"
"""Java's options for a process that does little and ends"""
