"""Try mutants that mutmut has made: `tools.mutation` starts this in `mutants/`.

    python -m tools.trying NAMES OUTCOMES CHILDREN

Tests are collected once. Each mutant gets a fork of that process, in which the tests that call its
function run, quickest first, until one fails: starting pytest anew takes longer than most of them.
A line for each mutant is added to OUTCOMES as soon as it is known.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

# Seconds of processor time, which other programs on the machine do not change.
_LEAST, _TIMES = 10, 10
_MEMORY = 6 << 30
CONTROL = "deltaproto.nothing.x_changed__mutmut_0"
"""no mutant: every test passes with it, or else the outcomes of the others mean nothing"""
_AT_IMPORT = (
    "deltaproto.protocol.records.",
    "deltaproto.protocol.properties.x__number__",
    "deltaproto.protocol.properties.x__one_of__",
    "deltaproto.protocol.writers.x__mark__",
)
"""these functions are called while modules are imported, and so before a fork"""


class Trying:
    """Instead of running tests, runs some of them for each mutant."""

    def __init__(self, names: list[str], outcomes: Path, children: int) -> None:
        stats = json.loads(Path("mutmut-stats.json").read_text())
        self.called: dict[str, list[str]] = stats["tests_by_mangled_function_name"]
        self.seconds: dict[str, float] = stats["duration_by_test"]
        self.names, self.outcomes, self.children = names, outcomes, children
        self.running: dict[int, tuple[str, str]] = {}
        self.failed = False

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        # Newer than what mutmut noted: they may call anything.
        unseen = items.keys() - self.seconds.keys()
        for name in self.names:
            calling = {*self.called.get(name.rpartition("__mutmut_")[0], ()), *unseen}
            if name.startswith(_AT_IMPORT) or name == CONTROL:
                calling = set(items)
            tests = sorted(calling & items.keys(), key=lambda test: self.seconds.get(test, 0))
            if not tests:
                self._note(name, "not called")
                continue
            while len(self.running) >= self.children:
                self._reap()
            self._fork(session, name, [items[test] for test in tests])
        while self.running:
            self._reap()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def _fork(self, session: pytest.Session, name: str, items: list[pytest.Item]) -> None:
        folder = tempfile.mkdtemp(prefix="mutant-")
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            self.running[pid] = name, folder
            return
        code = 1
        try:
            code = self._child(session, name, items, Path(folder))
        finally:
            os._exit(code)

    def _child(
        self, session: pytest.Session, name: str, items: list[pytest.Item], folder: Path
    ) -> int:
        """The tests in a process of their own: 1 as soon as one fails, 0 if none does."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        expected = sum(self.seconds.get(item.nodeid, 0) for item in items)
        limit = _LEAST + int(_TIMES * expected)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        os.environ["MUTANT_UNDER_TEST"] = name
        if name.startswith(_AT_IMPORT):
            os.execv(sys.executable, [sys.executable, "-m", "pytest", "-x", *_words()])
        factory: Any = session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._given_basetemp, factory._basetemp = folder / "tests", None
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return 1
        return 0

    def _reap(self) -> None:
        pid, status = os.wait()
        name, folder = self.running.pop(pid)
        shutil.rmtree(folder, ignore_errors=True)
        if os.WIFSIGNALED(status):
            slow = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            self._note(name, "endless" if slow else "killed")
        else:
            self._note(name, "killed" if os.WEXITSTATUS(status) else "survived")

    def _note(self, name: str, outcome: str) -> None:
        with self.outcomes.open("a") as file:
            file.write(f"{name} {outcome}\n")


def main() -> int:
    names, outcomes, children = sys.argv[1:]
    plugin = Trying(Path(names).read_text().split(), Path(outcomes), int(children))
    return int(pytest.main(_words(), plugins=[plugin]))


def _words() -> list[str]:
    options = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["mutmut"]
    arguments = (*options["pytest_add_cli_args"], *options["pytest_add_cli_args_test_selection"])
    return ["-q", "-s", *arguments]


if __name__ == "__main__":
    sys.exit(main())
