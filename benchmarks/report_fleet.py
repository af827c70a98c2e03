"""`deltaproto report` on a fleet: how long, how large, how soon it can be used."""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from functools import partial
from pathlib import Path

from benchmarks.fleet_tables import make_tables
from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, in_turns, seconds
from benchmarks.scale import FleetScale
from deltaproto.cli.main import main as deltaproto
from deltaproto.clients.catalog import ClientCatalog
from deltaproto.plan_inputs.client_scope import newest_clients
from tests.browser.chromium import SWITCHES, chromium

_SECONDS, _MEBIBYTES, _MILLISECONDS = 30, 15, 2000
_TOLD = """
An inventory of three scans of {tables:,} tables. The peer is `deltaproto check` of the same
inventory, which asks the same clients about the same tables and draws nothing. Both run in this
process, so that no start is counted. The page is opened in headless Chromium, where there is one.
"""


def _timed(*words: str) -> Cost:
    """One command in this process."""
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        deltaproto(list(words))
    return Cost(time.perf_counter() - began)


def _opened(path: Path, rounds: int) -> tuple[float, float]:
    """Milliseconds until the page can be used, and until a search has been answered."""
    from playwright.sync_api import expect, sync_playwright

    ready, answered = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(SWITCHES))
        for _ in range(rounds):
            page = browser.new_page()
            page.goto(path.as_uri())
            found = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
            ready.append(found["domContentLoadedEventEnd"])
            began = time.perf_counter()
            page.locator("#q").fill("t000123")
            expect(page.locator("#list tbody tr")).to_have_count(1)
            answered.append((time.perf_counter() - began) * 1000)
            page.close()
        browser.close()
    return statistics.median(ready), statistics.median(answered)


def measured(folder: Path, scale: FleetScale) -> Section:
    print(f"report on {scale.tables:,} tables", flush=True)
    make_tables(folder / "reported", scale.tables, commits=1)
    inventory, page = str(folder / "reported-inventory"), folder / "report.html"
    for _ in range(3):
        _timed("scan", str(folder / "reported"), "--inventory", inventory, "-q")
    names = [str(client.candidate.reference) for client in newest_clients(ClientCatalog())]
    clients = [word for name in names for word in ("--client", name)]
    policy = folder / "everybody.yaml"
    declared = "".join(f"  - '{name}'\n" for name in names)
    policy.write_text(f"policy_version: 1\nclients:\n{declared}")
    evaluated = ("--policy", str(policy), "-q", "-o", str(page))
    costs = in_turns(
        {
            "report": partial(_timed, "report", inventory, *evaluated),
            "check": partial(_timed, "check", inventory, *clients, "--format", "jsonl", "-q"),
        },
        1 + scale.rounds // 2,
    )
    rows = [row("report / check", costs["report"], costs["check"])]
    figures = [
        Figure("report", statistics.median(seconds(costs["report"])), "s", _SECONDS),
        Figure("its size", page.stat().st_size / 2**20, "MiB", _MEBIBYTES),
    ]
    if chromium() is not None:
        ready, answered = _opened(page, 1 + scale.rounds // 2)
        figures.append(Figure("Chromium: usable after", ready, "ms", _MILLISECONDS))
        figures.append(Figure("Chromium: a search answered in", answered, "ms", _MILLISECONDS))
    return Section("Report on a fleet", _TOLD.format(tables=scale.tables), rows, figures)
