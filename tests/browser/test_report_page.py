"""The report's HTML in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.cli.main import main
from deltaproto.plan_inputs.client_scope import newest_clients
from deltaproto.policy.local_catalog import load_local_catalog
from tests.browser.conftest import Opened
from tests.fleet.fleets import make_fleet
from tests.support.logs import Log, commit_info, metadata, protocol

pytestmark = [pytest.mark.browser, pytest.mark.rotating]
Open = Callable[..., Opened]
OTHER_LOOKS = ((1280, "dark"), (400, "light"), (400, "dark"))
HOSTILE = (
    "<script>window.pwned = 1<-script>",
    "<img src=x onerror=window.pwned=1>",
    "'\"><svg onload=window.pwned=1>",
    "<-script><script>window.pwned=1",
    "\u202egnp.exe",
    "n" * 250,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on 130 tables of all kinds, hostile names among them, after two scans."""
    folder = tmp_path_factory.mktemp("pages")
    fleet = make_fleet(folder / "fleet", seed=77, count=130)
    root = fleet[0].parent.parent
    for name in HOSTILE:
        vectors = ["deletionVectors"]
        stored = protocol(3, 7, vectors, vectors)
        Log(root / "group" / name).commit(0, commit_info(), stored, metadata())
    to, out = str(folder / "inventory"), folder / "report.html"
    for _ in range(2):
        assert main(["scan", str(root), "--inventory", to, "-q", "-o", str(folder / "scan")]) == 3
        Log(root / "late").commit(0, commit_info(), protocol(1, 2), metadata()) if not (
            root / "late"
        ).exists() else None
    policy = folder / "policy.yaml"
    policy.write_text(everybody())
    assert main(["report", to, "--policy", str(policy), "-o", str(out), "-q"]) == 3
    return out


def everybody() -> str:
    """A policy with the newest version of every client in the catalog."""
    newest = newest_clients(load_local_catalog(()))
    lines = [
        f"- {{client: '{each.candidate.reference}', access: [{', '.join(each.access)}]}}"
        for each in newest
    ]
    return "\n".join(["policy_version: 1", "clients:", *lines, ""])


def rows(found: Opened) -> int:
    return found.page.locator("#list tbody tr:not(.more)").count()


def says(found: Opened, count: int) -> None:
    """Wait until so many tables are shown."""
    from playwright.sync_api import expect

    shown = found.page.locator("#count")
    expect(shown).to_have_text(re.compile(rf"^{count:,} of "), timeout=60_000)


def counted(found: Opened) -> int:
    return int(found.page.locator("#count").inner_text().split(" ")[0].replace(",", ""))


def test_it_loads_without_a_word_and_without_the_network(page: Path, opened: Open) -> None:
    found = opened(page)
    assert rows(found) == 100
    assert (found.messages, found.requests) == ([], [])
    assert found.page.evaluate("window.pwned") is None


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1280, "light"), *(pytest.param(*look, marks=pytest.mark.slow) for look in OTHER_LOOKS)],
)
def test_axe_finds_nothing(page: Path, opened: Open, scheme: str, width: int) -> None:
    found = opened(page, axe=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    found.page.locator("#list button.open").first.click()
    found.page.locator("details summary").first.click()
    assert found.violations() == []


@pytest.mark.parametrize("width", [1280, 400])
def test_charts_are_readable_and_every_name_stays_in_its_box(
    page: Path, opened: Open, width: int
) -> None:
    found = opened(page, viewport={"width": width, "height": 900}).page
    sizes = found.evaluate(
        "[...document.querySelectorAll('.chart svg')].map(e => e.getBoundingClientRect().width)"
    )
    # Text of 13 pixels in a chart of 720.
    assert min(sizes) >= 500
    assert found.evaluate(
        "[...document.querySelectorAll('dt, dd')].every(e => e.scrollWidth <= e.clientWidth)"
    )


@pytest.mark.parametrize("width", [1280, 400])
def test_no_line_breaks_within_the_name_of_an_option(page: Path, opened: Open, width: int) -> None:
    found = opened(page, viewport={"width": width, "height": 900}).page
    lines = found.evaluate(
        "[...document.querySelectorAll('code')].flatMap(code => {"
        "  const text = [...code.childNodes].filter(e => e.nodeType == Node.TEXT_NODE);"
        "  const loose = text.filter(e => e.textContent.includes(' --')).map(() => 0);"
        "  return [...loose, ...[...code.children].map(e => e.getClientRects().length)];"
        "})"
    )
    assert lines
    assert set(lines) == {1}


def test_search_filter_sort_and_pages(page: Path, opened: Open) -> None:
    found = opened(page)
    everything = counted(found)
    assert everything > 100
    found.page.get_by_role("button", name="Later").click()
    assert rows(found) == everything - 100
    found.page.locator("#q").fill("gnp.exe")
    says(found, 1)
    assert found.page.locator("#list button.open").inner_text().endswith("\\u202egnp.exe")
    found.page.get_by_role("button", name="Show all").click()
    says(found, everything)
    found.page.locator("#feature").select_option("deletionVectors")
    with_vectors = counted(found)
    assert 0 < with_vectors < everything
    cells = found.page.locator("#list tbody tr td:nth-child(3)").all_inner_texts()
    assert all("deletionVectors" in cell or "more" in cell for cell in cells)
    found.page.get_by_role("button", name="Show all").click()
    says(found, everything)
    head = found.page.locator("th[data-sort=clients]")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [
        int(text.split(" ")[0] or 0)
        for text in found.page.locator("#list tbody tr td:nth-child(4)").all_inner_texts()
    ]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 1


@pytest.mark.slow
def test_the_address_holds_what_is_shown(page: Path, opened: Open) -> None:
    found = opened(page)
    found.page.locator("#feature").select_option("deletionVectors")
    found.page.locator("#access").select_option("read")
    wanted, address = counted(found), found.page.url
    assert "feature=deletionVectors" in address
    found.page.goto("about:blank")
    found.page.goto(address)
    assert counted(found) == wanted
    assert found.page.locator("#feature").input_value() == "deletionVectors"
    found.page.goto(address.partition("#")[0] + "#tables?feature=nosuch&page=99&table=x&sort=y")
    found.page.reload()
    assert counted(found) > wanted
    assert found.messages == []


@pytest.mark.slow
def test_each_figure_leads_to_its_tables(page: Path, opened: Open) -> None:
    found = opened(page)
    links = found.page.locator("#client-feature td a").all()[:8]
    assert links
    for link in links:
        wanted = int(link.inner_text().replace(",", ""))
        link.click()
        says(found, wanted)
    for link in found.page.locator("#client-group td a").all()[:8]:
        bad = int(link.inner_text().partition(" of ")[0])
        link.click()
        says(found, bad)
    for link in found.page.locator("#first td a").all()[:5]:
        text = link.inner_text()
        link.click()
        says(found, int(text.split(" like ")[0]) if " like " in text else 1)


@pytest.mark.slow
def test_a_table_opens_and_closes_by_keyboard(page: Path, opened: Open) -> None:
    found = opened(page)
    button = found.page.locator("#list button.open").first
    button.focus()
    found.page.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    told = found.page.locator("tr.more").inner_text()
    for name in ("Location", "Version", "Isolation", "Features"):
        assert name in told
    found.page.keyboard.press("Enter")
    assert found.page.locator("tr.more").count() == 0
