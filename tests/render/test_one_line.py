"""No name or message of a log begins a line of the output, which CI systems would interpret."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt

from deltaproto.cli.apply import load_or_create_undo_plan
from deltaproto.render.document.blocks import Document, Paragraph
from deltaproto.render.document.markdown import document_markdown
from deltaproto.render.terminal import Painter
from tests.conftest import Ran
from tests.support.logs import Log, add, commit_info, metadata, protocol

Cli = Callable[..., Ran]
EVIL = "x\n::error title=owned::it\r\n::warning::b\x1b[31m"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture
def table(tmp_path: Path) -> str:
    log = Log(tmp_path / EVIL)
    named = commit_info(f"WRITE {EVIL}", engineInfo=EVIL, userName=EVIL)
    described = metadata({EVIL: EVIL, "delta.isolationLevel": EVIL}, partition_columns=[EVIL])
    log.commit(0, named, protocol(3, 7, [EVIL], [EVIL, "appendOnly"]), described)
    return log.commit(1, named, protocol(3, 7, [EVIL], [EVIL]), add()).table


@pytest.mark.parametrize("format_", ["text", "markdown", "json", "jsonl"])
@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", "--activity"),
        ("history",),
        ("discover",),
        ("check", "--client", "trino@476"),
        ("plan-downgrade", "--lowest"),
        ("plan-upgrade", "--enable", "deletionVectors"),
        ("conflicts",),
    ],
    ids=" ".join,
)
def test_no_line_begins_with_a_command(
    cli: Cli, table: str, words: tuple[str, ...], format_: str
) -> None:
    for name in (table, f"{table}-missing"):
        ran = cli(*words, name, "--format", format_)
        for text in (ran.out, ran.err):
            assert not re.search(r"^\s*::", text, re.MULTILINE)
            assert not CONTROL.search(text)


def test_a_script_has_no_control_characters(cli: Cli, tmp_path: Path) -> None:
    for name in ("a\x1b[31mred", "b\n::error::c"):
        log = Log(tmp_path / name).commit(0, commit_info(), protocol(1, 2), metadata())
        words = ("plan-upgrade", log.table, "--enable", "deletionVectors", "--script", "sql")
        ran = cli(*words)
        assert "omitted: the statement contains control characters" in ran.out
        assert ran.code == 1
        assert not CONTROL.search(ran.out)
        assert "ALTER TABLE" not in ran.out
        assert not re.search(r"^::", ran.out, re.MULTILINE)


SHELL = "x\n::error::y\nTABLES\ntouch pwned\n```\n# h\u202e'$(touch pwned)`"
STUB = "deltaproto() { printf '%s\\0' \"$@\"; [[ \" $* \" == *' - '* ]] && tr '\\n' '\\0'; }"


class TestRunbook:
    @pytest.fixture
    def plans(self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Plans for ten tables, one of them with names that are code in every place."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(sys.modules, "pyspark", None)
        names = [*(f"n{number}" for number in range(9)), SHELL]
        for name in names:
            evil = SHELL if name is SHELL else "plain"
            info = commit_info(f"WRITE {evil}", engineInfo=evil, userName=evil, timestamp=1)
            log = Log(Path(name))
            log.commit(0, info, protocol(1, 4), metadata({evil: evil, "delta.constraints.c": "1"}))
            log.commit(1, info, {"txn": {"appId": evil, "version": 1, "lastUpdated": 1}})
        words = ("--enable", "typeWidening", "--client", "trino@476", "--format", "json")
        assert cli("plan-upgrade", *names, *words, "-o", "plans.json").code == 0
        return [str(Path(name).absolute()) for name in names]

    @pytest.mark.parametrize("format_", ["markdown", "html"])
    def test_no_line_begins_with_a_command(self, cli: Cli, plans: list[str], format_: str) -> None:
        for words in (
            ("runbook", "plans.json"),
            ("plan-upgrade", *plans, "--enable", "rowTracking"),
        ):
            ran = cli(*words, "--format", format_)
            assert not re.search(r"(?m)^\s*::", ran.out + ran.err)
            assert not CONTROL.search(ran.out + ran.err)
            assert "\u202e" not in ran.out

    def test_apply_shows_names_on_one_line(self, cli: Cli, plans: list[str]) -> None:
        for format_ in ("text", "json"):
            ran = cli("apply", "plans.json", "--dry-run", "--format", format_)
            assert not re.search(r"(?m)^\s*::", ran.out + ran.err)
            assert not CONTROL.search(ran.out + ran.err)

    def test_its_shell_commands_take_names_for_names(
        self, cli: Cli, plans: list[str], tmp_path: Path
    ) -> None:
        out = cli("runbook", "plans.json").out
        fences = [t for t in MarkdownIt().parse(out) if t.type == "fence" and t.info == "shell"]
        listings = [t.content for t in fences if "deltaproto inspect" in t.content]
        assert listings
        for listing in listings:
            ran = subprocess.run(
                ["bash", "-c", f"{STUB}\n{listing}"], capture_output=True, check=True, cwd=tmp_path
            )
            words = {os.fsdecode(word) for word in ran.stdout.split(b"\0")}
            assert {f"file://{path}" for path in plans[:-1]} < words
            assert any(word.startswith("file://") and "pwned" in word for word in words)
        copies = next(t.content for t in fences if t.content.startswith("mkdir"))
        subprocess.run(["bash", "-c", copies], check=True, cwd=tmp_path)
        for path in plans:
            assert (Path(f"{path}.backup") / "_delta_log").is_dir()
        assert not list(tmp_path.glob("pwned"))


def test_a_constraint_ends_no_line_of_a_script(cli: Cli, log: Log) -> None:
    for name in ("c\n::error::d", "c\x1b[31m"):
        version = len(list(log.folder.iterdir()))
        log.commit(version, protocol(1, 3), metadata({f"delta.constraints.{name}": "id > 0"}))
        words = ("plan-downgrade", log.table, "--drop", "checkConstraints")
        ran = cli(*words, "--script", "sql")
        assert "omitted: the statement contains control characters" in ran.out
        assert not re.search(r"(?m)^\s*::", ran.out)
        file = str(log.root.parent / "plan.json")
        assert cli(*words, "--format", "json", "-o", file).code == 0
        out = cli("runbook", file).out
        assert "cannot be displayed" in out
        assert not re.search(r"(?m)^\s*::", out)


def test_a_statement_of_ones_own_keeps_its_lines(cli: Cli, log: Log) -> None:
    log.commit(0, protocol(1, 2), metadata())
    statement = f"DELETE FROM delta.`{log.table}`\nWHERE id = 1"
    file = str(log.root.parent / "plan.json")
    words = ("plan-upgrade", log.table, "--sql", statement)
    assert cli(*words, "--format", "json", "-o", file).code == 0
    assert f"```sql\n{statement};\n```" in cli("runbook", file).out
    odd = f"DELETE FROM delta.`{log.table}`\nWHERE id = '\n::error::1'"
    for out in (
        cli("plan-upgrade", log.table, "--sql", odd, "--script", "sql").out,
        cli("plan-upgrade", log.table, "--sql", odd, "--format", "markdown").out,
    ):
        assert not re.search(r"(?m)^\s*::", out)


def test_text_that_begins_with_two_colons() -> None:
    file = io.StringIO()
    out = Painter(file, color=False)
    out.line(out.paint("::error::a"))
    out.folded("x" * 90 + " ::error::b", first="  ")
    assert not re.search(r"(?m)^\s*::", file.getvalue())
    assert file.getvalue().count("x3a:error::") == 2
    document = Document("::error::t", ("::error::s",), [Paragraph(("::error::p",))])
    assert not re.search(r"(?m)^\s*::", document_markdown(document))


@pytest.mark.parametrize("command", ["apply", "rehearse", "runbook"])
def test_a_table_without_a_plan_is_named_on_one_line(
    cli: Cli, log: Log, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    log.commit(0, protocol(1, 2), metadata())
    file = log.root.parent / "plans.json"
    words = ("--lowest", "--format", "json", "-o", str(file))
    assert cli("plan-downgrade", log.table, f"{log.table}-x\n::error::y", *words).code == 3
    ran = cli(command, str(file))
    assert ran.code == 3
    assert not re.search(r"(?m)^\s*::", ran.out + ran.err)


def test_a_rollback_warns_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = SimpleNamespace(warnings=("s1 (a\n::error::b) has no way back.",))
    undone = SimpleNamespace(id="0" * 16, plan=plan, _replace=lambda **_: plan)
    monkeypatch.setattr("deltaproto.cli.apply._save_undo_plan", lambda *_, **__: undone)
    monkeypatch.setattr("deltaproto.cli.apply.plan_undo", lambda *_: plan)
    monkeypatch.setattr("deltaproto.cli.apply.find_unrelated_undo", lambda *_: None)
    context = SimpleNamespace(folder=lambda _: "/none")
    load_or_create_undo_plan(SimpleNamespace(id="1" * 16, path="", plan=plan), context, keep=False)  # type: ignore[arg-type]
    assert not re.search(r"(?m)^\s*::", capsys.readouterr().err)
