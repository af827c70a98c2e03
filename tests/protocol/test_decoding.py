"""JSON is read the same with the fast decoder as without it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltaproto.protocol.decoding import decode_json, decode_members, holds_objects

NAMES = ("txnId", "protocol", "allFiles")
keys = st.sampled_from((*NAMES, "fields", "other", "a\u0000b")) | st.text(max_size=4)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
documents = st.builds(
    lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "replace"),
    values,
    st.booleans(),
)


def broken(document: bytes, place: int, byte: int, cut: bool) -> bytes:
    """A document with one byte changed, or cut off."""
    if not document:
        return document
    place %= len(document)
    return document[:place] + (b"" if cut else bytes([byte]) + document[place + 1 :])


texts = documents | st.builds(
    broken, documents, st.integers(0, 10_000), st.integers(0, 255), st.booleans()
)


@contextmanager
def without() -> Iterator[None]:
    """The fast decoder was never imported."""
    kept = sys.modules.pop("msgspec", None)
    try:
        yield
    finally:
        if kept is not None:
            sys.modules["msgspec"] = kept


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ValueError, RecursionError) as error:
        return RecursionError if isinstance(error, RecursionError) else ValueError


def both(call: Callable[[], Any]) -> tuple[Any, Any]:
    import msgspec  # noqa: F401

    fast = outcome(call)
    with without():
        return fast, outcome(call)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types; NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(texts)
@example(b"123456789012345678901234567890")
@example(b'{"a":1,"a":2}')
@example(b'"\\ud800"')
@example(b"NaN")
@example(b"1e400")
@example(b"\xef\xbb\xbf1")
@example(b'"\xff"')
def test_any_value(text: bytes) -> None:
    fast, slow = both(lambda: decode_json(text))
    assert same(fast, slow)


@given(texts)
@example(b'{"txnId":null,"protocol":{"a":null}}')
@example(b'{"txnId":1,"txnId":null}')
@example(b"[1]")
def test_some_members(text: bytes) -> None:
    fast, slow = both(lambda: decode_members(text, NAMES))
    try:
        text.decode()
    except UnicodeDecodeError:
        # What is passed over is not decoded.
        return
    assert same(fast, slow)
    whole = outcome(lambda: decode_json(text))
    if isinstance(whole, dict):
        wanted = {name: whole[name] for name in NAMES if whole.get(name) is not None}
        assert same(slow, wanted)
    else:
        assert same(slow, whole)


@given(texts.map(lambda text: text.decode("utf-8", "surrogateescape")))
@example('{"fields":[]}')
@example('{"fields":[],"fields":3}')
@example('{"fields":3,"fields":[1]}')
@example('{"fields":[NaN]}')
@example('{"fields":[ {"a": NaN} , {} ]}')
@example('{"fields":[{}, null]}')
@example('{"fields":{}}')
@example("")
def test_a_list_in_an_object(text: str) -> None:
    fast, slow = both(lambda: holds_objects(text, "fields"))
    assert fast is slow
    whole = outcome(lambda: decode_json(text))
    found = whole.get("fields") if isinstance(whole, dict) else None
    objects = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    assert slow is objects


@pytest.mark.parametrize("depth", [10, 100_000])
def test_depth_is_bounded(depth: int) -> None:
    text = b"[" * depth + b"]" * depth
    fast, slow = both(lambda: decode_json(text))
    assert (fast is RecursionError) is (slow is RecursionError) is (depth > 1000)


@pytest.mark.parametrize("depth", [10, 3000, 100_000])
def test_a_deep_schema_is_judged_the_same(depth: int) -> None:
    text = '{"fields":[{"a":' + "[" * depth + "]" * depth + "}]}"
    fast, slow = both(lambda: holds_objects(text, "fields"))
    assert fast is slow
    whole = outcome(lambda: decode_json(text))
    assert slow is (whole is not RecursionError)
