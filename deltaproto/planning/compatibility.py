"""What a plan that switches Compatibility Mode on warns of.

Source: see `deltaproto.protocol.compatibility_mode`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaproto.planning.table import Table
from deltaproto.protocol.compatibility_mode import PAGE, requested

READ_COPY = (
    "or, if Unity Catalog manages the table on Databricks, let the client read the copy that "
    "Compatibility Mode keeps"
)


def warnings(table: Table, properties: Mapping[str, str]) -> Iterator[str]:
    """Warnings for a statement with these properties; none when it changes no copy."""
    if not requested(properties) or requested(table.configuration):
        return
    yield (
        "Compatibility Mode keeps a read-only copy on the oldest protocol at its location, which "
        "costs storage and compute. Readers that cannot read the table read the copy instead, "
        f"behind the table by its refresh interval. Known from documentation only ({PAGE}, a "
        "public preview)."
    )
    yield (
        "Compatibility Mode is for managed tables of Unity Catalog, named in three parts. The "
        "location must be empty, inside an external location, and not used by another copy in the "
        "last 7 days. The first copy takes up to an hour. Tables with row filters, column masks or "
        "some reader features are refused when they are copied."
    )
