"""Lists the Delta tables of catalogs and schemas with Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from deltaproto.errors import ErrorCode, TableError, UsageError, no_tables_error
from deltaproto.fleet.catalog_entries import CatalogEntries
from deltaproto.fleet.catalog_places import CATALOG_PREFIX
from deltaproto.fleet.discovered import DiscoveredTable, UnreadablePlace
from deltaproto.location import is_catalog_name
from deltaproto.protocol.automatic_upgrades import UNITY_CATALOG
from deltaproto.redaction import Redactor
from deltaproto.sql.quoting import parse_name, quote_identifier, quote_if_needed
from deltaproto.tables.catalogs.interface import CatalogTable
from deltaproto.tables.engine_errors import first_line
from deltaproto.tables.session import (
    DATABRICKS_RUNTIME,
    DELTA_CATALOG,
    sql_rows,
    unknown_name_hint,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_CATALOG = "spark_catalog"
_PARTS = 3
"""parts of a table's full name"""
# Spark takes a missing catalog for a part of the schema's name.
_UNKNOWN = ("NOT_FOUND", "SINGLE_PART_NAMESPACE", "Nested databases are not supported")


class _Described(NamedTuple):
    """A table or view as Spark describes it; empty if Spark does not show a member."""

    name: str
    location: str
    type: str
    format: str


def find_catalog_tables(
    session: SparkSession, names: tuple[str, ...], entries: CatalogEntries | None = None
) -> Iterator[DiscoveredTable | UnreadablePlace]:
    """Yield every Delta table of the named catalogs, schemas and tables.

    Skips views and tables of other formats. A schema or table that Spark may not show, or shows
    without a location, is yielded as an unreadable place.

    Args:
        entries: receives which catalogs were listed as a whole, and tables of other formats.

    Raises:
        UsageError: for a name that Spark does not know.
    """
    entries = CatalogEntries() if entries is None else entries
    kinds: dict[str, str | None] = {}
    for name in names:
        parts = _full_name(session, name)
        address = f"catalog {parts[0]}"
        entries.begin(address)
        if parts[0] not in kinds:
            kinds[parts[0]] = _kind_of(session, parts[0])
        empty = True
        for described in _find_below(session, parts):
            found: DiscoveredTable | UnreadablePlace
            if isinstance(described, UnreadablePlace):
                found = described
            elif "view" in described.type:
                continue
            elif described.format != "delta":
                entries.add_other_place(described.location)
                continue
            else:
                found = _discovered(described)
            empty = False
            if isinstance(found, UnreadablePlace):
                entries.fail(address)
                yield found
            else:
                yield found._replace(catalog=kinds[parts[0]], requested=len(parts) == _PARTS)
        if empty:
            error = no_tables_error(name, "the name and your permissions")
            yield UnreadablePlace(_place(name), error)
        elif len(parts) == 1 and _is_authoritative(session, kinds[parts[0]]):
            entries.finish(address)


def _kind_of(session: SparkSession, catalog: str) -> str | None:
    try:
        return catalog_kind(catalog, lambda key: session.conf.get(key, None))
    except Exception:
        # A server may hide its settings, which are then unknown.
        return None


def _is_authoritative(session: SparkSession, kind: str | None) -> bool:
    """Return True if a list of the catalog shows every table that it has.

    A catalog in memory has only the tables of one session, and one of an unknown kind may have
    schemas within schemas.
    """
    if kind != "spark":
        return kind is not None
    try:
        return str(session.conf.get("spark.sql.catalogImplementation")) == "hive"
    except Exception:
        return False


def catalog_kind(catalog: str, setting: Callable[[str], str | None]) -> str | None:
    """Return what kind of catalog a Spark catalog is: `uc`, `hive` or `spark`; None: not known.

    `spark` is the catalog of a session outside Databricks, in memory or in a Hive metastore. On
    Databricks, all catalogs but the workspace's Hive metastore are in Unity Catalog.

    Args:
        setting: returns one of the session's settings, None if it is not set.
    """
    implementation = setting(f"spark.sql.catalog.{catalog}") or ""
    if "unitycatalog" in implementation.lower():
        return UNITY_CATALOG
    if setting(DATABRICKS_RUNTIME):
        legacy = catalog.lower() in ("hive_metastore", _SESSION_CATALOG)
        return "hive" if legacy else UNITY_CATALOG
    if catalog.lower() == _SESSION_CATALOG and implementation in ("", DELTA_CATALOG):
        return "spark"
    return None


def _full_name(session: SparkSession, name: str) -> list[str]:
    """Return the parts of a name, the catalog first."""
    match parse_name(name):
        case [only] if only not in _list_catalogs(session):
            return [_current_catalog(session), only]
        case [_] | [_, _] | [_, _, _] as parts:
            return parts
    raise UsageError(
        f"--catalog {name} is not a catalog or schema name",
        "write CATALOG, CATALOG.SCHEMA or SCHEMA",
    )


