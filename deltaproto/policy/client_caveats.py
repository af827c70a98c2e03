"""What holds for declared clients in general, beside their verdicts.

Source: the Databricks page on feature compatibility and protocols.
"""

from __future__ import annotations

from collections.abc import Iterable

RUNTIME = "databricks-runtime"
_ALWAYS = (
    "A verdict holds for the version that is declared. Clients and tools that come later must know "
    "the table's features as well.",
    "A feature that readers must know keeps readers and writers out; a writer feature keeps out "
    "writers only.",
)
_RUNTIME = (
    "Tables that newer Databricks runtimes write may be unusable in older ones, and an older "
    "runtime that may still write can leave optimisations out.",
    "What works on a Databricks Runtime may fail on the Delta release of the same number: declare "
    "delta-spark too where it is used.",
    "Databricks SQL and Lakeflow Declarative Pipelines change their runtime on their own: declare "
    "the oldest and the newest that they may run on.",
)
_OPEN = (
    "Open-source clients may implement only a part of a feature, legacy features included; "
    "`deltaproto clients ID@VERSION` shows how each verdict is known."
)


_DAFT = (
    "An inventory does not hold who wrote the data files, nor whether column mapping was enabled "
    "on older files, and Daft cannot read some of them: check its tables by their paths."
)


def notes(clients: Iterable[str]) -> tuple[str, ...]:
    """What to know about clients with these ids."""
    ids = set(clients)
    found = list(_ALWAYS) if ids else []
    if RUNTIME in ids:
        found += _RUNTIME
    if "daft" in ids:
        found.append(_DAFT)
    if ids - {RUNTIME}:
        found.append(_OPEN)
    return tuple(found)
