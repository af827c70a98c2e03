"""The page around HTML output: one file with inline styles and scripts, without network access.

Its content security policy allows only the styles and scripts of this package, so that the name of
a table cannot become a script even if an escape is missing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from deltaproto.render.document.blocks import Tone
from deltaproto.render.terminal import single_line


class PageTexts(NamedTuple):
    """Texts of the page itself, in the document's language."""

    copy: str = "Copy"
    copied: str = "Copied"
    contents: str = "Contents"
    skip: str = "Skip to the content"
    table: str = "Table: {}"
    figures: str = "The figures"
    tones: Mapping[Tone, str] = {
        Tone.GOOD: "Good",
        Tone.NOTE: "Note",
        Tone.WARNING: "Warning",
        Tone.DANGER: "Danger",
    }


def page(
    *,
    title: str,
    language: str,
    words: PageTexts,
    aside: str,
    main: str,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    data: str = "",
) -> str:
    """Return a complete HTML document.

    Args:
        aside, main: markup with all data already escaped.
        scripts, styles: files of this package in addition to the page's own.
        data: JSON for the scripts, already safe inside a script element.
    """
    style = "\n".join(_asset(name) for name in ("page.css", *styles))
    code = [_asset(name) for name in scripts]
    allowed = " ".join(f"'sha256-{_digest(each)}'" for each in code) or "'none'"
    policy = (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = [
        "<!doctype html>",
        f"<html lang='{text(language)}'>",
        "<head>",
        "<meta charset='utf-8'>",
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        "<meta name='color-scheme' content='light dark'>",
        "<meta name='generator' content='deltaproto'>",
        f"<title>{text(title)}</title>",
        f"<style>{style}</style>",
        "</head>",
        f"<body data-copied='{text(words.copied)}' data-key='{_digest(main)}'>",
        f"<a class='skip' href='#main'>{text(words.skip)}</a>",
        aside,
        f"<main id='main'>{main}</main>",
        f"<script type='application/json' id='data'>{data}</script>" if data else "",
        *(f"<script>{each}</script>" for each in code),
        "</body></html>",
    ]
    return "\n".join(filter(None, parts)) + "\n"


def text(data: str) -> str:
    """Escape data for the text of an element or the value of a quoted attribute."""
    return escape(single_line(data), quote=True)


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    return base64.b64encode(digest).decode()
