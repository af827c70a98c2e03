"""Opens stores, with the credentials of an AWS profile as storage options.

object_store does not read profiles, but deltalake, Spark's S3A and the AWS tools do. Keys stored
in the files are read here. If a profile gets them elsewhere (SSO, a role, a program), botocore is
used if it is installed.

Source: "Configuration and credential file settings in the AWS CLI".
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from configparser import Error as Malformed
from configparser import RawConfigParser
from datetime import timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from deltaproto.errors import ErrorCode, TableError, UsageError

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# If one of these is set, the profile's keys are ignored.
_OTHER_CREDENTIAL_SOURCES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_UNSUPPORTED_PROFILE_KEYS = (
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "source_profile",
)


def profile_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return keys, token and region of the profile that `options` and the environment lack.

    Args:
        options: storage options, with lowercase names.

    Raises:
        TableError: permission-denied, when the requested profile does not exist, is malformed or
            has no keys.
    """
    profile = options.get("aws_profile") or os.environ.get("AWS_PROFILE")
    settings = _read_profile(profile or "default")
    if profile and not settings:
        raise _unusable_profile_error(
            f"the AWS profile {profile} does not exist",
            f"check AWS_PROFILE, {_credentials_file()} and {_config_file()}",
        )
    found = {}
    region = settings.get("region")
    if region and not _is_given(options, "region", "default_region"):
        found["aws_region"] = region
    if _is_given(options, "access_key_id", "skip_signature", "no_sign_request") or (
        "aws_profile" not in options
        and any(os.environ.get(name) for name in _OTHER_CREDENTIAL_SOURCES)
    ):
        return found
    keys = {name: settings[name] for name in _KEYS if settings.get(name)}
    if profile and not {*_KEYS[:2]} <= keys.keys():
        keys = _from_botocore(profile, settings)
    return {**found, **keys}


def _is_given(options: Mapping[str, str], *names: str) -> bool:
    if any(name in options or f"aws_{name}" in options for name in names):
        return True
    return any("region" in name and os.environ.get(f"AWS_{name.upper()}") for name in names)


def _read_profile(name: str) -> dict[str, str]:
    """Merge both files' settings of one profile; the credentials file wins."""
    section = name if name == "default" else f"profile {name}"
    return {**_read_section(_config_file(), section), **_read_section(_credentials_file(), name)}


def _read_section(path: str, name: str) -> dict[str, str]:
    parser = RawConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except OSError:
        return {}
    except (Malformed, ValueError):
        # The parser's message repeats the line, which may be a key.
        raise _unusable_profile_error(
            f"{path} is not a file of AWS profiles", "correct it, or remove it"
        ) from None
    return {key: value for key, value in parser[name].items() if value} if name in parser else {}


