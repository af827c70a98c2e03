"""The site of the documentation in a real browser: every page, its search and its copy buttons."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.failures import each_row
from tools.docs import DOCS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.rotating

ROOT = DOCS.parent
QUESTIONS = {
    "concepts/protocol": ("what is a protocol?", "protocol versions and table features"),
    "how-to/name-your-client": (
        *("which client am I", "client version from an error message"),
        *("reader version 3 is not supported", "The table has set these reader features"),
        "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    ),
    "manual/troubleshooting": (
        *("ConcurrentAppendException", "Java was not found", "TABLE_OR_VIEW_NOT_FOUND"),
    ),
    "concepts/client-or-feature": (
        "upgrade the client or drop the feature",
        "should I drop a feature, or upgrade",
    ),
    "how-to/permissions": ("which permissions does it need?", "s3 iam policy least privilege"),
    "how-to/schedule": ("schedule and exit codes", "cron alert exit code"),
    "how-to/adopt-a-fleet": ("starting with 200 violations", "baseline for existing findings"),
    "concepts/readers": ("why not DESCRIBE DETAIL", "compared with describe detail"),
    "guides/tables-by-name": ("how do I use a table by name?", "names of my spark session"),
    "guides/catalogs": ("unity catalog without spark", "hive metastore or glue"),
    "project/releases": ("which versions are supported", "how to upgrade deltaproto"),
    "project/reporting-bugs": ("how do I report a bug?", "where to get or download it"),
    "concepts/verdicts": ("how sure is a verdict?", "confidence and evidence of a verdict"),
}
"""the page that answers a question, and ways in which a newcomer may search for it"""
_ELSEWHERE = ("manual/troubleshooting", "guides/tables-by-name")
"""pages that the FAQ does not link"""
_FIRST = 3
_WIDTHS, _HEIGHT = (1280, 390), 900
_OUTSIDE = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const clipped = [...document.querySelectorAll('article *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (box.width === 0 || box.right <= width + 1) return false;
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (scrolls(p)) return false;
    return true;
  });
  const wide = document.scrollingElement.scrollWidth > width ? ['the page itself'] : [];
  return [...wide, ...clipped.map(e => `${e.tagName}: ${e.textContent.slice(0, 60)}`)];
}"""
"""what is outside the window and cannot be scrolled to"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(
        words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: its search needs a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def searching(browser: Browser, address: str) -> Iterator[Callable[[str], list[str]]]:
    """Type a query; gives the pages that were found, best first."""
    page = browser.new_page()
    page.set_default_timeout(10_000)
    page.goto(f"{address}/?q=deltaproto")
    found = page.locator(".md-search-result__item")
    found.first.wait_for()
    meta = page.locator(".md-search-result__meta")

    def search(query: str) -> list[str]:
        # Emptied first, so that the results that are read are not those of the last query.
        box = page.locator("input.md-search__input")
        box.fill("")
        box.dispatch_event("keyup")
        meta.filter(has_text="Type to start searching").wait_for(state="attached")
        box.fill(query)
        box.dispatch_event("keyup")
        meta.filter(has_text=re.compile(r"matching document")).wait_for(state="attached")
        links = page.locator(".md-search-result__item > a.md-search-result__link")
        hrefs = links.evaluate_all("links => links.map(each => each.pathname)")
        return list(dict.fromkeys(str(each).strip("/") for each in hrefs))

    yield search
    page.close()


def test_the_site_has_every_page(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        path = page.relative_to(DOCS).with_suffix("")
        folder = site if path.name == "index" else site / path
        assert (folder / "index.html").exists()


@pytest.mark.browser
@each_row("page", QUESTIONS)
def test_a_question_is_answered_on_one_of_the_first_pages_found(
    page: str, searching: Callable[[str], list[str]]
) -> None:
    for query in QUESTIONS[page]:
        assert page in searching(query)[:_FIRST], query


@each_row("page", [page for page in QUESTIONS if not page.startswith(_ELSEWHERE)])
def test_the_faq_leads_to_the_answer(page: str) -> None:
    faq = (DOCS / "project" / "faq.md").read_text()
    linked = page.removeprefix("project/") if page.startswith("project/") else f"../{page}"
    assert f"({linked}.md)" in faq


def _pages(site: Path) -> list[str]:
    return sorted(str(file.parent.relative_to(site)) for file in site.rglob("index.html"))


@pytest.mark.browser
@pytest.mark.slow
def test_nothing_of_any_page_is_clipped(browser: Browser, site: Path, address: str) -> None:
    page = browser.new_page(viewport={"width": _WIDTHS[0], "height": _HEIGHT})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    # Each page would index the whole site for its search box.
    index = json.loads((site / "search/search_index.json").read_text())
    index["docs"] = index["docs"][:1]
    page.route("**/search_index.json", lambda route: route.fulfill(json=index))
    found = []
    for name in _pages(site):
        said.clear()
        page.set_viewport_size({"width": _WIDTHS[0], "height": _HEIGHT})
        page.goto(f"{address}/{name}/")
        for width in _WIDTHS:
            page.set_viewport_size({"width": width, "height": _HEIGHT})
            # The page is laid out for the new width before the script runs.
            if outside := [*page.evaluate(_OUTSIDE), *said]:
                found.append((name, width, outside[:3]))
    assert found == []
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_a_copy_button_copies_the_command_and_not_its_output(
    browser: Browser, address: str
) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/tutorials/first-answer/")
    page.locator("button.md-code__button").nth(1).wait_for()
    copied = []
    for block in page.locator("pre:has(button)").all()[:3]:
        block.hover()
        block.locator("button.md-code__button").first.click()
        copied.append(page.evaluate("navigator.clipboard.readText()").strip())
    install, demo, check = copied
    assert install.splitlines()[-1] == "pip install ."
    assert demo == "deltaproto demo lake"
    assert check == "deltaproto check lake/orders --client trino@400 --access read"
    context.close()


def test_the_picture_is_on_the_pages_that_show_it() -> None:
    from tools.picture import HEIGHT, PICTURE, WIDTH

    head = PICTURE.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:]) == (WIDTH, HEIGHT)
    for page in (ROOT / "README.md", DOCS / "tutorials" / "first-fleet.md"):
        (target,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text())
        assert (page.parent / target).resolve() == PICTURE


@pytest.mark.browser
@pytest.mark.slow
def test_the_project_takes_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.picture import TABLES, report

    monkeypatch.chdir(tmp_path)
    page = report(tmp_path).read_text()
    assert str(tmp_path) not in page
    assert f">{TABLES}<" in page


def test_the_search_index_has_every_page(site: Path) -> None:
    entries = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {entry["location"].partition("#")[0] for entry in entries}
    assert {f"{name}/" for name in _pages(site) if name != "."} <= found
