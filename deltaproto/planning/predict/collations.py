"""Names of string types with a collation.

Source: Spark 4.2's `DataType` and `CollationFactory`; measured with Delta Spark 4.4.0.
"""

from __future__ import annotations

import re

COLLATED = "string collate"
"""beginning of the name of a string type with a collation"""
DEFAULT_COLLATION = f"{COLLATED} UTF8_BINARY"
"""the type of plain strings with an explicit collation: Delta Spark stores it as `string collate
UTF8_BINARY`, which other clients do not know
"""
UNKNOWN_COLLATION = f"{COLLATED} ?"
"""beginning of the name of a string type with a collation that Spark certainly does not have"""
COLLATION_FEATURES = ("collations", "collations-preview")
"""features of tables whose columns have collations, which only Databricks stores"""
_NAMES = {"spark": r"UTF8_(BINARY|LCASE)(_RTRIM)?", "icu": r"(?!UTF8_)\w+"}
"""names by provider; Spark decides which ICU locales exist"""


def collated_type(stored: str) -> str:
    """Return the type for a collation as a schema stores it: `PROVIDER.NAME`."""
    provider, _, name = stored.partition(".")
    known = provider in _NAMES and re.fullmatch(_NAMES[provider], name) is not None
    return f"{COLLATED} {name}" if known else UNKNOWN_COLLATION + stored


def has_collation(name: str) -> bool:
    """Return True for the name of a string type with a collation other than the default."""
    return name.startswith(COLLATED) and name != DEFAULT_COLLATION
