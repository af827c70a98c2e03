"""Names of ten kilobytes, in every place where somebody else chooses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.execution.plan_file import load_plans
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import phrases
from deltaproto.render.runbook.write import RunbookFormat, render_runbook
from tests.browser.conftest import Opened
from tests.conftest import Ran
from tests.render.runbook.ten import CASES, planned
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Cli = Callable[..., Ran]
Open = Callable[..., Opened]
LONG = "<img src=x onerror=window.pwned=1>\u202e" + "n" * 10_000 + "</script>"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def harmless(found: Opened) -> None:
    assert (found.messages, found.requests) == ([], [])
    assert found.page.evaluate("window.pwned") is None
    assert found.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "\u202e" not in found.page.content()


def logged() -> None:
    """A table whose log holds such texts."""
    log = Log(Path("orders"))
    who = {"engineInfo": LONG, "userName": LONG, "notebook": {"notebookId": LONG}}
    first = metadata({LONG: LONG, "delta.isolationLevel": LONG}, partition_columns=[LONG])
    first["metaData"] |= {"name": LONG, "description": LONG}
    log.commit(0, commit_info("CREATE TABLE", **who), protocol(1, 2), first)
    # A longer name of a feature is damage.
    names = ["deletionVectors", LONG[:255]]
    txn = {"txn": {"appId": LONG, "version": 1, "lastUpdated": 1}}
    log.commit(1, commit_info(LONG, **who), protocol(3, 7, names, names), txn)


def test_in_logs(cli: Cli, opened: Open) -> None:
    logged()
    for words in (("inspect", "orders", "--activity"), ("history", "orders")):
        assert cli(*words, "--format", "html", "-o", "page.html").code in (0, 1, 3)
        harmless(opened("page.html"))


def test_in_an_inventory(cli: Cli, opened: Open) -> None:
    logged()
    assert cli("scan", ".", "--inventory", "inventory", "-o", "out").code in (0, 1, 3)
    assert cli("report", "inventory", "-o", "page.html").code in (0, 3)
    found = opened("page.html")
    found.page.locator("#list button.open").first.click()
    harmless(found)


@pytest.mark.parametrize("width", [1280, 400])
def test_in_plans(cli: Cli, opened: Open, width: int) -> None:
    (plan,), _ = load_plans([str(planned(CASES[1], cli))])
    hostile = plan.plan._replace(
        table=LONG, location=f"s3://bucket/{LONG}", goal_text=LONG, warnings=(LONG,)
    )
    book = Book([RunbookEntry(plan._replace(plan=hostile))], (), (LONG,), 0.0, 0.0, LONG)
    page = render_runbook(book, phrases("en"), RunbookFormat.HTML)
    Path("page.html").write_text(page, encoding="utf-8")
    harmless(opened("page.html", viewport={"width": width, "height": 800}))
