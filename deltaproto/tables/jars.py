"""Which jars a new Spark needs: Delta's, and those of the stores that it will be asked about."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Set

_FILE_SYSTEMS = (
    ("hadoop-aws", "fs.s3", ("s3", "s3a")),
    ("hadoop-azure", "fs.azure.", ("abfs", "abfss")),
    ("hadoop-gcp", "fs.gs.", ("gs",)),
)
# Hadoop brings a file system for Google's store from this release on.
_SINCE = {"hadoop-gcp": (3, 5)}


def file_systems(hadoop: Mapping[str, str], schemes: Set[str]) -> list[str]:
    """The packages of the stores with these settings or schemes that pyspark does not hold."""
    found = (re.fullmatch(r"hadoop-client-api-(.+)\.jar", n) for n in own_jars("hadoop-client"))
    version = next((match[1] for match in found if match), None)
    if version is None:
        return []
    release = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return [
        f"org.apache.hadoop:{name}:{version}"
        for name, prefix, its in _FILE_SYSTEMS
        if (any(key.startswith(prefix) for key in hadoop) or schemes & set(its))
        and release >= _SINCE.get(name, (0,))
        and not own_jars(name)
    ]


def connect_server(remote: str | None) -> list[str]:
    """The package of a Spark Connect server to start; pyspark 4 has it among its own jars."""
    import pyspark

    if not remote or own_jars("spark-connect_") or not before_spark_4():
        return []
    return [f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"]


def before_spark_4() -> bool:
    """Whether the pyspark that is installed is a 3.5."""
    import pyspark

    return int(pyspark.__version__.split(".")[0]) < 4


def own_jars(name: str) -> list[str]:
    """The jars among pyspark's own whose names hold `name`."""
    import pyspark

    jars = os.path.join(os.path.dirname(pyspark.__file__), "jars")
    return [jar for jar in os.listdir(jars) if name in jar] if os.path.isdir(jars) else []
