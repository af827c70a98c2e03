"""One-line messages for engine errors, and internal errors limited to one table."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from deltaproto.errors import DeltaprotoError, EngineError, ErrorCode, TableError, is_debugged

_CONNECTION_LOST = (
    r"Connection refused|Answer from Java side is empty|Error while sending or receiving|"
    # The complete messages of py4j when the JVM dies between two calls or during one.
    r"\AError while (?:sending|receiving)\Z|\AGateway is not connected\.\Z|"
    r"StatusCode.UNAVAILABLE|SESSION_CLOSED|INVALID_HANDLE|SparkContext was shut down|"
    r"An error occurred while trying to connect|has been stopped|stopped SparkContext|"
    r"Spark Connect server stopped responding|"
    # The complete message of py4j in Spark 3.5 when the JVM dies during or before a call.
    r"\AAn error occurred while calling [\w.$]+\Z|\A\w+ does not exist in the JVM\Z"
)
# py4j's complete message for a class or member if the JVM died, and also if there is none.
_NOT_IN_JVM = r"\A[\w.$]+ does not exist in the JVM\Z"
_CONFLICT = r"\[DELTA_(?:CONCURRENT_\w+|METADATA_CHANGED|PROTOCOL_CHANGED)\b"
_MOST_CONFLICTS = 20
LOST_HINT = "start it and run again"
_MOST_CAUSES = 20
SILENT_SECONDS = 60
"""seconds without any answer after which a Spark Connect server counts as lost"""
# gRPC's texts for calls on a channel that was closed, which `spark_connect` does with servers that
# stopped responding.
_CLOSED = r"Channel closed!|on closed channel!"
# gRPC's text for a failed call (grpc._channel.__repr__).
_CALL = (
    r"<_(?:InactiveRpcError|MultiThreadedRendezvous) of RPC that terminated with:"
    r"\s+status = (StatusCode\.\w+)\s+details = \"([^\n]*)\"\n"
)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, or its type's name."""
    lines = [line.strip() for line in _text(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def is_disk_full(message: str) -> bool:
    """Return True if the message is about a full disk, or a full quota."""
    return any(os.strerror(code) in message for code in (errno.ENOSPC, errno.EDQUOT))


def _text(error: BaseException) -> str:
    text = str(error)
    if re.search(_CLOSED, text):
        return (
            f"the Spark Connect server stopped responding ({SILENT_SECONDS} s without a response)"
        )
    # The first line of a gRPC error is only a class name.
    call = re.match(_CALL, text)
    return f"{call[1]}: {call[2]}" if call else text


def spark_message(error: BaseException) -> str:
    """Return Spark's own message; py4j's message only names the call."""
    java = getattr(error, "java_exception", None)
    if java is None:
        return _text(error) or type(error).__name__
    try:
        return str(java.toString())
    except Exception:
        # The JVM may have exited.
        return str(error)


def repeat_on_conflict(write: Callable[[], object]) -> None:
    """Call a function that commits to a Delta table; repeat if another process's commit conflicts.

    `write` must open the table each time, and have no effect if its commit fails. It uses Spark or
    deltalake, for which an append conflicts with a commit that deletes other rows.
    """
    for _ in range(_MOST_CONFLICTS):
        try:
            write()
            return
        except Exception as error:
            if not _is_conflict(error):
                raise
    write()


def _is_conflict(error: Exception) -> bool:
    if type(error).__module__ == "_internal":
        from deltalake.exceptions import CommitFailedError

        return isinstance(error, CommitFailedError)
    return re.search(_CONFLICT, spark_message(error)) is not None


def spark_root_cause(error: BaseException) -> str:
    """Return the first line of the innermost Java exception that caused the error; empty if none.

    Spark wraps errors in its threads in exceptions that name no reason.
    """
    cause: Any = getattr(error, "java_exception", None)
    found = ""
    try:
        for _ in range(_MOST_CAUSES):
            cause = cause.getCause()
            if cause is None:
                break
            found = first_line(Exception(str(cause.toString())))
    except Exception:
        # The JVM may have exited.
        return ""
    return found


def spark_first_line(error: BaseException) -> str:
    """Return the first line of Spark's own message."""
    return first_line(Exception(spark_message(error)))


def failure_cause(error: BaseException) -> str:
    """Return the first line of an error's text, or that Spark's process has ended."""
    lost = is_connection_lost(spark_message(error))
    return lost_cause(error) if lost else first_line(error)


def lost_engine_error(error: BaseException) -> EngineError:
    """Return the error for a Spark session that disconnected or stopped responding."""
    return EngineError(f"Spark disconnected: {lost_cause(error)}", LOST_HINT)


def lost_cause(error: BaseException) -> str:
    """Return the first line of the error of a lost connection, if that is what it describes."""
    line = first_line(error)
    return line if re.search(_CONNECTION_LOST, spark_message(error)) else "its process has ended"


def is_connection_lost(text: str) -> bool:
    """Return True if an engine's message means that Spark itself disconnected.

    This is also True if this process has started a JVM that has died: the messages of py4j and
    pyspark depend on the call that it interrupts, and some only name a variable of pyspark.
    """
    return re.search(_CONNECTION_LOST, text) is not None or _is_jvm_dead()


def _is_jvm_dead() -> bool:
    """Return True if this process has started a JVM that no longer answers."""
    # pyspark may be missing, or be the client of Spark Connect, which has no SparkContext.
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    gateway: Any = getattr(context, "_gateway", None)
    if gateway is None:
        return False
    try:
        gateway.jvm.java.lang.System.currentTimeMillis()
    except OSError:
        return True
    except Exception as error:
        # Other errors are answers: a shared cluster may not allow this call.
        return re.search(f"{_CONNECTION_LOST}|{_NOT_IN_JVM}", str(error)) is not None
    return False


_MOST = 500


@contextmanager
def contain_table_errors() -> Iterator[None]:
    """Convert an unexpected exception in the block to an error of the current table.

    With `--debug` it is raised unchanged. So is an ImportError, because a missing library affects
    every table.

    Raises:
        TableError: internal, also when memory or stack is exhausted.
    """
    try:
        yield
    except (DeltaprotoError, ImportError, BrokenPipeError):
        raise
    except Exception as error:
        if is_debugged(sys.argv):
            raise
        raise _internal_error(error) from None


def _internal_error(error: Exception) -> TableError:
    from deltaproto.redaction import Redactor

    text = (str(error).splitlines() or [""])[0][:_MOST]
    return TableError(
        ErrorCode.INTERNAL,
        Redactor()(f"internal error, {type(error).__name__}: {text}"),
        "this is a bug in deltaproto; run with --debug on this table and report it",
    )
