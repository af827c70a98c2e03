"""General caveats about declared clients, in addition to their verdicts.

Source: the Databricks page on feature compatibility and protocols.
"""

from __future__ import annotations

from collections.abc import Iterable

RUNTIME = "databricks-runtime"
_GENERAL_CAVEATS = (
    "A verdict applies to the declared version only. Clients and tools that you add later must "
    "support the table's features too.",
    "A reader-writer feature blocks readers and writers that do not support it; a writer feature "
    "blocks writers only.",
)
_RUNTIME_CAVEATS = (
    "Older Databricks runtimes may be unable to use tables that newer runtimes write. Older "
    "runtimes that can still write may skip optimizations.",
    "What works on a Databricks Runtime may fail on the Delta release of the same version: also "
    "declare delta-spark if you use it.",
    "Databricks SQL and Lakeflow Declarative Pipelines upgrade their runtime automatically: "
    "declare the oldest and the newest runtime that they may use.",
)
_OPEN_SOURCE_CAVEAT = (
    "Open-source clients may implement only part of a feature, legacy features included; "
    "`deltaproto clients ID@VERSION` shows the evidence for each verdict."
)


_DAFT_CAVEAT = (
    "An inventory does not record who wrote the data files, or whether column mapping was enabled "
    "on existing files. Daft cannot read some of these files: check its tables by path."
)


def caveats_for(clients: Iterable[str]) -> tuple[str, ...]:
    """Return the caveats for clients with these ids."""
    ids = set(clients)
    found = list(_GENERAL_CAVEATS) if ids else []
    if RUNTIME in ids:
        found += _RUNTIME_CAVEATS
    if "daft" in ids:
        found.append(_DAFT_CAVEAT)
    if ids - {RUNTIME}:
        found.append(_OPEN_SOURCE_CAVEAT)
    return tuple(found)
