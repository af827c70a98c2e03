"""Put Delta's jars, and those of object stores, among pyspark's own: Spark then fetches nothing.

As an argument it takes an Ivy cache, whose jars need no download.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pyspark

from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session


def artifact(jar: str) -> str:
    """A jar's name without its version."""
    return re.split(r"-\d", jar, maxsplit=1)[0]


def main() -> int:
    home = Path(os.path.dirname(pyspark.__file__)) / "jars"
    with tempfile.TemporaryDirectory() as ivy:
        for cache in sys.argv[1:]:
            Path(ivy, "cache").symlink_to(cache)
        # Two settings stand for the file systems whose packages are wanted.
        stores = {"fs.s3a.path.style.access": "true", "fs.azure.account.auth.type": "SharedKey"}
        settings = SparkSettings(None, {"spark.jars.ivy": ivy}, show_log=True, hadoop=stores)
        spark_session(settings).stop()
        # Ivy writes the organisation before the name. What pyspark has already stays as it is, or
        # two versions of one library would lie beside each other.
        held = {artifact(jar.name) for jar in home.glob("*.jar")}
        found = sorted(Path(ivy, "jars").glob("*.jar"))
        jars = [jar for jar in found if artifact(jar.name.partition("_")[2]) not in held]
        for jar in jars:
            shutil.copy(jar, home)
    print(f"{len(jars)} jars are in {home}")
    return 0 if jars else 1


if __name__ == "__main__":
    sys.exit(main())