def _find_below(session: SparkSession, name: list[str]) -> Iterator[_Described | UnreadablePlace]:
    match name:
        case [catalog]:
            yield from _find_in_catalog(session, catalog)
        case [catalog, schema]:
            yield from _find_in_schema(session, [catalog, schema])
        case [*schema, table]:
            yield _describe_table(session, schema, table)


def _list_catalogs(session: SparkSession) -> set[str]:
    # Spark lists only catalogs that the session has used; the current one may be missing.
    listed = {row[0] for row in sql_rows(session, "SHOW CATALOGS")}
    return {*listed, _current_catalog(session)}


def _current_catalog(session: SparkSession) -> str:
    return str(sql_rows(session, "SELECT current_catalog()")[0][0])


def _find_in_catalog(session: SparkSession, catalog: str) -> Iterator[_Described | UnreadablePlace]:
    try:
        rows = sql_rows(session, f"SHOW SCHEMAS IN {quote_identifier(catalog)}")
    except Exception as error:
        yield UnreadablePlace(_place(quote_if_needed(catalog)), _permission_error(error))
        return
    for row in rows:
        if row[0].lower() != "information_schema":
            yield from _find_in_schema(session, [catalog, row[0]], requested=False)


def _find_in_schema(
    session: SparkSession, schema: list[str], *, requested: bool = True
) -> Iterator[_Described | UnreadablePlace]:
    name = _quoted(schema)
    try:
        rows = sql_rows(session, f"SHOW TABLES IN {name}")
    except Exception as error:
        if requested and any(sign in str(error) for sign in _UNKNOWN):
            hint = "see SHOW SCHEMAS; a single table is CATALOG.SCHEMA.TABLE"
            raise UsageError(
                f"Spark has no catalog or schema {'.'.join(map(quote_if_needed, schema))}",
                unknown_name_hint(hint, session),
            ) from None
        yield UnreadablePlace(".".join(map(quote_if_needed, schema)), _permission_error(error))
        return
    # Temporary views are shown in every schema.
    listed = [row["tableName"] for row in rows if not row["isTemporary"]]
    described = _show_table_extended(session, name)
    for table in listed:
        if table in described:
            yield _described([*schema, table], described[table])
        else:
            yield _describe_table(session, schema, table)


def _show_table_extended(session: SparkSession, schema: str) -> dict[str, dict[str, str]]:
    """Describe all tables with one statement; empty if the catalog does not support it."""
    try:
        rows = sql_rows(session, f"SHOW TABLE EXTENDED IN {schema} LIKE '*'")
    except Exception:
        return {}
    return {row["tableName"]: _parse_information(row["information"]) for row in rows}


def _parse_information(text: str) -> dict[str, str]:
    """Parse type, provider and location from Spark's description of a table.

    Comments and properties may contain newlines: type and provider precede them, the location
    follows.
    """
    described = text.partition("\nSchema: ")[0]
    found: dict[str, str] = {}
    for line in described.splitlines():
        key, colon, value = line.partition(": ")
        if colon and (key == "Location" or (key in ("Type", "Provider") and key not in found)):
            found[key] = value.strip()
    return found


def _describe_table(
    session: SparkSession, schema: list[str], table: str
) -> _Described | UnreadablePlace:
    parts = [*schema, table]
    try:
        rows = sql_rows(session, f"DESCRIBE TABLE EXTENDED {_quoted(parts)}")
    except Exception as error:
        return UnreadablePlace(".".join(map(quote_if_needed, parts)), _permission_error(error))
    # The columns can have any name; a heading follows them.
    names = [row["col_name"] for row in rows]
    heading = max((i for i, n in enumerate(names) if n.startswith("# Detailed")), default=0)
    return _described(parts, {row["col_name"]: row["data_type"] for row in rows[heading:]})


def _described(parts: list[str], members: Mapping[str, str]) -> _Described:
    return _Described(
        ".".join(map(quote_if_needed, parts)),
        members.get("Location", ""),
        members.get("Type", "").lower(),
        members.get("Provider", "").lower(),
    )


def _discovered(found: _Described) -> DiscoveredTable | UnreadablePlace:
    if found.location:
        entry = CatalogTable(found.name, found.location, found.type)
        return DiscoveredTable(found.name, found.location, entry=entry)
    message = f"Spark does not show the location of {found.name}"
    hint = f"run `deltaproto inspect {found.name}`, which reads it through Spark"
    return UnreadablePlace(found.name, TableError(ErrorCode.NOT_FOUND, message, hint))


def _permission_error(error: Exception) -> TableError:
    message = Redactor()(first_line(error))
    denied = "PERMISSION" in message.upper() or "PRIVILEGE" in message.upper()
    code = ErrorCode.PERMISSION_DENIED if denied else ErrorCode.STORAGE
    return TableError(code, message, "request USE SCHEMA and BROWSE or SELECT, or leave it out")


def _place(name: str) -> str:
    """Return a name as a place; one part alone would be taken for a path."""
    return name if is_catalog_name(name) else f"{CATALOG_PREFIX}{name}"


def _quoted(parts: list[str]) -> str:
    return ".".join(map(quote_identifier, parts))
