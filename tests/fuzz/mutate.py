"""Documents, damaged: by bytes, by tokens, and by the values that JSON and YAML hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

TOKENS = (
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"9" * 400, b"9223372036854775808", b"1.5", b"true"),
    *(b"null", b'""', b"{}", b"[]", b'"\\ud800"', b'"\\udfff\\u0000"', b"\x00", b"\xff\xfe"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r", b"\n\n", b"\xe2\x80\xa8"),
    *(b"[" * 5000, b'{"a":' * 3000, b"x" * 100_000, b'"' + b"\\u0041" * 5000 + b'"'),
    *(b"&a [*a]", b"!!python/object:os.system", b"<<: *a", b"\xe2\x80\xae", b"'\"`$(id);--"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 7, 8, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5),
    *(float("nan"), float("inf"), 1e308, "", " ", "x" * 50_000, "\ud800", "\x00", "\u202e"),
    *("deletionVectors", "DELETIONVECTORS", "delta.enableDeletionVectors", "../../etc/passwd"),
    *([], {}, [None], [[]], {"": None}, ["deletionVectors"] * 3, {"a": {"a": {"a": []}}}),
    *("{", "null", '{"type":"struct","fields":[]}', "NaN", "2026-13-45T99:99:99Z", "on", "1"),
)


def deep(size: int) -> Any:
    """A value nested so deep that recursion fails."""
    value: Any = []
    for _ in range(size):
        value = [value]
    return value


def bytes_of(random: Random, document: bytes) -> bytes:
    """`document` with some of its bytes cut, flipped, doubled or replaced."""
    data = bytearray(document)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(len(data) + 1)
        size = min(len(data) - at, random.choice((1, 1, 2, 4, 16, 64, 1000)))
        match random.randrange(7):
            case 0:
                del data[at:]
            case 1 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 2:
                data[at : at + size] = random.randbytes(size)
            case 3:
                del data[at : at + size]
            case 4:
                data[at:at] = data[at : at + size] * random.choice((1, 2, 50))
            case 5:
                data[at:at] = random.choice(TOKENS)
            case _:
                data[at : at + size] = random.choice(TOKENS)
    return bytes(data)


def value_of(random: Random, value: Any) -> Any:
    """A JSON value with some of its members replaced, removed, added or doubled."""
    holder = [json.loads(json.dumps(value))]
    for _ in range(random.choice((1, 1, 2, 4))):
        places = list(_places(holder))
        container, key = random.choice(places)
        match random.randrange(5):
            case 0 if isinstance(container, dict):
                del container[key]
            case 1 if isinstance(container, dict):
                container[random.choice((key.upper(), key + " ", "", "\ud800"))] = container[key]
            case 2:
                other, name = random.choice(places)
                if isinstance(other[name], (str, int, float, bool, type(None))):
                    container[key] = other[name]
            case _:
                container[key] = copy.deepcopy(random.choice(VALUES))
    return holder[0]


def doubled(random: Random, text: str) -> str:
    """JSON in which a member is there twice."""
    members = [
        at for at, letter in enumerate(text) if letter == "{" and text[at + 1 : at + 2] == '"'
    ]
    if not members:
        return text
    at = random.choice(members) + 1
    end = text.find('"', at + 1)
    name = text[at : end + 1]
    return f"{text[:at]}{name}:{json.dumps(random.choice(VALUES))},{text[at:]}"


def json_of(random: Random, document: bytes, *, lines: bool = False) -> bytes:
    """JSON, or JSON lines, damaged as bytes or as values."""
    if random.random() < 0.3:
        return bytes_of(random, document)
    parts = document.splitlines() if lines else [document]
    chosen = random.randrange(len(parts))
    value = value_of(random, json.loads(parts[chosen]))
    text = json.dumps(value, ensure_ascii=random.random() < 0.8)
    if random.random() < 0.15:
        text = doubled(random, text)
    parts[chosen] = text.encode("utf-8", "surrogatepass")
    if lines and random.random() < 0.2:
        random.shuffle(parts)
    return b"\n".join(parts) + (b"\n" if lines else b"")


def of(random: Random, corpus: Sequence[bytes], change: Callable[[Random, bytes], bytes]) -> bytes:
    """One document of a corpus, damaged."""
    return change(random, random.choice(corpus))


def _places(value: Any) -> Any:
    stack = [value]
    while stack:
        container = stack.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            yield container, key
            if isinstance(container[key], (dict, list)):
                stack.append(container[key])
