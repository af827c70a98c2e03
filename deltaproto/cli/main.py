"""The entry point: find the command, run it, and turn failures into messages and exit codes."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from deltaproto.arrow_imports import hide_numpy_and_pandas
from deltaproto.cli.declare import (
    Command,
    environment_name,
    expand_multi_values,
    modernize,
    refuse_unclear_options,
)
from deltaproto.cli.output import (
    StreamError,
    attach_results,
    attached_results,
    ignore_closed_pipes,
    unwritten_error,
)
from deltaproto.cli.signals import handle_termination, report_interruption
from deltaproto.errors import DeltaprotoError, EngineError, ExitCode, UsageError, is_debugged

if TYPE_CHECKING:
    from deltaproto.redaction import Redactor


COMMANDS = {
    "inspect": "Show protocols, features, isolation levels and findings",
    "scan": "Find tables and save their protocols to an inventory",
    "catalogs": "Test the connection to a catalog",
    "drift": "Show what changed between two scans, and who changed it",
    "report": "Write a report about a fleet of tables",
    "history": "Show which commits changed a table's protocol, and why",
    "discover": "Show which clients use tables, for whom and how often",
    "forecast": "Show what Databricks may turn on, and what that blocks",
    "check": "Check tables against clients, a policy or a baseline",
    "plan": "Plan how to bring tables into line with a policy",
    "plan-upgrade": "Plan a new feature, property or isolation level",
    "plan-downgrade": "Plan the cheapest statements that lower the protocol",
    "rehearse": "Run plans on a shallow clone, and compare the results",
    "runbook": "Write a release runbook for plans",
    "apply": "Execute plans step by step, gated and verified",
    "status": "Show the progress of a rollout",
    "rollout": "Pause, resume or abort a rollout, or skip a table",
    "conflicts": "Show which concurrent operations conflict",
    "features": "Show the catalog of table features",
    "clients": "Show what clients can read and write",
    "certify": "Measure what a real client does with each feature",
    "explain": "Explain a rule, and how to fix what it finds",
    "init": "Write a settings file and a starter policy",
    "demo": "Write example tables for trying the other commands",
}
"""command summaries by name; a command's module is imported only when it runs"""
_COLLECT_AFTER = 50_000
"""new objects after which Python looks for unreachable ones; 700 by default"""
# Undeclared runtime dependencies of pyspark 3.5.
_MISSING_LIBRARY_HINTS = {
    "numpy": "pip install 'pyarrow<26': pyspark[connect] 3.5 needs NumPy 1, which needs it",
    "distutils": "pip install setuptools: pyspark 3.5 needs it with Python 3.12 and later",
    "pandas": "pip install pandas: Spark needs it to run Python on its executors",
}


def run_process() -> NoReturn:
    """Run the command line, and end the process with its exit code."""
    hide_numpy_and_pandas()
    if not is_debugged(sys.argv):
        # deltalake logs every attempt to find a region or credentials; its error says it better.
        os.environ.setdefault("RUST_LOG", "error")
    code = main()
    if _is_only_memory_left():
        # The process ends anyway. Freeing its objects takes a tenth of the time of many commands.
        os._exit(code)
    sys.exit(code)


