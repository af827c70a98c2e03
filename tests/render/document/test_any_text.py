"""Whatever a document's texts hold, they are shown as they are and start nothing."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from deltaproto.render.document.blocks import (
    Block,
    Bullets,
    Callout,
    Checks,
    Code,
    CodeBlock,
    Details,
    Diff,
    Document,
    FactList,
    FindingLine,
    FindingList,
    Line,
    Paragraph,
    Section,
    Strong,
    TableBlock,
    Tone,
)
from deltaproto.render.document.html import document_html
from deltaproto.render.document.markdown import document_markdown
from deltaproto.render.document.page import PageTexts
from deltaproto.render.document.text import TextWriter
from deltaproto.render.interface import escape_control_chars

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</code></pre></main>",
    "</style></title>",
    "javascript:alert(1)",
    "[a](javascript:alert(1))",
    "![a](http://evil/x.png)",
    "&lt;b&gt;",
    "&#60;",
    "`",
    "```\n# x\n",
    "~~~",
    "# heading",
    "1. one",
    "- item",
    "=====",
    "| a | b |",
    "**bold** _it_",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "\x00\x1b[31m",
    "\ud800",
    "\\",
    "x" * 300,
    "{{ 7 * 7 }}",
    "<!-- -->",
    "\r\n\t",
)
texts = st.lists(
    st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=()), max_size=6),
    max_size=4,
).map("".join)
lines = st.lists(
    texts | st.builds(Code, texts) | st.builds(Strong, texts), min_size=1, max_size=3
).map(tuple)

findings = st.builds(FindingLine, st.none() | st.sampled_from(Tone), *[texts] * 5)


def flat_blocks() -> st.SearchStrategy[Block]:
    several = st.lists(lines, min_size=1, max_size=3)
    return st.one_of(
        st.builds(Paragraph, lines, st.booleans()),
        st.builds(FindingList, st.lists(findings, min_size=1, max_size=2)),
        st.builds(Diff, several, several, lines),
        st.builds(Bullets, several),
        st.builds(Checks, several),
        st.builds(FactList, st.lists(st.tuples(texts, lines), min_size=1, max_size=2)),
        st.builds(
            lambda heads, rows, below: TableBlock(heads, rows, below=below),
            st.tuples(texts, texts),
            st.lists(st.tuples(lines, lines), max_size=2),
            st.booleans(),
        ),
        st.builds(CodeBlock, texts, st.sampled_from(("sql", "text", "")), texts),
        st.builds(Callout, st.sampled_from(Tone), lines),
    )


blocks = st.recursive(
    flat_blocks(),
    lambda inner: (
        st.builds(Details, texts, st.lists(inner, max_size=2))
        | st.builds(Section, st.just("a"), texts, st.lists(inner, max_size=2))
    ),
    max_leaves=6,
)
documents = st.builds(Document, texts, lines, st.lists(blocks, max_size=3))


def said(document: Document, *, headings_too: bool = True) -> list[str]:
    """Every text of a document as a reader is meant to see it, spaces apart."""

    def in_line(line: Line) -> Iterator[str]:
        yield from (part if isinstance(part, str) else part.text for part in line)

    def in_block(block: Block) -> Iterator[str]:
        match block:
            case Paragraph(line) | Callout(_, line):
                yield from in_line(line)
            case Bullets(several) | Checks(several):
                for line in several:
                    yield from in_line(line)
            case FactList(rows):
                for name, line in rows:
                    yield from (name, *in_line(line))
            case TableBlock(headings, rows):
                yield from headings if headings_too else ()
                for cells in rows:
                    for line in cells:
                        yield from in_line(line)
            case FindingList(rows):
                for row in rows:
                    yield from row[1:]
            case Diff(removed, added, kept):
                for line in (*removed, *added, kept):
                    yield from in_line(line)
            case CodeBlock(text, _, title):
                yield from (title, text)
            case Details(title, inner) | Section(_, title, inner):
                yield title
                for each in inner:
                    yield from in_block(each)

    return [document.title, *in_line(document.subtitle)] + [
        text for block in document.blocks for text in in_block(block)
    ]


_SPACES = re.compile(r"\\(?:n|x09|x0[a-d]|x1[c-f]|x85|u202[89])")


def is_shown(text: str, shown: str) -> bool:
    """Whether a page shows a text, spaces and line ends apart: formats fold or escape those."""
    return any(
        wanted in found for wanted, found in zip(_unspaced(text), _unspaced(shown), strict=True)
    )


@lru_cache(maxsize=4)
def _unspaced(text: str) -> tuple[str, ...]:
    """A text without spaces, and without escaped ones either, which may be wrapped."""
    # At the start of a line, CI systems would take two colons for a command.
    joined = escape_control_chars("".join(text.split())).replace(r"\x3a:", "::")
    # A backslash before a space and an `n` is not an escape.
    unescaped = _SPACES.sub("", escape_control_chars(text))
    return joined, _SPACES.sub("", joined), "".join(unescaped.split()).replace(r"\x3a:", "::")


class Page(HTMLParser):
    """The elements and attributes of a page, and its texts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skip += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.texts.append(data)


