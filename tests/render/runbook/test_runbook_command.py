"""`runbook` on the command line: formats, templates, languages, mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from deltaproto.render.runbook.phrases import english, phrases
from tests.conftest import Ran
from tests.render.runbook.ten import CASES, planned
from tests.support.logs import Log, commit_info, metadata, protocol

Cli = Callable[..., Ran]
BY_NAME = {case.name: case for case in CASES}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan(cli: Cli) -> str:
    return str(planned(BY_NAME["truncating"], cli))


def unfenced(markdown: str) -> str:
    """Without its listings."""
    return re.sub(r"(?ms)^```.*?^```$", "", markdown)


class TestCommand:
    def test_markdown_is_the_default_and_both_go_to_a_file(self, cli: Cli, plan: str) -> None:
        ran = cli("runbook", plan)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("# Release runbook: tables/truncating\n")
        assert cli("runbook", plan, "--format", "html", "-o", "book.html").code == 0
        assert Path("book.html").read_text().startswith("<!doctype html>")

    def test_waits_are_counted_from_the_start(self, cli: Cli, plan: str) -> None:
        out = cli("runbook", plan, "--start", "2027-03-01T22:30Z").out
        assert "start planned 2027-03-01 22:30:00 UTC" in out
        assert "Wait until **2027-03-02 22:30:00 UTC**" in out

    def test_the_policy_gives_windows_and_goes_into_the_commands(self, cli: Cli, plan: str) -> None:
        window = "{days: [sat], from: '20:00', to: '23:00'}"
        Path("policy.yaml").write_text(
            f"policy_version: 1\ntables:\n  '**': {{maintenance_windows: [{window}]}}\n"
        )
        out = cli("runbook", plan, "--policy", "policy.yaml", "--start", "2027-03-01T22:30Z").out
        assert "window is closed; the next one opens 2027-03-06 20:00 UTC" in out
        assert f"deltaproto apply {plan} --policy policy.yaml --allow-irreversible" in out

    def test_nobody_looks_where_nobody_may(self, cli: Cli, plan: str) -> None:
        assert "orders-stream" in cli("runbook", plan).out
        out = cli("runbook", plan, "--no-activity").out
        assert "orders-stream" not in out
        assert "The tables were not read" in out

    def test_a_table_that_is_gone_is_told_and_the_rest_is_written(
        self, cli: Cli, plan: str
    ) -> None:
        Path("tables").rename("elsewhere")
        ran = cli("runbook", plan)
        assert ran.code == 3
        assert "The recent commits of `tables/truncating` cannot be read" in ran.out
        assert "- `tables/truncating`: **fingerprint**: " in ran.out

    def test_several_plans_and_a_folder_of_them(self, cli: Cli) -> None:
        folder = Path("plans")
        folder.mkdir()
        for name in ("truncating", "enable"):
            planned(BY_NAME[name], cli).rename(folder / f"{name}.json")
        out = cli("runbook", "plans").out
        assert out.startswith("# Release runbook: 2 tables\n")
        assert "deltaproto apply plans --allow-irreversible" in out
        assert out.index("### tables/enable") < out.index("### tables/truncating")

    def test_a_blocked_plan_is_code_1(self, cli: Cli) -> None:
        ran = cli("runbook", str(planned(BY_NAME["blocked"], cli)))
        assert ran.code == 1
        assert "1 table cannot be changed as planned" in ran.out
        assert "## Before" not in ran.out

    def test_a_table_that_could_not_be_planned_is_code_3(self, cli: Cli) -> None:
        log = Log(Path("good")).commit(0, commit_info(), protocol(1, 2), metadata())
        words = ("--enable", "deletionVectors", "--format", "json", "-o", "plans.json")
        assert cli("plan-upgrade", log.table, "missing", *words).code == 3
        ran = cli("runbook", "plans.json")
        assert ran.code == 3
        assert "`missing` could not be planned: " in ran.out
        assert "### good" in ran.out

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--start", "soon"), "--start soon is not a date or time"),
            (("--language", "xx"), 'unknown language "xx"'),
            (("--template", "missing.md"), "cannot read the template missing.md"),
            (("--policy", "missing.yaml"), "missing.yaml"),
            (("-o", "."), "cannot write ."),
        ],
    )
    def test_mistakes_are_code_2(
        self, cli: Cli, plan: str, words: tuple[str, ...], said: str
    ) -> None:
        ran = cli("runbook", plan, *words)
        assert ran.code == 2
        assert said in ran.err
        assert "hint: " in ran.err
        assert ran.out == ""

    def test_the_plan_is_not_written_over(self, cli: Cli, plan: str) -> None:
        before = Path(plan).read_text()
        assert cli("runbook", plan, "-o", plan).code == 2
        assert Path(plan).read_text() == before


class TestTemplate:
    def test_chapters_and_plans_are_at_hand(self, cli: Cli, plan: str) -> None:
        Path("ours.md").write_text(
            "# ACME {{ title }}\n{% for p in plans %}{{ p.table | code }} {{ p.sql_name }}\n"
            "{% for s in p.steps %}{{ s.id }}{% endfor %}{% endfor %}\n{{ chapters.commands }}"
        )
        start = ("--start", "2027-03-01T22:30Z")
        out = cli("runbook", plan, *start, "--template", "ours.md").out
        assert out.startswith("# ACME Release runbook: tables/truncating\n`tables/truncating` ")
        assert "s1s2s3" in out
        assert "## Commands" in out
        assert "## Sign-off" not in out
        whole = cli("runbook", plan, *start).out
        assert out.partition("## Commands")[2].strip() in whole

    def test_html_gets_the_page_around_it_unless_it_is_one(self, cli: Cli, plan: str) -> None:
        Path("part.html").write_text("<h1>{{ title }}</h1>{{ chapters['sign-off'] }}")
        out = cli("runbook", plan, "--format", "html", "--template", "part.html").out
        assert out.startswith("<!doctype html>")
        assert "<h1>Release runbook: tables/truncating</h1><section id='sign-off'>" in out
        Path("whole.html").write_text("<!DOCTYPE html><title>{{ title }}</title>")
        whole = cli("runbook", plan, "--format", "html", "--template", "whole.html").out
        assert whole == "<!DOCTYPE html><title>Release runbook: tables/truncating</title>"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{{ plans", "ours.md line 1: "),
            ("\n{{ nobody }}", "'nobody' is undefined"),
            ("{{ plans.__class__.__mro__ }}", "access to attribute '__class__'"),
            ("{{ plans.append(1) }}", "access to attribute 'append'"),
            ("{{ 1 / 0 }}", "ZeroDivisionError"),
            ("{% include '../secret.txt' %}", "secret.txt"),
        ],
    )
    def test_what_it_must_not_do_is_code_2(self, cli: Cli, plan: str, text: str, said: str) -> None:
        Path("folder").mkdir()
        Path("secret.txt").write_text("secret")
        Path("folder/ours.md").write_text(text)
        ran = cli("runbook", plan, "--template", "folder/ours.md")
        assert ran.code == 2
        assert said in ran.err
        assert ran.out == ""

    @pytest.mark.parametrize("format", ["markdown", "html"])
    def test_what_it_inserts_is_escaped(self, cli: Cli, format: str) -> None:
        name = "a<script>alert(1)</script>*b*"
        log = Log(Path(name.replace("/", "-")))
        log.commit(0, commit_info(), protocol(1, 2), metadata())
        words = ("--enable", "deletionVectors", "--format", "json", "-o", "plan.json")
        assert cli("plan-upgrade", log.table, *words).code == 0
        Path("ours").write_text("{{ plans[0].table }}|{{ plans[0].table | code }}|{{ title }}")
        out = cli("runbook", "plan.json", "--format", format, "--template", "ours").out
        assert "<script>alert" not in out.replace("`a<script>alert(1)<-script>*b*`", "")


class TestLanguage:
    def test_ones_own_phrases_and_english_for_the_rest(self, cli: Cli, plan: str) -> None:
        Path("de.yaml").write_text(
            "language: de\ncommands: Befehle\nstep.return: '**Ab hier** {x}'\n".replace(" {x}", "")
        )
        out = cli("runbook", plan, "--language", "de.yaml").out
        assert "## Befehle\n" in out
        assert "> **Ab hier**\n" in out
        assert "## Burn-in\n" in out
        html = cli("runbook", plan, "--language", "de.yaml", "--format", "html").out
        assert "<html lang='de'>" in html

    def test_keys_of_earlier_releases_are_understood(self, tmp_path: Path) -> None:
        file = tmp_path / "old.yaml"
        file.write_text("activity.quiet: kein Commit\nclients.labelled: '{client} [{label}]'\n")
        say = phrases(str(file))
        assert say.text("activity.idle") == "kein Commit"
        assert say.text("clients.labeled", client="trino", label="bi") == "trino [bi]"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("commands: [1]", "does not map keys to texts"),
            ("nothing.like.it: x", "unknown phrase nothing.like.it"),
            ("title.one: '{tables}'", "title.one has no value {tables}"),
            ("a: : b", "is not valid YAML"),
        ],
    )
    def test_mistakes_are_code_2(self, cli: Cli, plan: str, text: str, said: str) -> None:
        Path("own.yaml").write_text(text)
        ran = cli("runbook", plan, "--language", "own.yaml")
        assert ran.code == 2
        assert said in ran.err

    def test_every_phrase_can_be_replaced(self, cli: Cli, plan: str) -> None:
        own = {key: f"~{text}" for key, text in english().items()}
        Path("own.yaml").write_text(json.dumps(own))
        out = cli("runbook", plan, "--language", "own.yaml").out
        headings = [line for line in unfenced(out).splitlines() if line.startswith("#")]
        assert headings
        assert all(r"\~" in line for line in headings if line != "### tables/truncating")


def test_hostile_names_stay_names(cli: Cli, tmp_path: Path) -> None:
    name = "`; DROP TABLE x; --\n# '\"$(touch pwned)\u202e<b>" + "n" * 150
    log = Log(Path(name))
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    words = ("--enable", "deletionVectors", "--format", "json", "-o", "plan.json")
    assert cli("plan-upgrade", log.table, *words).code == 0
    out = cli("runbook", "plan.json").out
    assert "\u202e" not in out
    assert "\n# '" not in unfenced(out)
    assert "cannot be displayed" in out
    html = cli("runbook", "plan.json", "--format", "html").out
    assert "<b>" not in html
    assert "\u202e" not in html
