"""A log that only Spark can reach: HDFS, DBFS, a cluster's disk, a catalog's own credentials.

Files come through the binaryFile source, which also works over Spark Connect. A job for each commit
would be slow, so commits are fetched in runs, newest first, as they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from deltaproto.errors import EngineError, ErrorCode, TableError
from deltaproto.tables.redact import Redactor
from deltaproto.tables.storage.interface import STAGED_COMMITS, Entry, check_size, gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUN_FILES = 64
_RUN_BYTES = 16 << 20


class SparkLogStore:
    """The `_delta_log` folder of the table at `uri`, as the session sees it."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self._session = session
        self._uri = uri
        self._folder = f"{uri.rstrip('/')}/_delta_log"
        self._paths: dict[str, tuple[str, int]] = {}
        self._fetched: dict[str, bytes] = {}

    def list(self) -> list[Entry]:
        return list(self.list_dated())

    def list_dated(self) -> tuple[Entry, ...]:
        rows = self._read([self._folder], "path", "length", "unix_millis(modificationTime)")
        if not rows:
            raise TableError(ErrorCode.NOT_A_DELTA_TABLE, f"Spark finds nothing in {self._folder}")
        self._paths = {_name(row[0]): (row[0], row[1]) for row in rows}
        return tuple(Entry(_name(path), size, ms) for path, size, ms in rows)

    def list_staged(self) -> tuple[Entry, ...]:
        try:
            rows = self._read(
                [f"{self._folder}/{STAGED_COMMITS}"],
                *("path", "length", "unix_millis(modificationTime)"),
            )
        except TableError:
            return ()
        self._paths |= {_name(row[0]): (row[0], row[1]) for row in rows}
        return tuple(Entry(_name(path), size, ms) for path, size, ms in rows)

    def open(self, name: str) -> IO[bytes]:
        if name not in self._fetched:
            self._fetch(name)
        return BytesIO(self._fetched.pop(name))

    def _fetch(self, name: str) -> None:
        check_size(name, self._paths.get(name, ("", 0))[1])
        run = self._run(name)
        wanted = [
            self._paths[each][0] if each in self._paths else f"{self._folder}/{each}"
            for each in run
        ]
        found = self._read(wanted, "path", "content")
        self._fetched = {_name(row[0]): bytes(row[1]) for row in found}
        if name not in self._fetched:
            raise gone(name)

    def _run(self, name: str) -> Sequence[str]:
        """The commit and those before it, as many as are worth one job; others go alone."""
        if not name.endswith(".json") or name not in self._paths:
            return [name]
        older = sorted((n for n in self._paths if n.endswith(".json") and n <= name), reverse=True)
        taken = size = 0
        while taken < min(len(older), _RUN_FILES) and (not taken or size < _RUN_BYTES):
            size += self._paths[older[taken]][1]
            taken += 1
        return older[:taken]

    def _read(self, paths: Sequence[str], *columns: str) -> Sequence[Any]:
        from deltaproto.tables.engine_text import first_line, is_gone, spark_text

        source = self._session.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            return tuple(source.load([*paths]).selectExpr(*columns).collect())
        except Exception as error:
            if is_gone(spark_text(error)):
                said = f"Spark is gone: {first_line(error)}"
                raise EngineError(said, "start it, and run again") from None
            raise TableError(
                ErrorCode.STORAGE, f"Spark cannot read {self._uri}: {Redactor()(first_line(error))}"
            ) from None


def _name(path: str) -> str:
    """A file's path within the log's folder: sidecars lie in one of their own."""
    return path.rpartition("/_delta_log/")[2]
