"""Spark Connect: the URL of a server, and a session of it in bounded time."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from deltaproto.errors import EngineError, UsageError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.sql.quoting import SUBSTITUTION
from deltaproto.tables.engine_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CONNECT_SECONDS = 10
CONNECT_GONE_SECONDS = 30


def connect(sql: Any, settings: SparkSettings) -> SparkSession:
    """A session of the server that `settings.remote` names.

    Raises:
        UsageError: when that is no URL.
        EngineError: when nobody answers in time, or not as a Spark Connect server.
    """
    remote = parse_remote(settings.remote or "")
    # gRPC writes every failed attempt to standard error, on its own.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)
    _knock(remote)
    try:
        _greet(settings.remote or "", remote)
        builder = sql.SparkSession.builder.remote(settings.remote)
        for key, value in settings.conf.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        _give_up_after(session, CONNECT_GONE_SECONDS)
        _ = session.version
        with contextlib.suppress(Exception):
            # Where the server refuses this, `as_written` does too before it sends a statement.
            session.conf.set(SUBSTITUTION, "false")
        tell_stores(session, settings)
    except EngineError:
        raise
    except Exception as error:
        if "UNAUTHENTICATED" in first_line(error):
            raise EngineError(
                f"the Spark Connect server at {remote.shown} "
                + ("refuses the token" if remote.token else "wants a token"),
                "give the right one: sc://host:15002/;token=TOKEN",
            ) from None
        raise EngineError(
            f"Spark Connect does not work: {settings.redact(first_line(error))}",
            "check the URL (sc://host:15002), and that pyspark[connect] is installed",
        ) from None
    return session


def tell_stores(session: Any, settings: SparkSettings) -> None:
    """Tell a running session how to reach object stores, where that was asked for."""
    for key, value in settings.hadoop.items():
        if session.conf.get(key, None) != value:
            session.conf.set(key, value)


def _give_up_after(session: Any, seconds: int) -> None:
    """Try once a second for a server that went away: Spark's own client does so for ten minutes."""
    pace = {"max_retries": seconds, "initial_backoff": 1000, "backoff_multiplier": 1}
    try:
        if hasattr(session.client, "set_retry_policies"):
            from pyspark.sql.connect.client.retries import DefaultPolicy

            session.client.set_retry_policies([DefaultPolicy(**pace)])
        else:
            # As pyspark 3.5 keeps it.
            session.client._retry_policy.update(pace)
    except (ImportError, AttributeError, TypeError):
        # Clients of other releases have no such setting; theirs holds then.
        return


def stop_retrying(session: Any) -> None:
    """End all retries of a session whose server is gone, those of its threads included.

    They would keep the process alive for minutes, as it waits for them at its end.
    """
    client = getattr(session, "_client", None)
    for policy in getattr(client, "_retry_policies", ()):
        policy.max_retries = 0
    # As pyspark 3.5 keeps it.
    older = getattr(client, "_retry_policy", None)
    if isinstance(older, dict):
        older["max_retries"] = 0


def _knock(remote: Remote) -> None:
    # Spark's own client tries for ten minutes before it says that nobody is there.
    try:
        address = remote.host.strip("[]"), remote.port
        with socket.create_connection(address, timeout=CONNECT_SECONDS):
            return
    except OSError as error:
        raise EngineError(
            f"no Spark Connect server answers at {remote.shown}: {first_line(error)}",
            "check host and port (sc://host:15002), and that the server runs",
        ) from None


def _greet(url: str, remote: Remote) -> None:
    """Wait until the server speaks: Spark's own client would ask a silent one for minutes."""
    import grpc
    from pyspark.sql.connect import client

    current = getattr(client, "DefaultChannelBuilder", None)
    channel = (current or client.ChannelBuilder)(url).toChannel()
    # Clients before 4.0 send a token through TLS only, even to this machine.
    always = remote.token and current is None
    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        tls = remote.tls or always
        if always:
            hint = "pyspark before 4.0 sends a token through TLS only: leave it out, or have TLS"
        elif tls:
            hint = "the server may have none: leave out use_ssl, and call it localhost for a token"
        else:
            hint = "check the port, and add /;use_ssl=true where it has TLS"
        spoken = "with TLS, as is asked of it" if tls else "without TLS"
        raise EngineError(
            f"what answers at {remote.shown} is no Spark Connect server {spoken}", hint
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


class Remote(NamedTuple):
    """A Spark Connect server."""

    host: str
    """an IPv6 address in brackets"""
    port: int
    tls: bool
    """whether Spark's client speaks TLS with it"""
    token: bool

    @property
    def shown(self) -> str:
        """The URL without its parameters, which may hold a token."""
        return f"{_SCHEME}{self.host}:{self.port}"


def is_local(remote: str | None) -> bool:
    """Whether Spark sees this machine's files: there is no remote one, or it is started here."""
    return not remote or _MASTER.fullmatch(remote) is not None


def check_remote(remote: str | None) -> None:
    """Refuse what is neither a Spark Connect URL nor a master of this machine.

    Raises:
        UsageError: as `parse_remote`.
    """
    if remote and not is_local(remote):
        parse_remote(remote)


def parse_remote(url: str) -> Remote:
    """What a Spark Connect URL names.

    Raises:
        UsageError: for what is none; it never repeats the URL, which may hold a token.
    """
    if not url.startswith(_SCHEME):
        raise UsageError(f"the Spark Connect URL does not begin with {_SCHEME}", _EXAMPLE)
    parts = url.removeprefix(_SCHEME)
    end = next((at for at, letter in enumerate(parts) if letter in "/;"), len(parts))
    named, rest = _HOST.fullmatch(parts[:end]), parts[end:]
    if named is None:
        raise UsageError("the Spark Connect URL names no host and port", _EXAMPLE)
    port = int(named[2] or DEFAULT_PORT)
    if not 1 <= port <= _HIGHEST_PORT:
        raise UsageError(f"the Spark Connect URL names port {port}, which none can be", _EXAMPLE)
    if _PARAMETERS.fullmatch(rest) is None:
        raise UsageError(
            "the Spark Connect URL has more after its port than /;key=value;key=value",
            f"{_EXAMPLE}; in values = is %3D, and ; is %3B",
        )
    given = dict(pair.split("=") for pair in rest.split(";")[1:])
    token = "token" in given
    # Spark's client sends a token in the clear to this name only.
    tls = given.get("use_ssl", "").lower() == "true" or (token and named[1] != "localhost")
    return Remote(named[1], port, tls, token)
