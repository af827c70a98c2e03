"""Tables on a local (or mounted) disk; only regular files are opened."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from io import BytesIO
from typing import IO

from deltaproto.errors import ErrorCode, TableError
from deltaproto.location import quote_for_shell
from deltaproto.tables.storage.interface import (
    STAGED_COMMITS,
    FolderEntry,
    check_size,
    file_gone_error,
    max_file_bytes,
    not_regular_error,
    too_large_error,
)

_SMALL_BYTES = 64 * 1024
_MOST_SEARCHED = 1_000
"""folders in which a hint looks for tables"""
NO_PERMISSION_HINT = "run as a user with permission to list and read the table's log"
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""flag that opens a pipe without waiting for a writer"""


class NotRegularFile(OSError):
    """The error of a path that is a pipe, a device or a socket."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "not a regular file")


class FileTooLarge(OSError):
    """The error of a file with more bytes than allowed."""

    def __init__(self, size: int, most: int) -> None:
        self.size = size
        super().__init__(errno.EFBIG, f"{size} bytes; the maximum is {most}")


def open_regular(path: str, most: int) -> IO[bytes]:
    """Open the regular file at `path` as seekable; links are followed.

    A small file is read at once, which is cheaper than opening it as a stream.

    Raises:
        NotRegularFile: for a pipe, a device or a socket.
        FileTooLarge: for more than `most` bytes.
        OSError: like `open`; a folder raises IsADirectoryError.
    """
    try:
        descriptor = os.open(path, _FLAGS | _AT_ONCE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise NotRegularFile from None
        if not isinstance(error, BlockingIOError):
            raise
        # Another process holds a lease on the file, which ends soon.
        descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegularFile
        if found.st_size > most:
            raise FileTooLarge(found.st_size, most)
        if found.st_size < _SMALL_BYTES:
            data = os.read(descriptor, _SMALL_BYTES)
            # Some file systems generate the contents when they are read.
            if len(data) == found.st_size > 0:
                os.close(descriptor)
                return BytesIO(data)
            os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


LOG_FOLDER = "_delta_log"
_FILES = (".json", ".crc")
_UNASKED = tuple.__new__
"""default values for fast creation of entries: half the time, which matters for many"""


class LocalLogStore:
    """The `_delta_log` folder under `root`, an absolute path that is taken literally.

    Args:
        listed: the result of `list`, if the folder was listed just now.
    """

    def __init__(self, root: str, listed: tuple[FolderEntry, ...] | None = None) -> None:
        self._root, self._listed = root, listed
        self._folder = os.path.join(root, LOG_FOLDER)

    def list(self) -> list[FolderEntry]:
        if self._listed is not None:
            return list(self._listed)
        try:
            names = os.listdir(self._folder)
        except (OSError, ValueError) as error:
            raise self._unlisted(error) from None
        # Hadoop stores a hidden checksum file next to every file.
        return [
            _UNASKED(FolderEntry, (name, None, None))
            if name.endswith(_FILES) and ".checkpoint." not in name
            else self._entry(name)
            for name in names
            if name[0] != "."
        ]

    def _entry(self, name: str) -> FolderEntry:
        if ".checkpoint." in name:
            return FolderEntry(name, self._size(name))
        return FolderEntry(name + ("/" if os.path.isdir(f"{self._folder}/{name}") else ""), None)

    def _size(self, name: str) -> int | None:
        path = f"{self._folder}/{name}"
        try:
            return os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            # It has been cleaned up since; the reader will report it as missing.
            return None
        except (OSError, ValueError) as error:
            raise _unreadable_error(path, error) from None

    def list_dated(self) -> tuple[FolderEntry, ...]:
        try:
            with os.scandir(self._folder) as entries:
                found = [_dated_entry(entry) for entry in entries]
        except (OSError, ValueError) as error:
            raise self._unlisted(error) from None
        return tuple(entry for entry in found if entry is not None)

    def list_staged(self) -> tuple[FolderEntry, ...]:
        try:
            with os.scandir(f"{self._folder}/{STAGED_COMMITS}") as entries:
                found = [_dated_entry(entry) for entry in entries if entry.name[0] != "."]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except (OSError, ValueError) as error:
            raise _unreadable_error(f"{self._folder}/{STAGED_COMMITS}", error) from None
        return tuple(
            each._replace(name=STAGED_COMMITS + each.name) for each in found if each is not None
        )

    def open(self, name: str) -> IO[bytes]:
        path = f"{self._folder}/{name}"
        try:
            return open_regular(path, max_file_bytes(name))
        except FileNotFoundError:
            raise file_gone_error(name) from None
        except IsADirectoryError:
            hint = "restore the file from a backup or another replica"
            message = f"{name} is a folder, not a file"
            raise TableError(ErrorCode.CORRUPT_LOG, message, hint) from None
        except NotRegularFile:
            raise not_regular_error(name) from None
        except FileTooLarge as error:
            raise too_large_error(name, error.size) from None
        except (OSError, ValueError) as error:
            raise _unreadable_error(path, error) from None

    def check_files(self) -> None:
        """Refuse a log with a file that could hang an engine or exhaust its memory.

        Checks every file's type and size. A missing folder is accepted.

        Raises:
            TableError: corrupt-log, permission-denied or storage.
        """
        for folder in (self._folder, f"{self._folder}/_sidecars"):
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        _check_file(entry)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError) as error:
                raise _unreadable_error(folder, error) from None

    def _unlisted(self, error: Exception) -> TableError:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return self._no_log()
        return _unreadable_error(self._folder, error)

    def _no_log(self) -> TableError:
        if not os.path.lexists(self._root):
            return TableError(
                ErrorCode.NOT_FOUND,
                f"{self._root} does not exist",
                "check the path; a catalog name is written catalog.schema.table",
            )
        if not os.path.exists(self._root):
            return TableError(
                ErrorCode.NOT_FOUND,
                f"{self._root} is a broken link",
                "restore what it points to, or correct the link",
            )
        if not os.path.isdir(self._root):
            return TableError(
                ErrorCode.NOT_A_DELTA_TABLE,
                f"{self._root} is a file, not a table folder",
                f"pass the folder that contains {LOG_FOLDER}",
            )
        if os.path.islink(self._folder) and not os.path.exists(self._folder):
            return TableError(
                ErrorCode.CORRUPT_LOG,
                f"{LOG_FOLDER} in {self._root} is a link to a folder that does not exist",
                "restore the folder, or correct the link",
            )
        if os.path.lexists(self._folder):
            return TableError(
                ErrorCode.NOT_A_DELTA_TABLE,
                f"{LOG_FOLDER} in {self._root} is not a folder",
                f"pass a Delta table: it keeps its log in a folder named {LOG_FOLDER}",
            )
        return TableError(
            ErrorCode.NOT_A_DELTA_TABLE, f"{self._root} has no {LOG_FOLDER}", self._hint()
        )

    def _hint(self) -> str:
        parent = os.path.dirname(self._root)
        while parent != os.path.dirname(parent):
            if os.path.isdir(os.path.join(parent, LOG_FOLDER)):
                return f"it is inside the Delta table {parent}; inspect that table"
            parent = os.path.dirname(parent)
        try:
            names = os.listdir(self._root)
        except OSError as error:
            return f"cannot list the folder: {error.strerror}"
        if not names:
            return "the folder is empty"
        if _has_tables_below(self._root):
            scan = f"deltaproto scan {quote_for_shell(self._root)}"
            return f"it contains Delta tables: pass their paths, or find them with {scan}"
        if any(name.endswith(".parquet") or "=" in name for name in names):
            return "it looks like a Parquet folder; CONVERT TO DELTA makes it a Delta table"
        return f"pass the folder that contains {LOG_FOLDER}"


def _has_tables_below(folder: str) -> bool:
    """Return whether a table is among the first folders below `folder`, the nearest ones first."""
    folders = deque([folder])
    searched = 0
    while folders and searched < _MOST_SEARCHED:
        try:
            with os.scandir(folders.popleft()) as entries:
                below = [each.path for each in entries if each.is_dir()]
        except OSError:
            continue
        searched += len(below)
        if any(os.path.isdir(os.path.join(path, LOG_FOLDER)) for path in below):
            return True
        folders += below
    return False


def _check_file(entry: os.DirEntry[str]) -> None:
    try:
        found = entry.stat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        return
    if not stat.S_ISREG(found.st_mode):
        raise not_regular_error(entry.name)
    check_size(entry.name, found.st_size)


def _dated_entry(entry: os.DirEntry[str]) -> FolderEntry | None:
    if entry.is_dir():
        return FolderEntry(entry.name + "/", None)
    try:
        found = entry.stat()
    except FileNotFoundError:
        # It was cleaned up after the listing, so it is no longer part of the log.
        return None
    return FolderEntry(entry.name, found.st_size, found.st_mtime_ns // 1_000_000)


def _unreadable_error(path: str, error: Exception) -> TableError:
    if isinstance(error, PermissionError):
        return TableError(
            ErrorCode.PERMISSION_DENIED,
            f"no permission to read {path}",
            NO_PERMISSION_HINT,
        )
    return TableError(ErrorCode.STORAGE, f"cannot read {path}: {error}")
