"""Runbooks of ten plans, as they are to be read. `--snapshot-update` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import deltaproto.render.runbook as package
from deltaproto import __version__
from deltaproto.execution.plan_file import load_plans
from deltaproto.execution.prepare import ApplyContext, predict_gates
from deltaproto.execution.progress import table_address
from deltaproto.execution.run_log import default_journal_dir
from deltaproto.inspection.activity import read_activity
from deltaproto.policy.document.errors import Position
from deltaproto.policy.document.model import Window
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.render.runbook.book import Book, RunbookEntry
from deltaproto.render.runbook.phrases import english, phrases
from deltaproto.render.runbook.write import RunbookFormat, render_runbook
from tests.conftest import Ran
from tests.render.runbook.ten import CASES, Case, mapped, planned
from tests.support.logs import Log, add, commit_info

_START = 1_796_335_200.0
_CONTEXT = ApplyContext({}, SparkSettings(), default_journal_dir)
_SATURDAYS = Window((5,), 20 * 60, 23 * 60, "UTC", Position(1, 1))


class Markdown(SingleFileSnapshotExtension):
    """One Markdown file for each runbook."""

    _write_mode = WriteMode.TEXT
    file_extension = "md"


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(Markdown)


def book(*files: Path, policy: str | None = None) -> Book:
    """What the command makes of the files, at a time that is always the same."""
    plans, unplanned = load_plans([str(file) for file in files])
    entries = tuple(
        RunbookEntry(
            planned_,
            read_activity(table_address(planned_.plan), {}, SparkSettings()),
            (_SATURDAYS,) if policy else None,
            gates=predict_gates(planned_, _CONTEXT, _START),
        )
        for planned_ in plans
    )
    return Book(
        entries, tuple(unplanned), tuple(map(str, files)), _START, _START - 3 * 86_400, policy
    )


def settled(text: str, folder: Path) -> str:
    """Without what differs from run to run."""
    text = text.replace(str(folder), "/data").replace(__version__, "VERSION")
    return re.sub(r"`[0-9a-f]{16}`", "`PLAN-ID`", text)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are relative, and so the same in each run."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_one_plan(
    case: Case, tmp_path: Path, cli: Callable[..., Ran], golden: SnapshotAssertion
) -> None:
    made = render_runbook(book(planned(case, cli)), phrases("en"), RunbookFormat.MARKDOWN)
    assert settled(made, tmp_path) == golden


def test_all_of_them(tmp_path: Path, cli: Callable[..., Ran], golden: SnapshotAssertion) -> None:
    files = [planned(case, cli) for case in CASES]
    made = render_runbook(book(*files, policy="policy.yaml"), phrases("en"), RunbookFormat.MARKDOWN)
    assert settled(made, tmp_path) == golden


def test_tables_that_are_alike(
    tmp_path: Path, cli: Callable[..., Ran], golden: SnapshotAssertion
) -> None:
    """Three tables that differ in versions and files share a chapter."""
    for number in range(3):
        log = Log(Path(f"tables/t{number}"))
        mapped(log)
        for version in range(2, 2 + number):
            log.commit(version, commit_info(), add(f"{version}.parquet", size=1 << 20))
    words = ("--drop", "columnMapping", "--format", "json", "-o", "plans.json")
    assert cli("plan-downgrade", *(f"tables/t{n}" for n in range(3)), *words).code == 0
    made = render_runbook(book(Path("plans.json")), phrases("en"), RunbookFormat.MARKDOWN)
    assert settled(made, tmp_path) == golden


def test_each_phrase_is_used() -> None:
    code = "\n".join(path.read_text() for path in Path(package.__file__).parent.glob("*.py"))
    unused = []
    for key in english():
        stem, _, last = key.rpartition(".")
        counted = last in ("one", "many") and f'"{stem}"' in code
        if not (f'"{key}"' in code or f'f"{stem}.{{' in code or counted):
            unused.append(key)
    assert unused == []
