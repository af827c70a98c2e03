"""The short way: plain command lines, parsed without typer.

Only what both parsers certainly agree on is taken here: exact flags, values that convert, no
environment twins in play. Everything else, every mistake above all, goes to typer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from deltaproto.cli.declare import Command, Option


def parse(command: Command, words: Sequence[str]) -> dict[str, Any] | None:
    """All values of the command, or None when typer has to look at the line."""
    if any(name.startswith(("DELTAPROTO_", "_DELTAPROTO_")) for name in os.environ):
        return None
    by_flag = {flag: option for option in command.options for flag in option.flags}
    given: dict[str, list[Any]] = {}
    positional: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            positional.append(word)
            continue
        flag, equals, value = word.partition("=")
        option = by_flag.get(flag)
        if option is None or (equals and not flag.startswith("--")):
            return None
        if option.type is bool:
            if equals:
                return None
            given.setdefault(option.name, []).append(True)
            continue
        text = value if equals else next(rest, None)
        if text is None or (not equals and text.startswith("-") and text != "-"):
            return None
        try:
            given.setdefault(option.name, []).append(option.convert(text))
        except ValueError:
            return None
    values = {option.name: _value(option, given.get(option.name)) for option in command.options}
    return _with_argument(command, values, positional)


def _value(option: Option, given: list[Any] | None) -> Any:
    if given is None:
        return () if option.many else option.default
    return tuple(given) if option.many else given[-1]


def _with_argument(
    command: Command, values: dict[str, Any], positional: list[str]
) -> dict[str, Any] | None:
    argument = command.argument
    if argument is None:
        return values if not positional else None
    if argument.required and not positional:
        return None
    if argument.many:
        values[argument.name] = tuple(positional)
    elif len(positional) > 1:
        return None
    else:
        values[argument.name] = positional[0] if positional else None
    return values
