"""The sample of a commit: which recorded tests run live, and which rotating tests run.

A recording changes only with the releases of Spark, Delta and Java, which are pinned, or with its
test, which the replay notices. So a share of them is enough to find what differs on a machine.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

SAMPLES = 40
ROTATIONS = 5
TURNS = 4
_ROOT = Path(__file__).parents[2]


class Sample(NamedTuple):
    """A fortieth of the recorded tests, and a fifth of the rotating ones."""

    number: int
    """0 to 39"""
    reason: str

    def holds(self, name: str) -> bool:
        """Whether the test with this node id runs live."""
        return crc32(name.encode()) % SAMPLES == self.number

    def holds_rotating(self, name: str) -> bool:
        """Whether the rotating test with this node id runs. Any five commits in a row run all."""
        return crc32(name.encode()) % ROTATIONS == self.number % ROTATIONS

    def holds_in_turn(self, name: str) -> bool:
        """Whether the recorded test with this node id, or the heavy module, runs after `make test`.

        Any four commits in a row run all.
        """
        turn = crc32(name.encode()) // SAMPLES % TURNS
        return turn == self.number % TURNS

    def __str__(self) -> str:
        rotation = self.number % ROTATIONS + 1
        return (
            f"live sample {self.number + 1} of {SAMPLES}, "
            f"rotating tests {rotation} of {ROTATIONS} ({self.reason})"
        )


def parse_sample(text: str) -> Sample | None:
    """Return the sample for `commit`, a number from 1 to 40, or None for `none`.

    Raises:
        ValueError: for other text.
    """
    if text == "none":
        return None
    if text == "commit":
        return _of_commit()
    number = int(text)
    if not 1 <= number <= SAMPLES:
        raise ValueError(text)
    return Sample(number - 1, "chosen")


def _of_commit() -> Sample:
    """The sample of HEAD: any forty commits in a row cover every test.

    The number of commits decides; in a shallow clone, which does not have it, the hash.
    """
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return Sample(0, "not a git checkout")
    count = _git("rev-list", "--count", "HEAD")
    if count is None or _git("rev-parse", "--is-shallow-repository") == "true":
        return Sample(int(commit, 16) % SAMPLES, f"commit {commit}, shallow")
    return Sample(int(count) % SAMPLES, f"commit {commit}")


def seed_of_files() -> int:
    """Return a number below a million that changes with the committed files.

    Random tests start from it: every change tries something new, and a run can be repeated.
    """
    tree = _git("rev-parse", "HEAD^{tree}")
    return crc32(tree.encode()) % 10**6 if tree else 0


def _git(*words: str) -> str | None:
    try:
        ran = subprocess.run(
            ["git", "-C", str(_ROOT), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()
