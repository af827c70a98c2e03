"""The declaration of a command: its arguments, options, examples and exit codes.

Typer (`app`) builds the parser, help and completion from these declarations.
`variables` maps options to environment variables.
"""

import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.errors import ExitCode, UsageError


def environment_name(flag: str) -> str:
    """Return the environment variable of a long flag."""
    return f"DELTAPROTO_{option_name(flag).upper()}"


def option_name(flag: str) -> str:
    """Return the name of a flag's value, as a command receives it."""
    return flag.lstrip("-").replace("-", "_")


HELP_FLAGS = ("-h", "--help")
_LAST_ONE_COUNTS = ("--fail-on", "--format", "--limit")
"""flags of output that a command line may repeat, to override those of an alias"""
NO_SETTINGS = "none"
"""value of --config that reads no settings file"""


class Panel(StrEnum):
    """The option groups in a command's help, in display order."""

    GOAL = "Goal"
    CLIENTS = "Clients"
    INPUT = "Input"
    OUTPUT = "Output"
    SPARK = "Spark"
    SAFETY = "Safety"


class Option(NamedTuple):
    """One option. `type` is bool (a flag), int, str or an enumeration of strings."""

    flags: tuple[str, ...]
    """flags, the long one first"""
    help: str
    type: type = str
    default: Any = None
    many: bool = False
    """whether the option may be repeated; its value is then a tuple"""
    metavar: str | None = None
    follows: Callable[[str], bool] | None = None
    """decides whether the word after a value is another value; None: the flag is repeated for each
    value
    """
    panel: Panel = Panel.INPUT
    words: Callable[[], Iterable[str]] | None = None
    """the values that the shell completes; None: the values of an enumeration, or file names"""
    old: str | None = None
    """spelling of the flag in earlier releases, which still works"""
    setting: str | None = None
    """key of the settings file with the value of a missing option"""
    unless: tuple[str, ...] = ()
    """names of options that stand in for this one: with them, the setting is not used"""

    @property
    def name(self) -> str:
        """The key of the option's value: the long flag as a Python parameter name."""
        bare = self._bare
        return f"{bare}_" if keyword.iskeyword(bare) else bare

    @property
    def _bare(self) -> str:
        return option_name(self.flags[0])


def switch(*flags: str, help: str, panel: Panel) -> Option:
    """Return an option without a value, which is off by default; the long flag is the first."""
    return Option(flags, help, bool, False, panel=panel)


class Argument(NamedTuple):
    """The positional argument of a command: one name or several."""

    name: str
    metavar: str
    help: str
    many: bool = False
    required: bool = True
    words: Callable[[], Iterable[str]] | None = None
    """the values that the shell completes"""
    setting: str | None = None
    """key of the settings file with the value of a missing argument"""
    unless: tuple[str, ...] = ()
    """names of options that stand in for the argument: with them, the setting is not used"""


class Command(NamedTuple):
    """One command. `run` receives all values by name and returns the exit code."""

    name: str
    help: str
    run: Callable[[Mapping[str, Any]], int]
    argument: Argument | None = None
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    """example command lines for the help, without `deltaproto`"""
    more_exits: tuple[ExitCode, ...] = (ExitCode.UNREADABLE,)
    """the exit codes that it can return besides OK and USAGE, which every command can"""
    sources: tuple[str, ...] = ()
    """arguments and options that name what to work on: if one is given, the settings file is only
    read with --config"""

    @property
    def exits(self) -> tuple[ExitCode, ...]:
        """All exit codes that the command can return, in order."""
        return tuple(sorted((ExitCode.OK, ExitCode.USAGE, *self.more_exits)))


def modernize(command: Command, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Replace old flags by their current spelling. Return the words, and a notice per old flag."""
    today = {option.old: option.flags[0] for option in command.options if option.old}
    found, notices = list(words), []
    for position, word in enumerate(words):
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        if flag in today:
            found[position] = f"{today[flag]}{equals}{value}"
            notices.append(f"{flag} is now called {today[flag]}; the old name will be removed")
    return found, notices


def refuse_unclear_options(command: Command, words: Sequence[str]) -> None:
    """Refuse an option without its value, and two values of an option that takes one.

    `apply PLANS --journal --dryrun` would take `--dryrun` as a file and execute the plans, and
    `plan lake --policy a.yaml --policy b.yaml` would ignore the first policy.

    Raises:
        UsageError: naming the option; `--journal=--dry-run` is accepted.
    """
    options = {flag: option for option in command.options for flag in option.flags}
    given: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if word == "--":
            return
        flag, equals, value = word.partition("=")
        option = options.get(flag if equals else word)
        if option is None or option.type is bool:
            continue
        if not equals:
            value = next(rest, "")
            known = value.partition("=")[0] in (*options, *HELP_FLAGS)
            if known or _is_like_a_flag(value):
                next_word = "is the option" if known else "looks like an option:"
                raise UsageError(
                    f"{word} has no value: the next word {next_word} {value}",
                    f"write the value after it, or {option.flags[0]}={value} if that is the value",
                )
        name = option.flags[0]
        one_value = not option.many and name not in _LAST_ONE_COUNTS
        # The values may be secrets, so they are not repeated.
        if one_value and given.setdefault(name, value) != value:
            raise UsageError(f"{name} is given twice", "only one value applies; keep one of them")


def _is_like_a_flag(word: str) -> bool:
    """Return True for `--name`, also misspelled, but not for SQL that begins with a comment."""
    name = word.partition("=")[0]
    return name.startswith("--") and name[2:3].isalpha() and name.replace("-", "").isalnum()


def expand_multi_values(command: Command, words: Sequence[str]) -> list[str]:
    """Rewrite `--drop A B` as `--drop A --drop B`, for options that accept several values."""
    greedy = {flag: o.follows for o in command.options for flag in o.flags if o.follows}
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        found.append(word)
        flag, equals, _ = word.partition("=")
        follows = greedy.get(flag)
        if follows is None:
            continue
        if not equals and rest:
            found.append(rest.pop(0))
        while rest and not rest[0].startswith("-") and follows(rest[0]):
            found += [flag, rest.pop(0)]
    return found
