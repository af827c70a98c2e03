"""Compatibility Mode of Databricks: a read-only copy of a table, on the oldest protocol.

A managed table of Unity Catalog (also a streaming table or materialized view) with these properties
is copied to a location of its own, with Delta and Iceberg metadata of version 1, and kept up to
date. The protocol of the table itself stays as it is. Not measured: a service of Databricks.

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


def formats(properties: Mapping[str, str | None]) -> tuple[str, ...]:
    """The formats that `FORMATS` names, as they are written."""
    value = properties.get(FORMATS) or ""
    return tuple(value.split(",")) if value else ()


def requested(properties: Mapping[str, str | None]) -> bool:
    """Whether these properties switch Compatibility Mode on."""
    return FORMAT in formats(properties)
