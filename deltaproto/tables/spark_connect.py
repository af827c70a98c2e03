"""Spark Connect: the URL of a server, and a session with it in bounded time."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.errors import EngineError, UsageError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import SUBSTITUTION
from deltaproto.tables.engine_errors import (
    SILENT_SECONDS,
    first_line,
    is_connection_lost,
    lost_engine_error,
    spark_message,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CONNECT_SECONDS = 10
CONNECT_GONE_SECONDS = 10
ASK_SECONDS = 10.0
"""seconds between two checks that a server still responds"""
_SLICES = 60
_watched: weakref.WeakSet[Any] = weakref.WeakSet()
"""sessions with a thread that checks their server"""


def connect_session(sql: Any, settings: SparkSettings) -> SparkSession:
    """Return a session with the server at `settings.remote`.

    A server that later stops responding counts as lost after a minute, even if it still accepts
    connections: calls that wait for it then fail. A statement may take any time.

    Raises:
        UsageError: when that is not a URL.
        EngineError: when no Spark Connect server responds in time.
    """
    remote = parse_remote(settings.remote or "")
    # gRPC writes every failed attempt directly to standard error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    warnings.filterwarnings("ignore", "ReleaseExecute failed", UserWarning)
    _require_listening(remote)
    try:
        _wait_for_server(settings.remote or "", remote)
        builder = sql.SparkSession.builder.remote(settings.remote)
        # Without settings this sends nothing, so that the first call is watched.
        session = builder.getOrCreate()
        _limit_retries(session, CONNECT_GONE_SECONDS)
        _skip_exit_command(session)
        _watch(session)
        for key, value in settings.conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        _ = session.version
        with contextlib.suppress(Exception):
            # If the server refuses, so does `without_substitution`, before any statement is sent.
            session.conf.set(SUBSTITUTION, "false")
        configure_stores(session, settings)
    except EngineError:
        raise
    except Exception as error:
        if is_connection_lost(spark_message(error)):
            raise lost_engine_error(error) from None
        if "UNAUTHENTICATED" in first_line(error):
            raise EngineError(
                f"the Spark Connect server at {remote.shown} "
                + ("rejects the token" if remote.token else "requires a token"),
                "pass a valid one: sc://host:15002/;token=TOKEN",
            ) from None
        raise EngineError(
            f"Spark Connect does not work: {settings.redact(first_line(error))}",
            "check the URL (sc://host:15002), and that pyspark[connect] is installed",
        ) from None
    return session


def configure_stores(session: Any, settings: SparkSettings) -> None:
    """Configure a running session for access to object stores, if requested."""
    for key, value in settings.hadoop.items():
        if session.conf.get(key, None) != value:
            session.conf.set(key, value)


def _limit_retries(session: Any, seconds: int) -> None:
    """Limit retries to one per second; Spark's own client retries for ten minutes."""
    pace = {"max_retries": seconds, "initial_backoff": 1000, "backoff_multiplier": 1}
    try:
        if hasattr(session.client, "set_retry_policies"):
            from pyspark.sql.connect.client.retries import DefaultPolicy

            session.client.set_retry_policies([DefaultPolicy(**pace)])
        else:
            # Attribute of pyspark 3.5.
            session.client._retry_policy.update(pace)
    except (ImportError, AttributeError, TypeError):
        # Other client releases lack this setting and use their own policy.
        return


def _skip_exit_command(session: Any) -> None:
    """Let the process end even if the server does not respond.

    Spark's client sends a command at exit, without a time limit, to remove models that this
    session cached. There are none.
    """
    client = session.client
    at_exit = getattr(client, "_on_exit", None)
    if at_exit is not None and not getattr(client, "_release_session_on_exit", False):
        atexit.unregister(at_exit)


def _watch(session: Any) -> None:
    """In a separate thread, disconnect from the session's server when it stops responding."""
    if session not in _watched:
        _watched.add(session)
        give_up_silent(
            lambda: session.conf.get(SUBSTITUTION, None), lambda: _disconnect(session), ASK_SECONDS
        )


def give_up_silent(
    ask: Callable[[], object],
    give_up: Callable[[], object],
    pause: float,
    seconds: float = SILENT_SECONDS,
) -> threading.Thread:
    """Call `ask` repeatedly in a thread; call `give_up` if it does not return in time.

    An exception counts as an answer: the caller that waits for the server gets it too.
    """

    def watch() -> None:
        over = threading.Event()
        while True:
            answered = threading.Event()

            def question(answered: threading.Event = answered) -> None:
                with contextlib.suppress(Exception):
                    ask()
                answered.set()

            threading.Thread(target=question, daemon=True).start()
            # Wait in slices, so that a process that was suspended continues to wait afterwards.
            if not any(answered.wait(seconds / _SLICES) for _ in range(_SLICES)):
                give_up()
                return
            over.wait(pause)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def _disconnect(session: Any) -> None:
    """Make all calls of the session that wait for its server fail."""
    stop_retrying(session)
    client = session.client
    # Closing the client would wait for the server.
    getattr(client, "_channel", client).close()


