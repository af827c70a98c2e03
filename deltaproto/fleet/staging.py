"""Results of a running scan, on disk and invisible in the inventory until the scan ends.

Each part is written to a temporary file and renamed, so a killed scan leaves complete parts,
which the next scan reuses with `--resume`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from deltaproto.errors import UsageError
from deltaproto.fleet.schemas import staged

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "_staging"
SPARK_FOLDER = "_staging_spark"
_SUFFIX = ".arrow"


class Staging:
    """The parts of one scan in a local folder, locked until it is closed.

    Raises:
        UsageError: when the folder cannot be written.
        Held: when another process is running this scan.
    """

    def __init__(self, inventory: str, scan_id: str) -> None:
        self.scan_id = scan_id
        self._folder = os.path.join(inventory, FOLDER, scan_id)
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._lock = _locked(f"{self._folder}.lock")
            taken = [os.path.basename(path)[: -len(_SUFFIX)] for path in self._parts()]
            self._next = 1 + max(map(int, taken), default=-1)
        except OSError as error:
            raise _unwritable(self._folder, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def add(self, batch: pa.RecordBatch) -> None:
        """Atomically write one more part file."""
        import pyarrow as pa

        path = os.path.join(self._folder, f"{self._next:06}{_SUFFIX}")
        self._next += 1
        aside = f"{path}.tmp"
        try:
            with pa.OSFile(aside, "wb") as file, pa.ipc.new_file(file, staged()) as writer:
                writer.write_batch(batch)
            os.replace(aside, path)
        except OSError as error:
            raise _unwritable(self._folder, error) from None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Every part in order. A part that cannot be read is skipped and removed."""
        import pyarrow as pa

        for path in self._parts():
            try:
                with pa.memory_map(path) as file:
                    reader = pa.ipc.open_file(file)
                    found = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            except (pa.ArrowInvalid, OSError):
                os.remove(path)
                continue
            yield from found

    def remove(self) -> None:
        """Delete the parts, after everything was added to the inventory."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with suppress(OSError):
            os.remove(f"{self._folder}.lock")

    def _parts(self) -> list[str]:
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(_SUFFIX))
        return [os.path.join(self._folder, name) for name in names]


class Held(UsageError):
    """Another process is running this scan."""


def last_unfinished(inventory: str) -> Staging | None:
    """Open the newest unfinished scan for resuming, or return None."""
    folder = os.path.join(inventory, FOLDER)
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return None
    for name in names:
        if os.path.isdir(os.path.join(folder, name)):
            with suppress(Held):
                return Staging(inventory, name)
    return None


def unfinished_after(inventory: str, scan_id: str) -> str | None:
    """Return the newest unfinished scan that began after `scan_id`; running ones do not count."""
    found = set()
    for name in (FOLDER, SPARK_FOLDER):
        folder = os.path.join(inventory, name)
        with suppress(OSError):
            found |= {
                each
                for each in os.listdir(folder)
                if each > scan_id
                and os.path.isdir(os.path.join(folder, each))
                and not _held(os.path.join(folder, f"{each}.lock"))
            }
    return max(found, default=None)


@contextmanager
def spark_lock(inventory: str, scan_id: str) -> Iterator[None]:
    """Hold the lock of a running Spark scan, as `Staging` does for a local scan.

    Does nothing if this machine cannot write the folder or lock a file in it: Spark may reach a
    different file system by the same path.

    Args:
        inventory: a local folder.

    Raises:
        Held: when another process is running this scan.
    """
    folder = os.path.join(inventory, SPARK_FOLDER)
    path = os.path.join(folder, f"{scan_id}.lock")
    try:
        os.makedirs(folder, exist_ok=True)
        lock = _locked(path)
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()
        with suppress(OSError):
            os.remove(path)
            os.rmdir(folder)
            os.rmdir(inventory)


def is_running(inventory: str, scan_id: str) -> bool:
    """Whether another process is running a Spark scan into this folder."""
    return _held(os.path.join(inventory, SPARK_FOLDER, f"{scan_id}.lock"))


def _held(lock: str) -> bool:
    if not os.path.exists(lock):
        return False
    try:
        _locked(lock).release()
    except Held:
        return True
    except OSError:
        # The lock belongs to another user: whether that scan still runs is unknown.
        return False
    return False


def _locked(path: str) -> Any:
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise Held("another process is running this scan", "wait until it has finished") from None
    return lock


def _unwritable(folder: str, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write {folder}: {error.strerror or error}",
        "pass another --inventory, or free some space",
    )
