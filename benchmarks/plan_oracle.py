"""Plans for random real tables, carried out by Spark and compared with what they said.

Each case is a seed: a random table, a random goal, the plan, and then Spark runs the plan's
statements. Any difference is a mismatch, and the seed reproduces it. `make bench` does not run
this, because it takes minutes; see also `tests/planning/test_random_oracle_on_spark.py`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tables are tiny, so that compiling code for them costs more than running it.
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.checksumDeletedRecordCountsHistogramMetrics.enabled": "false",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200, help="tables, each with one goal")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long; 0: never")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from deltaproto.tables.interface import SparkSettings
    from deltaproto.tables.session import spark_session
    from tests.planning.trial import tried

    spark = spark_session(SparkSettings(conf=CONF))
    started, bad, executed, cases = time.monotonic(), 0, 0, 0
    covered: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.cases):
            if arguments.minutes and time.monotonic() - started > arguments.minutes * 60:
                break
            cases += 1
            try:
                trial = tried(spark, seed, Path(folder))
            except Exception:
                bad += 1
                print(f"seed {seed}: failed\n{traceback.format_exc()}", flush=True)
                continue
            finally:
                for left in Path(folder).iterdir():
                    shutil.rmtree(left)
            covered.update(trial.plan.protocol_before.supported)
            outcome = "blocked" if trial.plan.blocked else "done" if trial.plan.steps else "nothing"
            kinds[f"{trial.plan.goal['kind']}, {outcome}"] += 1
            executed += trial.executed
            print(
                f"seed {seed}: {outcome}, {trial.executed} steps, {trial.seconds:.0f} s", flush=True
            )
            if trial.mismatches:
                bad += 1
                print(f"seed {seed}: {trial.asked}", flush=True)
                for text in trial.mismatches:
                    print(f"  {text}", flush=True)
    print(f"\n{'feature':30} {'tables':>6}")
    for name, count in covered.most_common():
        print(f"{name:30} {count:6}")
    print(f"\n{'goal, and what came of it':30} {'tables':>6}")
    for name, count in sorted(kinds.items()):
        print(f"{name:30} {count:6}")
    seconds = time.monotonic() - started
    print(
        f"\n{cases} cases, {len(covered)} features, {executed} steps: {bad} with mismatches, "
        f"{seconds:.0f} s ({seconds / max(cases, 1):.1f} s each)"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
