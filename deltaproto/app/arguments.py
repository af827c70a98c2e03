"""Conversion of the functions' arguments: lists, choices, and access to stores and Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from deltaproto.errors import UsageError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.spark_connect import validate_remote

NONE: Mapping[str, str] = MappingProxyType({})
_Choice = TypeVar("_Choice", bound=StrEnum)


def words(given: Sequence[str], name: str) -> list[str]:
    """Require a list of strings.

    Raises:
        UsageError: for a single string, which Python would iterate letter by letter.
    """
    if isinstance(given, str):
        raise UsageError(f"{name} is a single string", f"pass a list: {name}=[{given!r}]")
    return list(given)


def member(choices: type[_Choice], text: str, name: str) -> _Choice:
    """Convert the name of a choice.

    Raises:
        UsageError: when there is no choice with this name.
    """
    try:
        return choices(text)
    except ValueError:
        raise UsageError(f'{name}: unknown "{text}"', f"one of {', '.join(choices)}") from None


def spark_settings(
    remote: str | None, conf: Mapping[str, str], storage_options: Mapping[str, str]
) -> SparkSettings:
    """Build the settings for Spark and its access to the object store.

    Raises:
        UsageError: for an invalid Spark Connect URL.
    """
    validate_remote(remote)
    settings = SparkSettings(remote, dict(conf))
    if not storage_options:
        return settings
    from deltaproto.tables.storage.through_spark import hadoop_conf

    return settings._replace(hadoop=hadoop_conf(dict(storage_options)))
