"""Hide credentials that a table's log stores, such as a signed address in a property.

Readers call this once, so that no output, inventory, plan or journal can hold them. Table features
and values that Delta interprets never look like credentials, so predictions do not change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from deltaproto.redaction import HIDDEN, is_secret_property, redact_addresses_in, redact_text

_DELTA = "delta."
_LONGEST_SKIPPED = 19
"""number of letters and digits that is too small for a key"""
_UUID_LENGTH = 36
_LONGEST_CACHED = 1000
_LONGEST_CACHED_SCHEMA = 1 << 15
_SHOWN_IN_COMMITS = (
    "operation",
    "engineInfo",
    "clientVersion",
    "userName",
    "userId",
    "clusterId",
    "isolationLevel",
)
_NESTED_IN_COMMITS = ("job", "notebook")


def hide_in_name(text: str) -> str:
    """Return a name without credentials: of a feature, user, or another short text."""
    if text.isalnum() and len(text) <= _LONGEST_SKIPPED:
        return text
    # Most values are table ids, which would fill the cache.
    if len(text) == _UUID_LENGTH and text.count("-") == 4 and text.replace("-", "").isalnum():
        return text
    return _without(text) if len(text) <= _LONGEST_CACHED else redact_text(text)


def hide_in_addresses(text: str) -> str:
    """Return a text, such as a column's name, without the credentials of addresses in it."""
    return _without_address(text) if len(text) <= _LONGEST_CACHED else redact_addresses_in(text)


def hide_in_property(key: str, value: str | None) -> tuple[str, str | None]:
    """Return a property and its value without credentials; Delta's own have no secret values."""
    short = value is None or len(value) <= _LONGEST_CACHED
    return _without_in_property(key, value) if short else _read_property(key, value)


def _read_property(key: str, value: str | None) -> tuple[str, str | None]:
    name = hide_in_name(key)
    if not value:
        return name, value
    # A constraint's expression may compare a column named like a secret.
    if key.lower().startswith(_DELTA):
        return name, redact_addresses_in(value)
    # Spark has redacted some of the values; comparisons recognize its placeholder.
    hides = is_secret_property(key) and value.strip("*") != "(redacted)"
    return name, HIDDEN if hides else redact_text(value)


def hide_in_schema(text: str) -> str:
    """Return a schemaString without credentials in names, defaults, comments and expressions."""
    return _without_in_schema(text) if len(text) <= _LONGEST_CACHED_SCHEMA else _read_schema(text)


def _read_schema(text: str) -> str:
    if redact_addresses_in(text) == text:
        return text
    try:
        return json.dumps(_each(json.loads(text), redact_addresses_in))
    except (ValueError, RecursionError):
        # No reader can use this schema.
        return redact_addresses_in(text)


def hide_in_commit_info(info: dict[str, Any]) -> dict[str, Any]:
    """Remove credentials from the names in a commitInfo, in place, and return it.

    Operation parameters are kept: they can be long, and `history` hides credentials in them.
    """
    for name in _SHOWN_IN_COMMITS:
        if isinstance(text := info.get(name), str):
            info[name] = hide_in_name(text)
    for name in _NESTED_IN_COMMITS:
        if name in info:
            info[name] = hide_in_json(info[name])
    return info


def hide_in_json(value: Any, hide: Callable[[str], str] = hide_in_addresses) -> Any:
    """Return a JSON value with every text in it, including names, passed through `hide`.

    Null for a value that is nested too deeply.
    """
    try:
        return _each(value, hide)
    except RecursionError:
        return None


def _each(value: Any, hide: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_each(each, hide) for each in value]
    if isinstance(value, dict):
        return {hide(key): _each(each, hide) for key, each in value.items()}
    return value


_without_in_schema = lru_cache(maxsize=512)(_read_schema)
_without_in_property = lru_cache(maxsize=8192)(_read_property)
_without_address = lru_cache(maxsize=4096)(redact_addresses_in)


@lru_cache(maxsize=4096)
def _without(text: str) -> str:
    return redact_text(text)
