"""`deltaproto plan INVENTORY --policy FILE`: plans for every table of a fleet at once."""

from __future__ import annotations

import itertools
import statistics
from functools import partial
from pathlib import Path

from benchmarks.check_fleet import KINDS, declared, kinds, make
from benchmarks.page import Figure, Section, row
from benchmarks.pairs import Cost, in_turns, mebibytes, seconds
from benchmarks.peers import deltaproto
from benchmarks.scale import FleetScale

_IN_ONE_FOLDER = 500
_SECONDS, _MEBIBYTES = 60.0, 1024.0
_TARGET = """
tables:
  "**":
    forbid_features: [deletionVectors, rowTracking]
    isolation: Serializable
    require_properties: {delta.logRetentionDuration: interval 60 days}
  "**/region_0/*": {protocol: lowest, history: truncate}
"""
_INTRO = """
An inventory of {tables:,} tables of {kinds} kinds, and a policy with twenty clients that most of
them do not meet. Whole processes, which plan each group of equal tables once. Nothing else plans,
so the peer is `check` of the same inventory with the same policy.
"""


def measured(folder: Path, scale: FleetScale) -> Section:
    """Return the costs of `plan` and `check` for one inventory."""
    print(f"plans for a policy and {scale.planned:,} tables", flush=True)
    root, inventory = folder / "planned", folder / "planned-inventory"
    found = list(itertools.islice(kinds(), KINDS))
    for number in range(scale.planned):
        name = f"region_{number // _IN_ONE_FOLDER}/table_{number}"
        make(root / name, *found[number % len(found)])
    deltaproto("scan", root, "--inventory", inventory, "--quiet")
    policy = folder / "target.yaml"
    policy.write_text(declared() + _TARGET)
    costs = in_turns(
        {name: partial(_run, name, inventory, policy) for name in ("plan", "check")},
        1 + scale.rounds // 2,
    )
    figures = [
        Figure("plan INVENTORY --policy", statistics.median(seconds(costs["plan"])), "s", _SECONDS),
        Figure("its peak memory", max(mebibytes(costs["plan"])), "MiB", _MEBIBYTES),
    ]
    rows = [row("plan / check", costs["plan"], costs["check"])]
    intro = _INTRO.format(tables=scale.planned, kinds=len(found))
    return Section("Plan a fleet for a policy", intro, rows, figures)


def _run(command: str, inventory: Path, policy: Path) -> Cost:
    # Both exit with 1 for what stays violated, or is.
    words = ("--policy", policy, "--output", inventory.with_name(command), "--quiet")
    return deltaproto(command, inventory, *words, codes=(0, 1))
