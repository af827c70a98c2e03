"""Databricks Compatibility Mode: a read-only copy of a table with the oldest protocol.

A managed Unity Catalog table (or streaming table or materialized view) with these properties is
copied to a separate location, with Delta and Iceberg metadata of version 1, and kept up to date.
The table's own protocol does not change. Not measured: this is a Databricks service.

Source: the Databricks pages "Compatibility Mode" (docs.databricks.com/aws/en/external-access/
compatibility-mode, a public preview), "DELTA_UNIFORM_COMPATIBILITY_MISSING_OR_INVALID_LOCATION" and
"DELTA_UNIFORM_REFRESH_NOT_SUPPORTED".
"""

from __future__ import annotations

from collections.abc import Mapping

FORMATS = "delta.universalFormat.enabledFormats"
FORMAT = "compatibility"
LOCATION = "delta.universalFormat.compatibility.location"
INTERVAL = "delta.universalFormat.compatibility.targetRefreshInterval"
NO_LOCATION = "DELTA_UNIFORM_COMPATIBILITY_MISSING_OR_INVALID_LOCATION"
PAGE = "docs.databricks.com/aws/en/external-access/compatibility-mode"


def enabled_formats(properties: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the formats in the property `FORMATS`, as written."""
    value = properties.get(FORMATS) or ""
    return tuple(value.split(",")) if value else ()


def is_requested(properties: Mapping[str, str | None]) -> bool:
    """Return True if these properties enable Compatibility Mode."""
    return FORMAT in enabled_formats(properties)
