"""The runbook's HTML in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from deltaproto.cli.main import main
from tests.browser.conftest import Opened
from tests.conftest import Ran
from tests.render.runbook.ten import CASES, planned
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = [pytest.mark.browser, pytest.mark.rotating]
Cli = Callable[..., Ran]
Open = Callable[..., Opened]
OTHER_LOOKS = ((400, "light"), (1280, "light"), (1280, "dark"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ten plans, and all of them in one runbook."""
    folder = tmp_path_factory.mktemp("made")

    def run(*words: str) -> Ran:
        with redirect_stdout(StringIO()) as out:
            return Ran(main(list(words)), out.getvalue(), "")

    with chdir(folder):
        files = [str(planned(case, run)) for case in CASES]
        assert run("runbook", *files, "--format", "html", "-o", "book.html").code == 1
    return folder


@pytest.fixture
def runbook(made: Path, tmp_path: Path) -> str:
    """A copy of the runbook and its plans in the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return "book.html"


def test_it_loads_without_a_word_and_without_the_network(runbook: str, opened: Open) -> None:
    found = opened(runbook)
    assert found.page.title() == "Release runbook: 10 tables"
    assert (found.messages, found.requests) == ([], [])


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(400, "dark"), *(pytest.param(*look, marks=pytest.mark.slow) for look in OTHER_LOOKS)],
)
def test_axe_finds_nothing(runbook: str, opened: Open, scheme: str, width: int) -> None:
    found = opened(runbook, axe=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    assert found.violations() == []


@pytest.mark.slow
def test_nothing_but_tables_and_code_is_wider_than_the_window(runbook: str, opened: Open) -> None:
    page = opened(runbook, viewport={"width": 400, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_command_is_copied_as_it_stands(runbook: str, opened: Open) -> None:
    from playwright.sync_api import expect

    page = opened(runbook, permissions=["clipboard-read", "clipboard-write"]).page
    listing = page.locator("figure.sql").first
    wanted = listing.locator("code").inner_text()
    button = listing.locator("button.copy")
    # The label would change back before a busy machine sees it.
    page.evaluate("window.setTimeout = () => 0")
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == wanted
    assert wanted.startswith("ALTER TABLE ")


@pytest.mark.slow
def test_what_was_ticked_stays_ticked_in_this_runbook_only(
    runbook: str, opened: Open, cli: Cli
) -> None:
    page = opened(runbook).page
    boxes = page.locator(".checks input")
    boxes.nth(2).check()
    page.reload()
    assert boxes.nth(2).is_checked()
    assert not boxes.nth(1).is_checked()
    files = [f"{case.name}.json" for case in CASES]
    words = ("--start", "2027-03-01", "--format", "html", "-o", runbook)
    assert cli("runbook", *files, *words).code == 1
    page.reload()
    assert page.locator(".checks input:checked").count() == 0


@pytest.mark.slow
def test_the_contents_lead_to_the_chapters(runbook: str, opened: Open) -> None:
    page = opened(runbook).page
    for link in page.locator("nav a").all():
        target = link.get_attribute("href")
        assert target is not None
        assert page.locator(f"section{target} > h2").inner_text() == link.inner_text()


@pytest.mark.slow
def test_on_paper_everything_is_unfolded(runbook: str, opened: Open) -> None:
    page = opened(runbook).page
    assert page.locator("details[open]").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0


def test_hostile_names_run_nothing(cli: Cli, opened: Open) -> None:
    names = (
        "<script>window.pwned = 1<-script>",
        "<img src=x onerror=window.pwned=1>",
        "'\"><svg onload=window.pwned=1>",
        "\u202egnp.exe",
        "n" * 250,
    )
    for name in names:
        Log(Path(name)).commit(0, commit_info(), protocol(1, 2), metadata())
    words = ("--enable", "deletionVectors", "--format", "json", "-o", "plans.json")
    assert cli("plan-upgrade", *names, *words).code == 0
    assert cli("runbook", "plans.json", "--format", "html", "-o", "book.html").code == 0
    found = opened("book.html")
    assert found.page.evaluate("window.pwned") is None
    assert (found.messages, found.requests) == ([], [])
    shown = found.page.locator("#table-1 > .scroll td:first-child").all_inner_texts()
    # Clients differ on special characters in a path, so that the last table has its own chapter.
    assert shown == [name.replace("\u202e", "\\u202e") for name in names[:-1]]
    assert names[-1] in found.page.locator("#table-2").inner_text()
    Log(Path("deep") / names[0]).commit(0, commit_info(), protocol(2, 5), metadata())
    assert cli("plan-upgrade", *names[:1], f"deep/{names[0]}", *words).code == 0
    assert cli("runbook", "plans.json", "--format", "html", "-o", "book.html").code == 0
    found = opened("book.html")
    headings = found.page.locator("#commands h3").all_inner_texts()
    assert headings == [names[0], f"deep/{names[0]}"]
    assert found.page.evaluate("window.pwned") is None
