"""`deltaproto plan-downgrade` of a saved fleet, as a whole process, against `check` of the same."""

from __future__ import annotations

import statistics
import time
from functools import partial
from pathlib import Path

from benchmarks.check_fleet import check, declared, inspected, save
from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, Side, in_turns, processor
from benchmarks.peers import deltaproto
from benchmarks.scale import Scale
from deltaproto.clients.requirements import table_requirements
from deltaproto.planning.downgrade import DowngradeRequest, plan_downgrade
from deltaproto.planning.plan import Fingerprint
from deltaproto.planning.predict.table import Table
from deltaproto.planning.request import PlanInput
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.protocol import Protocol

GOALS = {
    "--lowest": ["--lowest"],
    "--policy": ["--policy", "POLICY"],
    "--protocol 1,2": ["--protocol", "1,2"],
}
REPEATS = 20
_TOLD = """
Plans for a saved inspection of {tables:,} tables. Nothing else plans, so the peer is `check` of the
same file with the same twenty clients, which reads and judges every table as well. Whole processes.
And one table with every registered feature at once is planned in this process, {repeats} times.
"""


def measured(folder: Path, scale: Scale) -> Section:
    tables = scale.saved
    print(f"plans for {tables:,} saved tables", flush=True)
    policy = folder / "plan-policy.yaml"
    policy.write_text(declared())
    kinds = list(inspected(folder / "plan-kinds"))
    whole, half = folder / "plan-whole.json", folder / "plan-half.json"
    save(whole, kinds, tables)
    save(half, kinds, tables // 2)
    sides: dict[str, Side] = {"check": partial(check, whole, policy, "json")}
    for name, goal in GOALS.items():
        sides[name] = partial(plan, whole, goal, policy)
        sides[f"half {name}"] = partial(plan, half, goal, policy)
    costs = in_turns(sides, scale.pairs)
    rows = [
        row(f"plan-downgrade {name} / check", costs[name], costs["check"], "processor")
        for name in GOALS
    ] + [
        row(
            f"{name} / {name} of half as many", costs[name], costs[f"half {name}"], "processor", 2.3
        )
        for name in GOALS
    ]
    figures = [Figure("every feature on one table", everything(), "ms", 50.0)]
    for name in GOALS:
        used = statistics.median(processor(costs[name])) / tables * 1000
        bound = None if scale.quick else 6.0
        figures.append(Figure(f"{name}: processor time of one table", used, "ms", bound))
    told = _TOLD.format(tables=tables, repeats=REPEATS)
    return Section("Plan for a saved fleet", told, rows, figures)


def everything() -> float:
    """The median milliseconds in which a table with every registered feature is planned."""
    names = [
        f.name for f in feature_catalog.all_features() if feature_catalog.is_registered(f.name)
    ]
    protocol = Protocol.carrying(names)
    given = PlanInput(
        name="t",
        location="file:///t",
        sql="t",
        table=Table(protocol, vectors=True, traced=frozenset(names)),
        needs=table_requirements(
            protocol, dict.fromkeys(protocol.supported, True), {}, by_name=True
        ),
        states=(),
        fingerprint=Fingerprint(None, 0, protocol, None),
    )
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        plan_downgrade(given, DowngradeRequest(to=(1, 2)))
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def plan(saved: Path, goal: list[str], policy: Path) -> Cost:
    words = [str(policy) if word == "POLICY" else word for word in goal]
    output = saved.with_name("plans")
    # A goal that cannot be reached is exit code 1, and no failure of the measurement.
    return deltaproto(
        "plan-downgrade", saved, *words, "--format", "json", "--output", output, codes=(0, 1)
    )
