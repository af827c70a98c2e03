"""Facts with one name are shown under one name."""

from __future__ import annotations

import io

from deltaproto.counts import all_names, any_name
from deltaproto.render.document.blocks import Document, FactList
from deltaproto.render.document.render import write_document
from deltaproto.render.interface import PageFormat


def test_a_name_with_several_values_is_written_once() -> None:
    rows = [("user", ("etl",)), ("table", ("a",)), ("table", ("b",)), ("user", ("bi",))]
    file = io.StringIO()
    write_document(Document("Clients", (), [FactList(rows)]), PageFormat.HTML, file, color=False)
    assert (
        "<dl><div><dt>user</dt><dd>etl</dd></div>"
        "<div><dt>table</dt><dd>a</dd><dd>b</dd></div>"
        "<div><dt>user</dt><dd>bi</dd></div></dl>"
    ) in file.getvalue()


def test_names_are_joined_as_in_a_sentence() -> None:
    for names, every, one in (
        ([], "", ""),
        (["a"], "a", "a"),
        (["a", "b"], "a and b", "a or b"),
        (["a", "b", "c"], "a, b and c", "a, b or c"),
    ):
        assert (all_names(names), any_name(names)) == (every, one)
