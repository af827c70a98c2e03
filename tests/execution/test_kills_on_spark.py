"""Processes that are killed for real; `benchmarks/crash_matrix.py` tries every moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.execution import crash_trial
from tests.execution.crash_trial import SCENARIOS, Moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
(ROW_TRACKING,) = (each for each in SCENARIOS if each.name == "row-tracking")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    return crash_trial.template(spark, ROW_TRACKING, tmp_path_factory.mktemp("made"))


def test_killed_in_the_middle_of_a_step_and_run_again(
    spark: SparkSession, made: tuple[Path, int], tmp_path: Path
) -> None:
    moment = Moment(0, "commit 1")
    outcome = crash_trial.tried(spark, ROW_TRACKING, *made, moment, tmp_path / "x")
    assert outcome.mismatches == ()


def test_spark_that_is_killed_is_told_and_the_next_run_goes_on(
    made: tuple[Path, int], tmp_path: Path
) -> None:
    table, file = crash_trial.planned(ROW_TRACKING, made[0], tmp_path / "x")
    words = crash_trial.apply_command(file)
    process = subprocess.Popen(
        words,
        env=crash_trial.ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not any(event["event"] == "start" for event in crash_trial.events(file)):
        assert process.poll() is None
        time.sleep(0.01)
    for child in _children(process.pid):
        os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    (result,) = json.loads(out)["results"]
    assert (process.returncode, result["status"]) == (5, "failed"), err
    assert "the connection to Spark is lost" in result["message"]
    assert "Traceback" not in err
    again = subprocess.run(
        words, env=crash_trial.ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert json.loads(again.stdout)["results"][0]["status"] == "done"
    assert list(crash_trial.checked(table, file)) == []


_KILLED = """
import os, signal
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.engine_errors import is_connection_lost, lost_cause
from deltaproto.tables.session import spark_session

def report(call):
    try:
        call()
    except Exception as error:
        print(error, is_connection_lost(str(error)), lost_cause(error), sep="\\t")

def kill():
    os.kill(pid, signal.SIGKILL)
    # Until it has ended, it may still answer.
    session.sparkContext._gateway.proc.wait()

session = spark_session(SparkSettings())
pid = session._jvm.java.lang.ProcessHandle.current().pid()
{body}
os._exit(0)
"""
_MISSING_MEMBER = """
utils = session._jvm.PythonUtils
report(lambda: utils.noSuchMember)
kill()

def interrupted():
    # py4j's message for a call that the end of the JVM interrupts; later calls are refused.
    raise Exception("org.apache.spark.api.python.PythonUtils.toArray does not exist in the JVM")

report(interrupted)
report(lambda: utils.toArray)
"""
_ROWS_NOT_FETCHED = """
class Address:
    def __getitem__(self, place):
        kill()
        return found[place]

class Executed:
    collectToPython = staticmethod(Address)

frame = session.sql("SELECT 1")
found = tuple(frame._jdf.collectToPython())
frame._jdf = Executed
report(frame.collect)
"""
_KILLED_AT_START = """
import os, signal
from pyspark import SparkContext
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.session import spark_session

def killed(context, conf):
    pid = context._jvm.java.lang.ProcessHandle.current().pid()
    os.kill(pid, signal.SIGKILL)
    context._gateway.proc.wait()
    # pyspark raises this at one moment of its start.
    raise ModuleNotFoundError("No module named 'numpy'")

SparkContext._initialize_context = killed
try:
    spark_session(SparkSettings())
except Exception as error:
    print(error.message, flush=True)
os._exit(0)
"""


def test_a_jvm_that_is_killed_while_it_starts_is_recognized() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_AT_START], capture_output=True, text=True, check=True
    )
    assert done.stdout == "cannot start Spark: its process has ended\n"


def test_a_killed_jvm_is_distinguished_from_one_without_a_member() -> None:
    alive, *dead = _reported(_MISSING_MEMBER)
    package = "org.apache.spark.api.python.PythonUtils"
    assert alive[:2] == [f"{package}.noSuchMember does not exist in the JVM", "False"]
    assert [each[1] for each in dead] == ["True", "True"], dead


def test_a_jvm_that_is_killed_before_its_rows_are_fetched_is_recognized() -> None:
    # pyspark's message names one of its variables.
    ((message, gone, cause),) = _reported(_ROWS_NOT_FETCHED)
    assert (gone, cause) == ("True", "its process has ended"), message


def _reported(body: str) -> list[list[str]]:
    """The message of each error, whether the connection is lost, and why."""
    script = _KILLED.replace("{body}", body)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def _children(pid: int) -> list[int]:
    """The JVM, and what stands between it and the process."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(entry.name), *_children(int(entry.name))]
    return found
