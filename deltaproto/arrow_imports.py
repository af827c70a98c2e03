"""Keeps pyarrow from importing NumPy and pandas, which takes longer than most commands."""

from __future__ import annotations

import sys
from typing import Any

_HIDDEN = ("numpy", "pandas")


class _Finder:
    """Hides both from every import until pyspark is imported, which needs them."""

    def __init__(self) -> None:
        self._hides = True

    def find_spec(self, name: str, *_: Any) -> None:
        if name == "pyspark":
            self._hides = False
        elif self._hides and name in _HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide_numpy_and_pandas() -> None:
    """Make pyarrow do without NumPy and pandas in this process, unless they are already imported.

    pyarrow looks for each of them once, so that it cannot convert to them later: this is for
    processes that only deltaproto uses.
    """
    sys.meta_path.insert(0, _Finder())
