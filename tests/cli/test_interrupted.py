"""Who interrupts a run is told how to go on, and can."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperCommand

from deltaproto.cli import app
from deltaproto.cli import apply as apply_command
from deltaproto.cli.main import COMMANDS, load_command
from deltaproto.cli.signals import report_interruption, resume_hint
from deltaproto.policy.context import TableFacts
from deltaproto.policy.evaluate import Checker
from deltaproto.policy.table_check import TableCheck
from tests.conftest import Ran
from tests.support.contract import validate
from tests.support.logs import Log, metadata, protocol

Cli = Callable[..., Ran]
TABLES = 1_000
STUCK = """
import os, signal, sys, time
from deltaproto.cli.main import main
from deltaproto.fleet.scan_table import TableScanner
from deltaproto.fleet.staging import Staging

marker, look, add = sys.argv.pop(1), TableScanner.scan, Staging.add

def only_first(looker, tables):
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        time.sleep(600)
    return look(looker, tables)

def reported(staging, batch):
    add(staging, batch)
    print("staged", file=sys.__stdout__, flush=True)

TableScanner.scan, Staging.add = only_first, reported
sys.exit(main())
"""
"""the command line, with a disk from which only the first chunk of tables can be read"""
JSON = ("--format", "json")


@pytest.fixture
def plan(tmp_path: Path, cli: Cli) -> Path:
    Log(tmp_path / "table").commit(0, protocol(1, 2), metadata())
    file = tmp_path / "plan.json"
    words = ("plan-upgrade", str(tmp_path / "table"), "--set", "delta.appendOnly=true")
    assert cli(*words, *JSON, "--output", str(file)).code == 0
    return file


def test_a_scan_is_interrupted_and_goes_on(tmp_path: Path, cli: Cli) -> None:
    """With a real signal, to the process and all that it started, as a terminal sends it."""
    for number in range(TABLES):
        Log(tmp_path / "lake" / f"t{number}").commit(0, protocol(1, 2), metadata())
    inventory = tmp_path / "inventory"
    words = ("scan", str(tmp_path / "lake"), "--inventory", str(inventory), "--no-progress")
    running = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(tmp_path / "first"), *words, "--parallel", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "staged\n"
    assert len(list(inventory.glob("_staging/*/*.arrow"))) == 1
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert (out, err.splitlines()[0]) == ("", "interrupted")
    assert "run the same command with --resume to continue" in err
    assert len(err.splitlines()) == 2
    again = cli(*words, "--resume", *JSON)
    assert again.code == 0
    assert again.json["tables"] == TABLES
    assert again.json["resumed"] > 0


@pytest.mark.parametrize("dry", [False, True])
def test_apply_says_that_it_can_go_on(
    plan: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, dry: bool
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(apply_command, "apply_plans", stopped)
    ran = cli("apply", str(plan), "--yes", *(("--dry-run",) if dry else ()))
    assert ran.code == 130
    first, *hint = ran.err.splitlines()
    assert first == "interrupted"
    assert bool(hint) is not dry
    assert all("run the same command again to resume" in line for line in hint)


def test_who_will_not_confirm_has_changed_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(KeyboardInterrupt) as stopped, resume_hint("the same command again"):
        apply_command._confirm_table_name("lake/orders")
    capsys.readouterr()
    assert report_interruption(stopped.value) == 130
    assert capsys.readouterr().err == "interrupted\nhint: nothing was changed\n"


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "interrupted by SIGTERM")],
)
def test_every_command_with_json_says_that_it_was_interrupted(
    number: signal.Signals, code: int, message: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def killed(*_: object) -> int:
        signal.raise_signal(number)
        raise AssertionError("the signal was not taken")

    monkeypatch.setattr(app, "run", killed)
    for command in COMMANDS:
        if not any("--format" in option.flags for option in load_command(command).options):
            continue
        ran = cli(command, *JSON)
        validate("error", ran.json)
        assert (ran.code, ran.json["command"], ran.err) == (code, command, f"{message}\n")
        assert ran.json["error"] == {"code": "interrupted", "message": message, "hint": ""}
        ran = cli(command, "--format", "text")
        assert (ran.code, ran.out, ran.err) == (code, "", f"{message}\n")


def test_an_interruption_while_arguments_are_parsed_is_reported(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer ends quietly then."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TyperCommand, "make_context", interrupted)
    ran = cli("inspect", "lake/orders")
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")
    ran = cli("inspect", "lake/orders", *JSON)
    assert (ran.code, ran.json["error"]["code"], ran.err) == (130, "interrupted", "interrupted\n")


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "interrupted by SIGTERM")],
)
def test_an_interruption_that_a_library_turned_into_its_error_is_reported(
    number: signal.Signals, code: int, message: str, tmp_path: Path, cli: Cli
) -> None:
    """As pyarrow does: it looks for zoneinfo to convert times, and forgets why that failed."""
    Log(tmp_path / "lake" / "table").commit(0, protocol(1, 2), metadata())
    inventory = str(tmp_path / "inventory")
    assert cli("scan", str(tmp_path / "lake"), "--inventory", inventory).code == 0
    start = (
        "import signal, sys\n"
        "class Interrupter:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'zoneinfo':\n"
        f"            signal.raise_signal({int(number)})\n"
        "sys.meta_path.insert(0, Interrupter())\n"
        "from deltaproto.__main__ import run; run()"
    )
    words = [sys.executable, "-c", start, "check", inventory, "--client", "trino@476"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    shown, *rest = ran.stderr.splitlines()
    assert (ran.returncode, shown) == (code, message), ran
    assert rest == ["error after the interruption: the inventory has a time that is out of range"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_swallowed_interruption_is_reported_after_the_results(
    format: str, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Log(tmp_path / "table").commit(0, protocol(1, 2), metadata()).table
    check = Checker.check

    def swallowing(checker: Checker, facts: TableFacts) -> TableCheck:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return check(checker, facts)

    words = ("check", table, "--client", "trino@476", "--format", format)
    whole = cli(*words)
    monkeypatch.setattr(Checker, "check", swallowing)
    # A Spark session of an earlier test leaves its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ran = cli(*words)
    signal.signal(signal.SIGINT, before)
    assert (whole.code, ran.code, ran.err) == (0, 130, f"{whole.err}interrupted\n")
    outputs = (re.sub(r'"generated_at": "[^"]*"', "", each.out) for each in (ran, whole))
    assert next(outputs) == next(outputs)


@pytest.mark.parametrize("format", ["sarif", "junit", "gitlab", "github", "text", "markdown"])
def test_no_part_of_a_result_passes_for_the_whole(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    tables = [
        Log(tmp_path / name).commit(0, protocol(1, 2), metadata()).table for name in ("a", "b")
    ]
    file = tmp_path / "result"
    file.write_text("the result of yesterday")
    check, checked = Checker.check, list[str]()

    def first_only(checker: Checker, facts: TableFacts) -> TableCheck:
        if checked:
            raise KeyboardInterrupt
        checked.append(facts.table)
        return check(checker, facts)

    monkeypatch.setattr(Checker, "check", first_only)
    words = ("check", *tables, "--client", "trino@476", "--format", format)
    ran = cli(*words, "--output", str(file))
    assert (ran.code, len(checked)) == (130, 1)
    assert file.read_text() == "the result of yesterday"
    assert "interrupted" in ran.err


@pytest.mark.parametrize("module", ["deltaproto.cli.main", "deltaproto.errors", "json"])
@pytest.mark.parametrize(
    "start",
    [
        "from deltaproto.__main__ import run; run()",
        "import runpy; runpy.run_module('deltaproto', run_name='__main__')",
    ],
)
def test_an_interruption_while_modules_are_imported(
    module: str, start: str, tmp_path: Path
) -> None:
    finder = (
        "import signal, sys\n"
        "class Interrupter:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupter())\n"
    )
    words = [sys.executable, "-c", finder + start, "check", "table"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "interrupted\n")
