"""Replaces the names of a table in the texts of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Renamer = Callable[[Sequence[str]], Any]
"""returns the value with the names that it gets instead of those of the table"""


def renamer(value: Any, names: Sequence[str]) -> Renamer:
    """Return a function that returns `value` with other names instead of `names`.

    It visits only the texts that contain a name. Where names overlap, the first one counts.
    """
    return _find_texts(value, names) or (lambda _: value)


def _find_texts(value: Any, names: Sequence[str]) -> Renamer | None:
    """Return the function for `renamer`; None if no text contains a name."""
    match value:
        case str() if type(value) is str:
            return _in_text(value, names) if any(name in value for name in names) else None
        case tuple():
            items = {n: found for n, one in enumerate(value) if (found := _find_texts(one, names))}
            return _in_tuple(value, items) if items else None
        case Mapping():
            entries = {k: found for k, one in value.items() if (found := _find_texts(one, names))}
            return _in_mapping(value, entries) if entries else None
    return None


def _in_text(text: str, names: Sequence[str]) -> Renamer:
    # All at once: a location ends with the name.
    pieces = re.split(f"({'|'.join(map(re.escape, names))})", text)
    places = [(n, names.index(pieces[n])) for n in range(1, len(pieces), 2)]

    def rename(others: Sequence[str]) -> str:
        parts = pieces.copy()
        for place, name in places:
            parts[place] = others[name]
        return "".join(parts)

    return rename


def _in_tuple(value: tuple[Any, ...], items: Mapping[int, Renamer]) -> Renamer:
    make = getattr(value, "_make", tuple)

    def rename(others: Sequence[str]) -> Any:
        parts = list(value)
        for number, found in items.items():
            parts[number] = found(others)
        return make(parts)

    return rename


def _in_mapping(value: Mapping[Any, Any], entries: Mapping[Any, Renamer]) -> Renamer:
    return lambda others: {**value, **{key: found(others) for key, found in entries.items()}}
