"""Clients that are wrong on purpose are found out, and an honest one is not accused."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.certification.client import ClientUnderTest, certify
from deltaproto.certification.fixtures.case import Kit
from deltaproto.certification.process import ProcessLimits
from deltaproto.certification.verify_writes import WriteVerifier
from deltaproto.clients.measurement import MeasuredOutcome, MeasurementCell, ResultColumn
from deltaproto.clients.resolve import ClientReference
from tests.certification.conftest import ADAPTERS, Measure, cell
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_delta("4.4", "the tables of the kit")]
READS = (ResultColumn.ROWS, ResultColumn.COUNT, ResultColumn.TOTAL, ResultColumn.FILTER)


def test_an_honest_client_is_not_accused(measure: Measure) -> None:
    measured = measure("honest")
    assert [c for c in measured.cells if c.outcome is MeasuredOutcome.WRONG] == []
    for operation in (*READS, ResultColumn.TIME_TRAVEL, ResultColumn.SCHEMA, ResultColumn.APPEND):
        assert cell(measured, "plain", operation).outcome is MeasuredOutcome.RIGHT
    assert (
        cell(measured, "deletionVectors.present", ResultColumn.COUNT).outcome
        is MeasuredOutcome.RIGHT
    )
    violating = cell(measured, "checkConstraints.enabled", ResultColumn.APPEND_VIOLATING)
    assert violating.outcome is MeasuredOutcome.RIGHT
    unknown = cell(measured, "protocol.unknown-writer", ResultColumn.APPEND)
    assert unknown.outcome is MeasuredOutcome.REFUSED
    assert cell(measured, "plain", ResultColumn.VACUUM).outcome is MeasuredOutcome.NOT_OFFERED
    assert measured.release
    assert measured.processors > 0


def test_two_runs_give_the_same_classes(measure: Measure) -> None:
    def classes() -> list[tuple[str, ResultColumn, MeasuredOutcome]]:
        tables = ("plain", "deletionVectors.present", "typeWidening.present", "protocol.2-5")
        return [(c.case, c.operation, c.outcome) for c in measure("honest", *tables).cells]

    assert classes() == classes()


def test_an_interrupted_run_asks_nothing_more(
    kit: Kit, spark: SparkSession, tmp_path: Path
) -> None:
    told = 0

    def interrupted(done: int, _total: int) -> None:
        nonlocal told
        told = done
        if done == 5:
            os.kill(os.getpid(), signal.SIGINT)

    subject = ClientUnderTest(ClientReference("honest", None, None), ADAPTERS / "honest.py", (), 2)
    with pytest.raises(KeyboardInterrupt):
        certify(subject, kit, WriteVerifier(spark), tmp_path, progress=interrupted)
    # What the processes and the referees were at, and what came before the signal.
    assert told < 40


def test_who_ignores_deletion_vectors_is_found_out(measure: Measure) -> None:
    measured = measure("ignores_vectors", *READS)
    for operation in READS:
        found = cell(measured, "deletionVectors.present", operation)
        assert found.outcome is MeasuredOutcome.WRONG, operation
        assert cell(measured, "plain", operation).outcome is MeasuredOutcome.RIGHT, operation
        assert cell(measured, "deletionVectors.enabled", operation).outcome is MeasuredOutcome.RIGHT
    rows = cell(measured, "deletionVectors.present", ResultColumn.ROWS)
    assert rows.why == "20 rows instead of 18 (unexpected: 3, 14)"
    assert (
        cell(measured, "protocol.unknown-reader", ResultColumn.ROWS).outcome
        is MeasuredOutcome.WRONG
    )
    renamed = cell(measured, "columnMapping.renamed", ResultColumn.ROWS)
    assert (renamed.outcome, "columns" in renamed.why) == (MeasuredOutcome.WRONG, True)


def test_who_drops_constraints_and_promises_is_found_out(measure: Measure) -> None:
    measured = measure("careless_writer")

    def why(case: str, operation: ResultColumn) -> str:
        found = cell(measured, case, operation)
        assert found.outcome is MeasuredOutcome.WRONG, (case, operation, found)
        return found.why

    assert "forbids" in why("checkConstraints.enabled", ResultColumn.APPEND_VIOLATING)
    assert "forbids" in why("invariants.expression", ResultColumn.APPEND_VIOLATING)
    assert "forbids" in why("generatedColumns.enabled", ResultColumn.APPEND_VIOLATING)
    assert "twice is null" in why("generatedColumns.enabled", ResultColumn.APPEND_OMITTING)
    assert "append-only" in why("appendOnly.enabled", ResultColumn.DELETE)
    assert "change data feed" in why("changeDataFeed.enabled", ResultColumn.DELETE)
    assert "without row ids" in why("rowTracking.enabled", ResultColumn.APPEND)
    assert "in-commit timestamp" in why("inCommitTimestamp.present", ResultColumn.APPEND)
    assert "unknown version or feature" in why("protocol.unknown-writer", ResultColumn.APPEND)
    assert "delta.appendOnly" in why("appendOnly.enabled", ResultColumn.CONFIGURE)
    assert "no new checkpoint" in why("plain", ResultColumn.CHECKPOINT)
    assert "18" in why("deletionVectors.present", ResultColumn.DELETE)
    assert cell(measured, "plain", ResultColumn.APPEND).outcome is MeasuredOutcome.RIGHT
    assert cell(measured, "plain", ResultColumn.DELETE).outcome is MeasuredOutcome.RIGHT


def test_who_swallows_errors_is_found_out(measure: Measure) -> None:
    measured = measure("swallows_errors")
    assert (
        cell(measured, "typeWidening.present", ResultColumn.ROWS).outcome is MeasuredOutcome.WRONG
    )
    lost = cell(measured, "protocol.unknown-writer", ResultColumn.APPEND)
    assert lost.outcome is MeasuredOutcome.WRONG
    lost = cell(measured, "rowTracking.enabled", ResultColumn.APPEND)
    assert lost.outcome is MeasuredOutcome.WRONG
    assert "missing: 100, 101" in lost.why
    assert cell(measured, "plain", ResultColumn.APPEND).outcome is MeasuredOutcome.RIGHT


def test_who_says_nothing_is_found_out(measure: Measure) -> None:
    measured = measure("says_nothing", "plain")
    for operation, why in (
        (ResultColumn.ROWS, "it returned no rows"),
        (ResultColumn.COUNT, "nothing instead of 20"),
        (ResultColumn.SCHEMA, "it returned no columns"),
        (ResultColumn.APPEND, "20 rows instead of 22 (missing: 100, 101)"),
    ):
        assert cell(measured, "plain", operation) == MeasurementCell(
            "plain", operation, MeasuredOutcome.WRONG, why
        )


def test_who_hangs_floods_or_dies_is_stopped(measure: Measure) -> None:
    began = time.monotonic()
    # A busy machine needs seconds to start the client again; more time-outs end the table.
    limits = ProcessLimits(seconds=8, first=0, output=1024**2, memory=512 * 1024**2)
    asked = (ResultColumn.ROWS, ResultColumn.COUNT, ResultColumn.TOTAL, ResultColumn.SCHEMA)
    asked += (
        ResultColumn.APPEND,
        ResultColumn.DELETE,
        ResultColumn.OPTIMIZE,
        ResultColumn.CONFIGURE,
    )
    measured = measure("misbehaves", "plain", *asked, limits=limits)
    assert time.monotonic() - began < 60

    def found(operation: ResultColumn) -> tuple[MeasuredOutcome, str]:
        each = cell(measured, "plain", operation)
        return each.outcome, each.why

    assert found(ResultColumn.ROWS) == (MeasuredOutcome.TIMED_OUT, "no response within 8 s")
    assert found(ResultColumn.COUNT) == (MeasuredOutcome.CRASHED, "printed more than 1 MiB")
    assert found(ResultColumn.TOTAL) == (MeasuredOutcome.CRASHED, "killed by SIGSEGV")
    assert found(ResultColumn.SCHEMA) == (
        MeasuredOutcome.CRASHED,
        "PanicException: index out of bounds",
    )
    assert found(ResultColumn.APPEND) == (MeasuredOutcome.CRASHED, "ended with exit code 7")
    assert found(ResultColumn.DELETE) == (MeasuredOutcome.REFUSED, "ValueError: no")
    assert found(ResultColumn.CONFIGURE) == (MeasuredOutcome.TIMED_OUT, "no response within 8 s")
    if sys.platform == "linux":
        assert found(ResultColumn.OPTIMIZE) == (
            MeasuredOutcome.CRASHED,
            "used more than 512 MiB of memory",
        )


def test_a_table_on_which_everything_hangs_is_left(measure: Measure) -> None:
    measured = measure("misbehaves", "plain", limits=ProcessLimits(seconds=1, first=0))
    assert cell(measured, "plain", ResultColumn.ROWS).why == "no response within 1 s"
    left = cell(measured, "plain", ResultColumn.APPEND)
    assert (left.outcome, "this table" in left.why) == (MeasuredOutcome.TIMED_OUT, True)
    assert cell(measured, "plain", ResultColumn.MERGE).outcome is MeasuredOutcome.NOT_OFFERED


def test_a_function_that_hangs_is_not_tried_for_ever(measure: Measure) -> None:
    began = time.monotonic()
    measured = measure("misbehaves", ResultColumn.ROWS, limits=ProcessLimits(seconds=1, first=0))
    assert {c.outcome for c in measured.cells} == {MeasuredOutcome.TIMED_OUT}
    assert sum("not tried" in c.why for c in measured.cells) >= len(measured.cells) - 4
    assert time.monotonic() - began < 30


PROGRAM = """
import json, pathlib, sys
operation, table = sys.argv[1:]
request = json.load(sys.stdin)
assert request["table"] == table
import deltalake, pyarrow as pa
opened = deltalake.DeltaTable(table, version=request.get("version"))
found = pa.table(deltalake.QueryBuilder().register("t", opened).execute("select * from t"))
if operation == "rows" and "where" not in request:
    for row in found.to_pylist():
        print(json.dumps(row))
