"""Damaged documents for each target: an answer or a refusal, and nothing else.

`make test` tries the first 200 seeds of each target, `make test-all` the first 2,000. `FUZZ_CASES`
sets another number and `FUZZ_SEED` the first seed. `test_found.py` keeps what was found.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import mutate
from tests.fuzz.targets import TARGETS

MEMBERS = (
    *("protocol", "metaData", "add", "remove", "domainMetadata", "commitInfo", "sidecar", "tables"),
    *("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures", "configuration"),
    *("schemaString", "path", "deletionVector", "schema_version", "command", "plans", "features"),
)

FIRST = int(os.environ.get("FUZZ_SEED", "0"))
FAST, ALL = 200, 2000
if "FUZZ_CASES" in os.environ:
    SEEDS = [range(FIRST, FIRST + int(os.environ["FUZZ_CASES"]))]
else:
    rest = range(FIRST + FAST, FIRST + ALL)
    SEEDS = [range(FIRST, FIRST + FAST), pytest.param(rest, marks=pytest.mark.slow)]
SECONDS = 10
MEBIBYTES = 600
"""the most that all cases of a target may add to this process"""


@contextmanager
def alarm(name: str, seed: int) -> Iterator[None]:
    """Fails where one case does not end."""

    too_late = f"{name} {seed} takes more than {SECONDS} s"
    rung = False

    def late(*_: object) -> None:
        nonlocal rung
        rung = True
        raise AssertionError(too_late)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # What is raised while garbage is collected goes no further.
    assert not rung, too_late


def peak() -> float:
    """The most memory that this process ever had, in MiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)


@pytest.mark.parametrize("name", TARGETS)
def test_the_whole_documents_are_answered(name: str) -> None:
    target = TARGETS[name]
    assert all(target.holds(document) for document in target.corpus())


JSON = ("commit", "first-commit", "checksum", "last-checkpoint", "v2-checkpoint", "plan")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(mutate.VALUES),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(MEMBERS), inner),
)


def assert_answered_or_refused(name: str, value: Any) -> None:
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "[" * 100_000 + "]" * 100_000
    TARGETS[name].holds(text.encode())


ANY_JSON = VALUES | st.sampled_from([mutate.deep(200), mutate.deep(100_000)])


@pytest.mark.parametrize("name", [*JSON, "saved-inspection"])
@settings(max_examples=25)
@given(value=ANY_JSON)
def test_any_json_is_answered_or_refused(name: str, value: Any) -> None:
    assert_answered_or_refused(name, value)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*JSON, "saved-inspection"])
@given(value=ANY_JSON)
def test_any_json_is_answered_or_refused_a_hundred_times(name: str, value: Any) -> None:
    assert_answered_or_refused(name, value)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seeds", SEEDS, ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_damaged_documents_are_answered_or_refused(name: str, seeds: range) -> None:
    target, before, began = TARGETS[name], peak(), time.monotonic()
    answered = 0
    for seed in seeds:
        document = target.case(seed)
        try:
            with alarm(name, seed):
                answered += target.holds(document)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error
    print(f"{name}: {len(seeds)} cases, {answered} answered, {time.monotonic() - began:.1f} s")
    assert peak() - before < MEBIBYTES
    if len(seeds) >= FAST:
        assert answered > 0, "everything is refused: nothing behind the first check is reached"
