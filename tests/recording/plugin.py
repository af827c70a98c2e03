"""The pytest side of recordings: options, the fixture `delta_spark`, and the report at the end.

`--spark-results` chooses where the results of tests with the fixture `delta_spark` come from:

- `replay` (default): the committed recordings; `--live-sample` runs a fortieth of the tests live
  and compares what Spark does with their recordings. It also leaves out four fifths of the tests
  that are marked `rotating`.
- `verify`: live; what is recorded must equal the committed recordings. `--without-sample` leaves
  out what a run with `--live-sample` has just run in the same way, and three quarters of the
  recorded tests, which that run has replayed, and of the modules that are marked `heavy`.
- `record`: live; each test that passes replaces its recording.
- `live`: live, without recordings, for engines other than the pinned one.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

from tests.recording import files
from tests.recording.delta_spark import (
    DeltaSpark,
    LiveDeltaSpark,
    NotRecorded,
    Recording,
    ReplayedDeltaSpark,
)
from tests.recording.sample import parse_sample


class Results(StrEnum):
    """Where results of Spark come from."""

    REPLAY = "replay"
    VERIFY = "verify"
    RECORD = "record"
    LIVE = "live"


_ONLY_HERE = ("slow", "packaging", "replayed")
"""marks of tests that `make test` leaves out, or never runs live"""


class State:
    """What the run has replayed and recorded so far."""

    def __init__(self, config: pytest.Config) -> None:
        self.results = Results(config.getoption("spark_results"))
        text = str(config.getoption("live_sample"))
        self.sample = parse_sample(text) if self.results is Results.REPLAY else None
        text = str(config.getoption("without_sample"))
        self.left_out = parse_sample(text) if self.results is Results.VERIFY else None
        self.folder = Path(config.getoption("recordings"))
        self.new_folder = Path(config.getoption("new_recordings"))
        self.counts: Counter[str] = Counter()
        self.days: set[str] = set()
        self.tests: dict[str, set[str]] = {}
        """all recorded tests of each module that was collected as a whole"""
        self._loaded: dict[str, files.Recordings] = {}
        self._new: dict[str, dict[str, Recording]] = {}

    def live(self, item: pytest.Item) -> bool:
        """Whether a recorded test runs in live Spark."""
        if self.results is not Results.REPLAY:
            return True
        sampled = self.sample is not None and item.get_closest_marker("replayed") is None
        return sampled and self.sample is not None and self.sample.holds("::".join(_name(item)))

    def leaves_out(self, item: pytest.Item) -> bool:
        """Whether `make test` runs this test as this run would; not with fewer examples.

        Or whether it is not the turn of a recorded test, which `make test` has replayed, or of a
        heavy module.
        """
        if self.left_out is None:
            return False
        if item.get_closest_marker("heavy"):
            return not self.left_out.holds_in_turn(_name(item)[0])
        if any(map(item.get_closest_marker, _ONLY_HERE)):
            return False
        if is_hypothesis_test(getattr(item, "obj", None)):
            return False
        name = "::".join(_name(item))
        if item.get_closest_marker("recorded"):
            return self.left_out.holds(name) or not self.left_out.holds_in_turn(name)
        return bool(item.get_closest_marker("rotating")) and self.left_out.holds_rotating(name)

    def recordings(self, module: str) -> files.Recordings:
        """The recordings of a test module.

        Raises:
            RecordingError: see `files.load`.
        """
        if module not in self._loaded:
            self._loaded[module] = files.load(files.path_of(module, self.folder))
        return self._loaded[module]

    def passed(self, item: pytest.Item, delta_spark: DeltaSpark) -> None:
        """Check a passed test's actions against its recording, or keep them as the new one."""
        module, name = _name(item)
        if isinstance(delta_spark, ReplayedDeltaSpark):
            delta_spark.finish()
            self.counts["replayed"] += delta_spark.replayed
            self.days.add(self.recordings(module).header["recorded"])
            return
        assert isinstance(delta_spark, LiveDeltaSpark)
        self.counts["live"] += len(delta_spark.recording["actions"])
        if self.results is not Results.LIVE:
            self._new.setdefault(module, {})[name] = delta_spark.recording
        if self.results in (Results.REPLAY, Results.VERIFY):
            old = self.recordings(module).tests.get(name)
            if old is None:
                raise NotRecorded(f"{name} is not recorded: {files.RECORD}")
            if (found := files.difference(old, delta_spark.recording)) is not None:
                raise NotRecorded(
                    f"Spark's results are not as recorded (if they are right, {files.RECORD}):"
                    f"\n{found}"
                )

    def unused(self) -> list[str]:
        """Recordings of tests that no longer exist, in the modules of this run."""
        found = []
        for module, tests in self.tests.items():
            recorded = self.recordings(module).tests
            found += [f"{module}::{name}" for name in sorted(recorded.keys() - tests)]
        return found

    def save(self, folder: Path) -> None:
        """Write the recordings of this run into a folder, with what else it holds of its tests."""
        running = running_versions() if self._new else {}
        day = datetime.now(UTC).date().isoformat()
        for module, new in self._new.items():
            path = files.path_of(module, folder)
            try:
                old = files.load(path).tests
            except files.RecordingError:
                old = {}
            tests = files.merged(old, new)
            if module in self.tests:
                tests = {name: tests[name] for name in tests.keys() & self.tests[module]}
            if tests != old:
                files.save(path, running, day, tests)


