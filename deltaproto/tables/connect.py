"""A session of a Spark Connect server, or in bounded time why there is none."""

from __future__ import annotations

import contextlib
import os
import socket
import warnings
from typing import TYPE_CHECKING, Any

from deltaproto.errors import EngineError
from deltaproto.tables.engine_text import first_line
from deltaproto.tables.interface import SparkSettings
from deltaproto.tables.remote import Remote, parse_remote
from deltaproto.tables.sql import SUBSTITUTION

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
