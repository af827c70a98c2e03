"""How names and texts are written in Spark SQL.

Source: Spark's `SqlBaseParser` (back-quoted identifiers, string literals with backslash escapes,
its default `spark.sql.parser.escapedStringLiterals=false`) and `VariableSubstitution`.
"""

from __future__ import annotations

import re

from deltaproto.location import Location, LocationKind

SUBSTITUTION = "spark.sql.variable.substitute"
"""the session setting under which Spark replaces `${…}` before it parses a statement"""
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def identifier(name: str) -> str:
    """One identifier, back-quoted."""
    return f"`{name.replace('`', '``')}`"


def column_name(path: str) -> str:
    """A column, or a nested field by its dotted path, as statements name it.

    Names in the path that hold a dot are back-quoted already.
    """
    return ".".join(map(identifier, name_parts(path)))


def literal(text: str) -> str:
    """A string literal that stands for exactly `text`."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    # Spark replaces ${…} before it parses; the escape is read only afterwards.
    return "'" + escaped.replace("${", "\\u0024{") + "'"


def has_variable(sql: str) -> bool:
    """Whether Spark would replace a part of the statement, quoted names and strings included."""
    return "${" in sql


def table_name(location: Location) -> str:
    """A table as statements name it: by catalog name, or as delta.`path`."""
    if location.kind is LocationKind.NAME:
        return ".".join(identifier(part) for part in name_parts(location.text))
    return f"delta.{identifier(location.path if location.path is not None else location.uri)}"


def name_parts(name: str) -> list[str]:
    """The parts of a catalog name, with or without back quotes."""
    return [
        match[1].replace("``", "`") if match[1] is not None else match[2]
        for match in _PART.finditer(name)
    ]
