"""Take the picture of a fleet report that README and the tutorial show: `make picture`.

The fleet has 300 example tables in five folders. The report is written by `deltaproto report`, and
Chromium shows it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

from deltaproto.cli.demo import RECIPES
from deltaproto.cli.main import main
from tests.browser.chromium import SWITCHES, chromium

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "fleet-report.png"
TABLES = 300
WIDTH, HEIGHT = 1280, 1480
_FOLDERS = ("sales", "finance", "logistics", "marketing", "sensors")
_KINDS = ("plain", "plain", "mapped", "plain", "vectors", "plain", "plain")
_POLICY = """\
policy_version: 1
clients:
  - {client: "databricks-runtime@15.4 LTS", access: [read, append, dml], as: nightly loads}
  - {client: trino@440, access: [read], as: dashboards}
  - {client: deltalake@1.6.6, access: [read, append], as: loaders}
  - {client: powerbi-delta-connector, access: [read], as: reports}
"""


def fleet(root: Path) -> None:
    """Write the tables: most are plain, some have deletion vectors or column mapping."""
    for number, kind in enumerate(islice(cycle(_KINDS), TABLES)):
        RECIPES[kind](root / _FOLDERS[number % len(_FOLDERS)] / f"table_{number:03}")


def report(folder: Path) -> Path:
    """Return the page of the report about a new fleet in `folder`."""
    os.chdir(folder)
    fleet(Path("lake"))
    Path("policy.yaml").write_text(_POLICY, encoding="utf-8")
    assert main(["scan", "lake", "--inventory", "inventory", "--quiet", "-o", "scan"]) == 0
    words = ["report", "inventory", "--policy", "policy.yaml", "--output", "fleet.html"]
    assert main([*words, "--quiet"]) == 0
    page = folder / "fleet.html"
    page.write_text(page.read_text(encoding="utf-8").replace(str(folder), "/data"), "utf-8")
    return page


def take(page: Path) -> bytes:
    """Return the top of the page as PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(SWITCHES))
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector("#list tbody tr")
        image = tab.screenshot()
        browser.close()
    return image


if __name__ == "__main__":
    if chromium() is None:
        sys.exit("no Chromium on this machine")
    with tempfile.TemporaryDirectory() as scratch:
        image = take(report(Path(scratch).resolve()))
        os.chdir(PICTURE.parents[2])
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(image)
    print(f"{PICTURE.relative_to(Path.cwd())}: {len(image):,} bytes")
