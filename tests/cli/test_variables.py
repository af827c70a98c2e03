"""An environment variable means the same in every command, and never disarms a gate unseen."""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from deltaproto.cli.declare import Option, environment_name
from deltaproto.cli.variables import (
    COMMAND_LINE_ONLY,
    COMMAND_VARIABLES,
    environment_variable,
)
from tests.conftest import Ran
from tests.support.logs import Log, commit_info, metadata, protocol
from tests.support.parsed import allowed_values

Cli = Callable[..., Ran]
entry = importlib.import_module("deltaproto.cli.main")
COMMANDS = [entry.load_command(name) for name in entry.COMMANDS]
NOTICE = "DELTAPROTO_FAIL_ON=never is set in the environment"

SHARED_OPTIONS: Mapping[str, str] = {
    "--access": "what clients do with a table",
    "--client": "clients whose access is evaluated",
    "--detailed-exitcode": "exit with 10 while changes are pending",
    "--format": "output format",
    "--inventory": "the inventory",
    "--policy": "the policy file",
    "--seen": "the inventory with the counts of discover",
}
"""flags with the same meaning but different help in different commands"""


def meaning(option: Option) -> object:
    """What tells options apart; those of reviewed flags have one meaning by their table."""
    reviewed = SHARED_OPTIONS.get(option.flags[0])
    return reviewed or (option.help.split(";")[0], option.type, option.metavar, option.many)


class TestMeaning:
    def test_each_variable_has_one(self) -> None:
        found = defaultdict(set)
        for command in COMMANDS:
            for option in command.options:
                name = environment_variable(command.name, option.flags[0])
                if name is not None and option.flags[0] != "--engine":
                    found[name].add(meaning(option))
        assert {name: each for name, each in found.items() if len(each) > 1} == {}

    def test_engines_take_the_same_words(self) -> None:
        found = defaultdict(set)
        for command in COMMANDS:
            for option in command.options:
                if option.flags[0] == "--engine":
                    name = environment_variable(command.name, "--engine")
                    found[name].add((allowed_values(option), option.metavar))
        assert len(found) == 3
        assert all(len(each) == 1 for each in found.values())

    def test_a_name_of_its_own_is_given_to_every_command(self) -> None:
        for flag, names in COMMAND_VARIABLES.items():
            have = {c.name for c in COMMANDS if any(flag in o.flags for o in c.options)}
            assert have == names.keys()
            assert len(set(names.values())) > 1

    def test_what_lowers_safety_has_none(self) -> None:
        flags = {flag for c in COMMANDS for o in c.options for flag in o.flags}
        assert flags >= COMMAND_LINE_ONLY
        assert {"--yes", "--allow-irreversible", "--outside-window"} <= COMMAND_LINE_ONLY
        assert all(environment_variable("apply", flag) is None for flag in COMMAND_LINE_ONLY)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("scan", "."), "DELTAPROTO_TO"),
        (("scan", "."), "DELTAPROTO_ENGINE"),
        (("plan-upgrade", "t"), "DELTAPROTO_TO"),
        (("plan-downgrade", "t"), "DELTAPROTO_PROTOCOL"),
        (("conflicts",), "DELTAPROTO_ISOLATION"),
        (("apply", "plan.json"), "DELTAPROTO_YES"),
        (("apply", "plan.json"), "DELTAPROTO_PARALLEL"),
        (("inspect", "-"), "DELTAPROTO_ALLOW_EMPTY"),
    ],
)
def test_an_ambiguous_name_is_refused(
    cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "1,2")
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {name} is set")
    assert list(tmp_path.iterdir()) == []
    meant = [
        environment_variable(c.name, o.flags[0])
        for c in COMMANDS
        for o in c.options
        if c.name == words[0] and name in {environment_name(f) for f in (o.flags[0], o.old or "")}
    ]
    flag = "--" + name.removeprefix("DELTAPROTO_").lower().replace("_", "-")
    assert environment_name(flag) == name
    read = next((v for v in meant if v), None) or flag
    assert read in ran.err.splitlines()[1]


def test_the_name_for_plans_is_nothing_to_a_scan(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Log(tmp_path / "t").commit(0, commit_info(), protocol(1, 2), metadata())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELTAPROTO_UPGRADE_PROTOCOL", "1,3")
    assert cli("scan", ".").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert cli("plan-upgrade", "t", "--format", "json").json["goal"]["kind"]


def test_a_policy_path_with_a_space(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Log
) -> None:
    log.commit(0, commit_info(), protocol(1, 2), metadata())
    policy = tmp_path / "my policy.yaml"
    policy.write_text("policy_version: 1\nclients: [trino@476]\n")
    monkeypatch.setenv("DELTAPROTO_POLICY", str(policy))
    assert cli("check", log.table).code == 0


class TestFailOnNever:
    @pytest.fixture
    def table(self, log: Log) -> str:
        vectors = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
        return log.commit(0, commit_info(), vectors, metadata()).table

    @pytest.mark.parametrize(
        "format_", ["text", "json", "jsonl", "markdown", "sarif", "junit", "github", "gitlab"]
    )
    def test_check(
        self, cli: Cli, table: str, monkeypatch: pytest.MonkeyPatch, format_: str
    ) -> None:
        words = ("check", table, "--client", "trino@400", "--quiet", "--format", format_)
        assert cli(*words).code == 1
        monkeypatch.setenv("DELTAPROTO_FAIL_ON", "never")
        ran = cli(*words)
        assert ran.code == 0
        assert NOTICE in ran.out.replace("\\", "")
        assert ran.err.startswith(f"warning: {NOTICE}")
        # The command line has the last word, and needs no notice.
        ran = cli(*words, "--fail-on", "error")
        assert (ran.code, ran.err) == (1, "")
        assert NOTICE not in ran.out

    @pytest.mark.parametrize("format_", ["text", "json", "jsonl", "markdown", "html"])
    def test_inspect(
        self, cli: Cli, table: str, monkeypatch: pytest.MonkeyPatch, format_: str
    ) -> None:
        monkeypatch.setenv("DELTAPROTO_FAIL_ON", "never")
        ran = cli("inspect", table, "--format", format_)
        assert NOTICE.split("=")[0] in ran.out.replace("\\", "")
        assert ran.err.startswith(f"warning: {NOTICE}")
        monkeypatch.delenv("DELTAPROTO_FAIL_ON")
        ran = cli("inspect", table, "--format", format_)
        assert (ran.err, "FAIL_ON" in ran.out) == ("", False)

    def test_scan_and_drift(
        self, cli: Cli, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DELTAPROTO_FAIL_ON", "never")
        where = str(tmp_path / "inventory")
        assert json.loads(cli("scan", table, "--inventory", where, "--format", "json").out)[
            "notices"
        ]
        assert "FAIL_ON" in cli("scan", table, "--inventory", where).out
        for format_ in ("text", "json", "markdown"):
            assert "FAIL" in cli("drift", where, "--format", format_).out
        assert cli("history", table).err == ""
