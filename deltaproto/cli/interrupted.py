"""What somebody is told who interrupts a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

CODE = 130


@contextmanager
def going_on(hint: str | None) -> Iterator[None]:
    """Have an interruption say how to go on; one that says something already is left alone."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(*(error.args or (hint,))) from None


def interrupted(error: BaseException) -> int:
    """Say on standard error that a run was interrupted, and how to go on where that is known.

    Args:
        error: a `KeyboardInterrupt`, or what the command line's library made of one.
    """
    told = error if isinstance(error, KeyboardInterrupt) else error.__context__
    hints = told.args if isinstance(told, KeyboardInterrupt) else ()
    print("interrupted", *(f"hint: {hint}" for hint in hints if hint), sep="\n", file=sys.stderr)
    return CODE
