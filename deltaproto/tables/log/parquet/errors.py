"""The one way in which the small Parquet reader fails."""

from __future__ import annotations


class NotSimple(Exception):
    """This file is beyond the simple reader, or corrupt; a full Parquet reader must judge it."""
