"""No output of any command holds a secret of an address."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Cli = Callable[..., Ran]
CANARY = "c4n4ryV4lue9"
ADDRESSES = (
    f"abfss://c@a.dfs.core.windows.net/t?sv=1&sig={CANARY}",
    f"az://c/t?sig={CANARY}",
    f"gs://lake/t?access_token={CANARY}",
    f"s3://AKIA0:{CANARY}/x@lake/t",
    f"s3://lake/t?X-Amz-Security-Token={CANARY}",
    f"jdbc:postgresql://host/db?user=a&password={CANARY}",
    f"https://{CANARY}@host/t",
)
COMMANDS = (
    ("inspect",),
    ("history",),
    ("check", "--client", "trino@476"),
    ("plan-downgrade", "--lowest"),
    ("scan",),
    ("drift",),
    ("report",),
    ("conflicts",),
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_on_the_command_line(
    cli: Cli, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in COMMANDS:
        for format_ in ("text", "json"):
            ran = cli(*words, address, "--format", format_)
            assert ran.code in (2, 3), words
            assert CANARY not in ran.out + ran.err, words


@pytest.mark.parametrize("address", ADDRESSES)
def test_in_lists_and_inventories(
    cli: Cli, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, where = tmp_path / "names", tmp_path / "inventory"
    names.write_text(f"{address}\n")
    for words in (("scan", "--list", str(names)), ("scan", ".", "--to", address)):
        monkeypatch.chdir(tmp_path)
        ran = cli(*words, "--format", "json")
        assert CANARY not in ran.out + ran.err
    assert cli("scan", "--list", str(names), "--to", str(where)).code == 3
    ran = cli("check", str(where), "--client", "trino@476")
    assert CANARY not in ran.out + ran.err
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{address}\n"))
    ran = cli("inspect", "-", "--format", "jsonl")
    assert (ran.code, CANARY in ran.out + ran.err) == (3, False)
    for file in where.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()
