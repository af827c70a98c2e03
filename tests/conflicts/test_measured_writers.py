"""What releases of Delta Spark did to their writers in flight, against what we say of it.

`benchmarks/measure_conflicts.py` recorded it, one release after the other; the suite itself runs
one Spark only.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.measure_conflicts import LOSERS, held, made, meet
from deltaproto.conflicts.classify import classify
from deltaproto.conflicts.matrix import MatrixEngine, build_cells
from deltaproto.conflicts.operation import Operation
from deltaproto.planning.conflict_impact import find_step_conflicts
from deltaproto.planning.ddl.parse import parse_script
from deltaproto.planning.engine import parse_engine
from deltaproto.planning.plan import StepConflict
from deltaproto.planning.predict.schema import parse_schema
from deltaproto.planning.search.prediction import predict_statement
from deltaproto.planning.writer_survival import Writers
from deltaproto.protocol.isolation import IsolationLevel
from deltaproto.protocol.protocol import Protocol
from tests.planning.bare import bare_table
from tests.support.engines import RUNNING
from tests.support.failures import collect_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = json.loads(Path(__file__).with_name("measured_writers.json").read_text())
RELEASES = sorted({release for case in RECORDED["measured"] for release in case["raised"]})


def cases(*, keyed: bool = False) -> list[dict[str, Any]]:
    """The recorded meetings of SQL statements, on tables with identity columns or without."""
    return [
        case
        for case in RECORDED["measured"]
        if (case["table"] == "keys") is keyed
        and not case["winner"].startswith(("{", "restore", "truncate"))
    ]


def exceptions(case: dict[str, Any], release: str, writers: Writers) -> set[str]:
    """The exceptions that a plan names for writers that make data commits on Delta Spark."""
    made = RECORDED["tables"][case["table"]]
    table = bare_table(Protocol.stored(made["protocol"]), made["configuration"]).with_schema(
        parse_schema(made["schema"])
    )
    (parsed,) = parse_script(case["winner"].format(t="t"))
    outcome = predict_statement(parsed.statement, table, parse_engine(f"delta-spark@{release}"))
    found = find_step_conflicts(parsed.statement, table, outcome, writers)
    return {clash.exception for clash in found if _every_data_write(clash)}


def _every_data_write(clash: StepConflict) -> bool:
    return (clash.engine, clash.loser) == ("delta-spark", "writer") and "appends" in clash.who


def test_writers_of_each_release_fail_as_recorded() -> None:
    with collect_failures() as failures:
        for case in cases():
            for release, raised in case["raised"].items():
                with failures.of(release, case["table"], case["winner"], case["settings"]):
                    writers = Writers(frozenset({release}), case["settings"])
                    found = exceptions(case, release, writers)
                    assert (raised in found) if raised else not found, found


def test_a_release_that_is_not_known_may_be_any() -> None:
    """A plan for writers that are not known names the exception if any release raised it."""
    with collect_failures() as failures:
        for case in cases():
            if case["settings"]:
                continue
            with failures.of(case["table"], case["winner"]):
                raised = {each for each in case["raised"].values() if each is not None}
                assert raised <= exceptions(case, RELEASES[-1], Writers())


def test_a_feature_that_the_writers_release_does_not_know_is_refused() -> None:
    raised = {
        each
        for case in RECORDED["measured"]
        for each in case["raised"].values()
        if case["winner"].startswith("{")
    }
    assert raised == {"DeltaUnsupportedTableFeatureException"}


def test_identity_columns_are_as_recorded() -> None:
    found = {
        (str(cell.operation), str(cell.against)): cell
        for cell in build_cells(
            MatrixEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE, identity=True
        )
    }
    with collect_failures() as failures:
        for case in cases(keyed=True):
            loser, winner = (case[name].split()[0].upper() for name in ("loser", "winner"))
            cell = found[loser, {"ALTER": "METADATA CHANGE"}.get(winner, winner)]
            for release, raised in case["raised"].items():
                with failures.of(release, case["loser"], case["winner"]):
                    assert (raised in cell.exceptions) if raised else cell.conflict != "yes"


def test_item_8_restore_and_truncate_are_as_recorded() -> None:
    """RESTORE is a row of its own; TRUNCATE is a DELETE of all rows."""
    every = build_cells(MatrixEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE)
    found = {(cell.operation, cell.against): cell for cell in every}
    with collect_failures() as failures:
        for case in RECORDED["measured"]:
            if not case["winner"].startswith(("restore", "truncate")):
                continue
            winner = classify(case["winner"].format(t="t")).operation
            assert winner is not None
            cell = found[Operation(case["loser"].upper()), winner]
            for release, raised in case["raised"].items():
                with failures.of(release, case["loser"], case["winner"]):
                    assert (raised in cell.exceptions) if raised else cell.conflict != "yes"


def test_two_inserts_that_make_identity_values_conflict_in_every_release() -> None:
    (case,) = (
        case
        for case in cases(keyed=True)
        if case["loser"].startswith("insert into {t} (id")
        and case["winner"].startswith("insert into {t} (id")
    )
    assert {*case["raised"].values()} == {"MetadataChangedException"}
    unknown = {
        (cell.operation, cell.against): cell
        for cell in build_cells(
            MatrixEngine.DELTA_SPARK, IsolationLevel.SERIALIZABLE, identity=None
        )
    }
    cell = unknown[Operation.INSERT, Operation.INSERT]
    assert (cell.conflict, cell.exceptions) == ("maybe", ("MetadataChangedException",))
    assert "identity columns" in cell.when


def test_every_line_of_releases_was_recorded() -> None:
    lines = {release.rpartition(".")[0] for release in RELEASES}
    assert lines == {"3.2", "3.3", "4.0", "4.1", "4.2", "4.3", "4.4"}
    for release in RELEASES:
        # 3.2 refuses most of the winners, and has no identity columns.
        least = 60 if release >= "3.3" else 35
        assert sum(release in case["raised"] for case in RECORDED["measured"]) > least


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.heavy
def test_the_installed_release_does_what_was_recorded(spark: SparkSession, tmp_path: Path) -> None:
    """Repeats, with two threads, the meetings that end differently from release to release."""
    gate = tmp_path / "gate"
    gate.mkdir()
    spark.udf.register("held", held(str(gate)), "bigint")
    bases = made(spark, tmp_path)
    release = str(RUNNING).partition("@")[2]
    with collect_failures() as failures:
        for number, case in enumerate(RECORDED["measured"]):
            if release not in case["raised"] or len({*case["raised"].values()}) == 1:
                continue
            path = Path(shutil.copytree(bases[case["table"]], tmp_path / str(number)))
            with failures.of(case["table"], case["loser"], case["winner"], case["settings"]):
                for key, value in case["settings"].items():
                    spark.conf.set(key, value)
                try:
                    loser = LOSERS.get(case["loser"], case["loser"])
                    became = meet(spark, path, loser, case["winner"], gate)
                finally:
                    for key in case["settings"]:
                        spark.conf.unset(key)
                assert became == {"raised": case["raised"][release]}
