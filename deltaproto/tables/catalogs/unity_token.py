"""The token for a Unity Catalog host, and the host's address.

Tokens are read from the environment, a file, or a Databricks profile, never from the command line.
A Databricks token is sent only to the host that it is for.

Source: "Databricks unified client authentication" (environment variables and `.databrickscfg`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import Error as Malformed
from configparser import RawConfigParser
from typing import NamedTuple

from deltaproto.errors import ErrorCode, TableError

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HINT = "export UC_TOKEN or UC_TOKEN_FILE, or name a profile of this host with a token"


def base_url(authority: str) -> str:
    """Return the address of the server: HTTPS, except for servers on this machine."""
    host = authority.rpartition(":")[0] if authority.rpartition(":")[2].isdecimal() else authority
    return f"{'http' if host in _LOOPBACK else 'https'}://{authority}"


class Token(NamedTuple):
    """A token, and where it was found."""

    text: str
    source: str
    """for display"""


def find_token(authority: str) -> Token | None:
    """Return the token for a host, or None if there is none.

    The first of: `UC_TOKEN`; the file `UC_TOKEN_FILE`; `DATABRICKS_TOKEN`, if `DATABRICKS_HOST` is
    this host; the profile of `DATABRICKS_CONFIG_PROFILE`, else of this host, in `.databrickscfg`.

    Raises:
        TableError: permission-denied, when a file cannot be read, or the requested profile is for
            another host or has no token.
    """
    environment = os.environ
    if token := environment.get("UC_TOKEN"):
        return _checked(token, "UC_TOKEN")
    if path := environment.get("UC_TOKEN_FILE"):
        return _checked(_read(path), path)
    if (token := environment.get("DATABRICKS_TOKEN")) and _is_for(
        environment.get("DATABRICKS_HOST"), authority
    ):
        return _checked(token, "DATABRICKS_TOKEN")
    return _profile_token(authority)


def _profile_token(authority: str) -> Token | None:
    path = os.path.expanduser(os.environ.get("DATABRICKS_CONFIG_FILE") or "~/.databrickscfg")
    wanted = os.environ.get("DATABRICKS_CONFIG_PROFILE")
    profiles = _read_profiles(path) if wanted or os.path.exists(path) else {}
    if wanted is None:
        matching = (each for each in profiles.values() if _is_for(each.get("host"), authority))
        token = next((each["token"] for each in matching if each.get("token")), None)
        return None if token is None else _checked(token, path)
    profile = profiles.get(wanted)
    if profile is None:
        raise _denied(f"{path} has no profile {wanted}", "check DATABRICKS_CONFIG_PROFILE")
    if not _is_for(profile.get("host"), authority):
        raise _denied(f"the profile {wanted} is not for {authority}", HINT)
    if not profile.get("token"):
        hint = f"run `databricks auth token --host https://{authority}`, and export it as UC_TOKEN"
        raise _denied(f"the profile {wanted} has no token", hint)
    return _checked(profile["token"], path)


def _is_for(url: str | None, authority: str) -> bool:
    host = (url or "").strip().lower().rpartition("://")[2].partition("/")[0]
    return host.removesuffix(":443") == authority.lower().removesuffix(":443")


def _read_profiles(path: str) -> dict[str, Mapping[str, str]]:
    parser = RawConfigParser(default_section="")
    try:
        parser.read_string(_read(path), path)
    except (Malformed, ValueError):
        # The parser's message repeats the line, which may be a token.
        raise _denied(f"{path} is not a file of Databricks profiles", "correct it") from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _denied(f"cannot read {path}: {cause}", "check the path and permissions") from None


def _checked(token: str, source: str) -> Token:
    token = token.strip()
    if not token or not all("!" <= sign <= "~" for sign in token):
        raise _denied(f"{source} does not contain a token", "a token has no spaces or line breaks")
    return Token(token, source)


def _denied(cause: str, hint: str) -> TableError:
    return TableError(ErrorCode.PERMISSION_DENIED, cause, hint)