@given(documents)
@example(Document("", (Code("::"),), []))
@example(Document("", (Code("a\n\\"), "n"), []))
def test_html_shows_every_text_and_has_no_element_of_it(document: Document) -> None:
    made = document_html(document, PageTexts())
    page = Page()
    page.feed(made)
    page.close()
    shown = " ".join(page.texts)
    assert [text for text in said(document) if not is_shown(text, shown)] == []
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"img", "b", "i", "iframe", "object", "form"})
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert "src" not in attributes


@given(documents)
def test_markdown_shows_every_text_and_no_markup_of_it(document: Document) -> None:
    made = document_markdown(document).encode("utf-8", "backslashreplace").decode()
    parser = MarkdownIt("gfm-like", {"linkify": False})
    page = Page()
    page.feed(parser.render(made))
    page.close()
    shown = " ".join(page.texts)
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in said(document)]
    assert [text for text in texts if not is_shown(text, shown)] == []
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "img", "a", "iframe", "b"})


@given(documents, st.sampled_from([60, 80, 200]))
def test_text_shows_every_text_and_obeys_none(document: Document, width: int) -> None:
    file = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        TextWriter(file, color=True).document(document)
    shown = file.getvalue()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert not re.search(r"^\s*::", shown, re.MULTILINE)
    # Cells side by side are folded on their own, so that only the letters can be counted.
    # A list leaves out the headings of empty cells.
    for text in said(document, headings_too=False):
        wanted = Counter("".join(escape_control_chars(text).split()).casefold())
        found = Counter("".join(shown.split()).casefold())
        assert {each for each in wanted if found[each] < wanted[each]} <= {":"}, text


@pytest.mark.parametrize("width", [60, 80])
def test_a_table_that_is_too_wide_is_a_list(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = [("orders",), ("word " * 60,), ("",), ("b",)]
    file = io.StringIO()
    TextWriter(file, color=False).block(TableBlock(("Table", "Cause", "Hint", "By"), [row]))
    text = file.getvalue()
    assert text.startswith("orders\n  cause  word word")
    assert text.rstrip().endswith("\n  by     b")
    assert "hint" not in text
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("cell", "shown"),
    [("1,011", "tables 1,011"), ("983", "tables 983"), ("", "cause"), ("orders", "orders")],
)
def test_the_number_that_begins_a_list_has_its_heading(
    cell: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    file = io.StringIO()
    row = [(cell,), ("word " * 60,), ("c" * 40,)]
    TextWriter(file, color=False).block(TableBlock(("Tables", "Cause", "By"), [row]))
    assert file.getvalue().lstrip().startswith(f"{shown}{'' if shown == 'cause' else chr(10)}")


@pytest.mark.parametrize(("width", "shown"), [(40, "Table Size"), (30, "T S")])
def test_columns_to_spare_go_first_and_then_headings(
    width: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [[("orders",), ("a" * 30,), ("1",)]]
    table = TableBlock(("Table", "Path", "Size" if width == 40 else "Size" * 8), rows)
    file = io.StringIO()
    short = ("T", "P", "S")
    TextWriter(file, color=False).block(table._replace(short=short, spare=frozenset({1})))
    first, second, *more = file.getvalue().splitlines()
    assert first.split() == shown.split()
    assert second.split() == ["orders", "1"]
    assert any("T Table" in line for line in more) is (width == 30)


@pytest.mark.parametrize("render", [document_markdown, lambda d: document_html(d, PageTexts())])
def test_marks_of_direction_are_shown_as_escapes(render: Callable[[Document], str]) -> None:
    made = render(Document("t", (), [CodeBlock("DROP \u202etable\u2069", "sql")]))
    assert "DROP \\u202etable\\u2069" in made


def test_a_page_lets_run_only_what_the_package_brings() -> None:
    made = document_html(Document("t", ("s",), [Paragraph(("x",))]), PageTexts())
    assert "default-src 'none'" in made
    assert "'unsafe-inline'" not in made
    assert "http:" not in made
    assert "https:" not in made
