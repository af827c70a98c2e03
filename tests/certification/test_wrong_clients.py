"""Clients that are wrong on purpose are found out, and an honest one is not accused."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaproto.certification.certify import certify
from deltaproto.certification.client import Subject
from deltaproto.certification.kit.case import Kit
from deltaproto.certification.process import Limits
from deltaproto.certification.referee import Referee
from deltaproto.clients.candidate import Reference
from deltaproto.clients.measurement import Cell, Operation, Outcome
from tests.certification.conftest import ADAPTERS, Measure, cell
from tests.support.engines import needs_delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_delta("4.4", "the tables of the kit")]
READS = (Operation.ROWS, Operation.COUNT, Operation.TOTAL, Operation.FILTER)


def test_an_honest_client_is_not_accused(measure: Measure) -> None:
    measured = measure("honest")
    assert [c for c in measured.cells if c.outcome is Outcome.WRONG] == []
    for operation in (*READS, Operation.TIME_TRAVEL, Operation.SCHEMA, Operation.APPEND):
        assert cell(measured, "plain", operation).outcome is Outcome.RIGHT
    assert cell(measured, "deletionVectors.present", Operation.COUNT).outcome is Outcome.RIGHT
    violating = cell(measured, "checkConstraints.enabled", Operation.APPEND_VIOLATING)
    assert violating.outcome is Outcome.RIGHT
    unknown = cell(measured, "protocol.unknown-writer", Operation.APPEND)
    assert unknown.outcome is Outcome.REFUSED
    assert cell(measured, "plain", Operation.VACUUM).outcome is Outcome.NOT_OFFERED
    assert measured.release
    assert measured.processors > 0


def test_two_runs_give_the_same_classes(measure: Measure) -> None:
    def classes() -> list[tuple[str, Operation, Outcome]]:
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

    subject = Subject(Reference("honest", None, None), ADAPTERS / "honest.py", (), 2)
    with pytest.raises(KeyboardInterrupt):
        certify(subject, kit, Referee(spark), tmp_path, progress=interrupted)
    # What the processes and the referees were at, and what came before the signal.
    assert told < 40


def test_who_ignores_deletion_vectors_is_found_out(measure: Measure) -> None:
    measured = measure("ignores_vectors", *READS)
    for operation in READS:
        found = cell(measured, "deletionVectors.present", operation)
        assert found.outcome is Outcome.WRONG, operation
        assert cell(measured, "plain", operation).outcome is Outcome.RIGHT, operation
        assert cell(measured, "deletionVectors.enabled", operation).outcome is Outcome.RIGHT
    rows = cell(measured, "deletionVectors.present", Operation.ROWS)
    assert rows.why == "20 rows instead of 18 (back again: 3, 14)"
    assert cell(measured, "protocol.unknown-reader", Operation.ROWS).outcome is Outcome.WRONG
    renamed = cell(measured, "columnMapping.renamed", Operation.ROWS)
    assert (renamed.outcome, "columns" in renamed.why) == (Outcome.WRONG, True)


def test_who_drops_constraints_and_promises_is_found_out(measure: Measure) -> None:
    measured = measure("careless_writer")

    def why(case: str, operation: Operation) -> str:
        found = cell(measured, case, operation)
        assert found.outcome is Outcome.WRONG, (case, operation, found)
        return found.why

    assert "forbids" in why("checkConstraints.enabled", Operation.APPEND_VIOLATING)
    assert "forbids" in why("invariants.expression", Operation.APPEND_VIOLATING)
    assert "forbids" in why("generatedColumns.enabled", Operation.APPEND_VIOLATING)
    assert "twice is null" in why("generatedColumns.enabled", Operation.APPEND_OMITTING)
    assert "append-only" in why("appendOnly.enabled", Operation.DELETE)
    assert "change data feed" in why("changeDataFeed.enabled", Operation.DELETE)
    assert "without row ids" in why("rowTracking.enabled", Operation.APPEND)
    assert "in-commit timestamp" in why("inCommitTimestamp.present", Operation.APPEND)
    assert "nobody knows" in why("protocol.unknown-writer", Operation.APPEND)
    assert "delta.appendOnly" in why("appendOnly.enabled", Operation.CONFIGURE)
    assert "no new checkpoint" in why("plain", Operation.CHECKPOINT)
    assert "18" in why("deletionVectors.present", Operation.DELETE)
    assert cell(measured, "plain", Operation.APPEND).outcome is Outcome.RIGHT
    assert cell(measured, "plain", Operation.DELETE).outcome is Outcome.RIGHT


def test_who_swallows_errors_is_found_out(measure: Measure) -> None:
    measured = measure("swallows_errors")
    assert cell(measured, "typeWidening.present", Operation.ROWS).outcome is Outcome.WRONG
    lost = cell(measured, "protocol.unknown-writer", Operation.APPEND)
    assert lost.outcome is Outcome.WRONG
    lost = cell(measured, "rowTracking.enabled", Operation.APPEND)
    assert lost.outcome is Outcome.WRONG
    assert "missing: 100, 101" in lost.why
    assert cell(measured, "plain", Operation.APPEND).outcome is Outcome.RIGHT


def test_who_says_nothing_is_found_out(measure: Measure) -> None:
    measured = measure("says_nothing", "plain")
    for operation, why in (
        (Operation.ROWS, "no rows came back"),
        (Operation.COUNT, "nothing instead of 20"),
        (Operation.SCHEMA, "no columns came back"),
        (Operation.APPEND, "20 rows instead of 22 (missing: 100, 101)"),
    ):
        assert cell(measured, "plain", operation) == Cell("plain", operation, Outcome.WRONG, why)


def test_who_hangs_floods_or_dies_is_stopped(measure: Measure) -> None:
    began = time.monotonic()
    # A busy machine needs seconds to start the client again; more time-outs end the table.
    limits = Limits(seconds=8, first=0, output=1024**2, memory=512 * 1024**2)
    asked = (Operation.ROWS, Operation.COUNT, Operation.TOTAL, Operation.SCHEMA)
    asked += (Operation.APPEND, Operation.DELETE, Operation.OPTIMIZE, Operation.CONFIGURE)
    measured = measure("misbehaves", "plain", *asked, limits=limits)
    assert time.monotonic() - began < 60

    def found(operation: Operation) -> tuple[Outcome, str]:
        each = cell(measured, "plain", operation)
        return each.outcome, each.why

    assert found(Operation.ROWS) == (Outcome.TIMED_OUT, "no answer within 8 s")
    assert found(Operation.COUNT) == (Outcome.CRASHED, "printed more than 1 MiB")
    assert found(Operation.TOTAL) == (Outcome.CRASHED, "killed by SIGSEGV")
    assert found(Operation.SCHEMA) == (Outcome.CRASHED, "PanicException: index out of bounds")
    assert found(Operation.APPEND) == (Outcome.CRASHED, "ended with exit code 7")
    assert found(Operation.DELETE) == (Outcome.REFUSED, "ValueError: no")
    assert found(Operation.CONFIGURE) == (Outcome.TIMED_OUT, "no answer within 8 s")
    if sys.platform == "linux":
        assert found(Operation.OPTIMIZE) == (
            Outcome.CRASHED,
            "took more than 512 MiB of memory",
        )


def test_a_table_on_which_everything_hangs_is_left(measure: Measure) -> None:
    measured = measure("misbehaves", "plain", limits=Limits(seconds=1, first=0))
    assert cell(measured, "plain", Operation.ROWS).why == "no answer within 1 s"
    left = cell(measured, "plain", Operation.APPEND)
    assert (left.outcome, "this table" in left.why) == (Outcome.TIMED_OUT, True)
    assert cell(measured, "plain", Operation.MERGE).outcome is Outcome.NOT_OFFERED


def test_a_function_that_hangs_is_not_tried_for_ever(measure: Measure) -> None:
    began = time.monotonic()
    measured = measure("misbehaves", Operation.ROWS, limits=Limits(seconds=1, first=0))
    assert {c.outcome for c in measured.cells} == {Outcome.TIMED_OUT}
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

    def outcome(operation: Operation) -> Outcome:
        return cell(measured, "plain", operation).outcome

    for operation in (Operation.ROWS, Operation.COUNT, Operation.SCHEMA, Operation.TIME_TRAVEL):
        assert outcome(operation) is Outcome.RIGHT, operation
    assert outcome(Operation.TOTAL) is Outcome.CRASHED
    assert outcome(Operation.FILTER) is Outcome.NOT_OFFERED
    refused = cell(measured, "plain", Operation.APPEND)
    assert (refused.outcome, refused.why) == (Outcome.REFUSED, "this program does not write")
    assert outcome(Operation.DELETE) is Outcome.CRASHED


@pytest.mark.parametrize(
    ("script", "outcome", "why"),
    [
        ("true", Outcome.WRONG, "0 rows instead of 20"),
        ("yes '{}'", Outcome.CRASHED, "printed more than 1 MiB"),
        ("sleep 100", Outcome.TIMED_OUT, "no answer within 2 s"),
        ("kill -9 $$", Outcome.CRASHED, "killed by SIGKILL"),
        ("echo hello", Outcome.CRASHED, "not JSON"),
        ("echo sorry >&2; exit 3", Outcome.REFUSED, "sorry"),
        ("exec >&- 2>&-; sleep 100", Outcome.TIMED_OUT, "did not end"),
    ],
)
def test_a_command_that_misbehaves(
    script: str, outcome: Outcome, why: str, kit: Kit, tmp_path: Path
) -> None:
    program = tmp_path / "client.sh"
    program.write_text(script)
    measured = certify(
        Subject(Reference("shell", None, None), ADAPTERS, (), 1),
        kit,
        None,
        tmp_path,
        command=f"sh {program}",
        limits=Limits(seconds=2, output=1024**2),
        wanted=lambda case, operation: (case.name, operation) == ("plain", Operation.ROWS),
    )
    found = cell(measured, "plain", Operation.ROWS)
    assert (found.outcome, why in found.why) == (outcome, True), found
