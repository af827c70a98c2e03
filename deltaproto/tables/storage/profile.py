"""What an AWS profile says, in storage options.

object_store reads no profiles, while deltalake, Spark's S3A and the AWS tools do. Keys that stand
in the files are read here; where a profile gets them from elsewhere (SSO, a role, a program),
botocore is asked if it is installed.

Source: "Configuration and credential file settings in the AWS CLI".
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import Error as Malformed
from configparser import RawConfigParser

from deltaproto.errors import ErrorCode, TableError

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# With one of these nobody looks at a profile for keys.
_OTHERWISE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_ELSEWHERE = ("sso_session", "sso_start_url", "role_arn", "credential_process", "source_profile")


def profile_options(given: Mapping[str, str]) -> dict[str, str]:
    """Keys, token and region of the profile, where neither `given` nor the environment has them.

    Args:
        given: storage options, their names in small letters.

    Raises:
        TableError: permission-denied, when a profile is asked for that does not exist, is malformed
            or gives no keys.
    """
    asked = given.get("aws_profile") or os.environ.get("AWS_PROFILE")
    settings = _profile(asked or "default")
    if asked and not settings:
        raise _useless(
            f"there is no AWS profile {asked}",
            f"check AWS_PROFILE, {_credentials_file()} and {_config_file()}",
        )
    found = {}
    region = settings.get("region")
    if region and not _has(given, "region", "default_region"):
        found["aws_region"] = region
    if _has(given, "access_key_id", "skip_signature", "no_sign_request") or (
        "aws_profile" not in given and any(os.environ.get(name) for name in _OTHERWISE)
    ):
        return found
    keys = {name: settings[name] for name in _KEYS if settings.get(name)}
    if asked and not {*_KEYS[:2]} <= keys.keys():
        keys = _from_botocore(asked, settings)
    return {**found, **keys}


def _has(given: Mapping[str, str], *names: str) -> bool:
    if any(name in given or f"aws_{name}" in given for name in names):
        return True
    return any("region" in name and os.environ.get(f"AWS_{name.upper()}") for name in names)


def _profile(name: str) -> dict[str, str]:
    """Both files' settings of one profile; the file of credentials wins."""
    section = name if name == "default" else f"profile {name}"
    return {**_section(_config_file(), section), **_section(_credentials_file(), name)}


def _section(path: str, name: str) -> dict[str, str]:
    parser = RawConfigParser()
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except OSError:
        return {}
    except (Malformed, ValueError):
        # The parser's own words repeat the line, which may be a key.
        raise _useless(
            f"{path} is no file of AWS profiles", "correct it, or move it away"
        ) from None
    return {key: value for key, value in parser[name].items() if value} if name in parser else {}


def _from_botocore(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    why = next((each for each in _ELSEWHERE if each in settings), None)
    cause = f"the AWS profile {name} holds no keys" + (f", but {why}" if why else "")
    hint = f'run: eval "$(aws configure export-credentials --profile {name} --format env)"'
    if why is None:
        raise _useless(cause, f"write them into {_credentials_file()}")
    try:
        from botocore.session import Session
    except ImportError:
        raise _useless(cause, f"{hint}; or pip install botocore, which is asked then") from None
    try:
        frozen = Session(profile=name).get_credentials().get_frozen_credentials()
    except Exception as error:
        # What it says may hold what a program printed.
        raise _useless(f"{cause}, and botocore fails ({type(error).__name__})", hint) from None
    values = (frozen.access_key, frozen.secret_key, frozen.token)
    return {key: value for key, value in zip(_KEYS, values, strict=True) if value}


def _credentials_file() -> str:
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    return os.path.expanduser(named)


def _config_file() -> str:
    return os.path.expanduser(os.environ.get("AWS_CONFIG_FILE") or "~/.aws/config")


def _useless(cause: str, hint: str) -> TableError:
    return TableError(ErrorCode.PERMISSION_DENIED, cause, hint)
