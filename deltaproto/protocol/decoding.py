"""JSON out of logs, as fast as what is loaded allows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any


def decoded(text: bytes | str) -> Any:
    """The JSON value of `text`; bytes are UTF-8.

    Raises:
        ValueError: when it is none, or no UTF-8.
        RecursionError: when it is nested too deeply.
    """
    # Many times as fast, but as an import it would cost every start: whoever reads thousands of
    # logs has imported it. What it refuses is left to the standard library to judge.
    fast = sys.modules.get("msgspec")
    if fast is not None:
        try:
            return fast.json.decode(text)
        except (ValueError, RecursionError):
            pass
    return json.loads(text if isinstance(text, str) else text.decode("utf-8"))


def members(text: bytes, names: tuple[str, ...]) -> Any:
    """As `decoded`, but of an object only these members, and no null among them.

    What else it holds is passed over where that is faster, and then need not be UTF-8.
    """
    if "msgspec" in sys.modules:
        try:
            found = _decoder(names)(text)
        except (ValueError, RecursionError):
            pass
        else:
            return {name: value for name in names if (value := getattr(found, name)) is not None}
    value = decoded(text)
    if not isinstance(value, Mapping):
        return value
    return {name: value[name] for name in names if value.get(name) is not None}


def holds_list(text: str, name: str) -> bool:
    """Whether `text` is a JSON object with a list of that name."""
    if "msgspec" in sys.modules:
        try:
            _list_decoder(name)(text)
        except (ValueError, RecursionError):
            pass
        else:
            return True
    try:
        value = decoded(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and isinstance(value.get(name), list)


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
