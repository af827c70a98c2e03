"""Results for short texts are kept, those for long texts are not."""

from __future__ import annotations

from deltaproto.protocol.small_cache import cache_if_short


def test_a_call_with_long_texts_is_not_kept() -> None:
    calls = []

    @cache_if_short(8)
    def size(text: str, *others: object) -> int:
        calls.append(text)
        return len(text)

    long = "x" * 40_000
    for text, others in (("a", (None, True)), (long, ()), ("b", ((long,),))):
        before = len(calls)
        assert [size(text, *others) for _ in range(2)] == [len(text)] * 2
        assert len(calls) - before == (1 if text == "a" else 2), text[:3]


def test_only_the_last_calls_are_kept() -> None:
    calls = []

    @cache_if_short(2)
    def same(text: str) -> str:
        calls.append(text)
        return text

    assert [same(text) for text in "abca"] == [*"abca"]
    assert calls == [*"abca"]
