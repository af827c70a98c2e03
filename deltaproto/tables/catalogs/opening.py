"""Opens the client of a catalog's address."""

from __future__ import annotations

from collections.abc import Mapping

from deltaproto.location import Location
from deltaproto.tables.catalogs.interface import CatalogClient

_CREDENTIALS = ("key", "token", "sas", "secret", "profile", "credential")


def open_catalog(location: Location, options: Mapping[str, str]) -> CatalogClient:
    """Return the client of a catalog.

    Args:
        options: the user's storage options. Credentials in them are used instead of temporary ones.

    Raises:
        TableError: when credentials cannot be read.
        EngineError: when the client's library is not installed.
    """
    scheme, _, rest = location.uri.partition("://")
    authority = rest.partition("/")[0]
    own = any(sign in name.lower() for name in options for sign in _CREDENTIALS)
    match scheme:
        case "uc":
            from deltaproto.tables.catalogs.unity import UnityCatalog

            return UnityCatalog(authority, vends=not own)
        case "hms":
            from deltaproto.tables.catalogs.hive import HiveMetastore

            return HiveMetastore(authority)
        case _:
            from deltaproto.tables.catalogs.glue import GlueCatalog

            return GlueCatalog(authority, options)
