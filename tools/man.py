"""The manual page, from the commands' own declarations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from deltaproto import __version__
from deltaproto.cli.app import EXIT_CODE_MEANINGS
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.main import COMMANDS, load_command


def manual() -> str:
    """`deltaproto.1` in man's own macros."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH DELTAPROTO 1 "" "deltaproto {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "deltaproto \\- inspect and change the protocol of Delta Lake tables"
    yield ".SH SYNOPSIS"
    yield ".B deltaproto"
    yield ".I COMMAND"
    yield "[\\fIARGUMENT\\fR...] [\\fIOPTION\\fR...]"
    yield ".SH DESCRIPTION"
    yield from _text(
        "deltaproto shows the protocol of Delta tables, checks it against the clients that use "
        "them, plans upgrades and downgrades, carries plans out step by step, and keeps watch over "
        "a whole fleet. Only apply ever writes to a table."
    )
    yield from _text(
        "Data goes to standard output, everything else to standard error. Most options have an "
        "environment variable: DELTAPROTO_ and the name in capitals, as DELTAPROTO_FORMAT. Options "
        "that lower safety have none; the manual lists those with another name."
    )
    yield ".SH COMMANDS"
    for name in COMMANDS:
        yield from _command(load_command(name))
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODE_MEANINGS.items():
        yield from _item(f"\\fB{int(code)}\\fR", meaning)
    yield ".SH SEE ALSO"
    yield from _text("deltaproto COMMAND --help, and the guides in the documentation.")


def _command(command: Command) -> Iterator[str]:
    argument = command.argument
    metavar = f" \\fI{_quoted(argument.metavar)}\\fR" if argument is not None else ""
    yield f".SS \\fB{_quoted(command.name)}\\fR{metavar}"
    yield from _text(command.help)
    if argument is not None:
        yield from _item(f"\\fI{_quoted(argument.metavar)}\\fR", argument.help)
    for option in command.options:
        yield from _item(_flags(option), option.help)


def _flags(option: Option) -> str:
    flags = ", ".join(f"\\fB{_quoted(flag)}\\fR" for flag in option.flags)
    if option.type is bool:
        return flags
    choices = "|".join(map(str, option.type)) if hasattr(option.type, "__members__") else ""
    metavar = option.metavar or choices or option.type.__name__.upper()
    return f"{flags} \\fI{_quoted(metavar)}\\fR"


def _item(head: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield head
    yield from _wrapped(text)


def _text(text: str) -> Iterator[str]:
    yield ".PP"
    yield from _wrapped(text)


def _wrapped(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, 96, break_on_hyphens=False, break_long_words=False):
        # A dot or quote at the beginning of a line would be a request.
        yield f"\\&{_quoted(line)}" if line[0] in ".'" else _quoted(line)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
