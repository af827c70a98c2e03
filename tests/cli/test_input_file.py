"""Files that a user names: only regular files, and the pipes that a shell passes, are read."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.hostile import SPARSE_BYTES
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
POLICY = "policy_version: 1\nclients: [trino@476]\n"


@pytest.fixture
def table(log: Log) -> str:
    return log.commit(0, commit_info(), protocol(1, 2), metadata(), add("a")).table


FILES = pytest.mark.parametrize(
    "words",
    [
        ("check", "{table}", "--policy", "{file}"),
        ("check", "{table}", "--client", "trino@476", "--baseline", "{file}"),
        ("check", "{table}", "--client-file", "{file}", "--client", "trino@476"),
        ("check", "{file}", "--client", "trino@476"),
        ("scan", "--list", "{file}"),
        ("scan", "--config", "{file}"),
        ("plan-downgrade", "{table}", "--policy", "{file}"),
        ("apply", "{file}", "--dry-run"),
        ("runbook", "{file}"),
    ],
    ids=lambda words: " ".join(words).replace("{", "").replace("}", ""),
)


@FILES
def test_a_named_pipe_or_a_device_is_refused(
    words: tuple[str, ...], cli: Cli, table: str, tmp_path: Path
) -> None:
    """A pipe that nothing writes to would be read forever, and so would a device."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/zero")
    for file in (pipe, link):
        ran = cli(*(word.format(table=table, file=file) for word in words))
        assert ran.code in (2, 3), (file, ran)
        assert ran.err + ran.out


@FILES
def test_a_file_of_50_gib_without_a_line_is_refused(
    words: tuple[str, ...], cli: Cli, table: str, tmp_path: Path
) -> None:
    file = tmp_path / "sparse"
    file.touch()
    os.truncate(file, SPARSE_BYTES)
    ran = cli(*(word.format(table=table, file=file) for word in words))
    assert (ran.code, str(file) in ran.err or "line 1 of the list" in ran.err) == (2, True), ran


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
@pytest.mark.parametrize("command", ["check", "inspect"])
def test_standard_input_without_a_line_is_refused(command: str) -> None:
    words = [sys.executable, "-m", "deltaproto", command, "-"]
    with Path("/dev/zero").open("rb") as zeros:
        ran = subprocess.run(words, stdin=zeros, capture_output=True, text=True, check=False)
    assert (ran.returncode, "line 1 of the list of tables has more than" in ran.stderr) == (2, True)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_a_pipe_of_the_shell_is_read(table: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m deltaproto check {shlex.quote(table)}"
    line = f"{program} --policy <(printf %s {shlex.quote(POLICY)})"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "trino@476" in ran.stdout
