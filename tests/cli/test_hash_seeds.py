"""Two runs give the same output, whatever order Python gives the members of sets."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.fleets import make_fleet
from tests.support.failures import Failures

POLICY = """
policy_version: 1
clients: [duckdb@1.4.1, polars@1.39.0, "databricks-runtime@12.2 LTS", delta-kernel-rs@0.16.0]
tables:
  "**": {forbid_features: [deletionVectors, rowTracking], isolation: Serializable}
"""
COMMANDS = (
    "plan inventory --policy policy.yaml",
    "plan inventory --policy policy.yaml --details --limit 0",
    "plan inventory --policy policy.yaml --format json",
    "plan-downgrade inventory --lowest --policy policy.yaml --limit 0",
    "check inventory --policy policy.yaml",
    "check inventory --policy policy.yaml --format json",
    "check inventory",
    "report inventory --policy policy.yaml --format json",
    "report inventory --policy policy.yaml --format markdown",
    "drift inventory --policy policy.yaml",
    "clients --matrix",
    "features",
    "conflicts",
)
PROGRAM = """
import sys
from deltaproto.cli.main import main
for line in sys.stdin.read().splitlines():
    print("=== ", line)
    print(main(line.split()))
"""
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| UTC)?|\"(plan_id|seal)\": .*")


def run_with(seed: str, folder: Path, lines: tuple[str, ...]) -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(lines),
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return MOMENT.sub("…", ran.stdout).split("=== ")


@pytest.mark.slow
def test_output_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    make_fleet(tmp_path / "lake", seed=261, count=80)
    (tmp_path / "policy.yaml").write_text(POLICY)
    scan = "scan lake --inventory inventory"
    run_with("0", tmp_path, (scan, scan, "discover inventory"))
    one, other = (run_with(seed, tmp_path, COMMANDS) for seed in ("1", "2"))
    assert len(one) == len(COMMANDS) + 1
    failures = Failures()
    for first, second in zip(one, other, strict=True):
        with failures.of(first.partition("\n")[0]):
            assert first == second
    failures.report()
