"""Messages shown when a run is interrupted: by Ctrl-C, a canceled job or a closed terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from deltaproto.cli.output import attached_results

INTERRUPTED_EXIT_CODE = 130
_SIGNALS = ("SIGTERM", "SIGHUP")
_RECEIVED: list[KeyboardInterrupt] = []
"""the interruptions of this run"""


def was_interrupted() -> bool:
    """Return True if this run was interrupted: an error may then be a library's word for that."""
    return bool(_RECEIVED)


class Terminated(KeyboardInterrupt):
    """Raised for a signal other than Ctrl-C."""

    number = signal.SIGTERM

    def __str__(self) -> str:
        return f"received {self.number.name}"


@contextmanager
def resume_hint(hint: str | None) -> Iterator[None]:
    """Add `hint` to an interruption that has no hint yet."""
    try:
        yield
    except KeyboardInterrupt as error:
        error.args = error.args or (hint,)
        raise


@contextmanager
def handle_termination() -> Iterator[list[KeyboardInterrupt]]:
    """Handle SIGTERM and SIGHUP like Ctrl-C during the block; ignored signals stay ignored.

    Yields the interruptions that were raised so far: a library may turn one into its own error.
    """
    received = _RECEIVED
    received.clear()

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(KeyboardInterrupt())
        raise received[-1]

    def end(number: int, frame: FrameType | None) -> None:
        if any(isinstance(each, Terminated) for each in received):
            # The first signal is being handled: records are being written.
            return
        error = Terminated()
        error.number = signal.Signals(number)
        received.append(error)
        handler = signal.getsignal(signal.SIGINT)
        try:
            if callable(handler):
                # Spark's own handler cancels its jobs.
                handler(signal.SIGINT, frame)
        except KeyboardInterrupt:
            pass
        raise error

    handlers: dict[int, tuple[Any, Any]] = {signal.SIGINT: (signal.default_int_handler, interrupt)}
    for name in _SIGNALS:
        if hasattr(signal, name):
            handlers[getattr(signal, name)] = (signal.SIG_DFL, end)
    set_here = []
    for number, (default, handler) in handlers.items():
        if signal.getsignal(number) is not default:
            continue
        try:
            signal.signal(number, handler)
        except ValueError:
            # Only the main thread receives signals.
            break
        set_here.append(number)
    try:
        yield received
    finally:
        for number in set_here:
            default, handler = handlers[number]
            # Spark replaces the handler of Ctrl-C for its session, which may outlive the command.
            if signal.getsignal(number) is handler:
                signal.signal(number, default)


def report_interruption(error: BaseException, command: str | None = None) -> int:
    """Report on standard error that a run was interrupted and, if known, how to resume.

    Args:
        error: a `KeyboardInterrupt`, or the exception that typer raised for one.
        command: the command's name in JSON modes, where standard output gets a JSON document
            with the results so far; None in other modes.
    """
    interruption = error if isinstance(error, KeyboardInterrupt) else error.__context__
    args = interruption.args if isinstance(interruption, KeyboardInterrupt) else ()
    hints = [str(hint) for hint in args if hint]
    by = f" by {interruption.number.name}" if isinstance(interruption, Terminated) else ""
    if command is not None:
        from deltaproto.render.interface import json_text

        fields = {"code": "interrupted", "message": f"interrupted{by}", "hint": " ".join(hints)}
        payload = {**attached_results(interruption or error), "error": fields}
        sys.stdout.write(json_text(command, payload, line=True, complete=False))
    print(f"interrupted{by}", *(f"hint: {hint}" for hint in hints), sep="\n", file=sys.stderr)
    return (
        128 + interruption.number if isinstance(interruption, Terminated) else INTERRUPTED_EXIT_CODE
    )