_STATE = pytest.StashKey[State]()


def state_of(config: pytest.Config) -> State:
    """Return what the run has replayed and recorded so far."""
    return config.stash[_STATE]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("recorded Spark results")
    group.addoption(
        "--spark-results",
        choices=[each.value for each in Results],
        default=Results.REPLAY.value,
        help="where results of Spark come from",
    )
    group.addoption(
        "--live-sample",
        default="none",
        metavar="commit|1..10|none",
        help="with replay: the fortieth of the recorded tests that runs live",
    )
    group.addoption(
        "--without-sample",
        default="none",
        metavar="commit|1..10|none",
        help="with verify: leaves out the tests that a run with this --live-sample runs live",
    )
    group.addoption("--recordings", default=str(files.DATA), help="folder of the recordings")
    group.addoption(
        "--new-recordings", default=".recordings", help="with verify: folder of the new recordings"
    )


def pytest_configure(config: pytest.Config) -> None:
    try:
        config.stash[_STATE] = State(config)
    except ValueError as error:
        raise pytest.UsageError(f"not a sample: {error}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark recorded tests, and put tests that share a Spark session into one group."""
    state = state_of(config)
    one_session = state.results is Results.REPLAY
    whole_modules = not any("::" in argument for argument in config.args)
    for item in items:
        if "delta_spark" in getattr(item, "fixturenames", ()):
            item.add_marker("recorded")
            if whole_modules:
                module, name = _name(item)
                state.tests.setdefault(module, set()).add(name)
            if state.live(item):
                item.add_marker("spark")
        on_spark = item.get_closest_marker("spark") is not None
        # One process makes the tables of the certification kit.
        module = "kit" if "kit" in getattr(item, "fixturenames", ()) else _name(item)[0]
        group = "spark" if one_session and on_spark else module
        item.add_marker(pytest.mark.xdist_group(group))
    _leave_out(config, items, state)
    if one_session:
        # The longest group first, so that the other process does all the rest meanwhile.
        items.sort(key=lambda item: item.get_closest_marker("spark") is None)


def _leave_out(config: pytest.Config, items: list[pytest.Item], state: State) -> None:
    """Deselect the rotating tests that are not in the sample, and what `leaves_out` says."""
    sample = state.sample
    out = [
        item
        for item in items
        if state.leaves_out(item)
        or (
            sample is not None
            and item.get_closest_marker("rotating")
            and not sample.holds_rotating("::".join(_name(item)))
        )
    ]
    if out:
        config.hook.pytest_deselected(items=out)
        left = {*out}
        items[:] = [item for item in items if item not in left]


@pytest.fixture
def delta_spark(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> DeltaSpark:
    """Runs statements in live Spark, or replays their recorded results, below `tmp_path`."""
    state = state_of(request.config)
    if state.live(request.node):
        watched = None if state.results is Results.LIVE else tmp_path
        return LiveDeltaSpark(request.getfixturevalue("spark"), watched)
    module, name = _name(request.node)
    try:
        recording = state.recordings(module).tests.get(name)
    except files.RecordingError as error:
        pytest.fail(str(error), pytrace=False)
    if recording is None:
        pytest.fail(f"{name} is not recorded: {files.RECORD}", pytrace=False)

    def set_time(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: seconds)
        monkeypatch.setattr(time, "time_ns", lambda: int(seconds * 1e9))

    return ReplayedDeltaSpark(recording, tmp_path, set_time)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield
    delta_spark = getattr(item, "funcargs", {}).get("delta_spark")
    if delta_spark is not None:
        state_of(item.config).passed(item, delta_spark)


def pytest_sessionfinish(session: pytest.Session) -> None:
    state = state_of(session.config)
    match state.results:
        case Results.RECORD:
            state.save(state.folder)
        case Results.VERIFY:
            state.save(state.new_folder)
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["recorded"] = (dict(state.counts), sorted(state.days))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    state = state_of(node.config)
    counts, days = getattr(node, "workeroutput", {}).get("recorded", ({}, ()))
    state.counts.update(counts)
    state.days.update(days)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    state = state_of(config)
    if not state.counts:
        return
    days = sorted(state.days)
    recorded = f" (recorded {days[0]}{f' to {days[-1]}' if len(days) > 1 else ''})" if days else ""
    sample = f"; {state.sample}" if state.sample is not None else ""
    sample += f"; without {state.left_out}" if state.left_out is not None else ""
    terminalreporter.write_line(
        f"Spark actions: {state.counts['replayed']} replayed{recorded}, "
        f"{state.counts['live']} live{sample}"
    )


def _name(item: pytest.Item) -> tuple[str, str]:
    """The test's module, and its name with parameters; xdist appends groups to node ids."""
    module, _, name = item.nodeid.partition("::")
    group = item.get_closest_marker("xdist_group")
    return module, name.removesuffix(f"@{group.args[0]}") if group else name


def running_versions() -> dict[str, str]:
    """Return the installed engine versions, as a header has them."""
    ran = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', ran.stderr)
    return {
        "delta-spark": version("delta-spark"),
        "pyspark": version("pyspark"),
        "java": found[1] if found else "",
    }
