"""Results of a running scan, on disk and invisible in the inventory until the scan ends.

Each part is written to a temporary file and then renamed. A killed scan therefore leaves only
complete parts, which the next scan reuses with `--resume`. The roots of the scan are stored next to
the parts: only a scan of the same roots can resume or replace it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from deltaproto.errors import UsageError
from deltaproto.fleet.scan_history import Extent, extent_of, limits_in_words
from deltaproto.fleet.schemas import staged_schema
from deltaproto.identity import find_other_owner, user_cache_folder

if TYPE_CHECKING:
    import pyarrow as pa

STAGING_FOLDER = "_staging"
SPARK_STAGING_FOLDER = "_staging_spark"
_SUFFIX = ".arrow"
_EXTENT = "extent.json"
_SPARK_EXTENT = ".extent.json"


class Staging:
    """The parts of one scan in a local folder, locked until it is closed.

    Args:
        extent: the scope of the scan; None if the scan is resumed.

    Raises:
        UsageError: when the folder cannot be written.
        ScanLockedError: when another process is running this scan.
    """

    def __init__(self, inventory: str, scan_id: str, extent: Extent | None = None) -> None:
        self.scan_id, self._inventory = scan_id, inventory
        self._folder = os.path.join(inventory, STAGING_FOLDER, scan_id)
        try:
            try:
                os.makedirs(self._folder, exist_ok=True)
            except FileNotFoundError:
                # A scan that ended meanwhile deleted the empty parent.
                os.makedirs(self._folder, exist_ok=True)
            self._lock = _acquire_lock(f"{self._folder}.lock")
            taken = [os.path.basename(path)[: -len(_SUFFIX)] for path in self._parts()]
            self._next = 1 + max(map(int, taken), default=-1)
            if extent is not None:
                _write_extent(os.path.join(self._folder, _EXTENT), extent)
        except OSError as error:
            raise _unwritable_error(self._folder, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def add(self, batch: pa.RecordBatch) -> None:
        """Atomically write one more part file."""
        path = os.path.join(self._folder, f"{self._next:06}{_SUFFIX}")
        self._next += 1
        self._write_part(path, [batch])

    def _write_part(self, path: str, batches: Iterable[pa.RecordBatch]) -> None:
        import pyarrow as pa

        aside = f"{path}.tmp"
        try:
            with pa.OSFile(aside, "wb") as file, pa.ipc.new_file(file, staged_schema()) as writer:
                for batch in batches:
                    writer.write_batch(batch)
            os.replace(aside, path)
        except OSError as error:
            raise _unwritable_error(self._folder, error) from None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield every part in order. A part that cannot be read is skipped and removed."""
        for _, found in self._read_parts():
            yield from found

    def _read_parts(self) -> Iterator[tuple[str, list[pa.RecordBatch]]]:
        import pyarrow as pa

        for path in self._parts():
            try:
                with pa.memory_map(path) as file:
                    reader = pa.ipc.open_file(file)
                    if reader.schema != staged_schema():
                        raise pa.ArrowInvalid("written by another release")
                    found = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            except (pa.ArrowInvalid, OSError):
                os.remove(path)
                continue
            yield path, found

    def drop_errors(self, codes: Collection[str]) -> None:
        """Remove the rows with these error codes, so that their tables are read again.

        Raises:
            UsageError: when the folder cannot be written.
        """
        import pyarrow as pa

        for path, batches in self._read_parts():
            kept = []
            for batch in batches:
                found = batch.column("error").field("code").to_pylist()
                kept.append(
                    batch.filter(pa.array([code not in codes for code in found], pa.bool_()))
                )
            if sum(each.num_rows for each in kept) < sum(each.num_rows for each in batches):
                self._write_part(path, kept)

    def remove(self) -> None:
        """Delete the parts, after everything was added to the inventory.

        Also deletes those of earlier scans of the same extent that were stopped: this scan
        replaces them.
        """
        extent = _read_extent(self._folder)
        _delete_parts(self._folder)
        for scan in unfinished_scans(self._inventory, (STAGING_FOLDER,)):
            if extent is not None and scan.extent == extent and scan.scan_id < self.scan_id:
                folder = os.path.join(self._inventory, STAGING_FOLDER, scan.scan_id)
                with suppress(ScanLockedError, OSError):
                    lock = _acquire_lock(f"{folder}.lock")
                    _delete_parts(folder)
                    lock.release()
        if self._inventory.startswith(user_cache_folder() + os.sep):
            with suppress(OSError):
                os.rmdir(os.path.dirname(self._folder))
                os.rmdir(self._inventory)

    def _parts(self) -> list[str]:
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(_SUFFIX))
        return [os.path.join(self._folder, name) for name in names]


