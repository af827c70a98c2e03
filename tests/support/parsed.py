"""Command lines that are parsed, but not run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from deltaproto.cli import app
from deltaproto.cli.declare import Command, Option, expand_multi_values


def recording(command: Command) -> tuple[Command, list[dict[str, Any]]]:
    """Return the command with its runs recorded instead, and the list that records their values."""
    runs: list[dict[str, Any]] = []

    def run(values: Mapping[str, Any]) -> int:
        runs.append(dict(values))
        return 0

    return command._replace(run=run), runs


def parsed(command: Command, words: list[str]) -> dict[str, Any]:
    """Return the values of a command line.

    Raises:
        UsageError: for a line with a mistake.
    """
    recorded, runs = recording(command)
    line = [command.name, *expand_multi_values(command, words)]
    assert app.run({command.name: ""}, lambda _: recorded, line) == 0
    (values,) = runs
    return values


def allowed_values(option: Option) -> tuple[str, ...]:
    """Return the values of an enumeration option; empty for other types."""
    if issubclass(option.type, StrEnum):
        return tuple(member.value for member in option.type)
    return ()
