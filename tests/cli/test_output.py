"""What `--output` names: new content when there is some, and else the old one."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
OLD = "an answer of yesterday\n" * 1000


@pytest.fixture
def table(log: Log) -> str:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    return log.table


@pytest.mark.parametrize(
    "words",
    [
        ("plan-downgrade", "TABLE", "--lowest"),
        ("plan-upgrade", "TABLE", "--protocol", "3,7"),
        ("history", "TABLE"),
        ("discover", "TABLE"),
        ("conflicts", "TABLE"),
    ],
)
def test_a_table_that_is_gone_takes_no_older_answer_along(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    out.write_text(OLD)
    named = [str(tmp_path / "gone") if word == "TABLE" else word for word in words]
    ran = cli(*named, "--output", str(out))
    assert ran.code == 3
    assert out.read_text() == OLD
    out.unlink()
    assert cli(*named, "--output", str(out)).code == 3
    assert not out.exists()


def test_a_shorter_answer_replaces_a_longer_one(cli: Cli, tmp_path: Path, table: str) -> None:
    out = tmp_path / "out"
    out.write_text(OLD)
    os.chmod(out, 0o640)
    assert cli("inspect", table, "--format", "json", "--output", str(out)).code == 0
    assert json.loads(out.read_text())["tables"]
    assert out.stat().st_mode & 0o777 == 0o640


def test_no_answer_is_an_empty_file(cli: Cli, tmp_path: Path) -> None:
    out, names = tmp_path / "out", tmp_path / "names"
    out.write_text(OLD)
    names.write_text("# none\n")
    ran = cli("scan", "--list", str(names), "--format", "json", "--output", str(out))
    assert ran.code == 3
    assert out.read_text() != OLD


def test_links_pipes_and_devices_are_written_to(cli: Cli, tmp_path: Path, table: str) -> None:
    link, target, pipe = tmp_path / "link", tmp_path / "target", tmp_path / "pipe"
    target.write_text(OLD)
    link.symlink_to(target)
    assert cli("inspect", table, "-o", str(link)).code == 0
    assert "(1,2)" in target.read_text()
    assert OLD[:20] not in target.read_text()
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    assert cli("inspect", table, "-o", str(pipe)).code == 0
    reader.join(10)
    assert "(1,2)" in found[0]
    assert cli("inspect", table, "-o", "/dev/null").code == 0
