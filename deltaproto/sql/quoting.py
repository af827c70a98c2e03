"""Quoting of names and strings in Spark SQL.

Source: Spark's `SqlBaseParser` (back-quoted identifiers, string literals with backslash escapes,
its default `spark.sql.parser.escapedStringLiterals=false`) and `VariableSubstitution`.
"""

from __future__ import annotations

import re

from deltaproto.location import Location, LocationKind, locate

SUBSTITUTION = "spark.sql.variable.substitute"
"""the session setting that makes Spark replace `${…}` before it parses a statement"""
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def quote_identifier(name: str) -> str:
    """Back-quote one identifier."""
    return f"`{name.replace('`', '``')}`"


def quote_if_needed(part: str) -> str:
    """Back-quote a part of a catalog name, unless it has only letters, digits and `_`."""
    return part if re.fullmatch(r"\w+", part, re.ASCII) else quote_identifier(part)


def column_name(path: str) -> str:
    """Format a column, or a nested field by its dotted path, for statements.

    Names in the path that contain a dot must already be back-quoted.
    """
    return ".".join(map(quote_identifier, split_name(path)))


def quote_literal(text: str) -> str:
    """Return a string literal with exactly this value."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    # Spark replaces ${…} before it parses; it reads the escape only afterwards.
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def has_variable(sql: str) -> bool:
    """Return True if Spark would replace part of the statement, even in quotes."""
    return "${" in sql


def sql_table_name(location: Location) -> str:
    """Format a table for statements: by catalog name, or as delta.`path`."""
    if location.by_name:
        return ".".join(quote_identifier(part) for part in split_name(location.name))
    return f"delta.{quote_identifier(location.path if location.path is not None else location.uri)}"


def address_in_statements(table: str, location: str) -> Location:
    """Return the address of a table for statements: its catalog name, else its location.

    In Unity Catalog the name is the address: it may refuse paths. A table of Glue or a Hive
    metastore is addressed by `location`, since a session's names may be those of another catalog.
    """
    named = locate(table)
    if named.kind is not LocationKind.CATALOG:
        return named
    if named.uri.startswith("uc:"):
        return Location(named.name, LocationKind.NAME, None, named.name)
    return locate(location)


def name_in_statements(table: str) -> str:
    """Return a catalog name without the URL of its catalog; other addresses are unchanged."""
    location = locate(table)
    return location.name if location.kind is LocationKind.CATALOG else table


def parse_name(name: str) -> list[str]:
    """Return the parts of a catalog name without back quotes; empty if it is not a name."""
    parts = re.findall(r"`(?:[^`]|``)+`|[^.`]+", name)
    if ".".join(parts) != name:
        return []
    return [
        part[1:-1].replace("``", "`") if part.startswith("`") else part.strip() for part in parts
    ]


def split_name(name: str) -> list[str]:
    """Split a catalog name into its parts, with or without back quotes."""
    return [
        match[1].replace("``", "`") if match[1] is not None else match[2]
        for match in _PART.finditer(name)
    ]
