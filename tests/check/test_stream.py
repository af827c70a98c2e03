"""Long documents entry by entry: what json.loads gives, whatever the chunks, in little memory."""

from __future__ import annotations

import contextlib
import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.errors import UsageError
from deltaproto.inspection.json_entries import JsonFile
from tests.support.failures import each_row


class Trickle(io.RawIOBase):
    """A file that gives a few bytes at a time, however many are asked for."""

    def __init__(self, content: bytes, most: int) -> None:
        self._content, self._most = io.BytesIO(content), most

    def read(self, size: int = -1, /) -> bytes:
        return self._content.read(self._most if size < 0 else min(size, self._most))


class Fleet(io.RawIOBase):
    """A long document that is made while it is read."""

    def __init__(self, entry: bytes, count: int) -> None:
        self._parts = self._made(entry, count)
        self._rest = b""
        self.given = 0

    def read(self, size: int = -1, /) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, None)) is not None:
            self._rest += part
        data, self._rest = self._rest[:size], self._rest[size:]
        self.given += len(data)
        return data

    @staticmethod
    def _made(entry: bytes, count: int) -> Iterator[bytes]:
        yield b'{"command": "inspect", "tables": ['
        for number in range(count):
            yield entry if number == 0 else b",\n    " + entry
        yield b"]}"


def entries(content: bytes | str, most: int = 1 << 20) -> tuple[list[list[Any]], list[Any]]:
    """The entries of each object, and the other members of each."""
    data = content.encode() if isinstance(content, str) else content
    document = JsonFile(Trickle(data, most), "saved.json", "tables")  # type: ignore[arg-type]
    found, members = [], []
    for each in document.objects():
        found.append(list(each))
        members.append(document.members)
    return found, members


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.builds(
    lambda members, tables: {**members, "tables": tables},
    st.dictionaries(st.text(max_size=5).filter(lambda name: name != "tables"), values, max_size=4),
    st.lists(values, max_size=5),
)
layouts = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, 2, "\t", "\r\n "]),
        "ensure_ascii": st.booleans(),
        "sort_keys": st.booleans(),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]),
    }
)
chunks = st.integers(1, 9)


def split(document: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    others = dict(document)
    return others.pop("tables"), others


class TestSameAsJson:
    @given(objects, layouts, chunks)
    def test_any_document_in_any_layout_and_chunks(
        self, document: dict[str, Any], layout: dict[str, Any], most: int
    ) -> None:
        text = json.dumps(document, **layout)
        found, members = entries(text.encode("utf-8", "surrogatepass"), most)
        assert (found[0], members[0]) == split(json.loads(text))
        assert len(found) == 1

    @given(st.lists(objects, max_size=4), st.booleans(), chunks)
    def test_json_lines(self, documents: list[dict[str, Any]], ascii_: bool, most: int) -> None:
        text = "\n".join(json.dumps(each, ensure_ascii=ascii_) for each in documents) + "\n\n"
        found, members = entries(text, most)
        assert list(zip(found, members, strict=True)) == [split(each) for each in documents]

    @each_row("number", ["1.5", "1e5", "1E+5", "-1e-5", "-0.25e+10", "12", "-7", "0"])
    @each_row("most", range(1, 9))
    def test_numbers_that_end_with_a_chunk(self, number: str, most: int) -> None:
        text = f'{{"tables": [{number},{number}], "last": {number}}}'
        found, members = entries(text, most)
        assert found == [[json.loads(number)] * 2]
        assert members == [{"last": json.loads(number)}]

    @pytest.mark.parametrize("most", [1, 2, 3, 5])
    def test_characters_of_several_bytes(self, most: int) -> None:
        text = '{"tables": ["äöü€😀", "😀"], "ß": "日本"}'
        assert entries(text, most) == ([["äöü€😀", "😀"]], [{"ß": "日本"}])

    @pytest.mark.parametrize("most", [1, 4, 1000])
    def test_an_array_of_the_same_name_further_down_is_a_value(self, most: int) -> None:
        text = '{"a": {"tables": [1]}, "tables": [{"tables": [2]}], "b": [["tables"]]}'
        found, members = entries(text, most)
        assert found == [[{"tables": [2]}]]
        assert members == [{"a": {"tables": [1]}, "b": [["tables"]]}]

    def test_nothing_is_no_document(self) -> None:
        assert entries(b" \n\t ") == ([], [])


class TestDamage:
    DOCUMENT = json.dumps({"n": 1.5e3, "tables": [{"a": [1, None]}, "ü", 2.5], "z": {"é": True}})

    @pytest.mark.parametrize("most", [1, 7, 1000])
    def test_cut_off_anywhere(self, most: int) -> None:
        data = json.dumps(json.loads(self.DOCUMENT), ensure_ascii=False).encode()
        for end in range(1, len(data)):
            with pytest.raises(UsageError, match=r"saved\.json is not "):
                entries(data[:end], most)

    @given(st.data())
    def test_a_changed_byte_is_a_usage_error_or_another_document(self, data: st.DataObject) -> None:
        damaged = bytearray(self.DOCUMENT.encode())
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
        try:
            found, _ = entries(bytes(damaged), data.draw(chunks))
        except UsageError:
            return
        tables = json.loads(damaged.decode()).get("tables")
        assert found == [tables if isinstance(tables, list) else []]

    @given(st.binary(min_size=1, max_size=40))
    def test_any_bytes(self, content: bytes) -> None:
        with contextlib.suppress(UsageError):
            found, _ = entries(content, 3)
            # What is taken is made of objects, or of nothing.
            assert bool(found) == content.strip(b" \t\r\n").startswith(b"{")

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            '"tables"',
            "1",
            '{"tables": [1,]}',
            '{"tables": [1 2]}',
            '{"tables": [1]]}',
            '{"tables": [1},',
            '{"tables": [1]} x',
            '{"tables": [1],}',
            "{1: 2}",
            '{"tables" [1]}',
            "{,}",
            '{"tables": [' + "[" * 100_000,
            '{"tables": [' + "9" * 5000 + "]}",
            '{"tables": ["\x00"]}',
        ],
        ids=lambda text: text[:20],
    )
    def test_what_is_no_document(self, text: str) -> None:
        with pytest.raises(UsageError):
            entries(text)

    def test_another_encoding(self) -> None:
        with pytest.raises(UsageError, match="not UTF-8"):
            entries('{"tables": ["é"]}'.encode("latin-1"))


def test_thirty_megabytes_take_the_memory_of_a_few_entries() -> None:
    entry = json.dumps({"table": "x" * 100, "features": [{"name": "f" * 20}] * 60}).encode()
    count = (30 << 20) // len(entry) + 1
    file = Fleet(entry, count)
    tracemalloc.start()
    try:
        document = JsonFile(file, "saved.json", "tables")  # type: ignore[arg-type]
        seen = sum(len(each["features"]) for each in next(document.objects()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == 60 * count
    assert file.given > 30 << 20
    assert peak < 8 << 20
