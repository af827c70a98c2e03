"""Evidence about the data files in a log's commits, in addition to the table's state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from deltaproto.protocol.column_bounds import ColumnBounds
from deltaproto.protocol.feature import Trace
from deltaproto.protocol.metadata import Metadata
from deltaproto.protocol.table_state import Note, NoteKind
from deltaproto.tables.log.add_flaws import flaws_of_info
from deltaproto.tables.log.file_changes import FileChange
from deltaproto.tables.log.file_statistics import (
    MISREAD_BOUNDS,
    are_readable,
    compare_statistics,
    read_bounds,
)
from deltaproto.tables.log.files import MOST_STATISTICS
from deltaproto.tables.log.partition_paths import PartitionEvidence

if TYPE_CHECKING:
    from deltaproto.tables.log.parquet.footer import LeafStatistics

_MOST_STATISTICS = 200
"""number of data files whose statistics are compared with the schema"""
_MOST_OF_CHECKPOINT = 20
_MOST_REMOVED = 100_000
"""maximum number of removed files to remember, to ignore their evidence in older commits"""
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|/")

STORING = "writePartitionColumnsToParquet"
_DELTA_SPARK = re.compile(r"Apache-Spark/\S+ Delta-Lake/(\d{1,4})\.(\d{1,4})\.\S+", re.ASCII)
_STORES_SINCE = (4, 4)
"""releases that store partition columns in data files unless the property `STORING` is false"""
_ADDS_FOREIGN = ("CLONE", "CONVERT", "MANUAL UPDATE")
"""operations that add files written by others"""


def is_absolute(path: str) -> bool:
    """Return True if an action's path is a URI or starts at the root (PROTOCOL.md, "Add File")."""
    return _ABSOLUTE.match(path) is not None


