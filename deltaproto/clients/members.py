"""Typed access to members of plain mappings, with positions in error messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from deltaproto.errors import UsageError
from deltaproto.protocol import feature_catalog

_E = TypeVar("_E", bound=StrEnum)
_ONLY_TEXTS = frozenset({str})


class EntryError(UsageError):
    """An invalid catalog entry; the message contains its position."""


def require_known_keys(plain: Any, known: Collection[str], where: str) -> None:
    if not isinstance(plain, Mapping):
        raise EntryError(f"{where}: not a mapping", f"use the keys {', '.join(sorted(known))}")
    for key in plain:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(sorted(known))}"
            raise EntryError(f"{where}: unknown key {key}", hint)


def read_text(plain: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = plain.get(key, default)
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise EntryError(f"{where}: {key} must be text", f"for example {key}: 'text'")
    return value.strip()


def read_flag(plain: Mapping[str, Any], key: str, where: str) -> bool:
    value = plain.get(key, False)
    if not isinstance(value, bool):
        raise EntryError(f"{where}: {key} must be true or false", f"for example {key}: true")
    return value


def read_items(plain: Mapping[str, Any], key: str, where: str, default: list[Any]) -> list[Any]:
    value = plain.get(key, default)
    if not isinstance(value, list):
        raise EntryError(f"{where}: {key} must be a list", f"for example {key}: []")
    return value


def read_features(plain: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Read feature names. Unknown names are accepted unless they look like a typo."""
    found = read_names(plain, key, where)
    if found:
        refuse_misspelled(found, f"{where}: {key}")
    return found


def refuse_misspelled(found: Iterable[str], where: str) -> None:
    """Refuse unknown names that are similar to feature names."""
    strange = [name for name in found if feature_catalog.find_feature(name) is None]
    if not strange:
        return
    import difflib

    known = [feature.name for feature in feature_catalog.all_features()]
    for name in strange:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if near:
            raise EntryError(f"{where}: unknown feature {name}", f"did you mean {near[0]}?")


def read_names(plain: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    if key not in plain:
        return ()
    value = read_items(plain, key, where, [])
    if not _ONLY_TEXTS.issuperset(map(type, value)):
        raise EntryError(f"{where}: {key} must be a list of names", f"for example {key}: [a, b]")
    return tuple(value)


def read_choice(plain: Mapping[str, Any], key: str, kind: type[_E], where: str, default: _E) -> _E:
    return parse_member(kind, str(plain.get(key, default)), f"{where}: {key}")


def parse_member(kind: type[_E], text: str, where: str) -> _E:
    try:
        return kind(text)
    except ValueError:
        raise EntryError(f"{where}: {text}", f"use one of {', '.join(kind)}") from None
