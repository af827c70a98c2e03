"""Java and the jars that a new Spark needs. `python -m deltaproto.tables.java` checks Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Set

from deltaproto.errors import EngineError

_FILE_SYSTEMS = (
    ("hadoop-aws", "fs.s3", ("s3", "s3a")),
    ("hadoop-azure", "fs.azure.", ("abfs", "abfss")),
    ("hadoop-gcp", "fs.gs.", ("gs",)),
)
# Hadoop includes a file system for Google Cloud Storage from this release on.
_SINCE = {"hadoop-gcp": (3, 5)}


def file_system_packages(hadoop: Mapping[str, str], schemes: Set[str]) -> list[str]:
    """Return the packages that these store settings or schemes need and pyspark lacks."""
    found = (
        re.fullmatch(r"hadoop-client-api-(.+)\.jar", n) for n in find_pyspark_jars("hadoop-client")
    )
    version = next((match[1] for match in found if match), None)
    if version is None:
        return []
    release = tuple(map(int, re.findall(r"\d+", version)[:2]))
    return [
        f"org.apache.hadoop:{name}:{version}"
        for name, prefix, its in _FILE_SYSTEMS
        if (any(key.startswith(prefix) for key in hadoop) or schemes & set(its))
        and release >= _SINCE.get(name, (0,))
        and not find_pyspark_jars(name)
    ]


def connect_server_packages(remote: str | None) -> list[str]:
    """Return the package for starting a Spark Connect server; pyspark 4 includes it."""
    import pyspark

    if not remote or find_pyspark_jars("spark-connect_") or not is_spark_3():
        return []
    return [f"org.apache.spark:spark-connect_2.12:{pyspark.__version__}"]


def is_spark_3() -> bool:
    """Return True if the installed pyspark is a 3.5 release."""
    import pyspark

    return int(pyspark.__version__.split(".")[0]) < 4


def pyspark_jars_folder() -> str:
    """Return the folder of pyspark's own jars, which may not exist."""
    import pyspark

    return os.path.join(os.path.dirname(pyspark.__file__), "jars")


def find_pyspark_jars(name: str) -> list[str]:
    """Return pyspark's own jars with `name` in their names."""
    jars = pyspark_jars_folder()
    return [jar for jar in os.listdir(jars) if name in jar] if os.path.isdir(jars) else []


SPARK_4_MINIMUM = 17
SPARK_3_MINIMUM = 8


def find_java() -> str | None:
    """Return the path of the Java that Spark would start, or None."""
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")


def java_version() -> int | None:
    """Return the major version of the Java that Spark would start, or None."""
    java = find_java()
    if java is None:
        return None
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr + shown.stdout)
    return int(match[1]) if match else None


def require_java(minimum: int = SPARK_4_MINIMUM) -> int:
    """Return the major version of the installed Java if it is recent enough.

    Raises:
        EngineError: names what to install.
    """
    found = java_version()
    how = (
        f"install Java {minimum} or later (Debian: apt-get install openjdk-17-jre-headless; "
        "macOS: brew install openjdk@17) or set JAVA_HOME; the log and delta-rs readers need none"
    )
    if found is None:
        home = os.environ.get("JAVA_HOME")
        where = f"no working Java under JAVA_HOME={home}" if home else "Java was not found"
        raise EngineError(f"{where}, and Spark needs it", how)
    if found < minimum:
        raise EngineError(f"Java {found} is too old for Spark", how)
    return found


def main() -> int:
    """Return 0 if a usable Java is installed, else print the error and return its exit code."""
    try:
        require_java()
    except EngineError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