class LayoutEvidence:
    """What commits show about their files; commits are added newest first."""

    def __init__(self) -> None:
        self.commits: set[int] = set()
        """the versions that were read"""
        self.absolute = False
        """a live file that one of these commits added has an absolute path"""
        self.removed_absolute = False
        """one of these commits removed a file with an absolute path"""
        self.non_ascii = False
        """a live file that one of these commits added has a path beyond ASCII"""
        self.escaped = False
        """a live file that one of these commits added has a path with an escape"""
        self.vectors = False
        """a live file that one of these commits added, or a file in the newest checkpoint, has a
        deletion vector"""
        self.delta_rs_files = False
        """one of these commits added live files that delta-rs wrote itself"""
        self.delta_rs_rewrites = False
        """one of these commits is a DELETE, UPDATE or MERGE by delta-rs that added live files"""
        self.byte_order_mark = False
        self.untracked = False
        """a live file that one of these commits added has no row ids"""
        self.untracked_in_checkpoint = False
        """a file in the newest checkpoint may have no row ids"""
        self.replaces_all = True
        """`replaces` knows every path"""
        self.flaws: set[Trace] = set()
        """flaws of the actions in these commits; see also `find_flaws`"""
        self.statistics: list[str] = []
        """readable statistics of some files that these commits added, unless later ones removed
        them"""
        self.all_statistics = True
        """`statistics` has the statistics of all files that these commits added"""
        self.uncounted = False
        """one of these files has no readable statistics"""
        self.of_checkpoint: list[str] = []
        """readable statistics of some files that the newest checkpoint has"""
        self.of_checksum: list[str] = []
        """readable statistics of some files that the version's checksum has"""
        self.checksum_has_all = False
        """`of_checksum` has the statistics of all files"""
        self.partitions = PartitionEvidence()
        """evidence on partition values in the live files that these commits added"""
        self.stores_partitions = True
        """certainly all of these commits that added files stored the partition columns in them"""
        self.damage: list[Note] = []
        """files of the log that cannot be read, although clients need them to find data files"""
        self._removed: set[str] = set()
        self._tracked: set[str] = set()

    def add_damage(self, kind: NoteKind, message: str) -> None:
        """Add a file that cannot be read."""
        note = Note(kind, message)
        if note not in self.damage:
            self.damage.append(note)

    def add(
        self, version: int, info: Mapping[str, Any], files: Iterable[FileChange], mark: bool
    ) -> None:
        """Add one commit.

        Args:
            files: the data files that it adds and removes.
            mark: whether its file starts with a byte order mark.
        """
        self.commits.add(version)
        self.byte_order_mark |= mark
        self.flaws.update(flaws_of_info(info))
        added = False
        removed, tracked = set[str](), set[str]()
        for number, change in enumerate(files):
            action, path, values, flaws, statistics, row_ids, vector = change
            self.flaws.update(flaws)
            if action == "add" and path not in self._removed:
                seen = number < MOST_STATISTICS and len(self.statistics) < _MOST_STATISTICS
                self.all_statistics &= seen
                self.uncounted |= statistics is None
                if seen and statistics is not None:
                    self.statistics.append(statistics)
            added |= action == "add" and path not in self._removed
            absolute, non_ascii = is_absolute(path), not path.isascii()
            if action == "remove":
                self.removed_absolute |= absolute
                few = len(self._removed) + len(removed) < _MOST_REMOVED
                if few or absolute or non_ascii or values != {}:
                    removed.add(path)
                else:
                    self.replaces_all = False
            elif path not in self._removed:
                self.absolute |= absolute
                self.non_ascii |= non_ascii
                self.vectors |= vector
                if action == "add":
                    self.escaped |= "%" in path
                    self.partitions.add(path, values)
                    # Enabling row tracking adds files again.
                    if row_ids:
                        tracked.add(path)
                    elif path not in self._tracked:
                        self.untracked = True
        self._removed |= removed
        self._tracked |= tracked
        if STORING in str(info.get("operationParameters")):
            self.stores_partitions = False
        if added:
            self._written(info)

    def replaces(self, path: str) -> bool:
        """Return True if one of these commits removed a file, or added it with row ids."""
        return path in self._removed or path in self._tracked

    def removes(self, path: str) -> bool:
        """Return True if one of these commits removed a file."""
        return path in self._removed

    def find_flaws(self, metadata: Metadata) -> set[Trace]:
        """Return the members that `add` actions of these commits lack, and their contradictions to
        the schema.
        """
        of_checkpoint = compare_statistics(self.of_checkpoint, metadata)
        return (
            self.flaws
            | compare_statistics(self.statistics, metadata)
            | of_checkpoint.intersection(MISREAD_BOUNDS)
        )

    def select_bounds(self, found: set[Trace], version: int) -> dict[Trace, bool]:
        """Return which bounds readers misread; excludes what only unread statistics show.

        Args:
            found: the result of `find_flaws`.
        """
        known = self.all_statistics and self.commits.issuperset(range(version + 1))
        return {trace: trace in found for trace in MISREAD_BOUNDS if known or trace in found}

    def read_bounds(self, metadata: Metadata, version: int) -> ColumnBounds:
        """Return what the same statistics show about the bounds of every column."""
        texts, known = self.of_checksum, self.checksum_has_all
        if not known:
            texts = [*self.of_checksum, *self.statistics, *self.of_checkpoint]
            known = self.all_statistics and self.commits.issuperset(range(version + 1))
        found = read_bounds(texts, metadata, complete=known)
        return found._replace(uncounted=found.uncounted or self.uncounted)

    def add_path(self, path: str, values: Mapping[str, object] | None) -> None:
        """Add the evidence in the path of a data file with these partition values."""
        self.non_ascii |= not path.isascii()
        self.escaped |= "%" in path
        self.partitions.add(path, values)

    def add_bounds(self, texts: LeafStatistics) -> None:
        """Add the minimum and maximum statistics of each row group of a checkpoint."""
        for each in (*texts.least, *texts.most):
            text = each.decode("utf-8", "replace")
            if len(self.of_checkpoint) < _MOST_OF_CHECKPOINT and are_readable(text):
                self.of_checkpoint.append(text)

    def _written(self, info: Mapping[str, Any]) -> None:
        engine = info.get("engineInfo") or info.get("clientVersion")
        operation = str(info.get("operation"))
        release = _DELTA_SPARK.fullmatch(str(engine))
        stores = release is not None and (int(release[1]), int(release[2])) >= _STORES_SINCE
        self.stores_partitions &= stores and operation not in _ADDS_FOREIGN
        if not str(engine).startswith("delta-rs") or operation == "OPTIMIZE":
            return
        # Files that others wrote and delta-rs only committed have no metrics.
        self.delta_rs_files |= bool(info.get("operationMetrics"))
        self.delta_rs_rewrites |= operation in ("DELETE", "UPDATE", "MERGE")
