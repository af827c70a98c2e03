"""Each situation of docs/incomplete-answers.md in Python: ok where a command exits with 0."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import deltaproto
from deltaproto.errors import DeltaprotoError
from tests.cli.test_incomplete_answers import ROWS, Row, parameter
from tests.conftest import Ran
from tests.support.situations.world import Words, World

pytestmark = pytest.mark.rotating

_OPTIONS = {
    "check": {"--client": "clients", "--policy": "policy", "--scan": "scan"},
    "scan": {
        "--include": "include",
        "--exclude": "exclude",
        "--list": "lists",
        "--inventory": "inventory",
        "--catalog": "catalogs",
        "--timeout": "timeout",
    },
    "plan-upgrade": {"--set": "set", "--policy": "policy", "--enable": "enable"},
    "plan-downgrade": {"--lowest": "lowest", "--policy": "policy", "--drop": "drop"},
    "apply": {"--yes": "", "--policy": "policy", "--dry-run": "dry_run"},
    "report": {"--policy": "policy", "--scan": "scan"},
    "drift": {"--until": "until"},
    "forecast": {"--client": "clients"},
    "discover": {"--access-log": "access_logs"},
}
_DIFFERENT = {
    ("check", "No client, policy or baseline is given"): 2,
    ("check", "`DELTAPROTO_FAIL_ON=never` is set"): 1,
    ("scan", "`DELTAPROTO_FAIL_ON=never` is set"): 1,
    ("drift", "`DELTAPROTO_FAIL_ON=never` is set"): 1,
    ("apply", "The folder contains no plan"): 2,
    ("apply", "The plan file holds a table that could not be planned"): 2,
    ("apply", "A folder of `plan --out` lacks a table that could not be planned"): 2,
}
"""exit codes where the function is stricter, reads no environment, or takes one plan only"""
_FLAGS = ("--lowest", "--yes", "--dry-run")
_LISTS = ("access_logs", "clients", "include", "exclude", "lists", "catalogs", "enable", "drop")


class Untranslated(Exception):
    """The Python API has no counterpart of this command line."""


def called(command: str, words: Words) -> deltaproto.Result | deltaproto.Report:
    """The result of the function that does what a command line does."""
    operands: list[str] = []
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("--"):
            operands.append(word)
            continue
        name = _OPTIONS[command].get(word)
        if name is None:
            raise Untranslated(word)
        value = True if word in _FLAGS else next(rest)
        if name == "set" and "set" in given:
            raise Untranslated("a mapping has one value of a key")
        if name == "set":
            value = dict([str(value).split("=", 1)])
        if name == "timeout":
            value = float(value)
        if name:
            given[name] = [*given.get(name, []), value] if name in _LISTS else value
    if command == "check" and any(Path(operand).is_file() for operand in operands):
        raise Untranslated("a saved inspection")
    if command == "apply":
        given["journal"] = Path(operands[0]).parent / ".deltaproto"
    if "-" in operands or (command not in ("scan", "check", "plan-upgrade") and not operands):
        raise Untranslated("-")
    return _call(command, operands, given)


def _call(command: str, operands: list[str], given: dict[str, Any]) -> Any:
    inventory = operands and any(Path(operands[0], each).is_dir() for each in ("scans", "tables"))
    match command:
        case "check" if inventory:
            return deltaproto.Inventory(operands[0]).check(**given)
        case "check":
            return deltaproto.check(operands, **given)
        case "discover":
            return deltaproto.discover(operands, **given)
        case "scan":
            return deltaproto.scan(operands, **given)
        case "report":
            return deltaproto.Inventory(operands[0]).report(**given)
        case "forecast":
            return deltaproto.Inventory(operands[0]).forecast(**given)
        case "drift":
            return deltaproto.Inventory(operands[0]).drift(**given)
        case "apply":
            return deltaproto.apply(operands[0], **given)
    if inventory or len(operands) != 1 or Path(operands[0]).is_file():
        raise Untranslated(operands)
    table = deltaproto.Table(operands[0])
    return (table.plan_upgrade if command == "plan-upgrade" else table.plan_downgrade)(**given)


def outcome(command: str, words: Words) -> int:
    """The exit code that a result, or the error instead of it, stands for."""
    try:
        made = called(command, words)
    except DeltaprotoError as error:
        return int(error.exit_code)
    try:
        made.raise_for_status()
    except DeltaprotoError as error:
        assert not made.ok
        return int(error.exit_code)
    assert made.ok
    return 0


def lines(world: World, row: Row) -> Iterator[Words]:
    for line in world.lines(row.situation):
        if world.stdin is None:
            yield line


@pytest.mark.parametrize("row", map(parameter, ROWS))
def test_the_result_is_ok_where_the_command_exits_with_0(
    row: Row,
    cli: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    code = _DIFFERENT.get((row.section, row.situation), row.codes[0][0])
    world = World(tmp_path / "0", row.section, cli, monkeypatch)
    told, wanted = [], []
    for command, *words in lines(world, row):
        try:
            told.append(outcome(command, tuple(words)))
            wanted.append(code)
        except Untranslated:
            continue
    assert told == wanted
