"""What caches keep, and when they forget it."""

from __future__ import annotations

import pickle

import pytest

from deltaproto.caches import BoundedCache, cache_by_identity, cache_by_text


@pytest.mark.parametrize(
    ("length", "kept"), [(1, 8), (32_000, 8), (40_000, 4), (1_000_000, 4), (1_100_000, 0)]
)
def test_the_longer_the_texts_the_fewer_calls_are_kept(length: int, kept: int) -> None:
    calls = []

    @cache_by_text(8)
    def first(text: str, *others: object) -> str:
        calls.append(text)
        return text[0]

    texts = [str(number) + "x" * (length - 1) for number in range(9)]
    for text in texts:
        assert first(text, None, True) == text[0]
    calls.clear()
    for text in texts[9 - kept :]:
        assert first(text, None, True) == text[0]
    assert not calls
    assert first(texts[8 - kept], None, True) == texts[8 - kept][0]
    assert len(calls) == 1


def test_texts_in_tuples_count() -> None:
    calls = []

    @cache_by_text(8)
    def count(texts: tuple[str, ...]) -> int:
        calls.append(texts)
        return len(texts)

    long = ("x" * 600_000, "y" * 600_000)
    assert [count(long) for _ in range(2)] == [2, 2]
    assert len(calls) == 2


def test_a_full_cache_is_emptied() -> None:
    cache = BoundedCache[int, str](3)
    for number in range(4):
        cache[number] = str(number)
    assert cache == {3: "3"}


def test_a_cache_is_empty_in_another_process() -> None:
    cache = BoundedCache[int, str](3)
    cache[1] = "1"
    copy = pickle.loads(pickle.dumps(cache))
    assert copy == {}
    for number in range(4):
        copy[number] = str(number)
    assert copy == {3: "3"}


def test_results_are_kept_by_identity() -> None:
    calls = []

    @cache_by_identity(2)
    def size(texts: list[str]) -> int:
        calls.append(texts)
        return len(texts)

    first, equal = ["a"], ["a"]
    assert [size(first), size(first), size(equal), size(first)] == [1, 1, 1, 1]
    assert [each is first for each in calls] == [True, False]
    assert [size([]), size(first)] == [0, 1]
    assert len(calls) == 4