def _from_botocore(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    why = next((each for each in _UNSUPPORTED_PROFILE_KEYS if each in settings), None)
    cause = f"the AWS profile {name} has no keys" + (f", but {why}" if why else "")
    hint = f'run: eval "$(aws configure export-credentials --profile {name} --format env)"'
    if why is None:
        raise _unusable_profile_error(cause, f"add them to {_credentials_file()}")
    try:
        from botocore.session import Session
    except ImportError:
        raise _unusable_profile_error(
            cause, f"{hint}; or pip install botocore, which can get them"
        ) from None
    try:
        frozen = Session(profile=name).get_credentials().get_frozen_credentials()
    except Exception as error:
        # The message may contain the output of a program.
        raise _unusable_profile_error(
            f"{cause}, and botocore fails ({type(error).__name__})", hint
        ) from None
    values = (frozen.access_key, frozen.secret_key, frozen.token)
    return {key: value for key, value in zip(_KEYS, values, strict=True) if value}


def _credentials_file() -> str:
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return os.path.expanduser(named)


def _config_file() -> str:
    return os.path.expanduser(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config")


def _unusable_profile_error(cause: str, hint: str) -> TableError:
    return TableError(ErrorCode.PERMISSION_DENIED, cause, hint)


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
"""schemes whose URIs consist of a bucket or container and a key"""
_OTHER_SCHEMES = ("file", "http", "https", "memory")
"""further schemes that the library opens"""
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
"""deltalake's names and formats (crates/core/src/logstore/config.rs)"""
_NOT_OPENED = "addresses with this scheme can only be opened through Spark"
_BY_NAME = "name the table in a catalog of Spark, or pass --reader spark if the command has it"
_RETRY_EXAMPLE = "for example max_retries=5, retry_timeout=10s, backoff_config.init_backoff=100ms"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|m|min|h)")


def open_store(uri: str, options: Mapping[str, str]) -> tuple[Any, str]:
    """Return the store of `uri`, and the key of `uri` in it, without slashes around it.

    Tables in one bucket share a store, with its connections and credentials. Keys are taken
    literally, as in Spark: a %20 in them is three characters.

    Raises:
        TableError: when only Spark can open such a URI, or the requested AWS profile has no keys.
    """
    scheme, _, rest = uri.partition("://")
    authority, _, key = rest.partition("/")
    if scheme.lower() in _PREFIXES:
        prefixes = _PREFIXES[scheme.lower()].upper(), "SSL_CERT_"
        around = tuple(sorted(item for item in os.environ.items() if item[0].startswith(prefixes)))
        store = _cached_store(f"{scheme}://{authority}", tuple(sorted(options.items())), around)
        return store, key.strip("/")
    if scheme.lower() not in _OTHER_SCHEMES:
        raise TableError(ErrorCode.STORAGE, f"cannot read {uri}: {_NOT_OPENED}", _BY_NAME)
    # The library decodes %xx in a URI.
    return _open_store(f"{scheme}://{authority}/{quote(key)}", options), ""


@lru_cache(maxsize=64)
def _cached_store(
    bucket: str, options: tuple[tuple[str, str], ...], around: tuple[tuple[str, str], ...]
) -> Any:
    """Return the cached store; `around` is the environment, which the library reads by itself."""
    return _open_store(bucket, dict(options))


def _open_store(uri: str, options: Mapping[str, str]) -> Any:
    from obstore.exceptions import UnknownConfigurationKeyError
    from obstore.store import from_url

    prefix = _PREFIXES.get(uri.partition(":")[0].lower(), "")
    config: dict[str, str] = {}
    retries = _retry_config(options)
    # The library reads the environment, but not for the client if options for it are passed.
    client = {"timeout": "20s", "connect_timeout": "5s", **_client_options_from_environment(prefix)}
    for key, value in options.items():
        bare = _without_prefix(key.lower())
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
            # deltalake's own keys, for locking and the like, are not passed on.
            unknown = [key for key in config if key in str(error).lower()]
            if not unknown:
                raise
            for key in unknown:
                del config[key]


def _retry_config(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the retry settings: deltalake's options, or a few retries by default.

    Raises:
        UsageError: for an invalid number or duration.
    """
    found = {**_RETRIES, "backoff": dict(_RETRIES["backoff"])}
    for key, value in options.items():
        bare = _without_prefix(key.lower())
        member = bare.removeprefix("backoff_config.")
        try:
            if bare == "max_retries":
                found[bare] = int(value)
            elif bare == "retry_timeout":
                found[bare] = _parse_duration(value)
            elif bare in _RETRY_KEYS:
                found["backoff"][member] = (
                    float(value) if member == "base" else _parse_duration(value)
                )
        except (ValueError, OverflowError):
            raise UsageError(
                f"the storage option {key} takes a {_RETRY_KEYS[bare]}", _RETRY_EXAMPLE
            ) from None
    return found


def _parse_duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


def _without_prefix(key: str) -> str:
    for prefix in set(_PREFIXES.values()):
        key = key.removeprefix(prefix)
    return key


def _client_options_from_environment(prefix: str) -> dict[str, str]:
    """Return the client's settings in the environment, such as AWS_ALLOW_HTTP."""
    if not prefix:
        return {}
    named = ((key, os.environ.get(f"{prefix}{key}".upper())) for key in _CLIENT_KEYS)
    return {key: value for key, value in named if value}
