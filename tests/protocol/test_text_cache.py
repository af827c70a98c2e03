"""Results for short texts are kept, few of those for long texts, and none for very long ones."""

from __future__ import annotations

import pytest

from deltaproto.protocol.text_cache import cache_by_text


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
