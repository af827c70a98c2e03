"""Opening only regular files: a pipe may never end, and a device has no size."""

from __future__ import annotations

import errno
import os
import stat
from io import BytesIO
from typing import IO

_SMALL_BYTES = 64 * 1024
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""opens a pipe without waiting for somebody who writes to it"""


class NotRegular(OSError):
    """The path leads to a pipe, a device or a socket."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "not a regular file")


class TooLarge(OSError):
    """The file has more bytes than are accepted."""

    def __init__(self, size: int, most: int) -> None:
        self.size = size
        super().__init__(errno.EFBIG, f"{size} bytes; the most that are read is {most}")


def open_regular(path: str, most: int) -> IO[bytes]:
    """The regular file at `path`, seekable; links are followed.

    A small file is read at once, which costs less than opening it as a stream.

    Raises:
        NotRegular: for a pipe, a device or a socket.
        TooLarge: for more than `most` bytes.
        OSError: as `open`; a folder is an IsADirectoryError.
    """
    try:
        descriptor = os.open(path, _FLAGS | _AT_ONCE)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise NotRegular from None
        if not isinstance(error, BlockingIOError):
            raise
        # Somebody holds a lease on the file, which ends soon.
        descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular
        if found.st_size > most:
            raise TooLarge(found.st_size, most)
        if found.st_size < _SMALL_BYTES:
            data = os.read(descriptor, _SMALL_BYTES)
            # Some file systems make up the contents when they are read.
            if len(data) == found.st_size > 0:
                os.close(descriptor)
                return BytesIO(data)
            os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def read_regular(path: str, most: int) -> bytes:
    """The contents of the regular file at `path`.

    Raises:
        NotRegular, TooLarge, OSError: as `open_regular`; also when it grows while it is read.
    """
    with open_regular(path, most) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(len(data), most)
    return data
