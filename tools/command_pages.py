"""The reference of the command line: a page for each command, from its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from deltaproto.cli.app import EXIT_CODE_MEANINGS
from deltaproto.cli.declare import Command, Option, Panel
from deltaproto.cli.main import COMMANDS, load_command
from deltaproto.cli.variables import environment_variable

_EXPLAINED = {
    "check": "manual/check.md",
    "scan": "manual/fleets.md",
    "catalogs": "guides/catalogs.md",
    "drift": "manual/fleets.md",
    "report": "manual/fleets.md",
    "inspect": "manual/reading-output.md",
    "history": "manual/reading-output.md",
    "discover": "manual/discover.md",
    "forecast": "guides/forecast-automatic-upgrades.md",
    "conflicts": "manual/conflicts-and-clients.md",
    "features": "manual/conflicts-and-clients.md",
    "clients": "manual/conflicts-and-clients.md",
    "certify": "manual/conflicts-and-clients.md",
    "explain": "manual/conflicts-and-clients.md",
    "demo": "tutorials/first-answer.md",
}
"""the page that explains a command; else that of plans"""
_PLANS = "manual/plan-and-apply.md"


def index() -> str:
    """Return the page that lists the commands."""
    rows = [
        f"| [`{name}`](commands/{name}.md) | {load_command(name).help.partition('. ')[0]} |"
        for name in COMMANDS
    ]
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    return (
        "# Commands\n\nEach page has a command's options with their defaults and environment "
        f"variables, examples and exit codes, as `--help` does.\n\n{table}\n"
    )


def pages() -> Iterator[tuple[str, str]]:
    """Yield each command's name and page."""
    for name in COMMANDS:
        yield name, "\n\n".join(_page(load_command(name))) + "\n"


def _page(command: Command) -> Iterator[str]:
    argument = command.argument
    words = [f"deltaproto {command.name}"]
    if argument is not None:
        words.append(argument.metavar)
    yield f"# deltaproto {command.name}"
    yield command.help
    yield f"[Explained with examples](../../{_EXPLAINED.get(command.name, _PLANS)})."
    yield f"```text\n{' '.join([*words, '[OPTIONS]'])}\n```"
    if argument is not None:
        yield f"`{argument.metavar}`: {argument.help}"
    for panel in Panel:
        options = [each for each in command.options if each.panel is panel]
        if options:
            yield f"## {panel}"
            yield _table(command, options)
    if command.examples:
        lines = "\n".join(f"deltaproto {each}" for each in command.examples)
        yield f"## Examples\n\n```bash\n{lines}\n```"
    rows = [f"| {int(code)} | {EXIT_CODE_MEANINGS[code]} |" for code in command.exits]
    yield "## Exit codes\n\n" + "\n".join(["| code | meaning |", "|---|---|", *rows])


def _table(command: Command, options: list[Option]) -> str:
    rows = [
        f"| {_flags(each)} | {_cell(each.help)} | {_default(each)} | {_variable(command, each)} |"
        for each in options
    ]
    heads = ["| option | effect | default | variable |", "|---|---|---|---|"]
    return "\n".join([*heads, *rows])


def _flags(option: Option) -> str:
    value = ""
    if issubclass(option.type, StrEnum):
        value = " " + _cell("|".join(option.type))
    elif option.metavar is not None:
        value = f" {_cell(option.metavar)}"
    return ", ".join(f"`{flag}{value}`" for flag in option.flags)


def _default(option: Option) -> str:
    return "" if option.default in (None, False, ()) else f"`{option.default}`"


def _variable(command: Command, option: Option) -> str:
    name = environment_variable(command.name, option.flags[0])
    return "" if name is None else f"`{name}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
