"""Databricks Runtime versions, as people and as clusters write them."""

from __future__ import annotations

import re
from typing import NamedTuple

_WRITTEN = re.compile(
    r"(?:dbr|databricks runtime|runtime)?\s*v?(\d{1,3})\.(\d{1,2})(?:\.(?:x|\d+))?"
    r"(?:\s*lts)?(?:\s*ml)?((?:-[a-z0-9.]+)*)(?:\s*\(.*\))?",
    re.IGNORECASE | re.ASCII,
)


class Runtime(NamedTuple):
    """A Databricks Runtime; ordered as released."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class NamedRuntime(NamedTuple):
    """What a version text says: the runtime, and whether it names Photon."""

    runtime: Runtime
    photon: bool
    """False when it is not named, which says nothing"""


def named_runtime(text: str) -> NamedRuntime | None:
    """`14.3`, `14.3 LTS`, `DBR 14.3`, or a cluster's `14.3.x-photon-scala2.12`; None if none."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return None
    runtime = Runtime(int(found[1]), int(found[2]))
    return NamedRuntime(runtime, "-photon" in found[3].lower())
