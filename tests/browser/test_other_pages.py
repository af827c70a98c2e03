"""`--format html` of the other commands in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Opened
from tests.conftest import Ran
from tests.fleet.fleets import make_fleet
from tests.render.runbook.ten import CASES
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = [pytest.mark.browser, pytest.mark.rotating]
Cli = Callable[..., Ran]
Open = Callable[..., Opened]
HOSTILE = "<img src=x onerror=window.pwned=1>'\"\u202e"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(cli: Cli, *words: str) -> str:
    ran = cli(*words, "--format", "html", "-o", "page.html")
    assert ran.code in (0, 1, 3), ran.err
    return "page.html"


def inspection(cli: Cli) -> str:
    fleet = make_fleet(Path("fleet"), seed=5, count=40)
    Log(Path(HOSTILE)).commit(0, commit_info(), protocol(1, 2), metadata())
    return written(cli, "inspect", *map(str, fleet), HOSTILE, "nosuch", "--activity")


def timeline(cli: Cli) -> str:
    log = Log(Path(HOSTILE))
    log.commit(0, commit_info(HOSTILE), protocol(1, 2), metadata())
    names = ["deletionVectors"]
    log.commit(1, commit_info("x", userName=HOSTILE), protocol(3, 7, names, names))
    log.commit(2, commit_info("y", engineInfo="<b>"), protocol(1, 2))
    return written(cli, "history", HOSTILE)


def plans(cli: Cli) -> str:
    for case in CASES:
        case.table(Log(Path("tables") / case.name))
    Log(Path(HOSTILE)).commit(0, commit_info(), protocol(1, 2), metadata())
    names = [f"tables/{case.name}" for case in CASES]
    return written(cli, "plan-downgrade", *names, HOSTILE, "nosuch", "--drop", "deletionVectors")


SLOW = pytest.mark.slow
PAGES = {"inspect": (inspection, 42), "history": (timeline, 0), "plan": (plans, 6)}


@pytest.mark.parametrize("name", PAGES)
def test_it_loads_without_a_word_and_runs_nothing(name: str, cli: Cli, opened: Open) -> None:
    make, sections = PAGES[name]
    found = opened(make(cli))
    assert (found.messages, found.requests) == ([], [])
    assert found.page.evaluate("window.pwned") is None
    assert found.page.locator("main > section").count() == sections
    assert "\\u202e" in found.page.locator("main").inner_text()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=SLOW)])
@pytest.mark.parametrize(
    "name",
    ["history", pytest.param("inspect", marks=SLOW), pytest.param("plan", marks=SLOW)],
)
def test_axe_finds_nothing(name: str, scheme: str, cli: Cli, opened: Open) -> None:
    make, _ = PAGES[name]
    assert opened(make(cli), axe=True, color_scheme=scheme).violations() == []
