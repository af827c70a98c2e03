"""The command line: what it means, its help, its environment variables and its old spellings."""

from __future__ import annotations

import importlib
import itertools
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaproto.cli import app
from deltaproto.cli.declare import (
    NO_SETTINGS,
    Command,
    Option,
    Panel,
    modernize,
)
from deltaproto.cli.variables import (
    COMMAND_LINE_ONLY,
    RENAMED_VARIABLES,
    environment_variable,
    find_misspelled_variables,
)
from deltaproto.errors import UsageError
from tests.conftest import Ran
from tests.support.failures import collect_failures
from tests.support.parsed import allowed_values, parsed, recording

Cli = Callable[..., Ran]
entry = importlib.import_module("deltaproto.cli.main")
COMMANDS = [entry.load_command(name) for name in entry.COMMANDS]
Values = Callable[[Command, list[str]], dict[str, Any]]
VERBS = frozenset(
    "Accept Add Also Append Apply Assume Avoid Bring Call Check Choose Classify "  # noqa: SIM905
    "Clone Cluster Compare Create Delete Do Drop Enable Evaluate Execute Exit "
    "Explain Find Give Ignore Keep List Lower Make Plan Post Predict Print Raise "
    "Reach Read Refuse Resume Retry Run Save Scan Set Show Skip Stop Succeed Try Undo "
    "Use Wait Warn Write".split()
)
OVERRIDABLE = ("--fail-on", "--format", "--limit")
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def replaced_by(command: Command) -> Callable[[str], Command]:
    """A replacement for `load_command` that always returns this command."""
    return lambda _: command


def sample(option: Option) -> str:
    """A value that is not the default."""
    if option.type is int:
        return "3"
    if option.flags[0] == "--config":
        return NO_SETTINGS
    return next((c for c in allowed_values(option) if c != option.default), "key=value")


def written(option: Option) -> list[str]:
    """The option on a command line, with that value."""
    return [option.flags[0]] if option.type is bool else [option.flags[0], sample(option)]


def needed(command: Command) -> list[str]:
    argument = command.argument
    return ["name"] if argument is not None and argument.required else []


# Words as a shell hands them over; no NUL can be among them.
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
WORD = TEXT.filter(lambda word: word.strip() != "")
OPERAND = (WORD.filter(lambda word: not word.startswith("-"))) | st.just("-")


@st.composite
def spelled(draw: st.DrawFn, option: Option) -> tuple[list[str], Any]:
    """One use of the option, well-formed, in one of its spellings, and its value."""
    flag = draw(st.sampled_from(option.flags))
    if option.type is bool:
        return [flag], True
    if option.flags[0] == "--config":
        return [flag, NO_SETTINGS], NO_SETTINGS
    value: Any
    if option.type is int:
        value = draw(st.integers(0, 10**30))
        text = draw(st.sampled_from([str(value), f"00{value}"]))
    elif allowed_values(option):
        text = draw(st.sampled_from(allowed_values(option)))
        value = option.type(text)
    else:
        value = text = draw(OPERAND)
    if flag.startswith("--") and draw(st.booleans()):
        # After an equals sign a value may start with a dash.
        if option.type is str:
            value = text = draw(WORD)
        return [f"{flag}={text}"], value
    return [flag, text], value


@st.composite
def lines(draw: st.DrawFn) -> tuple[Command, list[str], dict[str, Any]]:
    """A well-formed command line, its options and operands in any order, and what it means."""
    command = draw(st.sampled_from(COMMANDS))
    used: list[Option] = []
    if command.options:
        used = draw(st.lists(st.sampled_from(command.options), max_size=6))
    uses: list[tuple[Option | None, tuple[list[str], Any]]] = []
    uses += [(option, draw(spelled(option))) for option in used]
    argument = command.argument
    if argument is not None:
        most = 3 if argument.many else 1
        operands = st.lists(OPERAND, min_size=int(argument.required), max_size=most)
        uses += [(None, ([operand], operand)) for operand in draw(operands)]
    uses = draw(st.permutations(uses))
    meant: dict[str, Any] = {o.name: () if o.many else o.default for o in command.options}
    for option in command.options:
        given = [value for each, (_, value) in uses if each == option]
        if given:
            meant[option.name] = tuple(given) if option.many else given[-1]
    if argument is not None:
        names = [value for each, (_, value) in uses if each is None]
        meant[argument.name] = tuple(names) if argument.many else next(iter(names), None)
    return command, [word for _, (words, _) in uses for word in words], meant