def stop_retrying(session: Any) -> None:
    """Stop all retries of a session whose server is unreachable, including those in its threads.

    Otherwise they would keep the process alive for minutes: it joins its threads at exit.
    """
    client = getattr(session, "_client", None)
    for policy in getattr(client, "_retry_policies", ()):
        policy.max_retries = 0
    # Attribute of pyspark 3.5.
    older = getattr(client, "_retry_policy", None)
    if isinstance(older, dict):
        older["max_retries"] = 0


def _require_listening(remote: ConnectServer) -> None:
    import socket

    # Spark's own client retries for ten minutes before it reports that the server is down.
    try:
        address = remote.host.strip("[]"), remote.port
        with socket.create_connection(address, timeout=CONNECT_SECONDS):
            return
    except OSError as error:
        raise EngineError(
            f"no Spark Connect server responds at {remote.shown}: {first_line(error)}",
            "check host and port (sc://host:15002), and that the server is running",
        ) from None


def _wait_for_server(url: str, remote: ConnectServer) -> None:
    """Wait until the server responds: Spark's own client would wait for minutes."""
    import grpc
    from pyspark.sql.connect import client

    current = getattr(client, "DefaultChannelBuilder", None)
    channel = (current or client.ChannelBuilder)(url).toChannel()
    # Clients before 4.0 send a token only with TLS, even to this machine.
    always = remote.token and current is None
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        tls = remote.tls or always
        if always:
            hint = "pyspark before 4.0 sends a token only with TLS: leave it out, or enable TLS"
        elif tls:
            hint = "the server may not use TLS: leave out use_ssl, and use localhost for a token"
        else:
            hint = "check the port, and add /;use_ssl=true if the server uses TLS"
        hint += "; a server that is suspended or overloaded does not respond either"
        spoken = "with TLS, as requested" if tls else "without TLS"
        raise EngineError(
            f"the server at {remote.shown} is not a Spark Connect server {spoken}", hint
        ) from None
    finally:
        channel.close()


DEFAULT_PORT = 15002
_HIGHEST_PORT = 65535
_SCHEME = "sc://"
_MASTER = re.compile(r"local(?:-cluster)?(?:\[[^\]]*\])?")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%\w]+\]|[^\s:;/?#@\[\]]+)(?::([0-9]{1,9}))?")
_PARAMETERS = re.compile(r"/?|/(?:;[^;=]+=[^;=]*)+")
_EXAMPLE = "for example sc://host:15002, or sc://host:15002/;use_ssl=true;token=TOKEN"


class ConnectServer(NamedTuple):
    """A Spark Connect server."""

    host: str
    """host name; an IPv6 address is in brackets"""
    port: int
    tls: bool
    """whether Spark's client uses TLS with it"""
    token: bool

    @property
    def shown(self) -> str:
        """The URL without its parameters, which may contain a token."""
        return f"{_SCHEME}{self.host}:{self.port}"


def is_local(remote: str | None) -> bool:
    """Return True if Spark sees this machine's files: it is not remote, or runs here."""
    return not remote or _MASTER.fullmatch(remote) is not None


def validate_remote(remote: str | None) -> None:
    """Require a Spark Connect URL or a master on this machine.

    Raises:
        UsageError: as `parse_remote`.
    """
    if remote and not is_local(remote):
        parse_remote(remote)


def parse_remote(url: str) -> ConnectServer:
    """Parse a Spark Connect URL.

    Raises:
        UsageError: for an invalid URL, without repeating it, because it may contain a token.
    """
    if not url.startswith(_SCHEME):
        raise UsageError(f"the Spark Connect URL does not start with {_SCHEME}", _EXAMPLE)
    parts = url.removeprefix(_SCHEME)
    end = next((at for at, letter in enumerate(parts) if letter in "/;"), len(parts))
    named, rest = _HOST.fullmatch(parts[:end]), parts[end:]
    if named is None:
        raise UsageError("the Spark Connect URL has no host and port", _EXAMPLE)
    port = int(named[2] or DEFAULT_PORT)
    if not 1 <= port <= _HIGHEST_PORT:
        raise UsageError(f"the Spark Connect URL has an invalid port, {port}", _EXAMPLE)
    if _PARAMETERS.fullmatch(rest) is None:
        raise UsageError(
            "the Spark Connect URL has something else than /;key=value;key=value after its port",
            f"{_EXAMPLE}; in values, write %3D for = and %3B for ;",
        )
    parameters = dict(pair.split("=") for pair in rest.split(";")[1:])
    token = "token" in parameters
    # Spark's client sends an unencrypted token only to this host name.
    tls = parameters.get("use_ssl", "").lower() == "true" or (token and named[1] != "localhost")
    return ConnectServer(named[1], port, tls, token)
