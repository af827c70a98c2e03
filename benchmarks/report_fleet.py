"""`deltaproto report` on ten thousand tables: how long, how large, how soon it can be used.

Part of `make bench-fleet`. The peer of the making is `deltaproto check` of the same inventory, in
the same run, which asks the same clients about the same tables and draws nothing. The page is
opened in headless Chromium, where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.fleet_tables import make_tables
from deltaproto.cli.main import main as deltaproto
from deltaproto.clients.catalogue import Catalogue
from deltaproto.drafting.users import newest
from tests.browser.chromium import SWITCHES, chromium

_SECONDS, _MEBIBYTES, _MILLISECONDS = 30, 15, 2000


def timed(*words: str) -> float:
    """Seconds of one command in this process."""
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        deltaproto(list(words))
    return time.perf_counter() - began


def opened(path: Path, rounds: int) -> tuple[float, float]:
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="deltaproto-report-") as scratch:
        folder = Path(scratch)
        make_tables(folder / "fleet", arguments.tables, commits=1)
        inventory, page = str(folder / "inventory"), folder / "report.html"
        for _ in range(3):
            timed("scan", str(folder / "fleet"), "--to", inventory, "-q")
        clients = [
            word
            for client in newest(Catalogue())
            for word in ("--client", str(client.candidate.reference))
        ]
        reports, checks = [], []
        for _ in range(arguments.rounds):
            reports.append(timed("report", inventory, "-q", "-o", str(page)))
            checks.append(timed("check", inventory, *clients, "--format", "jsonl", "-q"))
        seconds = statistics.median(reports)
        ratio = statistics.median(a / b for a, b in zip(reports, checks, strict=True))
        size = page.stat().st_size / 2**20
        good = seconds < _SECONDS and size < _MEBIBYTES
        print(f"report on {arguments.tables:,} tables: {seconds:.1f} s < {_SECONDS} s")
        print(f"of check with the same clients: {ratio:.2f}")
        print(f"{size:.1f} MiB < {_MEBIBYTES} MiB")
        if chromium() is not None:
            ready, answered = opened(page, arguments.rounds)
            good &= ready < _MILLISECONDS and answered < _MILLISECONDS
            print(
                f"in Chromium: usable after {ready:.0f} ms, a search answered in {answered:.0f} ms"
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
