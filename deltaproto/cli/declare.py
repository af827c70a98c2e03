"""How a command declares its arguments and options, once for both parsers.

Typer (`app`) makes help, completion and error messages of a declaration; `short` reads plain,
well-formed command lines with the same declaration and without typer's start-up cost. `variables`
gives options their environment variables.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple


def environment_name(flag: str) -> str:
    """The environment variable that stands in for a long flag."""
    return f"DELTAPROTO_{_bare(flag).upper()}"


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


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

    @property
    def name(self) -> str:
        """The key of its value: its long flag, where Python allows a parameter of that name."""
        bare = self._bare
        return f"{bare}_" if keyword.iskeyword(bare) else bare

    @property
    def _bare(self) -> str:
        return _bare(self.flags[0])

    def convert(self, text: str) -> Any:
        """The value that `text` stands for.

        Raises:
            ValueError: when it stands for none.
        """
        if self.type is int and not (text.isascii() and text.isdecimal()):
            raise ValueError(text)
        return self.type(text)


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
