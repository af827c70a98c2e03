"""Shortens the start of a local Spark session with Java options and files of earlier starts.

The user's cache holds, for each installed pyspark:

- the jars that Spark resolved for a list of packages: the next start does not resolve them again;
- the classes that Java loaded, as an archive: the next start maps it into memory.

The second start writes the archive, which takes longer, and the third one uses it.
A file that is missing, incomplete or outdated only makes the start slower.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deltaproto.identity import user_cache_folder
from deltaproto.tables.java import find_java, pyspark_jars_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
# The second compiler only pays off after minutes.
_ONE_COMPILER = "-XX:TieredStopAtLevel=1"
# Several threads that collect garbage cost more than they save on few processors.
_ONE_COLLECTOR = "-XX:+UseSerialGC"
_FEW_PROCESSORS = 2
_ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_MORE_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Java refuses to start with two collectors, and an agent or a second archive makes ours useless.
_CONFLICTS = re.compile(r"Use\w*GC\b|Archive|-Xshare|agent|@|VMOptionsFile|-XX:Flags|-Xlog")
_FIRST_WITH_ARCHIVE = 17
_DUMPING, _UNUSED = 3600, 30 * 86400
"""seconds after which Java has certainly finished writing an archive, and after which an unused one
is deleted
"""
_SETTLED = 5
_ARCHIVE, _NEW = ".jsa", ".jsa.new"


class QuickStart:
    """The options and files for one start.

    Args:
        packages: Maven coordinates that Spark needs besides Delta's.
        conf: the user's settings, which always take precedence.
    """

    def __init__(self, packages: Sequence[str], conf: Mapping[str, str]) -> None:
        # A Spark that someone configured may have Java options, which these would replace.
        self._configured = bool(os.environ.get("SPARK_HOME") or os.environ.get("SPARK_CONF_DIR"))
        self._conf = conf
        self._default_jars = not (
            self._configured or any(key.startswith("spark.jars") for key in conf)
        )
        self._options = [os.environ.get(name, "") for name in _ENVIRONMENT]
        java, jars = find_java(), pyspark_jars_folder()
        started = (jars, _modified(jars), _version("pyspark"), _version("delta-spark"))
        self._archive = f"spark-{_digest(*started, java, _modified(java))}"
        # These options can name another folder of jars.
        self._jars = f"spark-{_digest(*started, *self._options, *packages)}.json"

    def java_options(self, java: int) -> dict[str, str]:
        """Return Spark's setting with the Java options; empty if the user set it."""
        if self._configured or _JAVA_OPTIONS in self._conf:
            return {}
        options = [_ONE_COMPILER]
        theirs = " ".join([*self._options, self._conf.get(_MORE_JAVA_OPTIONS, "")])
        if not _CONFLICTS.search(theirs):
            if _processors() <= _FEW_PROCESSORS:
                options.append(_ONE_COLLECTOR)
            if java >= _FIRST_WITH_ARCHIVE and os.name == "posix":
                options += self._archive_options()
        return {_JAVA_OPTIONS: " ".join(options)}

    def jars(self) -> list[str]:
        """Return the jars that Spark resolved in an earlier start; empty if one has changed."""
        if not self._default_jars:
            return []
        with suppress(OSError, ValueError, TypeError):
            with open(_cache_path(self._jars), encoding="utf-8") as file:
                jars = json.load(file)
            if all(os.stat(path).st_size == size for path, size in jars):
                return [path for path, _ in jars]
        return []

    def keep_jars(self, session: SparkSession) -> None:
        """Save the jars that the session resolved for the next start, unless the user's settings or
        configuration determined them.
        """
        if not self._default_jars:
            return
        with suppress(Exception):
            named = session.sparkContext.getConf().get("spark.jars") or ""
            jars = [unquote(urlsplit(each).path) for each in named.split(",") if each]
            sized = [(path, os.stat(path).st_size) for path in jars]
            path = _cache_path(self._jars, create=True)
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump(sized, file)
            os.replace(file.name, path)

    def _archive_options(self) -> list[str]:
        quiet = "-Xlog:disable"
        with suppress(OSError):
            path = _cache_path(self._archive, create=True)
            _adopt_archive(path)
            if archive := _find_archive(path):
                return [f"-XX:SharedArchiveFile={archive}", quiet]
            # Do not slow down the first start: it may be the only one, as in a container.
            if not self.jars():
                return []
            # Only the process that creates the file lets Java write it; Java replaces it at exit.
            os.close(os.open(path + _NEW, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return [f"-XX:ArchiveClassesAtExit={path}{_NEW}", quiet]
        return []


def _cache_path(name: str, *, create: bool = False) -> str:
    path = os.path.join(user_cache_folder(), name)
    if re.search(r"[\s\"'\\]", path):
        raise OSError(f"{path}: Java's options cannot contain it")
    if create:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return path


def _adopt_archive(path: str) -> None:
    """Put a complete archive's size into its name, because Java crashes with a truncated one."""
    with suppress(OSError), open(path + _NEW, "rb") as file:
        found = os.fstat(file.fileno())
        age = time.time() - found.st_mtime
        # Java writes the header last.
        if any(file.read(4)) and age > _SETTLED:
            os.replace(file.name, f"{path}.{found.st_size}{_ARCHIVE}")
        elif age > _DUMPING:
            os.unlink(file.name)


def _find_archive(path: str) -> str | None:
    """Return the archive if it is complete, and delete unused ones."""
    archive = None
    with os.scandir(os.path.dirname(path)) as files:
        for each in files:
            found = each.stat()
            if each.path == f"{path}.{found.st_size}{_ARCHIVE}":
                archive = each.path
                os.utime(archive)
            elif _ARCHIVE in each.name and time.time() - found.st_mtime > _UNUSED:
                os.unlink(each)
    return archive


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps([*map(str, parts)]).encode()).hexdigest()[:16]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _modified(path: str | None) -> float:
    with suppress(OSError):
        return os.path.getmtime(os.path.realpath(path or ""))
    return 0
