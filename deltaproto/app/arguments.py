"""Conversion of arguments: tables, lists, choices, and access to stores and Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType, UnionType
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from deltaproto.counts import counted
from deltaproto.errors import UsageError
from deltaproto.protocol.table_state import SparkSettings
from deltaproto.tables.spark_connect import validate_remote

NONE: Mapping[str, str] = MappingProxyType({})
_Choice = TypeVar("_Choice", bound=StrEnum)


@runtime_checkable
class HasTableUri(Protocol):
    """An open table, such as a `deltalake.DeltaTable`."""

    @property
    def table_uri(self) -> str:
        """The table's address."""
        ...


TableSource = str | os.PathLike[str] | HasTableUri
"""how a table is named: a path, a URI, a catalog name, a `pathlib.Path` or a `DeltaTable`"""


class ConnectionOptions(NamedTuple):
    """How to reach tables: the options of object stores and of Spark."""

    storage_options: Mapping[str, str]
    spark: SparkSettings


def table_name(source: TableSource) -> str:
    """Return a table's address as text.

    Raises:
        UsageError: for a value of another type.
    """
    if isinstance(source, str):
        return source
    if isinstance(source, os.PathLike):
        return os.fspath(source)
    if isinstance(source, HasTableUri):
        return source.table_uri.removesuffix("/")
    raise UsageError(
        f"not a table: {type(source).__name__}",
        "pass a path, a URI, a catalog name, a pathlib.Path or a deltalake.DeltaTable",
    )


def table_sources(tables: TableSource | Iterable[TableSource]) -> Iterable[TableSource]:
    """Return the tables; a single one may be passed without a list."""
    if isinstance(tables, str | os.PathLike | HasTableUri):
        return [tables]
    return tables


def connection_options(
    source: TableSource | None,
    storage_options: Mapping[str, str],
    spark_remote: str | None,
    spark_conf: Mapping[str, str],
) -> ConnectionOptions:
    """Combine the arguments for object stores and Spark.

    An open `DeltaTable` brings its own storage options, if none are passed.

    Raises:
        UsageError: for an invalid Spark Connect URL.
    """
    own = getattr(source, "_storage_options", None) if isinstance(source, HasTableUri) else None
    storage = dict(storage_options or own or {})
    return ConnectionOptions(storage, spark_settings(spark_remote, spark_conf, storage))


def require_texts(texts: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the strings of a list.

    Raises:
        UsageError: for a single string, which Python would iterate letter by letter.
    """
    if isinstance(texts, str):
        raise UsageError(f"{name} is a single string", f"pass a list: {name}=[{texts!r}]")
    return tuple(texts)


def require_type(value: object, kind: type | UnionType, name: str, example: str) -> None:
    """Refuse a value of another type, for callers without a type checker.

    Raises:
        UsageError: for a value that is neither None nor of this type.
    """
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise UsageError(f"{name} is of the type {type(value).__name__}", f"pass {example}")


def require_text_values(values: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Return a mapping whose values are texts.

    Raises:
        UsageError: for another value, such as True instead of "true".
    """
    for key, value in values.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        require_type(value, str, f"{name}: the value of {key}", f'a text: "{text}"')
    return values


def require_version_pair(pair: tuple[int, int] | None, name: str) -> tuple[int, int] | None:
    """Return a reader and a writer version.

    Raises:
        UsageError: for anything else, or for versions that Delta does not have.
    """
    from deltaproto.plan_inputs.parse_goal import validate_version_pair

    if pair is None:
        return None
    example = f"the reader and the writer version: {name}=(3, 7)"
    require_type(pair, tuple, name, example)
    if len(pair) != 2:
        raise UsageError(f"{name} has {counted(len(pair), 'version')}, not 2", f"pass {example}")
    for version in pair:
        require_type(version, int, f"a version of {name}", example)
    return validate_version_pair(*pair)


def require_ranges(limits: Mapping[str, int], **numbers: float | None) -> None:
    """Refuse numbers that are neither None nor above 0 and at most their limit.

    Raises:
        UsageError: for a number outside its range.
    """
    for name, value in numbers.items():
        require_type(value, int | float, name, "a number")
        if value is not None and not 0 < value <= limits[name]:
            raise UsageError(f"{name} is {value}", f"pass a number above 0, at most {limits[name]}")


def parse_choice(choices: type[_Choice], text: str, name: str) -> _Choice:
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