def _is_only_memory_left() -> bool:
    """Run the exit handlers; False if threads or unwritten output need more than that.

    Threads that read are given up: after Ctrl-C, a store may leave them waiting.
    """
    interrupts = sys.modules.get("deltaproto.interrupts")
    readers = getattr(interrupts, "READER_THREADS", "-")
    others = [each for each in threading.enumerate() if not each.name.startswith(readers)]
    if len(others) > 1 or not hasattr(atexit, "_run_exitfuncs"):
        return False
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Expected failures are never raised."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _accept_any_text()
    # Most of a command's objects live until it ends, so most collections find nothing.
    threshold = gc.get_threshold()
    gc.set_threshold(_COLLECT_AFTER)
    interruptions: list[KeyboardInterrupt] = []
    try:
        with handle_termination() as interruptions:
            code = _run_command(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        if interruptions:
            # A library swallowed the interruption, and what it was reading may be wrong.
            return report_interruption(interruptions[0])
    except KeyboardInterrupt as error:
        return report_interruption(error, _json_command(words))
    except Exception as error:
        if type(error).__name__ == "Abort":
            return report_interruption(error, _json_command(words))
        expected = error if isinstance(error, DeltaprotoError) else _to_expected_error(error)
        attach_results(expected, attached_results(error))
        if interruptions:
            return _report_error_after_interruption(interruptions[0], expected, words)
        if is_debugged(words) and expected is not error:
            sys.excepthook = partial(_print_traceback, words)
            raise
        return report_error(expected, words)
    finally:
        gc.set_threshold(*threshold)
        if shown := sys.modules.get("deltaproto.render.interface"):
            # Notices belong to this run; a program may call main twice.
            shown.NOTICES.clear()
    return code


def load_command(name: str) -> Command:
    """Load the declaration of one command."""
    declared: Command = importlib.import_module(f"deltaproto.cli.{name.replace('-', '_')}").COMMAND
    return declared


def _accept_any_text() -> None:
    # Paths are bytes; `ignore_closed_pipes` prepares standard output for them.
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    ignore_closed_pipes()


def _run_command(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        command = load_command(words[0])
        rest, notices = modernize(command, words[1:])
        refuse_unclear_options(command, rest)
        if any(name.startswith("DELTAPROTO_") for name in os.environ):
            notices += _apply_environment(command, rest)
        if notices:
            from deltaproto.cli.progress import warn

            for notice in notices:
                warn(notice)
        words = [words[0], *redact_addresses(expand_multi_values(command, rest))]
    from deltaproto.cli import app

    return app.run(COMMANDS, load_command, words)


def _apply_environment(command: Command, words: Sequence[str]) -> list[str]:
    """Return notices about variables with a wrong name or no value, or that weaken the gate."""
    from deltaproto.cli.variables import (
        find_empty_variables,
        find_misspelled_variables,
        find_weakened_gates,
        modernize_variables,
        refuse_ambiguous_variables,
    )

    notices = modernize_variables(command)
    refuse_ambiguous_variables(command)
    noted = find_weakened_gates(command, words)
    noted += find_empty_variables(command)
    noted += find_misspelled_variables(command, lambda: map(load_command, COMMANDS))
    if noted:
        from deltaproto.render import interface

        interface.NOTICES.extend(noted)
    return [*notices, *noted]


def _print_traceback(words: Sequence[str], *raised: Any) -> None:
    import traceback

    sys.stderr.write(build_redactor(words)("".join(traceback.format_exception(*raised))))


class _InternalError(DeltaprotoError):
    """An internal error (a bug in deltaproto). The result is incomplete, so exit code 3."""

    exit_code = ExitCode.UNREADABLE
    code = "internal"

    def __init__(self, cause: Exception) -> None:
        super().__init__(
            f"internal error, {type(cause).__name__}: {cause}",
            "this is a bug in deltaproto; run with --debug and report it",
        )


def _to_expected_error(error: Exception) -> DeltaprotoError:
    """Return the error for a missing library, Spark or folder, a full disk, or a bug."""
    if isinstance(error, FileNotFoundError) and _is_directory_missing():
        from deltaproto.location import NO_WORKING_DIRECTORY

        return UsageError(*NO_WORKING_DIRECTORY)
    if isinstance(error, FileNotFoundError) and not _has_temporary_folder():
        return UsageError(
            "no temporary folder can be written", "set TMPDIR to a folder that you can write"
        )
    if isinstance(error, StreamError):
        return unwritten_error("standard output", error)
    if "pyspark" in sys.modules:
        from deltaproto.tables.engine_errors import (
            is_connection_lost,
            lost_engine_error,
            spark_message,
        )

        if is_connection_lost(spark_message(error)):
            return lost_engine_error(error)
    if not isinstance(error, ImportError) or (error.name or "").startswith("deltaproto"):
        return _InternalError(error)
    hints = (hint for word, hint in _MISSING_LIBRARY_HINTS.items() if word in str(error).lower())
    hint = next(hints, "install or upgrade the library that the message names")
    return EngineError(f"cannot import a library: {str(error).partition(chr(10))[0]}", hint)


def _is_directory_missing() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _has_temporary_folder() -> bool:
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        return False
    return True


def report_error(error: DeltaprotoError, words: Sequence[str]) -> int:
    """Print an error to standard error, and in JSON modes also as JSON."""
    redact = build_redactor(words)
    error.message, error.hint = redact(error.message), redact(error.hint)
    if (command := _json_command(words)) is not None:
        from deltaproto.render.interface import dump_json, envelope, error_fields

        payload = {**attached_results(error), "error": error_fields(error)}
        print(dump_json(envelope(command, payload, complete=False), indent=None))
    from deltaproto.render.terminal import single_line

    for line in [redact(each) for each in error.lines] or [error.message]:
        print(f"error: {single_line(line)}", file=sys.stderr)
    if error.hint:
        print(f"hint: {single_line(error.hint)}", file=sys.stderr)
    return int(error.exit_code)


def _report_error_after_interruption(
    interruption: KeyboardInterrupt, error: DeltaprotoError, words: Sequence[str]
) -> int:
    """Report an interruption that a library replaced by its error, or that caused the error."""
    from deltaproto.render.terminal import single_line

    attach_results(interruption, attached_results(error))
    code = report_interruption(interruption, _json_command(words))
    message = single_line(build_redactor(words)(error.message))
    print(f"error after the interruption: {message}", file=sys.stderr)
    return code


def _json_command(words: Sequence[str]) -> str | None:
    """Return the command's name, empty if unknown, or None if the output is not JSON."""
    chosen = os.environ.get("DELTAPROTO_FORMAT", "")
    for position, word in enumerate(words):
        if word.startswith("--format="):
            chosen = word.removeprefix("--format=")
        elif word == "--format" and position + 1 < len(words):
            chosen = words[position + 1]
    if chosen not in ("json", "jsonl"):
        return None
    return words[0] if words and words[0] in COMMANDS else ""


_PAIRS = ("--storage-option", "--spark-conf")
_REMOTE = "--spark-remote"


def redact_addresses(words: Sequence[str]) -> list[str]:
    """Remove credentials from the table addresses in `words`; addresses are shown and stored."""
    from deltaproto.redaction import may_have_credentials, redact_address, redact_addresses_in

    if not any(map(may_have_credentials, words)):
        return list(words)

    def shown(before: str, word: str) -> str:
        flag, equals, value = word.partition("=")
        if flag.startswith("-") and equals:
            return (
                word if flag in secret else f"{flag}={redact_addresses_in(redact_address(value))}"
            )
        return word if before in secret else redact_addresses_in(redact_address(word))

    secret = (*_PAIRS, _REMOTE)
    return [shown(before, word) for before, word in zip(("", *words), words, strict=False)]


def build_redactor(words: Sequence[str]) -> Redactor:
    """Return a redactor for secrets in the words, option variables and cloud variables."""
    from deltaproto.redaction import Redactor

    known: dict[str, str] = {}
    for value in _find_secrets(words):
        name, _, rest = value.partition("=")
        known[name] = rest
    return Redactor(known)


def _find_secrets(words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words):
        flag, equals, rest = word.partition("=")
        value = rest if equals else "".join(words[position + 1 : position + 2])
        if flag in _PAIRS:
            yield value
        if flag == _REMOTE:
            yield from value.split(";")
    for flag in _PAIRS:
        yield from os.environ.get(environment_name(flag), "").split()
    yield from os.environ.get(environment_name(_REMOTE), "").split(";")
