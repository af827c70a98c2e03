"""What every function takes: words, choices, and how to reach stores and Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import TypeVar

from deltaproto.errors import UsageError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.spark_connect import check_remote

NONE: Mapping[str, str] = MappingProxyType({})
_Choice = TypeVar("_Choice", bound=StrEnum)


def words(given: Sequence[str], name: str) -> list[str]:
    """The words of a list.

    Raises:
        UsageError: for one text in place of a list, which Python would take for its letters.
    """
    if isinstance(given, str):
        raise UsageError(f"{name} is one text", f"give a list: {name}=[{given!r}]")
    return list(given)


def member(choices: type[_Choice], text: str, name: str) -> _Choice:
    """A choice by what it is called.

    Raises:
        UsageError: when there is no such choice.
    """
    try:
        return choices(text)
    except ValueError:
        raise UsageError(f"{name} takes no {text}", f"one of {', '.join(choices)}") from None


def spark_settings(
    remote: str | None, conf: Mapping[str, str], storage_options: Mapping[str, str]
) -> SparkSettings:
    """How to reach Spark, and how its file systems reach the object store.

    Raises:
        UsageError: for a Spark Connect URL that is none.
    """
    check_remote(remote)
    settings = SparkSettings(remote, dict(conf))
    if not storage_options:
        return settings
    from deltaproto.tables.storage.through_spark import hadoop_conf

    return settings._replace(hadoop=hadoop_conf(dict(storage_options)))
