"""Object stores by their URIs, with what options, environment and profiles say of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from deltaproto.errors import UsageError
from deltaproto.tables.storage.profile import profile_options

_CLIENT_KEYS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "proxy_url",
    "timeout",
)
_PREFIXES = {
    "s3": "aws_",
    "s3a": "aws_",
    "gs": "google_",
    "az": "azure_",
    "adl": "azure_",
    "abfs": "azure_",
    "abfss": "azure_",
    "azure": "azure_",
}
"""by the schemes whose URIs name a bucket or container first, and then a key in it"""
_RETRIES: dict[str, Any] = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=30),
    "backoff": {"base": 2, "init_backoff": timedelta(milliseconds=100)},
}
_RETRY_KEYS = {
    "max_retries": "number",
    "retry_timeout": "duration",
    "backoff_config.init_backoff": "duration",
    "backoff_config.max_backoff": "duration",
    "backoff_config.base": "number",
}
"""deltalake's names, and what they take (crates/core/src/logstore/config.rs)"""
_RETRY_EXAMPLE = "for example max_retries=5, retry_timeout=10s, backoff_config.init_backoff=100ms"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m|min|h)")


def opened(uri: str, options: Mapping[str, str]) -> tuple[Any, str]:
    """The store that holds `uri`, and the key of `uri` in it, without slashes around it.

    Tables of one bucket share a store, and with it connections and credentials. Keys are taken as
    they are written, as Spark does: a %20 in them is three characters.

    Raises:
        TableError: when an AWS profile is asked for that gives no keys.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, key = rest.partition("/")
    if scheme.lower() in _PREFIXES:
        prefix = _PREFIXES[scheme.lower()].upper()
        around = tuple(sorted(item for item in os.environ.items() if item[0].startswith(prefix)))
        store = _shared(f"{scheme}://{authority}", tuple(sorted(options.items())), around)
        return store, key.strip("/")
    # The library decodes %xx in a URI.
    return _open(f"{scheme}://{authority}/{quote(key)}", options), ""


@lru_cache(maxsize=64)
def _shared(
    bucket: str, options: tuple[tuple[str, str], ...], around: tuple[tuple[str, str], ...]
) -> Any:
    """The store; `around` is what the environment says, which the library reads by itself."""
    return _open(bucket, dict(options))


def _open(uri: str, options: Mapping[str, str]) -> Any:
    from obstore.exceptions import UnknownConfigurationKeyError
    from obstore.store import from_url

    prefix = _PREFIXES.get(uri.partition(":")[0].lower(), "")
    config: dict[str, str] = {}
    retries = _retries(options)
    # The library reads the environment, but not for the client where options for it are given.
    client = {"timeout": "20s", "connect_timeout": "5s", **_surrounding(prefix)}
    for key, value in options.items():
        bare = _bare(key.lower())
        if bare in _RETRY_KEYS:
            continue
        if bare in _CLIENT_KEYS:
            client[bare] = value
        else:
            config[key.lower()] = value
    if prefix == "aws_":
        config = {**profile_options(config), **config}
    typed = {k: v.lower() == "true" if k.startswith("allow") else v for k, v in client.items()}
    while True:
        try:
            return from_url(uri, config=config, client_options=typed, retry_config=retries)
        except UnknownConfigurationKeyError as error:
            # deltalake takes keys of its own too, for locking and the like; they are not ours.
            unknown = [key for key in config if key in str(error).lower()]
            if not unknown:
                raise
            for key in unknown:
                del config[key]


def _retries(options: Mapping[str, str]) -> dict[str, Any]:
    """Our few retries, or what deltalake's own options say of them.

    Raises:
        UsageError: for a number or a duration that is none.
    """
    found = {**_RETRIES, "backoff": dict(_RETRIES["backoff"])}
    for key, value in options.items():
        bare = _bare(key.lower())
        member = bare.removeprefix("backoff_config.")
        try:
            if bare == "max_retries":
                found[bare] = int(value)
            elif bare == "retry_timeout":
                found[bare] = _duration(value)
            elif bare in _RETRY_KEYS:
                found["backoff"][member] = float(value) if member == "base" else _duration(value)
        except (ValueError, OverflowError):
            raise UsageError(
                f"the storage option {key} takes a {_RETRY_KEYS[bare]}", _RETRY_EXAMPLE
            ) from None
    return found


def _duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


def _bare(key: str) -> str:
    for prefix in set(_PREFIXES.values()):
        key = key.removeprefix(prefix)
    return key


def _surrounding(prefix: str) -> dict[str, str]:
    """The client's settings in the environment, as in AWS_ALLOW_HTTP."""
    if not prefix:
        return {}
    named = ((key, os.environ.get(f"{prefix}{key}".upper())) for key in _CLIENT_KEYS)
    return {key: value for key, value in named if value}
