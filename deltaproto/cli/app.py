"""The typer application: argument parser, help, completion and usage errors."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from deltaproto import __version__
from deltaproto.cli.declare import HELP_FLAGS, Command, Option, Panel
from deltaproto.cli.signals import INTERRUPTED_EXIT_CODE
from deltaproto.cli.variables import environment_variable
from deltaproto.errors import ExitCode, UsageError
from deltaproto.input_file import SETTINGS_FILE

EXIT_CODE_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FINDINGS: "findings at or above --fail-on",
    ExitCode.USAGE: "a mistake on the command line or in a file that it names",
    ExitCode.UNREADABLE: "a table or an engine is unavailable, or the result is incomplete",
    ExitCode.STALE: "the plan is stale, or a gate failed; nothing was changed",
    ExitCode.FAILED: "a step failed, or a concurrent writer won",
    ExitCode.CHANGES: "changes are pending (with --detailed-exitcode)",
}
"""meaning of the exit codes, the same in every command"""
COMPLETION_VARIABLE = "_DELTAPROTO_COMPLETE"
"""set by the shell's script while it completes a command line; the name is typer's"""
_EPILOG = (
    "Most options can be set by environment variables: DELTAPROTO_ and the option's name in "
    "capitals. The manual lists the exceptions."
)


def run(commands: Mapping[str, str], load: Callable[[str], Command], words: Sequence[str]) -> int:
    """Parse `words` with typer and run the command. Usage errors are printed and return 2.

    Args:
        commands: name and summary of every command, for the list of commands.
        load: returns the declaration of a command. Only the command that runs is loaded.
    """
    called = next((word for word in [*words, *_words_to_complete()][:1] if word in commands), "")
    command = load(called) if called else None
    parser, parsed = _build_parser(tuple(commands.items()), command)
    parsed.clear()
    parse = partial(parser, args=list(words), prog_name="deltaproto", standalone_mode=False)
    try:
        task = os.environ.get(COMPLETION_VARIABLE)
        if task == "complete_bash":
            from deltaproto.cli.shell_completion import with_whole_words

            parse = partial(with_whole_words, parse)
        elif task in ("complete_zsh", "complete_fish"):
            from deltaproto.cli.shell_completion import with_options

            parse = partial(with_options, parse, zsh=task == "complete_zsh")
        elif _writes_completion_script(words):
            from deltaproto.cli.shell_completion import omit_space_after_equals_sign

            omit_space_after_equals_sign()
        outcome = parse()
    except Exception as error:
        # Typer has moved its usage error classes between releases.
        if getattr(error, "format_message", None) is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            return int(ExitCode.USAGE)
        hint = " ".join(("run deltaproto", called, "--help")).replace("  ", " ")
        from deltaproto.cli.usage_errors import describe

        raise UsageError(*describe(error, hint)) from None
    if outcome == INTERRUPTED_EXIT_CODE:
        # Typer ends quietly when it is interrupted while it parses.
        raise KeyboardInterrupt
    # Run outside typer, which would turn signals into its own errors.
    return parsed[0]() if parsed else int(outcome or ExitCode.OK)


@lru_cache(maxsize=32)
def _build_parser(
    commands: tuple[tuple[str, str], ...], command: Command | None
) -> tuple[Callable[..., Any], list[Callable[[], int]]]:
    """Return typer's parser, and the list to which it appends the call that it parsed.

    Args:
        command: the only one that is parsed; None: the others are listed.
    """
    app = typer.Typer(
        name="deltaproto",
        cls=_Group,
        help="Inspect the protocol of Delta Lake tables, and change it without breaking anyone.",
        no_args_is_help=True,
        # The options that install completion belong to the tool, not to a command.
        add_completion=command is None or COMPLETION_VARIABLE in os.environ,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": [*HELP_FLAGS]},
    )
    app.callback()(_tool_options)
    parsed: list[Callable[[], int]] = []
    if command is not None:
        app.command(command.name, cls=_command_class(command), help=command.help)(
            _build_callback(command, parsed)
        )
    else:
        for name, summary in commands:
            app.command(name, help=summary)(_unparsed_command)
    return typer.main.get_command(app), parsed


def _writes_completion_script(words: Sequence[str]) -> bool:
    flags = ("--install-completion", "--show-completion")
    return os.environ.get(COMPLETION_VARIABLE) == "source_bash" or bool({*words} & {*flags})


def _words_to_complete() -> list[str]:
    """Return the words that the shell wants to complete, without the program name."""
    if COMPLETION_VARIABLE not in os.environ:
        return []
    # bash sets COMP_WORDS; typer's scripts for zsh and fish set the other variable.
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    return line.split()[1:]


class _Group(TyperGroup):
    """The command list, followed by notes that apply to all commands."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl(
                [(str(int(code)), text) for code, text in EXIT_CODE_MEANINGS.items()]
            )
        formatter.write_paragraph()
        formatter.write_text(_EPILOG)


def _unparsed_command() -> None:
    """Placeholder callback for a command that is only listed."""


