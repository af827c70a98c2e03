"""The typer application: help, completion, and the error messages for every mistake."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from deltaproto import __version__
from deltaproto.cli.declare import Command, Option
from deltaproto.cli.variables import variable
from deltaproto.errors import ExitCode, UsageError

EPILOG = (
    "Exit codes: 0 done; 1 findings at or above --fail-on; 2 usage or configuration error; "
    "3 a table or engine could not be read; 4 stale plan, nothing changed; 5 a step failed or "
    "a concurrent writer won; 10 changes pending (with --detailed-exitcode)."
)


def run(commands: Sequence[Command], words: Sequence[str]) -> int:
    """Parse `words` with typer and run the command; usage errors are printed and are code 2."""
    app = typer.Typer(
        name="deltaproto",
        help="Inspect the protocol of Delta Lake tables, and change it without breaking anyone.",
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_tool_options)
    for command in commands:
        app.command(command.name, help=command.help, epilog=EPILOG)(_function(command))
    try:
        outcome = app(args=list(words), prog_name="deltaproto", standalone_mode=False)
    except Exception as error:
        # The classes of typer's usage errors have moved between its releases.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return int(ExitCode.USAGE)
        called = words[0] if words and words[0] in {c.name for c in commands} else ""
        hint = " ".join(("run deltaproto", called, "--help")).replace("  ", " ")
        raise UsageError(" ".join(message().split()), hint) from None
    return outcome if isinstance(outcome, int) else int(ExitCode.OK)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"deltaproto {__version__}")
        raise typer.Exit()


def _tool_options(
    # Eager, or typer would first complain that there is no command.
    version: bool = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        callback=_show_version,
        is_eager=True,
    ),
) -> None:
    pass


def _function(command: Command) -> Callable[..., int]:
    """A function with the signature that typer reads a command from."""

    def function(**values: Any) -> int:
        for option in command.options:
            if option.many:
                values[option.name] = tuple(values[option.name] or ())
        argument = command.argument
        if argument is not None and argument.many:
            values[argument.name] = tuple(values[argument.name] or ())
        return command.run(values)

    parameters = [_option(command, option) for option in command.options]
    if command.argument is not None:
        parameters.insert(0, _argument(command))
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    function.__name__ = command.name
    return function


def _option(command: Command, option: Option) -> inspect.Parameter:
    declared: Any = option.type
    if option.many:
        declared = list[str] | None
    elif option.default is None:
        declared = option.type | None
    info = typer.Option(
        *option.flags,
        envvar=variable(command.name, option.flags[0]),
        help=option.help,
        metavar=option.metavar,
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[declared, info],
    )


def _argument(command: Command) -> inspect.Parameter:
    argument = command.argument
    assert argument is not None
    declared: Any = list[str] if argument.many else str
    if not argument.required:
        declared = declared | None
    info = typer.Argument(metavar=argument.metavar, help=argument.help)
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if argument.required else None,
        annotation=Annotated[declared, info],
    )
