"""`deltaproto plan-downgrade` of a saved fleet, as a whole process, against `check` of the same.

Nothing else plans, so the peer is the check of the same file with the same twenty clients: it reads
and judges every table as well. And one table with every feature at once is planned in this process.
Seconds are the processor's. Run with `make bench`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from check_fleet import CLIENTS, Cost, Limit, check, inspected, run, save

from deltaproto.clients.needs import needs
from deltaproto.planning.downgrade import Downgrade, plan_downgrade
from deltaproto.planning.given import Given
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.table import Table
from deltaproto.protocol import catalogue
from deltaproto.protocol.protocol import Protocol

GOALS = {"lowest": ["--lowest"], "policy": ["--policy", "POLICY"], "to 1,2": ["--to", "1,2"]}
REPEATS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000, help="tables in the whole fleet")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of each comparison")
    arguments = parser.parse_args()
    limits = [Limit("every feature on one table: milliseconds", everything(), 50.0)]
    with tempfile.TemporaryDirectory() as folder:
        limits += fleet(Path(folder), arguments.tables, arguments.pairs)
    print(f"\n{'measured':52} {'':>9} {'bound':>9}")
    for limit in limits:
        verdict = "" if limit.kept else "  MISSED"
        print(f"{limit.name:52} {limit.measured:9.2f} <={limit.bound:7.2f}{verdict}")
    return 0 if all(limit.kept for limit in limits) else 1


def everything() -> float:
    """The median time in which a table with every registered feature is planned to (1,2)."""
    names = [f.name for f in catalogue.all_features() if catalogue.registered(f.name)]
    protocol = Protocol.carrying(names)
    given = Given(
        name="t",
        location="file:///t",
        sql="t",
        table=Table(protocol, vectors=True, traced=frozenset(names)),
        needs=needs(protocol, dict.fromkeys(protocol.supported, True), {}, by_name=True),
        states=(),
        fingerprint=Fingerprint(None, 0, protocol, None),
    )
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        plan_downgrade(given, Downgrade(to=(1, 2)))
        times.append((time.perf_counter() - start) * 1000)
    print(f"{len(protocol.supported)} features on one table, {REPEATS} times")
    return statistics.median(times)


def fleet(folder: Path, tables: int, pairs: int) -> list[Limit]:
    policy = folder / "policy.yaml"
    declared = "".join(f"  - client: {name}\n" for name in CLIENTS)
    policy.write_text(f"policy_version: 1\nclients:\n{declared}")
    kinds = list(inspected(folder / "kinds"))
    whole, half = folder / "whole.json", folder / "half.json"
    save(whole, kinds, tables)
    save(half, kinds, tables // 2)
    limits = []
    for name, goal in GOALS.items():
        costs, shares, ratios = [], [], []
        for _ in range(pairs):
            base = check(whole, policy, "json")
            costs.append(plan(whole, goal, policy))
            shares.append(costs[-1].seconds / base.seconds)
            ratios.append(costs[-1].seconds / plan(half, goal, policy).seconds)
        seconds = statistics.median(cost.seconds for cost in costs)
        print(
            f"{tables:,} tables, {name}: {costs[-1].wall:.1f} s, {costs[-1].mebibytes:.0f} MiB; "
            f"{statistics.median(shares):.1f} times the time of check"
        )
        limits.append(Limit(f"{name}: seconds of processor", seconds, 60.0))
        limits.append(
            Limit(f"{name}: time for all / time for half", statistics.median(ratios), 2.3)
        )
    return limits


def plan(saved: Path, goal: list[str], policy: Path) -> Cost:
    words = [str(policy) if word == "POLICY" else word for word in goal]
    command = [sys.executable, "-m", "deltaproto", "plan-downgrade", str(saved), *words]
    output = str(saved.with_name("plans"))
    # A goal that cannot be reached is exit code 1, and no failure of the measurement.
    code = f"import sys; from deltaproto.cli.main import main; main({command[3:]!r} + "
    code += f"['--format', 'json', '--output', {output!r}])"
    return run([sys.executable, "-c", code])


if __name__ == "__main__":
    raise SystemExit(main())
