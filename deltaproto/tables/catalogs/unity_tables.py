"""Tables and temporary credentials as Unity Catalog describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltaproto.tables.catalogs.described import declared_protocol, unity_columns
from deltaproto.tables.catalogs.interface import (
    CATALOG_MANAGED_TYPE,
    CatalogCounts,
    CatalogTable,
    Tally,
    quoted_name,
)

_MANAGED_BY_CATALOG = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")


def delta_table(found: Mapping[str, Any], counts: CatalogCounts) -> CatalogTable | None:
    """Return a table's description, or None, counted, for a view or another format."""
    type_ = str(found.get("table_type") or "").lower()
    format_ = str(found.get("data_source_format") or "").lower()
    if "view" in type_:
        counts.add(Tally.VIEWS)
        return None
    if format_ != "delta":
        counts.add_other_format(str(found.get("storage_location") or ""))
        return None
    properties = found.get("properties") or {}
    managed = any(properties.get(name) == "supported" for name in _MANAGED_BY_CATALOG)
    name = tuple(str(found.get(key)) for key in ("catalog_name", "schema_name", "name"))
    columns = unity_columns(found.get("columns") or ())
    return CatalogTable(
        quoted_name(name),
        str(found.get("storage_location") or ""),
        CATALOG_MANAGED_TYPE if managed else type_,
        owner=found.get("owner"),
        id=found.get("table_id"),
        protocol=declared_protocol(properties),
        columns=columns and columns.digest,
        columns_in_full=columns,
    )


def storage_credentials(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the storage options of a response; Google's tokens cannot be used in options."""
    aws = given.get("aws_temp_credentials") or {}
    azure = given.get("azure_user_delegation_sas") or {}
    options = {
        "aws_access_key_id": aws.get("access_key_id"),
        "aws_secret_access_key": aws.get("secret_access_key"),
        "aws_session_token": aws.get("session_token"),
        "azure_storage_sas_token": azure.get("sas_token"),
    }
    return {name: str(value) for name, value in options.items() if value}
