"""JSON decoding for logs; uses the fast decoder if it is already imported."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

# Python refuses to convert longer ones.
_MOST_DIGITS = 4000


def decode_json(text: bytes | str) -> Any:
    """Decode JSON; bytes are UTF-8.

    Raises:
        ValueError: if the text is not valid JSON or not UTF-8.
        RecursionError: if it is nested too deeply.
    """
    # Null or not decoded: in both cases the standard library decides.
    found = decode_fast(text)
    if found is not None:
        return found
    return json.loads(text if isinstance(text, str) else text.decode("utf-8"))


def decode_fast(text: bytes | str) -> Any:
    """Decode JSON with the fast decoder; None if it refuses the text, or is not imported."""
    # It is many times faster, but importing it would slow down every start. Code that reads
    # thousands of logs has imported it.
    fast = sys.modules.get("msgspec")
    if fast is None:
        return None
    try:
        return fast.json.decode(text)
    except (ValueError, RecursionError):
        return None


def use_fast_decoder() -> None:
    """Import the fast decoder, which several megabytes of JSON justify."""
    import msgspec  # noqa: F401


def parse_whole(text: str) -> int | None:
    """Return a stored whole number as Java parses it, of any size up to 4,000 digits; else None."""
    digits = text[1:] if text.startswith(("+", "-")) else text
    return int(text) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def decode_members(text: bytes, names: tuple[str, ...]) -> Any:
    """Decode only these members of an object, without nulls.

    Other members may be skipped for speed and then need not be valid UTF-8.
    """
    if "msgspec" in sys.modules:
        try:
            found = _decoder(names)(text)
        except (ValueError, RecursionError):
            pass
        else:
            return {name: value for name in names if (value := getattr(found, name)) is not None}
    value = decode_json(text)
    if not isinstance(value, Mapping):
        return value
    return {name: value[name] for name in names if value.get(name) is not None}


def holds_objects(text: str, name: str) -> bool:
    """Return True if `text` is a JSON object with a list of objects of that name."""
    if "msgspec" in sys.modules:
        try:
            found = getattr(_list_decoder(name)(text), name)
        except (ValueError, RecursionError):
            pass
        else:
            return all(bytes(memoryview(entry)[:1]) == b"{" for entry in found)
    try:
        value = decode_json(text)
    except (ValueError, RecursionError):
        return False
    found = value.get(name) if isinstance(value, dict) else None
    return isinstance(found, list) and all(isinstance(entry, dict) for entry in found)


@cache
def _decoder(names: tuple[str, ...]) -> Callable[[bytes], Any]:
    import msgspec

    kind = msgspec.defstruct("Members", [(name, Any, None) for name in names])
    return msgspec.json.Decoder(kind).decode


@cache
def _list_decoder(name: str) -> Callable[[str], Any]:
    import msgspec

    kind = msgspec.defstruct("Holder", [(name, list[msgspec.Raw])])
    return msgspec.json.Decoder(kind).decode
