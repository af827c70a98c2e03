"""Golden files: one text file for each test. `--snapshot-update` writes them anew."""

from __future__ import annotations

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class Text(SingleFileSnapshotExtension):
    """A plain file, to be read in a diff."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"
