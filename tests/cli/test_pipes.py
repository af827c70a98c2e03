"""A reader that goes away does not change the exit code, in any format of any command."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deltaproto.cli.main import main
from tests.support.logs import Log, commit_info, metadata, protocol

CHECK = ("check", "--client", "trino@400")


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    """Many tables that the client cannot use."""
    vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
    return [
        Log(tmp_path / f"t{number:03}").commit(0, commit_info(), vectors, metadata()).table
        for number in range(20)
    ]


def closed_pipe() -> int:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.fixture(params=["stdout", "--output"])
def into_a_closed_pipe(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., int]]:
    """Run a command whose output nobody reads; its exit code."""
    writing = closed_pipe()

    def run(*words: str) -> int:
        if request.param == "--output":
            return main([*words, "--output", f"/dev/fd/{writing}"])
        monkeypatch.setattr(
            sys, "stdout", io.TextIOWrapper(io.FileIO(writing, "wb", closefd=False))
        )
        return main(list(words))

    yield run
    os.close(writing)


@pytest.mark.parametrize(
    "format_", ["text", "json", "jsonl", "markdown", "sarif", "junit", "github"]
)
def test_check(into_a_closed_pipe: Callable[..., int], tables: list[str], format_: str) -> None:
    assert into_a_closed_pipe(*CHECK, *tables, "--format", format_) == 1


@pytest.mark.parametrize("last", ["missing", "bad"])
def test_every_table_is_looked_at(
    into_a_closed_pipe: Callable[..., int], tables: list[str], tmp_path: Path, last: str
) -> None:
    (tmp_path / "bad").write_text("not an inspection")
    code = {"missing": 3, "bad": 2}[last]
    assert into_a_closed_pipe(*CHECK, *tables, str(tmp_path / last)) == code


@pytest.mark.parametrize("format_", ["text", "json", "jsonl", "markdown", "html"])
def test_inspect_and_plan(
    into_a_closed_pipe: Callable[..., int], tables: list[str], tmp_path: Path, format_: str
) -> None:
    missing = str(tmp_path / "missing")
    assert into_a_closed_pipe("inspect", *tables[:9], missing, "--format", format_) == 3
    words = ("plan-upgrade", *tables[:9], missing, "--isolation", "Serializable")
    assert into_a_closed_pipe(*words, "--format", format_) == 3


def test_scan_and_drift_and_report(
    into_a_closed_pipe: Callable[..., int], tables: list[str], tmp_path: Path
) -> None:
    (tmp_path / "broken" / "_delta_log").mkdir(parents=True)
    where = str(tmp_path / "inventory")
    for _ in range(2):
        assert into_a_closed_pipe("scan", str(tmp_path), "--inventory", where) == 3
    assert into_a_closed_pipe("report", where) == 3
    assert into_a_closed_pipe("drift", where, "--since", "2001-01-01") == 2


def test_a_process(tables: list[str]) -> None:
    words = [sys.executable, "-m", "deltaproto", *CHECK, *tables]
    for environment in ({}, {"DELTAPROTO_NO_COLOR": "1"}):
        writing = closed_pipe()
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, **environment},
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (1, "")


def test_a_closed_standard_error(tmp_path: Path) -> None:
    writing = closed_pipe()
    done = subprocess.run(
        [sys.executable, "-m", "deltaproto", "inspect", str(tmp_path), "--nonsense"],
        stdout=writing,
        stderr=writing,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 2
