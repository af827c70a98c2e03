"""Drift between two scans, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deltaproto.fleet.drift.between import Places, places_of, query, told
from deltaproto.fleet.drift.change import Change
from deltaproto.fleet.drift.culprit import Detective
from deltaproto.fleet.kept import errors
from deltaproto.fleet.past import LocalQuestions, Pair
from deltaproto.fleet.schemas import Inventory

_THREADS = 16
_NEEDED = (Inventory.TABLES, Inventory.ERRORS, Inventory.FEATURES)


def drift(questions: LocalQuestions, pair: Pair, detective: Detective | None) -> Iterator[Change]:
    """Every change between the two scans, by location.

    Args:
        detective: finds the commits in the tables' logs; None: nobody looks.

    Raises:
        UsageError: when the inventory cannot be read.
    """
    before, now = (places_of(errors(questions, scan)) for scan in (pair.before, pair.now))
    places = Places(before, now, pair.alike)

    def solved(row: Mapping[str, Any]) -> Sequence[Change]:
        found = told(row, places)
        return detective.solve(*found) if detective and found.changes else found.changes

    with ThreadPoolExecutor(_THREADS) as pool:
        for batch in questions.ask(f"{query(pair, questions.quote)} ORDER BY location", _NEEDED):
            for found in pool.map(solved, batch.to_pylist()):
                yield from found
