"""Places in catalogs, as scans save them: among their roots, and as locations of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from deltaproto.location import CATALOG_SCHEMES, catalog_server, is_catalog_name
from deltaproto.sql.quoting import parse_name

CATALOG_PREFIX = "catalog "
"""before the name of a Spark session's catalog or schema, among the roots that a scan saves"""


class CatalogPlace(NamedTuple):
    """A server, a catalog, a schema or a table."""

    server: str
    """its scheme and host; empty for the catalogs of a Spark session"""
    name: tuple[str, ...]
    """the parts of the name in lower case; none for a whole server"""

    def covers(self, other: CatalogPlace) -> bool:
        """Return True if `other` is at or below this place."""
        return self.server == other.server and self.name == other.name[: len(self.name)]


def parse_catalog_place(text: str) -> CatalogPlace | None:
    """Return the place in a catalog that a root or an error names; None for paths and URIs."""
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme not in CATALOG_SCHEMES:
            return None
        return CatalogPlace(catalog_server(text), _lower_parts(rest.partition("/")[2]))
    if text.startswith(CATALOG_PREFIX):
        return CatalogPlace("", _lower_parts(text.removeprefix(CATALOG_PREFIX)))
    return CatalogPlace("", _lower_parts(text)) if is_catalog_name(text) else None


def unity_addresses(roots: Iterable[str]) -> Callable[[str], str | None]:
    """Return a function that adds the URL of their Unity Catalog to the names of scanned tables.

    It returns None for any other table. Only Unity Catalog gives temporary credentials, tracks
    commits and refuses paths, so its tables are read through it. A name that several catalogs
    among the scan's roots may have belongs to none of them.
    """
    places = [place for root in roots if (place := parse_catalog_place(root)) is not None]

    def address(table: str) -> str | None:
        if not is_catalog_name(table):
            return None
        parts = _lower_parts(table)
        servers = {each.server for each in places if each.covers(each._replace(name=parts))}
        server = servers.pop() if len(servers) == 1 else ""
        return f"{server}/{table}" if server.startswith("uc:") else None

    if any(each.server.startswith("uc:") for each in places):
        return address
    return lambda _: None


def _lower_parts(name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in parse_name(name))
