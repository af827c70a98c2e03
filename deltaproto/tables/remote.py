"""The URL of a remote Spark: what it names, and what is wrong with it.

Source: Spark's client connection string `sc://host:port/;key=value;…`, as pyspark's
`DefaultChannelBuilder` reads it. A master such as `local[2]` starts a server of one's own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from deltaproto.errors import UsageError

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
