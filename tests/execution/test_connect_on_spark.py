"""Plans carried out through a Spark Connect server, which may go away."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.execution import crash_trial
from tests.execution.crash_trial import SCENARIOS
from tests.fleet.moves import move, sound_fleet
from tests.support.connect_server import ConnectServer, outside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.rotating]
ROOT = Path(__file__).parents[2]
(ROW_TRACKING,) = (each for each in SCENARIOS if each.name == "row-tracking")


@pytest.fixture
def server(connect: ConnectServer) -> Iterator[ConnectServer]:
    yield connect
    # Who comes next finds it running, whatever this test did to it.
    if not connect.running:
        connect.start()


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, _ = crash_trial.template(spark, ROW_TRACKING, tmp_path_factory.mktemp("made"))
    return path


def begin(file: Path, server: ConnectServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*crash_trial.apply_command(file, conf={}), "--spark-remote", server.remote],
        env=outside(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    out, err = process.communicate(timeout=180)
    assert "Traceback" not in err
    (result,) = json.loads(out)["results"]
    return {**result, "code": process.returncode}, err


def test_the_server_does_what_was_planned(
    server: ConnectServer, made: Path, tmp_path: Path
) -> None:
    table, file = crash_trial.planned(ROW_TRACKING, made, tmp_path / "x")
    done, err = end(begin(file, server))
    assert (done["code"], done["status"]) == (0, "done"), err
    assert list(crash_trial.checked(table, file)) == []
    # Each commit carries the plan's mark, which the session of the server was told.
    assert all(crash_trial.own(table, step["id"]) for step in done["steps"])
    assert "FutureWarning" not in err
    again, _ = end(begin(file, server))
    assert (again["code"], again["version"]) == (0, done["version"])


@pytest.mark.slow
def test_a_folder_that_is_called_like_a_variable_is_not_another_table(
    server: ConnectServer, made: Path, tmp_path: Path
) -> None:
    """Spark would replace the variable in the statement, and change the table beside it."""
    table, file = crash_trial.planned(ROW_TRACKING, made, tmp_path / "${suffix}")
    victim = tmp_path / "1" / "table"
    shutil.copytree(table, victim)
    before = sorted(path.name for path in (victim / "_delta_log").iterdir())
    words = [*crash_trial.apply_command(file, conf={"suffix": "1"}), "--spark-remote"]
    ran = subprocess.run(
        [*words, server.remote], env=outside(), capture_output=True, text=True, check=False
    )
    assert sorted(path.name for path in (victim / "_delta_log").iterdir()) == before
    (result,) = json.loads(ran.stdout)["results"]
    assert (ran.returncode, result["status"]) == (0, "done"), result["message"]
    assert list(crash_trial.checked(table, file)) == []


@pytest.mark.slow
def test_two_plans_at_a_time(server: ConnectServer, made: Path, tmp_path: Path) -> None:
    tables, files = zip(
        *(crash_trial.planned(ROW_TRACKING, made, tmp_path / name) for name in "xy"), strict=True
    )
    command = [*crash_trial.apply_command(files[0], conf={}), str(files[1]), "--parallel", "2"]
    done = subprocess.run(
        [*command, "--spark-remote", server.remote],
        env=outside(),
        capture_output=True,
        text=True,
        check=False,
    )
    results = json.loads(done.stdout)["results"]
    assert (done.returncode, [each["status"] for each in results]) == (0, ["done"] * 2), done.stderr
    for table, file in zip(tables, files, strict=True):
        assert list(crash_trial.checked(table, file)) == []


@pytest.mark.slow
def test_a_fleet_is_scanned_and_asked(server: ConnectServer, tmp_path: Path) -> None:
    tables = sound_fleet(tmp_path / "lake", 71, 30)
    inventory = str(tmp_path / "i")

    def told(*words: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "deltaproto", *words, "--format", "json"]
        ran = subprocess.run(command, env=outside(), capture_output=True, text=True, check=False)
        document: dict[str, Any] = json.loads(ran.stdout)
        assert "error" not in document, (document["error"], ran.stderr)
        return document

    over = ("--engine", "spark", "--spark-remote", server.remote)
    scan = ("scan", str(tmp_path / "lake"), "--inventory", inventory)
    assert told(*scan, *over)["tables"] == 30
    move(tables, 72)
    last = told(*scan, *over, "--policy", str(ROOT / "policies" / "spark-oss.yaml"))
    here = told("drift", inventory)
    assert len(here["changes"]) > 10
    assert last["drift"]["counts"] == here["counts"] == told("drift", inventory, *over)["counts"]
    clients = ("--client", "polars@2.1.0")
    there = told("check", inventory, *clients, *over)
    assert sorted(map(repr, there["verdicts"])) == sorted(
        map(repr, told("check", inventory, *clients)["verdicts"])
    )
    assert sum(each["tables"] for each in last["policy"]["verdicts"]) > 30
    left = list((tmp_path / "i" / "_staging_spark").rglob("*.parquet"))
    assert left == []


@pytest.mark.slow
def test_a_server_that_goes_away_is_told_and_the_next_run_goes_on(
    server: ConnectServer, made: Path, tmp_path: Path
) -> None:
    table, file = crash_trial.planned(ROW_TRACKING, made, tmp_path / "x")
    process = begin(file, server)
    while not crash_trial.own(table, "s1"):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    server.kill()
    began = time.monotonic()
    gone, err = end(process)
    assert (gone["code"], gone["status"]) == (5, "failed"), err
    assert "the connection to Spark is lost" in gone["message"]
    assert "start Spark" in gone["hint"]
    # Spark's own client would try for ten minutes, this one for ten seconds.
    assert time.monotonic() - began < 60
    version = gone["version"]

    nobody, err = end(begin(file, server))
    assert (nobody["code"], nobody["status"]) == (3, "refused"), err
    assert f"no Spark Connect server responds at {server.address}" in nobody["message"]
    assert len(list((table / "_delta_log").glob("*.json"))) == version + 1

    server.start()
    done, err = end(begin(file, server))
    assert (done["code"], done["status"]) == (0, "done"), err
    assert list(crash_trial.checked(table, file)) == []
    shutil.rmtree(tmp_path / "x")


@pytest.mark.slow
def test_a_server_that_is_suspended_during_a_step_is_given_up_and_the_next_run_goes_on(
    server: ConnectServer, made: Path, tmp_path: Path
) -> None:
    table, file = crash_trial.planned(ROW_TRACKING, made, tmp_path / "x")
    suspended = f"""
import os, signal, sys
from deltaproto.cli.main import main
from deltaproto.execution.runner import StatementRunner
from deltaproto.tables import spark_connect

spark_connect.ASK_SECONDS = 0.1
spark_connect.give_up_silent.__defaults__ = (5.0,)
run = StatementRunner.run

def suspends(*of):
    os.killpg({server.group}, signal.SIGSTOP)
    return run(*of)

StatementRunner.run = suspends
sys.exit(main(sys.argv[1:]))
"""
    words = crash_trial.apply_command(file, conf={})[3:]
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", suspended, *words, "--spark-remote", server.remote],
            env=outside(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        gone, err = end(process)
    finally:
        os.killpg(server.group, signal.SIGCONT)
    assert (gone["code"], gone["status"]) == (5, "failed"), err
    assert (
        "the connection to Spark is lost: the Spark Connect server stopped resp" in gone["message"]
    )
    assert "start Spark" in gone["hint"]
    done, err = end(begin(file, server))
    assert (done["code"], done["status"]) == (0, "done"), err
    assert list(crash_trial.checked(table, file)) == []
