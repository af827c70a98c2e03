"""Plans for random real tables, carried out by Spark and compared with what they said.

Each case is a seed: a random table, a random goal, the plan, and then Spark runs the plan's
statements. Any difference is a mismatch, and the seed reproduces it. With `--upgrades` the goals
are plan-upgrade's, with `--policies` random policies, else plan-downgrade's. With `--stored`, the
metadata of the tables has protocol properties, as deltalake can store them. `make bench` does not
run this, because it takes minutes; see also `tests/planning/test_random_oracle_on_spark.py`.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltaproto.planning.plan import Plan

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="tables, each with a few goals")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--made", default="", help="only tables made with a statement like this")
    parser.add_argument("--upgrades", action="store_true", help="of plan-upgrade")
    parser.add_argument("--policies", action="store_true", help="of plan")
    parser.add_argument("--managed", action="store_true", help="of tables that a catalog manages")
    parser.add_argument(
        "--stored", action="store_true", help="of tables whose metadata has protocol properties"
    )
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long; 0: never")
    arguments = parser.parse_args()
    if arguments.managed and arguments.stored:
        parser.error("a catalog's log cannot be written to: choose --managed or --stored")
    sys.path.insert(0, str(ROOT))
    from deltaproto.protocol.table_state import SparkSettings
    from deltaproto.tables.session import spark_session
    from tests.planning import target_trial as policies
    from tests.planning import trial as downgrades
    from tests.planning import upgrade_trial as upgrades
    from tests.planning.random_tables import drafted_with
    from tests.recording.delta_spark import LiveDeltaSpark
    from tests.support.spark_settings import SMALL_TABLES

    trials = upgrades if arguments.upgrades else policies if arguments.policies else downgrades
    delta_spark = LiveDeltaSpark(spark_session(SparkSettings(conf=SMALL_TABLES)))
    started, bad, executed, cases = time.monotonic(), 0, 0, 0
    covered: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        seeds = drafted_with(arguments.made, arguments.seed, managed=arguments.managed)
        for seed in itertools.islice(seeds, arguments.cases):
            if arguments.minutes and time.monotonic() - started > arguments.minutes * 60:
                break
            cases += 1
            try:
                trial = trials.tried(
                    *(delta_spark, seed, Path(folder)),
                    managed=arguments.managed,
                    stored=arguments.stored,
                )
            except Exception:
                bad += 1
                print(f"seed {seed}: failed\n{traceback.format_exc()}", flush=True)
                continue
            finally:
                for left in Path(folder).iterdir():
                    shutil.rmtree(left)
            covered.update(trial.plans[0].protocol_before.supported)
            kinds.update(f"{plan.goal['kind']}, {outcome(plan)}" for plan in trial.plans)
            executed += trial.executed
            goals = ", ".join(f"{plan.goal['kind']} {outcome(plan)}" for plan in trial.plans)
            print(
                f"seed {seed}: {goals}; {trial.executed} steps, {trial.seconds:.0f} s", flush=True
            )
            if trial.mismatches:
                bad += 1
                for text in trial.mismatches:
                    print(f"  MISMATCH {text}", flush=True)
    print(f"\n{'feature':30} {'tables':>6}")
    for name, count in covered.most_common():
        print(f"{name:30} {count:6}")
    print(f"\n{'goal, and what came of it':30} {'plans':>6}")
    for name, count in sorted(kinds.items()):
        print(f"{name:30} {count:6}")
    seconds = time.monotonic() - started
    print(
        f"\n{cases} tables with {len(covered)} features, {kinds.total()} plans, {executed} steps: "
        f"{bad} tables with mismatches, {seconds:.0f} s ({seconds / max(cases, 1):.1f} s each)"
    )
    return 1 if bad else 0


def outcome(plan: Plan) -> str:
    return "blocked" if plan.blocked else "done" if plan.steps else "nothing to do"


if __name__ == "__main__":
    sys.exit(main())
