"""Row-level concurrency per Databricks Runtime, against the documents' rules typed in again."""

from __future__ import annotations

import itertools
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaproto.conflicts import Conflict, MatrixEngine, build_cells
from deltaproto.conflicts.matrix import Compute, resolve_by_row
from deltaproto.protocol.databricks_runtime import RELEASE_DATES, Runtime, parse_runtime
from deltaproto.protocol.isolation import DECLARABLE_LEVELS

ALL = "UPDATE DELETE MERGE"
# runtime, liquid, photon, preview setting: the operations compared by row
DOCUMENTED = [
    ("12.2", True, True, True, ""),
    ("12.2", False, True, True, ""),
    ("13.3", True, True, None, ALL),
    ("13.3", True, False, None, "DELETE"),
    ("13.3", True, None, None, "DELETE"),
    ("13.3", False, True, True, ""),
    ("14.0", True, True, False, ALL),
    ("14.0", True, False, False, "DELETE"),
    ("14.0", False, True, True, ALL),
    ("14.0", False, False, True, "DELETE"),
    ("14.0", False, True, None, ""),
    ("14.0", False, True, False, ""),
    ("14.1", False, True, True, ALL),
    ("14.1", False, None, True, "DELETE"),
    ("14.1", False, True, False, ""),
    ("14.2", True, True, False, ALL),
    ("14.2", False, True, None, ALL),
    ("14.2", False, False, True, "UPDATE DELETE"),
    ("14.2", False, None, None, "UPDATE DELETE"),
    ("14.3", False, False, None, ALL),
    ("14.3", True, None, False, ALL),
    ("15.4", False, None, None, ALL),
    ("16.0", False, False, False, ALL),
]


@pytest.mark.parametrize(("runtime", "liquid", "photon", "preview", "operations"), DOCUMENTED)
def test_items_7_25_29_by_runtime(
    runtime: str, liquid: bool, photon: bool | None, preview: bool | None, operations: str
) -> None:
    named = parse_runtime(runtime)
    assert named is not None
    found = resolve_by_row(liquid, Compute(named.runtime, photon, preview))
    assert found.operations == set(operations.split())
    assert runtime in found.reason or "13.3 LTS" in found.reason or "14.1" in found.reason
    if not operations and named.runtime >= Runtime(14, 0):
        assert "rowLevelConcurrencyPreview = true" in found.reason


def test_an_unknown_runtime_is_taken_for_a_current_one() -> None:
    found = resolve_by_row(False, Compute())
    assert found.operations == set(ALL.split())
    assert "14.2 or later" in found.reason


runtimes = st.builds(Runtime, st.integers(9, 18), st.integers(0, 4))
switches = st.sampled_from([None, False, True])


@given(runtimes, st.booleans(), switches, switches)
def test_more_is_never_less(
    runtime: Runtime, liquid: bool, photon: bool | None, preview: bool | None
) -> None:
    here = resolve_by_row(liquid, Compute(runtime, photon, preview)).operations
    assert here <= resolve_by_row(True, Compute(runtime, photon, preview)).operations
    assert here <= resolve_by_row(liquid, Compute(runtime, True, preview)).operations
    assert here <= resolve_by_row(liquid, Compute(runtime, photon, True)).operations
    later = Runtime(runtime.major + 1, runtime.minor)
    assert here <= resolve_by_row(liquid, Compute(later, photon, preview)).operations


@pytest.mark.parametrize(
    ("text", "runtime", "photon"),
    [
        ("14.3", "14.3", False),
        ("14.3 LTS", "14.3", False),
        ("14.3LTS", "14.3", False),
        ("DBR 9.1 LTS", "9.1", False),
        ("Databricks Runtime 15.4", "15.4", False),
        ("14.2.x-scala2.12", "14.2", False),
        ("14.2.x-photon-scala2.12", "14.2", True),
        ("13.3.x-cpu-ml-scala2.12", "13.3", False),
        ("14.3 LTS (includes Apache Spark 3.5.0, Scala 2.12)", "14.3", False),
    ],
)
def test_runtimes_as_people_and_clusters_write_them(text: str, runtime: str, photon: bool) -> None:
    named = parse_runtime(text)
    assert named is not None
    assert (str(named.runtime), named.photon) == (runtime, photon)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "latest",
        "14",
        "14.3.2.1",
        "-14.3",
        "14.x",
        "spark 3.5",
        "1\u0664.3",
        "19+2026-13-01",
        "17.3+2026-07-23",
    ],
)
def test_no_runtime(text: str) -> None:
    assert parse_runtime(text) is None


@pytest.mark.parametrize(
    ("text", "update", "released"),
    [
        ("18 LTS", None, True),
        ("19+2026-07-23", (2026, 7, 23), True),
        ("18.0 (Beta)", None, False),
        ("17.3 (beta 2)", None, False),
    ],
)
def test_updates_and_previews(
    text: str, update: tuple[int, int, int] | None, released: bool
) -> None:
    named = parse_runtime(text)
    assert named is not None
    assert named.update == (None if update is None else date(*update))
    assert named.released is released


def test_an_update_before_the_release_is_a_preview() -> None:
    for major, released in RELEASE_DATES.items():
        for day, expected in ((released, True), (released - timedelta(days=1), False)):
            named = parse_runtime(f"{major}+{day.isoformat()}")
            assert named is not None
            assert named.released is expected, (major, day)


@given(runtimes)
def test_a_runtime_reads_back_as_it_is_written(runtime: Runtime) -> None:
    named = parse_runtime(str(runtime))
    assert named is not None
    assert named.runtime == runtime


@pytest.mark.parametrize("level", DECLARABLE_LEVELS)
def test_a_pair_is_compared_by_row_only_when_both_are(level: object) -> None:
    only_delete = resolve_by_row(True, Compute(Runtime(14, 1), False)).operations
    found = {
        (cell.operation.value, cell.against.value): cell
        for cell in build_cells(MatrixEngine.DATABRICKS, level, by_row=only_delete)  # type: ignore[arg-type]
    }
    for pair in itertools.product(ALL.split(), repeat=2):
        by_rows = pair == ("DELETE", "DELETE")
        assert ("same row" in found[pair].when) is by_rows, pair
        assert found[pair].conflict is Conflict.MAYBE
        assert ("with row-level" in found[pair].source) is by_rows