class TestParser:
    @given(lines())
    @settings(max_examples=250)
    def test_a_well_formed_line_means_what_it_says(
        self, line: tuple[Command, list[str], dict[str, Any]]
    ) -> None:
        command, words, meant = line
        found = parsed(command, words)
        assert found == meant
        assert {k: type(v) for k, v in found.items()} == {k: type(v) for k, v in meant.items()}

    @pytest.mark.parametrize("word", ["", ",", ",,"])
    def test_a_word_that_names_nothing_is_no_further_feature(self, word: str) -> None:
        command = entry.load_command("plan-upgrade")
        words = ["--enable", "columnMapping", word]
        found = parsed(command, words)
        assert (found["enable"], found["tables"]) == (("columnMapping",), (word,))

    @given(lines(), st.data())
    @settings(max_examples=250)
    def test_each_mistake_is_refused(
        self, line: tuple[Command, list[str], dict[str, Any]], data: st.DataObject
    ) -> None:
        command, words, _ = line
        with_value = [option for option in command.options if option.type is not bool]
        chosen = [option for option in with_value if allowed_values(option)]
        numbers = [option for option in with_value if option.type is int]
        mistakes = [
            st.sampled_from(["--nosuch", "--nosuch=1", "-Z"]).map(lambda w: [w]),
            st.just(["--debug=1"]),
        ]
        if with_value:
            mistakes.append(st.sampled_from(with_value).map(lambda o: [o.flags[0]]))
            mistakes.append(st.sampled_from(with_value).map(lambda o: [o.flags[0], " "]))
        if chosen:
            choices = st.sampled_from(chosen)
            mistakes.append(choices.map(lambda o: [o.flags[0], "nosuch"]))
            mistakes.append(choices.map(lambda o: [f"{o.flags[0]}={allowed_values(o)[0].upper()}"]))
        if numbers:
            bad = st.sampled_from(["", "x", "1.5", "0x1"])
            mistakes.append(bad.map(lambda text: [f"{numbers[0].flags[0]}={text}"]))
        recorded, runs = recording(command)
        wrong = [command.name, *words, *data.draw(st.one_of(mistakes))]
        with pytest.raises(UsageError):
            app.run({command.name: ""}, lambda _: recorded, wrong)
        assert runs == []

    def test_operands_too_few_and_too_many(self) -> None:
        with collect_failures() as failures:
            for command in COMMANDS:
                with failures.of(command.name):
                    argument = command.argument
                    assert argument is not None
                    recorded, _ = recording(command)
                    for words, fits in (([], not argument.required), (["a", "b"], argument.many)):
                        try:
                            app.run(
                                {command.name: ""}, replaced_by(recorded), [command.name, *words]
                            )
                            ran = True
                        except UsageError:
                            ran = False
                        assert ran is fits, words

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
                    monkeypatch.setattr(entry, "load_command", replaced_by(recorded))
                    ran = cli(command.name, *needed(command), *mistake)
                    assert (ran.code, ran.out, runs) == (2, "", [])
                    assert mistake[0].split("=")[0] in ran.err


