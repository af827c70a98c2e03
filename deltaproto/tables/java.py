"""Is there a Java that Spark can start? `python -m deltaproto.tables.java` answers for make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from deltaproto.errors import EngineError

SPARK_4_MINIMUM = 17
SPARK_3_MINIMUM = 8


def java_version() -> int | None:
    """The major version of the Java that Spark would start; None when there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
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
    """The major version of a Java that is new enough.

    Raises:
        EngineError: naming what to install.
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
    """Exit code 0 with a usable Java, else the error and its code."""
    try:
        require_java()
    except EngineError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