def _command_class(command: Command) -> type[TyperCommand]:
    """Return a class whose help groups the options and ends with examples and exit codes."""
    panels = {option.name: option.panel for option in command.options}

    class Grouped(TyperCommand):
        def format_options(self, ctx: Any, formatter: Any) -> None:
            records: dict[str, list[tuple[str, str]]] = {"Arguments": []}
            records |= {panel.value: [] for panel in Panel}
            for parameter in self.get_params(ctx):
                # Usage errors name the variable; help does not.
                shown = copy(parameter)
                setattr(shown, "show_envvar", False)  # noqa: B010
                record = shown.get_help_record(ctx)
                if record is not None:
                    argument = parameter.param_type_name == "argument"
                    panel = panels.get(str(parameter.name), Panel.OUTPUT)
                    records["Arguments" if argument else panel.value].append(record)
            for title, found in records.items():
                if found:
                    with formatter.section(title):
                        formatter.write_dl(found)

        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Examples"):
                for example in command.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}deltaproto {example}\n")
            with formatter.section("Exit codes"):
                formatter.write_dl(
                    [(str(int(code)), EXIT_CODE_MEANINGS[code]) for code in command.exits]
                )

    return Grouped


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"deltaproto {__version__}")
        raise typer.Exit()


def _tool_options(
    # Eager: otherwise typer would first report a missing command.
    version: bool = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        callback=_show_version,
        is_eager=True,
    ),
) -> None:
    pass


def _build_callback(command: Command, parsed: list[Callable[[], int]]) -> Callable[..., None]:
    """Return a function with the command's signature, which appends the call to `parsed`."""

    def function(**values: Any) -> None:
        for option in command.options:
            if option.many:
                values[option.name] = tuple(values[option.name] or ())
        argument = command.argument
        if argument is not None and argument.many:
            values[argument.name] = tuple(values[argument.name] or ())
        parsed.append(partial(_run, command, values))

    parameters = [_option_parameter(command, option) for option in command.options]
    if command.argument is not None:
        parameters.insert(0, _argument_parameter(command))
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    function.__name__ = command.name
    return function


def _run(command: Command, values: Mapping[str, Any]) -> int:
    _refuse_unusable_values(command, values)
    configured = values.get("config") is not None or os.path.lexists(SETTINGS_FILE)
    if configured or _needs_argument(command, values):
        from deltaproto.cli.configuration import add_settings

        values = add_settings(command, values)
    return command.run(values)


def _refuse_unusable_values(command: Command, values: Mapping[str, Any]) -> None:
    """Refuse empty values, and `~` that no shell expanded: a folder `~` would be created."""
    for option in command.options:
        if _has_empty(values[option.name]):
            raise UsageError(f"{option.flags[0]} is empty", "pass a value, or omit the option")
        if _has_tilde(values[option.name]) and not os.path.lexists("~"):
            hint = "put a space instead of = before it, or write $HOME"
            raise UsageError(f"{option.flags[0]} begins with ~, which is not expanded", hint)
    argument = command.argument
    # Among several names, an empty one counts as a table that does not exist.
    if argument is not None and not argument.many and _has_empty(values[argument.name]):
        hint = f"a shell variable may not be set; run deltaproto {command.name} --help"
        raise UsageError("an argument is empty", hint)


def _has_empty(found: Any) -> bool:
    """Return True if a value, or one of several, is an empty or blank string."""
    return any(not value.strip() for value in _strings(found))


def _has_tilde(found: Any) -> bool:
    """Return True if a value, or one of several, is a path in the home folder."""
    return any(value.startswith("~/") for value in _strings(found))


def _strings(found: Any) -> list[str]:
    several = found if isinstance(found, tuple) else (found,)
    return [value for value in several if isinstance(value, str)]


def _needs_argument(command: Command, values: Mapping[str, Any]) -> bool:
    argument = command.argument
    return argument is not None and values[argument.name] in (None, ())


def _option_parameter(command: Command, option: Option) -> inspect.Parameter:
    declared: Any = option.type
    if option.many:
        declared = list[str] | None
    elif option.default is None:
        declared = option.type | None
    info = typer.Option(
        *option.flags,
        envvar=environment_variable(command.name, option.flags[0]),
        help=option.help,
        metavar=option.metavar,
        shell_complete=_complete_from(option.words),
    )
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[declared, info],
    )


def _complete_from(
    words: Callable[[], Iterable[str]] | None,
) -> Callable[[Any, Any, str], list[str]] | None:
    """Return a completer for click; typer's own (`autocompletion`) is case-sensitive."""
    if words is None:
        return None

    def complete(_context: Any, _parameter: Any, incomplete: str) -> list[str]:
        typed = incomplete.lower()
        return [word for word in words() if word.lower().startswith(typed)]

    return complete


def _argument_parameter(command: Command) -> inspect.Parameter:
    argument = command.argument
    assert argument is not None
    declared: Any = list[str] if argument.many else str
    # An argument that the settings file can supply is only required after the file was read.
    required = argument.required and argument.setting is None
    if not required:
        declared = declared | None
    info = typer.Argument(
        metavar=argument.metavar,
        help=argument.help,
        shell_complete=_complete_from(argument.words),
    )
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[declared, info],
    )
