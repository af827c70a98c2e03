"""Which table an access-log request used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from deltaproto.fleet.seen.log_formats import Place, Store, TableUse, find_place
from deltaproto.fleet.seen.system_tables import table_name_key
from deltaproto.sql.quoting import name_in_statements

_ACCOUNTS = ("azure_storage_account_name", "account_name")


class TableMatcher:
    """Finds the table of a request by the tables' locations.

    Args:
        options: storage options; a location `az://container/path` has its account there.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        named = (value for key, value in options.items() if key.lower() in _ACCOUNTS)
        self._account = next(named, "")
        self._tables: dict[tuple[Store, str], dict[str, str]] = {}
        self._names: dict[str, str] = {}
        self._find = lru_cache(maxsize=65_536)(self._find_folder)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_find"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find = lru_cache(maxsize=65_536)(self._find_folder)

    def add(self, table: str, uri: str) -> None:
        """Add a table. Tables outside object stores have no requests."""
        self.add_name(table)
        place = find_place(uri, self._account)
        if place is not None:
            self._tables.setdefault(place[:2], {})[place.key] = table
            self._find.cache_clear()

    def add_name(self, table: str) -> None:
        """Add a table that is named as in a catalog; other names are ignored."""
        name = name_in_statements(table)
        if "/" not in name and (key := table_name_key(name)) is not None:
            self._names[key] = table

    def find_used(self, use: TableUse, place: Place | None) -> str | None:
        """Return the table of a use, by its name or else its location."""
        key = None if use.name is None else table_name_key(use.name)
        if key is not None and key in self._names:
            return self._names[key]
        # The location of a table, or of a file or folder in it.
        found = None if place is None else self._find(*place)
        return None if found is None else found[0]

    def find(self, place: Place) -> tuple[str, str] | None:
        """Return the table of an object or a prefix, and the path below the table."""
        if place[:2] not in self._tables and not self._without_account(place):
            return None
        key = place.key
        while True:
            folder, slash, name = key.rpartition("/")
            found = self._find(place.store, place.bucket, folder if slash else "")
            if found is not None:
                table, below = found
                return table, f"{below}/{name}".lstrip("/")
            # S3 encodes keys in its logs, and encodes them again in some.
            decoded = unquote(key)
            if decoded == key:
                return None
            key = decoded

    def _find_folder(self, store: Store, bucket: str, folder: str) -> tuple[str, str] | None:
        tables = self._tables.get((store, bucket)) or self._tables.get(
            (store, f"/{bucket.partition('/')[2]}"), {}
        )
        below = ""
        while True:
            table = tables.get(folder)
            if table is not None:
                return table, below.rstrip("/")
            if not folder:
                return None
            folder, _, name = folder.rpartition("/")
            below = f"{name}/{below}"

    def _without_account(self, place: Place) -> bool:
        other = f"/{place.bucket.partition('/')[2]}"
        return place.store is Store.AZURE and (place.store, other) in self._tables
