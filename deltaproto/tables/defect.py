"""A defect of deltaproto on one table, which must not cost other tables their result."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deltaproto.errors import DeltaprotoError, ErrorCode, TableError

_MOST = 500


@contextmanager
def one_table() -> Iterator[None]:
    """Make an unexpected exception the error of the table that is read or judged inside.

    With `--debug` it is raised as it is. So is an ImportError: what is not installed is missing for
    every table.

    Raises:
        TableError: internal, also when the memory or the stack is exhausted.
    """
    try:
        yield
    except (DeltaprotoError, ImportError, BrokenPipeError):
        raise
    except Exception as error:
        if "--debug" in sys.argv or os.environ.get("DELTAPROTO_DEBUG"):
            raise
        raise _defect(error) from None


def _defect(error: Exception) -> TableError:
    from deltaproto.tables.redact import Redactor

    text = (str(error).splitlines() or [""])[0][:_MOST]
    return TableError(
        ErrorCode.INTERNAL,
        Redactor()(f"internal error, {type(error).__name__}: {text}"),
        "a defect in deltaproto; run with --debug on this table and report it",
    )