def _delete_parts(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.remove(f"{folder}.lock")


class ScanLockedError(UsageError):
    """The error of a scan that another process is running."""


def open_unfinished(inventory: str, extent: Extent) -> Staging | None:
    """Resume the newest unfinished scan of this extent, or return None if there is none.

    Raises:
        UsageError: when all unfinished scans have other roots, or exclude other folders.
    """
    other: Unfinished | None = None
    for scan in unfinished_scans(inventory, (STAGING_FOLDER,)):
        if scan.extent not in (None, extent):
            other = other or scan
            continue
        with suppress(ScanLockedError):
            return Staging(inventory, scan.scan_id)
    if other is not None:
        raise _other_roots_error(other, extent)
    return None


def newest_of_extent(inventory: str, staged: Sequence[str], extent: Extent) -> str | None:
    """Return the newest of the staged Spark scans that has this extent, or None without any.

    Args:
        inventory: the local folder with the extents of Spark scans.
        staged: ids of unfinished scans, newest first.

    Raises:
        UsageError: when all of them have other roots, or exclude other folders.
    """
    marks = unfinished_scans(inventory, (SPARK_STAGING_FOLDER,))
    known = {scan.scan_id: scan for scan in marks if scan.extent is not None}
    for scan_id in staged:
        if scan_id not in known or known[scan_id].extent == extent:
            return scan_id
    if staged:
        raise _other_roots_error(known[staged[0]], extent)
    return None


def _other_roots_error(scan: Unfinished, extent: Extent) -> UsageError:
    of = "" if scan.extent is None else f"of {in_words(scan.extent)}, "
    return UsageError(
        f"the unfinished scan {scan.scan_id} is {of}not of {in_words(extent)}",
        "resume it with the same roots and patterns, or leave out --resume to begin a new scan",
    )


def in_words(extent: Extent) -> str:
    """Return the roots and patterns of a scan in one line."""
    limits = limits_in_words(extent.included, extent.excluded)
    return f"{', '.join(sorted(extent.roots)) or 'no root'} {limits}".rstrip()


class Unfinished(NamedTuple):
    """A scan that was started and stopped."""

    scan_id: str
    extent: Extent | None
    """scope of the scan; None if unknown"""
    owner: str | None = None
    """the other user who began it; None for the current user, or if unknown"""


def unfinished_scans(
    inventory: str, folders: tuple[str, ...] = (STAGING_FOLDER, SPARK_STAGING_FOLDER)
) -> list[Unfinished]:
    """Return the unfinished scans that are not running, newest first."""
    found = []
    for name in folders:
        folder = os.path.join(inventory, name)
        with suppress(OSError):
            started = {
                each.removesuffix(_SPARK_EXTENT): os.path.join(folder, each)
                for each in os.listdir(folder)
                if each.endswith(_SPARK_EXTENT) or os.path.isdir(os.path.join(folder, each))
            }
            found += [
                Unfinished(each, _read_extent(os.path.join(folder, each)), find_other_owner(mark))
                for each, mark in started.items()
                if not _is_locked(os.path.join(folder, f"{each}.lock"))
            ]
    return sorted(found, key=lambda scan: scan.scan_id, reverse=True)


def _write_extent(path: str, extent: Extent) -> None:
    with open(f"{path}.tmp", "w", encoding="utf-8") as file:
        json.dump({key: sorted(value) for key, value in extent._asdict().items()}, file)
    os.replace(f"{path}.tmp", path)


def _read_extent(folder: str) -> Extent | None:
    for path in (os.path.join(folder, _EXTENT), f"{folder}{_SPARK_EXTENT}"):
        with suppress(OSError, ValueError, TypeError), open(path, encoding="utf-8") as file:
            return extent_of(**json.load(file))
    return None


@contextmanager
def hold_spark_lock(inventory: str, scan_id: str, extent: Extent | None = None) -> Iterator[None]:
    """Hold the lock of a running Spark scan, as `Staging` does for a local scan.

    The extent is stored next to the lock, and stays there if the scan is stopped.

    Does nothing if this machine cannot write the folder or lock a file in it: Spark may reach a
    different file system by the same path.

    Args:
        inventory: a local folder: the inventory, or its place in the user's cache.
        extent: the scope of the scan.

    Raises:
        ScanLockedError: when another process is running this scan.
    """
    folder = os.path.join(inventory, SPARK_STAGING_FOLDER)
    path = os.path.join(folder, f"{scan_id}.lock")
    mark = os.path.join(folder, f"{scan_id}{_SPARK_EXTENT}")
    try:
        os.makedirs(folder, exist_ok=True)
        lock = _acquire_lock(path)
    except (OSError, NotImplementedError):
        yield
        return
    try:
        if extent is not None:
            with suppress(OSError):
                _write_extent(mark, extent)
        yield
        with suppress(OSError):
            os.remove(mark)
    finally:
        lock.release()
        with suppress(OSError):
            os.remove(path)
            os.rmdir(folder)
            os.rmdir(inventory)


def is_running(inventory: str, scan_id: str) -> bool:
    """Return True if another process is running a Spark scan into this folder."""
    return _is_locked(os.path.join(inventory, SPARK_STAGING_FOLDER, f"{scan_id}.lock"))


def _is_locked(lock: str) -> bool:
    if not os.path.exists(lock):
        return False
    try:
        _acquire_lock(lock).release()
    except ScanLockedError:
        return True
    except OSError:
        return _is_locked_by_other_user(lock)
    return False


def _is_locked_by_other_user(lock: str) -> bool:
    """Return True if a lock that only its owner can write is held; False if that is unknown."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _acquire_lock(path: str) -> Any:
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ScanLockedError(
            "another process is running this scan", "wait until it has finished"
        ) from None
    return lock


def _unwritable_error(folder: str, error: OSError) -> UsageError:
    if error.errno == errno.ENOSPC:
        hint = "free some space"
    elif folder.startswith(user_cache_folder() + os.sep):
        hint = "set XDG_CACHE_HOME to a folder that you can write: it keeps what a scan has read"
    else:
        hint = "check its permissions, or pass another --inventory"
    return UsageError(f"cannot write {folder}: {error.strerror or error}", hint)
