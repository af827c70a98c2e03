"""Messages shown when a run is interrupted: by Ctrl-C, a canceled job or a closed terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED_EXIT_CODE = 130
_SIGNALS = ("SIGTERM", "SIGHUP")


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
def handle_termination() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C during the block; ignored signals stay ignored."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        if received:
            # The first signal is being handled: records are being written.
            return
        received.append(number)
        handler = signal.getsignal(signal.SIGINT)
        try:
            if callable(handler):
                # Spark's own handler cancels its jobs.
                handler(signal.SIGINT, frame)
        except KeyboardInterrupt:
            pass
        error = Terminated()
        error.number = signal.Signals(number)
        raise error

    before = {}
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) is not signal.SIG_DFL:
            continue
        try:
            before[number] = signal.signal(number, end)
        except ValueError:
            # Only the main thread receives signals.
            break
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_interruption(error: BaseException) -> int:
    """Report on standard error that a run was interrupted and, if known, how to resume.

    Args:
        error: a `KeyboardInterrupt`, or the exception that typer raised for one.
    """
    interruption = error if isinstance(error, KeyboardInterrupt) else error.__context__
    hints = interruption.args if isinstance(interruption, KeyboardInterrupt) else ()
    by = f" by {interruption.number.name}" if isinstance(interruption, Terminated) else ""
    lines = (f"interrupted{by}", *(f"hint: {hint}" for hint in hints if hint))
    print(*lines, sep="\n", file=sys.stderr)
    return (
        128 + interruption.number if isinstance(interruption, Terminated) else INTERRUPTED_EXIT_CODE
    )
