"""Which Delta Spark runs the tests, and what a test needs of it.

The suite runs on the pinned pair, and on the oldest supported one (`make test-oldest`). What a
release cannot do yet is told by its number, before anything runs; never by a failure.
"""

from __future__ import annotations

from importlib.metadata import version

import pytest

from deltaproto.planning.engine import Engine, parse_engine
from deltaproto.protocol import feature_catalog
from tests.recording.files import pinned

PINNED = parse_engine(f"delta-spark@{pinned()['delta-spark']}")
"""the engine for which no test may be left out"""
RUNNING = parse_engine(f"delta-spark@{version('delta-spark')}")
"""the installed engine, as a plan names it"""


def missing(release: str, what: str) -> str | None:
    """Why a test that needs `what` of this release cannot run; None when it can.

    Raises:
        ValueError: when even the pinned release lacks it, so that the test would never run.
    """
    if not PINNED.at_least(release):
        raise ValueError(f"{what}: delta-spark {release} is newer than the pinned {PINNED}")
    return None if RUNNING.at_least(release) else f"{RUNNING}: {what} came with {release}"


def needs_delta(release: str, what: str) -> pytest.MarkDecorator:
    """The test needs `what`, which Delta Spark has since `release`; below, it is left out."""
    why = missing(release, what)
    return pytest.mark.skipif(why is not None, reason=why or "")


def needs_feature(name: str) -> pytest.MarkDecorator:
    """The test needs an engine that knows the feature; the profile says since when they do."""
    since = feature_catalog.feature_record(name).since.delta_spark
    assert since is not None, f"no delta-spark knows {name}"
    return needs_delta(since.removesuffix(" (read)"), name)


def needs_drop(name: str) -> pytest.MarkDecorator:
    """The test needs an engine that can drop the feature."""
    return needs_delta(_drop_since(name), f"DROP FEATURE {name}")


def skip_without_drop(name: str) -> None:
    """As `needs_drop`, in a test's body."""
    skip_below(_drop_since(name), f"DROP FEATURE {name}")


def skip_below(release: str, what: str) -> None:
    """As `needs_delta`, where only the test's body knows what it needs."""
    why = missing(release, what)
    if why is not None:
        pytest.skip(why)


def for_running(words: tuple[str, ...]) -> tuple[str, ...]:
    """A command line that plans for the engine that runs, as its user would; else as it is."""
    plans = bool(words) and words[0].startswith("plan-") and "--engine" not in words
    return (*words, "--engine", str(RUNNING)) if plans and Engine() != RUNNING else words


def _drop_since(name: str) -> str:
    since = feature_catalog.feature_record(name).drop.delta_spark
    assert since is not None, f"no delta-spark drops {name}"
    return since
