"""A JSON array that is written into a document without having to fit into memory."""

from __future__ import annotations

import shutil
import tempfile
from typing import IO

from deltaproto.render.interface import NEUTRALIZED_COMMAND, dump_json, envelope

_BYTES = 4 << 20
_COPIED = 1 << 18
_ENTRY = ",\n    "


class JsonArraySpool:
    """Entries encoded in advance, without indentation, which would take ten times as long."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_BYTES, "w+", encoding="ascii")  # noqa: SIM115

    def add(self, *entries: str) -> None:
        """Add entries as JSON texts."""
        self._file.write(
            "".join([_ENTRY + entry for entry in entries]).replace(*NEUTRALIZED_COMMAND)
        )

    def close(self, name: str, file: IO[str]) -> None:
        """Write the array as the next property of an open document."""
        file.write(f',\n  "{name}": [')
        self._file.seek(len(","))
        shutil.copyfileobj(self._file, file, _COPIED)
        file.write("\n  ]")
        self._file.close()


def open_envelope(command: str, *, complete: bool) -> str:
    """Return the envelope of a document, open for more properties."""
    return dump_json(envelope(command, {}, complete=complete))[: -len("\n}")]