elif operation == "count":
    print(found.num_rows)
elif operation == "schema":
    for field in opened.schema().fields:
        print(json.dumps({"name": field.name, "type": field.type.type}))
elif operation == "total":
    print("fifteen")
elif operation == "append":
    sys.exit("this program does not write")
elif operation == "delete":
    print("deleted")
else:
    sys.exit(64)
"""


def test_a_command_is_measured_as_well(kit: Kit, measure: Measure, tmp_path: Path) -> None:
    program = tmp_path / "client.py"
    program.write_text(PROGRAM)
    command = f"{sys.executable} {program}"
    measured = measure("honest", "plain", command=command)

    def outcome(operation: ResultColumn) -> MeasuredOutcome:
        return cell(measured, "plain", operation).outcome

    for operation in (
        ResultColumn.ROWS,
        ResultColumn.COUNT,
        ResultColumn.SCHEMA,
        ResultColumn.TIME_TRAVEL,
    ):
        assert outcome(operation) is MeasuredOutcome.RIGHT, operation
    assert outcome(ResultColumn.TOTAL) is MeasuredOutcome.CRASHED
    assert outcome(ResultColumn.FILTER) is MeasuredOutcome.NOT_OFFERED
    refused = cell(measured, "plain", ResultColumn.APPEND)
    assert (refused.outcome, refused.why) == (
        MeasuredOutcome.REFUSED,
        "this program does not write",
    )
    assert outcome(ResultColumn.DELETE) is MeasuredOutcome.CRASHED


@pytest.mark.parametrize(
    ("script", "outcome", "why"),
    [
        ("true", MeasuredOutcome.WRONG, "0 rows instead of 20"),
        ("yes '{}'", MeasuredOutcome.CRASHED, "printed more than 1 MiB"),
        ("sleep 100", MeasuredOutcome.TIMED_OUT, "no response within 2 s"),
        # The limit is of the whole answer: it is named as it was set, not what is left of it.
        ("echo 1; sleep 1; echo 2; sleep 100", MeasuredOutcome.TIMED_OUT, "no response within 2 s"),
        ("kill -9 $$", MeasuredOutcome.CRASHED, "killed by SIGKILL"),
        ("echo hello", MeasuredOutcome.CRASHED, "invalid JSON"),
        ("echo sorry >&2; exit 3", MeasuredOutcome.REFUSED, "sorry"),
        ("exec >&- 2>&-; sleep 100", MeasuredOutcome.TIMED_OUT, "did not end within 2 s"),
    ],
)
def test_a_command_that_misbehaves(
    script: str, outcome: MeasuredOutcome, why: str, kit: Kit, tmp_path: Path
) -> None:
    program = tmp_path / "client.sh"
    program.write_text(script)
    measured = certify(
        ClientUnderTest(ClientReference("shell", None, None), ADAPTERS, (), 1),
        kit,
        None,
        tmp_path,
        command=f"sh {program}",
        limits=ProcessLimits(seconds=2, output=1024**2),
        wanted=lambda case, operation: (case.name, operation) == ("plain", ResultColumn.ROWS),
    )
    found = cell(measured, "plain", ResultColumn.ROWS)
    assert (found.outcome, why in found.why) == (outcome, True), found
