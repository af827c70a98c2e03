"""Errors of engines in one line, and defects of deltaproto that must cost one table only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deltaproto.errors import DeltaprotoError, ErrorCode, TableError

_GONE = re.compile(
    r"Connection refused|Answer from Java side is empty|Error while sending or receiving|"
    r"StatusCode.UNAVAILABLE|SESSION_CLOSED|INVALID_HANDLE|SparkContext was shut down|"
    r"An error occurred while trying to connect|has been stopped|stopped SparkContext|"
    # All that py4j of Spark 3.5 says when the JVM ends during a call, or before the next.
    r"\AAn error occurred while calling [\w.$]+\Z|\A\w+ does not exist in the JVM\Z"
)
# As gRPC writes a failed call (grpc._channel.__repr__).
_CALL = re.compile(
    r"<_(?:InactiveRpcError|MultiThreadedRendezvous) of RPC that terminated with:"
    r"\s+status = (StatusCode\.\w+)\s+details = \"([^\n]*)\"\n"
)


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its type's name."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _text(error: BaseException) -> str:
    text = str(error)
    # A gRPC error's first line names a class only.
    call = _CALL.match(text)
    return f"{call[1]}: {call[2]}" if call else text


def spark_text(error: BaseException) -> str:
    """What Spark itself says; py4j's own text names the call only."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return _text(error) or type(error).__name__
    try:
        return str(java.toString())
    except Exception:
        # The JVM may be gone.
        return str(error)


def spark_reason(error: BaseException) -> str:
    """The first line of what Spark itself says."""
    return first_line(Exception(spark_text(error)))


def is_gone(text: str) -> bool:
    """Whether an engine's text says that Spark itself went away."""
    return _GONE.search(text) is not None


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
    from deltaproto.redaction import Redactor

    text = (str(error).splitlines() or [""])[0][:_MOST]
    return TableError(
        ErrorCode.INTERNAL,
        Redactor()(f"internal error, {type(error).__name__}: {text}"),
        "a defect in deltaproto; run with --debug on this table and report it",
    )
