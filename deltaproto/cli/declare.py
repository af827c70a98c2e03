"""How a command declares its arguments, options, examples and exit codes.

Typer (`app`) parses the command line, and makes help and completion, from these declarations.
`variables` gives options their environment variables.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from deltaproto.errors import ExitCode


def environment_name(flag: str) -> str:
    """The environment variable that stands in for a long flag."""
    return f"DELTAPROTO_{_bare(flag).upper()}"


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


class Panel(StrEnum):
    """The groups of options in a command's help, in their order."""

    GOAL = "Goal"
    CLIENTS = "Clients"
    INPUT = "Input"
    OUTPUT = "Output"
    SPARK = "Spark"
    SAFETY = "Safety"


class Option(NamedTuple):
    """One option. `type` is bool (a flag), int, str or an enumeration of strings."""

    flags: tuple[str, ...]
    """the long flag first"""
    help: str
    type: type
    default: Any = None
    many: bool = False
    """may be repeated; the value is then a tuple"""
    metavar: str | None = None
    follows: Callable[[str], bool] | None = None
    """whether a word after the first value is one more value; None: each takes a flag"""
    panel: Panel = Panel.INPUT
    old: str | None = None
    """the flag's spelling in earlier releases, which still works"""

    @property
    def name(self) -> str:
        """The key of its value: its long flag, where Python allows a parameter of that name."""
        bare = self._bare
        return f"{bare}_" if keyword.iskeyword(bare) else bare

    @property
    def _bare(self) -> str:
        return _bare(self.flags[0])


class Argument(NamedTuple):
    """The positional argument of a command: one or many names."""

    name: str
    metavar: str
    help: str
    many: bool = False
    required: bool = True


class Command(NamedTuple):
    """One command. `run` takes all values by name and returns the exit code."""

    name: str
    help: str
    run: Callable[[Mapping[str, Any]], int]
    argument: Argument | None = None
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    """command lines for the help, without the name `deltaproto`"""
    exits: tuple[ExitCode, ...] = (ExitCode.OK, ExitCode.USAGE, ExitCode.UNREADABLE)
    """the exit codes that it can return"""


def modernize(command: Command, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words with today's spelling of old flags, and a notice for each of those."""
    today = {option.old: option.flags[0] for option in command.options if option.old}
    found, notices = list(words), []
    for position, word in enumerate(words):
        if word == "--":
            break
        flag, equals, value = word.partition("=")
        if flag in today:
            found[position] = f"{today[flag]}{equals}{value}"
            notices.append(f"{flag} is called {today[flag]} now; the old name will be removed")
    return found, notices


def expand_multi_values(command: Command, words: Sequence[str]) -> list[str]:
    """`--drop A B` as `--drop A --drop B`, for options that take several values."""
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


def choices(option: Option) -> tuple[str, ...]:
    """What an option of an enumeration type accepts; empty for other types."""
    if issubclass(option.type, StrEnum):
        return tuple(member.value for member in option.type)
    return ()
