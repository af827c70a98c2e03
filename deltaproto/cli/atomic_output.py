"""An output file that is truncated only on first write, so a failed run keeps the old content."""

from __future__ import annotations

import io
import os
import stat
from typing import Any

from deltaproto.cli.pipes import PipeFile


class TruncateOnFirstWrite(io.TextIOWrapper):
    """Text output file: created when opened, truncated by the first write or a successful close.

    Raises:
        OSError: when the file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._made = not os.path.lexists(path)
        self._raw = _TruncatingFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        super().__init__(io.BufferedWriter(self._raw), "utf-8", "backslashreplace")

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.flush()
            if kind is None:
                self._raw.empty()
        finally:
            untouched = not self._raw.emptied
            self.close()
        if kind is not None and untouched and self._made:
            os.unlink(self._path)


class _TruncatingFile(PipeFile):
    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w")
        self.emptied = False

    def empty(self) -> None:
        if not self.emptied:
            self.emptied = True
            # Pipes and terminals cannot be truncated.
            if stat.S_ISREG(os.fstat(self.fileno()).st_mode):
                self.truncate(0)

    def write(self, data: Any, /) -> int:
        self.empty()
        return super().write(data)
