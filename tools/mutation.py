"""Mutation testing of the packages in PACKAGES: every mutant, or a random sample.

    python -m tools.mutation                        every mutant
    python -m tools.mutation --sample 500 --seed 3  so many of each package, drawn with a seed
    python -m tools.mutation 'deltaproto.planning.search.cost.*'

mutmut makes the mutants and notes which test calls which function; `tools.trying` tries them. What
survived is listed, and `mutmut show NAME` shows what it changes. A mutant is killed when a test
fails with it or does not come to an end; one that no test calls has survived. The interval is
Wilson's of 95 %, for what a sample says of all.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from tools.trying import CONTROL

MUTANTS = Path("mutants")
PACKAGES = ("protocol", "planning", "tables", "execution")
HELD = ("protocol", "planning")
"""packages that `--least` applies to: much of the others only runs with Spark or a store"""
_ANY = "deltaproto.protocol.databricks_runtime.x_*_1"
"""mutmut tries these few itself, for which it makes all mutants"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", allow_abbrev=False)
    parser.add_argument("names", nargs="*", default=["*"], help="patterns of names")
    parser.add_argument("--sample", type=int, help="mutants of each package")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--children", type=int, default=os.cpu_count() or 2)
    parser.add_argument(
        "--least", type=float, default=90, help="per cent of protocol/ and planning/ to be killed"
    )
    asked = parser.parse_args()
    made = mutants()
    asked_for = [name for name in made if any(fnmatch.fnmatch(name, n) for n in asked.names)]
    chosen = [*drawn(asked_for, asked.sample, asked.seed)] if asked.sample else asked_for
    found = tried(chosen, asked.children)
    shares = {package: told(package, made, found) for package in PACKAGES}
    return 0 if min(shares[package] for package in HELD) >= asked.least else 1


def mutants() -> list[str]:
    """Let mutmut make the mutants, from the code as it is now; their names."""
    for old in (MUTANTS / "tests", MUTANTS / "tools"):
        subprocess.run(["rm", "-rf", str(old)], check=True)
    script = str(Path(sys.executable).with_name("mutmut"))
    subprocess.run([script, "run", _ANY], env=_environment(), check=True)
    found: list[str] = []
    for path in sorted((MUTANTS / "deltaproto").rglob("*.meta")):
        found += json.loads(path.read_text())["exit_code_by_key"]
    return sorted(found)


def drawn(names: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """So many names of each package, without putting any back."""
    for package in PACKAGES:
        of_it = sorted(name for name in names if _package(name) == package)
        yield from sorted(Random(seed).sample(of_it, min(count, len(of_it))))


def tried(names: Sequence[str], children: int) -> dict[str, str]:
    """The outcome of each (killed, endless, survived, not called); after Ctrl-C, of those tried."""
    with tempfile.TemporaryDirectory() as folder:
        asked, outcomes = Path(folder, "asked"), Path(folder, "outcomes")
        # In another order, so that no process has all that are slow.
        asked.write_text("\n".join((CONTROL, *Random(0).sample(names, len(names)))))
        outcomes.touch()
        words = ["-m", "tools.trying", str(asked), str(outcomes), str(children)]
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run([sys.executable, *words], cwd=MUTANTS, env=_environment(), check=True)
        lines = outcomes.read_text().splitlines()
    found = {name: outcome for name, _, outcome in (line.partition(" ") for line in lines)}
    control = found.pop(CONTROL, None)
    if control is None:
        raise SystemExit("error: stopped before it was known that tests pass without a mutant")
    if control != "survived":
        raise SystemExit("error: tests fail without a mutant\nhint: run them: make fast")
    return found


def interval(killed: int, tried: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share, in per cent."""
    z, share = 1.96, killed / tried
    middle = share + z * z / (2 * tried)
    half = z * math.sqrt(share * (1 - share) / tried + (z / tried) ** 2 / 4)
    low, high = ((middle + sign * half) / (1 + z * z / tried) for sign in (-1, 1))
    return 100 * low, 100 * high


def told(package: str, made: Sequence[str], found: Mapping[str, str]) -> float:
    """Print what survived of a package, and its figures; the share killed, in per cent."""
    outcomes = {name: found[name] for name in sorted(found) if _package(name) == package}
    if not outcomes:
        return 100.0
    counts = Counter(outcomes.values())
    for name, outcome in outcomes.items():
        if outcome in ("survived", "not called"):
            print(f"{outcome}: {name}")
    killed = counts["killed"] + counts["endless"]
    share = 100 * killed / len(outcomes)
    low, high = interval(killed, len(outcomes))
    print(
        f"{package}: {sum(_package(name) == package for name in made)} mutants, {len(outcomes)} "
        f"tried, {killed} killed ({counts['endless']} without an end), {counts['survived']} "
        f"survived, {counts['not called']} not called: {share:.1f} % ({low:.1f} to {high:.1f} %)"
    )
    return share


def _environment() -> dict[str, str]:
    """Not with `PYTHONPATH`, as it may name the code that is not mutated."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return {**kept, "HYPOTHESIS_PROFILE": "few"}


def _package(name: str) -> str:
    return name.split(".")[1]


if __name__ == "__main__":
    sys.exit(main())
