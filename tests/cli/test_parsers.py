"""Both parsers read a command line alike, and every option has its environment twin."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.cli import app, fast_parser
from deltaproto.cli.declare import Command, Option, choices
from deltaproto.cli.variables import COMMAND_LINE_ONLY, variable
from tests.conftest import Ran
from tests.support.failures import collect_failures

Cli = Callable[..., Ran]
entry = importlib.import_module("deltaproto.cli.main")
COMMANDS = [entry.command_named(name) for name in entry.COMMANDS]
Values = Callable[[Command, list[str]], dict[str, Any]]
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def recording(command: Command) -> tuple[Command, list[dict[str, Any]]]:
    """The command, but its runs are recorded instead."""
    runs: list[dict[str, Any]] = []

    def run(values: Mapping[str, Any]) -> int:
        runs.append(dict(values))
        return 0

    return command._replace(run=run), runs


def replaced_by(command: Command) -> Callable[[str], Command]:
    """A replacement for `command_named` that always returns this command."""
    return lambda _: command


def with_typer(command: Command, words: list[str]) -> dict[str, Any]:
    recorded, runs = recording(command)
    assert app.run([recorded], [command.name, *words]) == 0
    (values,) = runs
    return values


def sample(option: Option) -> str:
    """A value that is not the default."""
    if option.type is int:
        return "3"
    return next((c for c in choices(option) if c != option.default), "key=value")


def written(option: Option) -> list[str]:
    """The option on a command line, with that value."""
    return [option.flags[0]] if option.type is bool else [option.flags[0], sample(option)]


def needed(command: Command) -> list[str]:
    argument = command.argument
    return ["name"] if argument is not None and argument.required else []


# Words as a shell hands them over; no NUL can be among them.
WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
OPERAND = (WORD.filter(lambda word: not word.startswith("-"))) | st.just("-")


@st.composite
def spelled(draw: st.DrawFn, option: Option) -> list[str]:
    """One use of the option, well-formed, in one of its spellings."""
    flag = draw(st.sampled_from(option.flags))
    if option.type is bool:
        return [flag]
    if option.type is int:
        text = draw(st.integers(0, 10**30).map(str) | st.just("007"))
    elif choices(option):
        text = draw(st.sampled_from(choices(option)))
    else:
        text = draw(OPERAND)
    if flag.startswith("--") and draw(st.booleans()):
        # After an equals sign a value may start with a dash.
        if option.type is str:
            text = draw(WORD)
        return [f"{flag}={text}"]
    return [flag, text]


@st.composite
def lines(draw: st.DrawFn) -> tuple[Command, list[str]]:
    """A well-formed command line: options and operands in any order."""
    command = draw(st.sampled_from(COMMANDS))
    groups = []
    if command.options:
        used = draw(st.lists(st.sampled_from(command.options), max_size=6))
        groups = [draw(spelled(option)) for option in used]
    argument = command.argument
    if argument is not None:
        most = 3 if argument.many else 1
        operands = st.lists(OPERAND, min_size=int(argument.required), max_size=most)
        groups += [[operand] for operand in draw(operands)]
    return command, [word for group in draw(st.permutations(groups)) for word in group]


class TestBothParsers:
    @given(lines())
    @settings(max_examples=250)
    def test_they_agree_on_every_well_formed_line(self, line: tuple[Command, list[str]]) -> None:
        command, words = line
        values = fast_parser.parse(command, words)
        assert values is not None
        shown = with_typer(command, words)
        assert values == shown
        assert {k: type(v) for k, v in values.items()} == {k: type(v) for k, v in shown.items()}

    @given(lines(), st.data())
    @settings(max_examples=250)
    def test_the_short_way_leaves_every_mistake_to_typer(
        self, line: tuple[Command, list[str]], data: st.DataObject
    ) -> None:
        command, words = line
        with_value = [option for option in command.options if option.type is not bool]
        chosen = [option for option in with_value if choices(option)]
        numbers = [option for option in with_value if option.type is int]
        mistakes = [
            st.sampled_from(["--nosuch", "--nosuch=1", "-Z", "--", "-1"]).map(lambda w: [w]),
            st.sampled_from(with_value).map(lambda o: [o.flags[0]]),
            st.sampled_from(with_value).map(lambda o: [o.flags[0], "--no-color"]),
            st.sampled_from(chosen).map(lambda o: [o.flags[0], "nosuch"]),
            st.sampled_from(chosen).map(lambda o: [f"{o.flags[0]}={choices(o)[0].upper()}"]),
            st.just(["--no-color=1"]),
            st.just(["-ofile"]),
            st.just(["-o=file"]),
        ]
        if numbers:
            bad = st.sampled_from(["", "x", "1.5", "0x1", " 1", "-1", "+1", "1_0", "١"])
            mistakes.append(bad.map(lambda text: [f"{numbers[0].flags[0]}={text}"]))
        assert fast_parser.parse(command, [*words, *data.draw(st.one_of(mistakes))]) is None

    def test_operands_too_few_and_too_many(self) -> None:
        with collect_failures() as failures:
            for command in COMMANDS:
                with failures.of(command.name):
                    argument = command.argument
                    assert argument is not None
                    assert (fast_parser.parse(command, []) is None) == argument.required
                    assert (fast_parser.parse(command, ["one", "two"]) is None) == (
                        not argument.many
                    )

    @pytest.mark.parametrize(
        "mistake",
        [["--nosuch"], ["--format"], ["--format", "nosuch"], ["--format="], ["--no-color=1"]],
        ids=" ".join,
    )
    def test_typer_names_the_mistake(
        self, mistake: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with collect_failures() as failures:
            for command in COMMANDS:
                with failures.of(command.name):
                    recorded, runs = recording(command)
                    monkeypatch.setattr(entry, "command_named", replaced_by(recorded))
                    ran = cli(command.name, *needed(command), *mistake)
                    assert (ran.code, ran.out, runs) == (2, "", [])
                    assert mistake[0].split("=")[0] in ran.err


class TestEnvironment:
    @pytest.fixture
    def values(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Values:
        """What the command is run with, through the real entry point."""

        def run(command: Command, words: list[str]) -> dict[str, Any]:
            recorded, runs = recording(command)
            monkeypatch.setattr(entry, "command_named", replaced_by(recorded))
            ran = cli(command.name, *needed(command), *words)
            assert ran.code == 0, ran.err
            (values,) = runs
            return values

        return run

    @each_command
    def test_each_option_has_its_twin(
        self, command: Command, values: Values, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        without = values(command, [])
        with collect_failures() as failures:
            for option in command.options:
                with failures.of(option.flags[0]), monkeypatch.context() as patch:
                    by_flag = values(command, written(option))
                    assert by_flag != without
                    value = "1" if option.type is bool else sample(option)
                    name = variable(command.name, option.flags[0])
                    if name is None:
                        assert option.flags[0] in COMMAND_LINE_ONLY
                        continue
                    patch.setenv(name, value)
                    assert values(command, []) == by_flag

    @each_command
    def test_help_names_the_variable(self, command: Command, cli: Cli) -> None:
        text = " ".join(cli(command.name, "--help").out.split())
        with collect_failures() as failures:
            for option in command.options:
                with failures.of(option.flags[0]):
                    name = variable(command.name, option.flags[0])
                    bare = option.flags[0].removeprefix("--").replace("-", "_").upper()
                    if name is None:
                        assert f"DELTAPROTO_{bare}" not in text
                    else:
                        assert name.startswith("DELTAPROTO_")
                        assert name.endswith(bare)
                        assert f"env var: {name}" in text

    @each_command
    def test_the_command_line_wins(
        self, command: Command, values: Values, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with collect_failures() as failures:
            for option in command.options:
                # A flag has no value that turns it off.
                if option.type is bool:
                    continue
                with failures.of(option.flags[0]), monkeypatch.context() as patch:
                    by_flag = values(command, written(option))
                    other = {int: "4", str: "other=1"}.get(option.type) or choices(option)[-1]
                    name = variable(command.name, option.flags[0])
                    if name is None:
                        continue
                    patch.setenv(name, other)
                    assert values(command, written(option)) == by_flag

    def test_a_repeatable_option_takes_several_words(
        self,
        values: Values,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("DELTAPROTO_STORAGE_OPTION", "a=1 b=2")
        assert values(COMMANDS[0], [])["storage_option"] == ("a=1", "b=2")

    @pytest.mark.parametrize("text", ["0", "false", "no", ""])
    def test_a_flag_can_be_off(
        self,
        text: str,
        values: Values,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("DELTAPROTO_QUIET", text)
        assert values(COMMANDS[0], [])["quiet"] is False

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("DELTAPROTO_FORMAT", "yaml"),
            ("DELTAPROTO_VERSION", "newest"),
            ("DELTAPROTO_FAIL_ON", "info"),
            ("DELTAPROTO_QUIET", "perhaps"),
        ],
    )
    def test_a_bad_value_is_a_usage_error_that_names_the_variable(
        self, name: str, text: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(name, text)
        ran = cli("inspect", "t")
        assert (ran.code, ran.out) == (2, "")
        assert name in ran.err

    def test_it_reaches_the_output(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DELTAPROTO_FORMAT", "json")
        assert cli("features").json["command"] == "features"