class TestEnvironment:
    @pytest.fixture
    def values(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Values:
        """What the command is run with, through the real entry point."""

        def run(command: Command, words: list[str]) -> dict[str, Any]:
            recorded, runs = recording(command)
            monkeypatch.setattr(entry, "load_command", replaced_by(recorded))
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
                    name = environment_variable(command.name, option.flags[0])
                    if name is None:
                        assert option.flags[0] in COMMAND_LINE_ONLY
                        continue
                    patch.setenv(name, value)
                    assert values(command, []) == by_flag

    @pytest.mark.parametrize(
        "command",
        [each for each in COMMANDS if any(option.type is not bool for option in each.options)],
        ids=lambda command: command.name,
    )
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
                    other = {int: "4", str: "other=1"}.get(option.type) or allowed_values(option)[
                        -1
                    ]
                    name = environment_variable(command.name, option.flags[0])
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


class TestHelp:
    @each_command
    def test_options_are_grouped_and_examples_and_exit_codes_end_it(
        self, command: Command, cli: Cli
    ) -> None:
        text = cli(command.name, "--help").out
        titles = re.findall(r"^([A-Z][\w ]+):$", text, re.MULTILINE)
        panels = [panel.value for panel in Panel if panel in {o.panel for o in command.options}]
        assert titles == ["Arguments", *panels, "Examples", "Exit codes"]
        assert "DELTAPROTO_" not in text
        codes = re.findall(r"^  (\d+) ", text.partition("Exit codes:")[2], re.MULTILINE)
        assert codes == [str(int(code)) for code in command.exits]

    @each_command
    def test_both_examples_parse(self, command: Command) -> None:
        assert len(command.examples) == 2
        for example in command.examples:
            name, *words = shlex.split(example)
            assert name == command.name
            assert parsed(command, words)

    @each_command
    def test_each_line_begins_with_a_verb_and_ends_with_a_period(self, command: Command) -> None:
        for option in command.options:
            assert option.help.endswith("."), option.flags
            assert option.help.split()[0] in VERBS | {"With", "keep:"}, option.flags

    def test_the_list_of_commands_fits_and_loads_none(
        self, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(entry, "load_command", lambda name: pytest.fail(name))
        text = cli("--help").out
        for name, summary in entry.COMMANDS.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", text, re.MULTILINE)


class TestSpelling:
    def test_no_two_options_differ_by_one_letter(self) -> None:
        flags = sorted({f for c in COMMANDS for o in c.options for f in o.flags if f[1] == "-"})
        alike = [(a, b) for a, b in itertools.combinations(flags, 2) if is_one_letter_apart(a, b)]
        assert alike == []

    def test_a_flag_means_one_thing(self) -> None:
        """`--to` had three meanings."""
        flags = {f for c in COMMANDS for o in c.options for f in o.flags}
        assert "--to" not in flags
        assert "--catalogue" not in flags

    def test_old_spellings_work_and_say_so(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        renamed = [(c, o) for c in COMMANDS for o in c.options if o.old]
        assert {o.old for _, o in renamed} == {"--to", "--catalogue"}
        for command, option in renamed:
            recorded, runs = recording(command)
            monkeypatch.setattr(entry, "load_command", replaced_by(recorded))
            for words in ([option.old, "x"], [f"{option.old}=x"]):
                ran = cli(command.name, *needed(command), *words)
                assert ran.code == 0
                notice = f"warning: {option.old} is now called {option.flags[0]}"
                assert ran.err.startswith(notice)
                assert runs.pop()[option.name] == (("x",) if option.many else "x")

    def test_a_value_is_no_old_spelling(self) -> None:
        scan = next(command for command in COMMANDS if command.name == "scan")
        assert modernize(scan, ["--", "--to"]) == (["--", "--to"], [])

    @pytest.mark.parametrize(("old", "new"), RENAMED_VARIABLES.items())
    def test_old_variables_work_and_say_so(
        self, old: str, new: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        command = next(
            c
            for c in COMMANDS
            for o in c.options
            if environment_variable(c.name, o.flags[0]) == new
        )
        option = next(
            o for o in command.options if environment_variable(command.name, o.flags[0]) == new
        )
        recorded, runs = recording(command)
        monkeypatch.setattr(entry, "load_command", replaced_by(recorded))
        monkeypatch.setenv(old, "x")
        monkeypatch.setenv(new, "")
        monkeypatch.delenv(new)
        ran = cli(command.name, *needed(command))
        assert ran.code == 0
        assert ran.err.startswith(f"warning: {old} is now called {new}")
        assert runs[0][option.name] == (("x",) if option.many else "x")


def is_one_letter_apart(one: str, other: str) -> bool:
    """Whether one insertion, deletion or replacement makes one of the other."""
    if len(one) == len(other):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    short, long = sorted((one, other), key=len)
    return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


@each_command
def test_an_option_without_its_value_does_not_take_the_next_option(
    command: Command, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`apply PLANS --journal --dry-run` executed plans, with a journal called --dry-run."""
    ran_with: list[Any] = []
    monkeypatch.setattr(
        entry,
        "load_command",
        replaced_by(command._replace(run=lambda values: ran_with.append(values) or 0)),
    )
    flags = [option for option in command.options if option.type is not bool]
    for option in flags:
        for flag in option.flags:
            for following in ("--debug", "--help", "-h", f"{option.flags[0]}=x"):
                ran = cli(command.name, flag, following)
                assert ran.code == 2, (flag, following)
                message = f"error: {flag} has no value: the next word is the option {following}\n"
                assert ran.err.startswith(message)
                assert f"or {option.flags[0]}={following} if" in ran.err
    assert flags or command.name == "demo"
    assert ran_with == []


def test_a_value_may_look_like_an_option(cli: Cli) -> None:
    assert "unknown client --policy" in cli("check", "orders", "--client=--policy").err
    assert "unknown client --policies" in cli("check", "orders", "--client=--policies").err
    refused = cli("check", "orders", "--client", "--policies")
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "error: --client has no value: the next word looks like an option: --policies",
    )
    comment = cli("plan-upgrade", "orders", "--sql", "--x\nDROP TABLE t", "--format", "json")
    assert "has no value" not in comment.err
    assert "--client has no value" not in cli("check", "--", "--client", "--policy").err


def test_an_option_with_one_value_cannot_have_two(cli: Cli) -> None:
    """The first of two policies would be ignored."""
    with collect_failures() as failures:
        for command in COMMANDS:
            for option in command.options:
                if option.type is bool or option.many or option.flags[0] in OVERRIDABLE:
                    continue
                for flag in option.flags:
                    with failures.of(f"{command.name} {flag}"):
                        ran = cli(command.name, flag, "1", f"{option.flags[0]}=2")
                        assert ran.code == 2
                        assert ran.err.startswith(f"error: {option.flags[0]} is given twice\n")
    same = cli("explain", "DP101", "--output=/dev/null", "-o", "/dev/null")
    assert (same.code, same.err) == (0, "")
    assert cli("explain", "DP101", "--format", "json", "--format", "text").out.startswith("DP101")


@each_command
def test_no_variable_of_another_command_counts_as_misspelled(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in COMMANDS:
        for option in each.options:
            if name := environment_variable(each.name, option.flags[0]):
                monkeypatch.setenv(name, "1")
    assert find_misspelled_variables(command, lambda: COMMANDS) == []


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("check", "lake", "--seen-days", "7"), "--seen"),
        (("plan", "lake", "--policy", "p.yaml", "--seen-days", "7"), "--seen"),
        (("plan-upgrade", "lake", "--enable", "rowTracking", "--seen-days", "7"), "--seen"),
        (("plan-downgrade", "lake", "--lowest", "--seen-days", "7"), "--seen"),
        (("plan-downgrade", "lake", "--drop", "appendOnly", "--include-enabled"), "--lowest"),
        (("drift", "inventory", "--notify-required"), "--notify"),
        (("scan", "lake", "--full"), "--inventory"),
        (("scan", "lake", "--keep", "9"), "--inventory"),
        (("scan", "lake", "--resume"), "--inventory"),
    ],
)
def test_an_option_without_effect_is_refused(words: tuple[str, ...], needed: str, cli: Cli) -> None:
    flag = [word for word in words if word.startswith("--")][-1]
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    hint = f"pass {needed}, or leave out {flag}"
    assert ran.err == f"error: {flag} needs {needed}\nhint: {hint}\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("check", "lake", "--client", "trino", "--scan", "x"), "--scan applies to inventories"),
        (
            ("check", "lake", "--reader", "delta-rs", "--look-in-files"),
            "--look-in-files does not apply to --reader delta-rs",
        ),
        (
            ("inspect", "lake", "--reader", "spark", "--look-in-files"),
            "--look-in-files does not apply to --reader spark",
        ),
        (
            ("inspect", "lake", "--reader", "delta-rs", "--no-crc"),
            "--no-crc does not apply to --reader delta-rs",
        ),
    ],
)
def test_an_option_of_other_inputs_is_refused(words: tuple[str, ...], error: str, cli: Cli) -> None:
    ran = cli(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {error}\n")


@pytest.mark.parametrize("flag", ["--kit", "--only", "--operation", "--results"])
def test_certify_makes_no_kit_with_an_option_that_needs_a_client(
    flag: str, cli: Cli, tmp_path: Path
) -> None:
    ran = cli("certify", "--make-kit", str(tmp_path / "kit"), flag, "x")
    assert (ran.code, ran.out) == (2, "")
    assert f"{flag} needs a client\n" in ran.err
