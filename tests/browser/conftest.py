"""One browser for all tests of HTML outputs, and pages that keep a record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.browser.chromium import SWITCHES, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Opened(NamedTuple):
    """A page that is open."""

    page: Page
    messages: list[str]
    """warnings and errors of the console, and exceptions"""
    requests: list[str]
    """everything that was fetched but the file itself"""

    def violations(self) -> list[tuple[str, str]]:
        """What axe-core finds: rule and first element."""
        found = self.page.evaluate("async () => (await axe.run()).violations")
        return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium."""
    path = chromium()
    if path is None:
        missing = pytest.fail if os.environ.get("NEEDS_CHROMIUM") else pytest.skip
        missing("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(SWITCHES))
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """Open a file; `axe` also loads axe-core, which the page's own policy would not let in."""
    contexts = []

    def open_(path: Path | str, *, axe: bool = False, **settings: Any) -> Opened:
        context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "bypass_csp": axe, **settings}
        )
        contexts.append(context)
        page = context.new_page()
        found = Opened(page, [], [])
        address = Path(path).resolve().as_uri()
        page.on("console", lambda said: found.messages.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: found.messages.append(str(error)))
        page.on("request", lambda r: r.url != address and found.requests.append(r.url))
        page.goto(address)
        if axe:
            page.evaluate(_axe() + ";0")
        return found

    yield open_
    for context in contexts:
        context.close()


def _axe() -> str:
    (folder,) = find_spec("axe_playwright_python").submodule_search_locations
    return next(Path(folder).rglob("axe.min.js")).read_text(encoding="utf-8")
