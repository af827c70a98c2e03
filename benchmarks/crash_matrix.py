"""Kill `apply` with SIGKILL at every moment of several plans, run it again, and check the table.

Before, within and after each statement of five plans: about a hundred kills of half a minute each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session
from tests.execution.crash_trial import SCENARIOS, moments, planned, template, tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", action="append", help="only this one; repeatable")
    parser.add_argument("--every", type=int, default=1, help="only each so-and-so-many-th moment")
    parser.add_argument("--first", type=int, default=0, help="the moment to begin with")
    arguments = parser.parse_args()
    wrong = kills = late = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaproto-crash-") as scratch:
        root = Path(scratch)
        spark = spark_session(SparkSettings())
        for scenario in SCENARIOS:
            if arguments.scenario and scenario.name not in arguments.scenario:
                continue
            made, rows = template(spark, scenario, root)
            _, file = planned(scenario, made, root / f"{scenario.name}-plan")
            for number, moment in enumerate(moments(file)):
                if number % arguments.every != arguments.first % arguments.every:
                    continue
                folder = root / f"{scenario.name}-{number}"
                outcome = tried(spark, scenario, made, rows, moment, folder)
                kills += outcome.killed
                late += not outcome.killed
                wrong += bool(outcome.mismatches)
                said = "ok" if not outcome.mismatches else "; ".join(outcome.mismatches)
                cut = "killed" if outcome.killed else "ended before"
                print(
                    f"{scenario.name} step {moment.step + 1} {moment.when}: {cut}, {said}",
                    flush=True,
                )
    seconds = time.monotonic() - started
    print(f"{kills} kills, {late} too late: {wrong} with mismatches, {seconds:.0f} s")
    return 1 if wrong or not kills else 0


if __name__ == "__main__":
    sys.exit(main())
