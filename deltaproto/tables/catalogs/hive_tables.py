"""Delta tables as Hive metastores and AWS Glue describe them; both have Hive's fields.

Source: `HiveExternalCatalog` of Spark (the provider in the parameters, the location of an external
table in the `path` of its serde, along with a placeholder), "CREATE TABLE" of Athena
(`table_type`), and "Crawl Delta Lake tables" of AWS (a table over a symlink manifest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deltaproto.tables.catalogs.described import declared_protocol, hive_columns
from deltaproto.tables.catalogs.interface import (
    CatalogCounts,
    CatalogTable,
    Name,
    Tally,
    quoted_name,
)

_PLACEHOLDER = "-__PLACEHOLDER__"
_MANIFEST = "/_symlink_format_manifest"
_TYPES = {"EXTERNAL_TABLE": "external", "MANAGED_TABLE": "managed"}


def delta_table(
    name: Name,
    type_: str | None,
    parameters: Mapping[str, str],
    location: str | None,
    serde: Mapping[str, str],
    counts: CatalogCounts,
    *,
    owner: str | None = None,
    columns: Iterable[tuple[str, str]] = (),
    partitions: Iterable[tuple[str, str]] = (),
) -> CatalogTable | None:
    """Return a table's description, or None, counted, for a view or another format.

    Args:
        location: of the table's storage.
        serde: parameters of the table's serde.
        columns: names and types.
        partitions: the same for partition columns.
    """
    if "VIEW" in (type_ or "").upper():
        counts.add(Tally.VIEWS)
        return None
    place = _real_location(location or "", serde)
    lake = place.partition(_MANIFEST)[0]
    if lake == place and not _is_delta(parameters):
        counts.add_other_format(hadoop_path(place))
        return None
    described = hive_columns(columns, partitions, parameters)
    return CatalogTable(
        quoted_name(name),
        hadoop_path(lake),
        _TYPES.get(type_ or "", (type_ or "").lower()),
        owner=owner or None,
        protocol=declared_protocol(parameters),
        columns=described and described.digest,
        columns_in_full=described,
    )


def hadoop_path(text: str) -> str:
    """Return a location as a path or URI for `locate`.

    Hadoop's paths are not encoded: `%20` in one is three characters, also after `file:`.
    """
    scheme, colon, rest = text.partition(":")
    if not colon or scheme.lower() != "file":
        return text
    return "/" + rest.lstrip("/")


def _is_delta(parameters: Mapping[str, str]) -> bool:
    names = {key.lower(): value.lower() for key, value in parameters.items() if value}
    # Spark, Trino and Athena write the first two; crawlers the third, for native Delta tables.
    signs = ("spark.sql.sources.provider", "table_type", "classification")
    return any(names.get(sign) == "delta" for sign in signs)


def _real_location(location: str, serde: Mapping[str, str]) -> str:
    path = next((value for key, value in serde.items() if key.lower() == "path"), "")
    if path or location.endswith(_PLACEHOLDER):
        return path
    return location
