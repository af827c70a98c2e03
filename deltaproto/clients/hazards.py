"""What a table's layout and contents ask of its clients, beyond its protocol.

A hazard is something that the protocol does not announce and that some clients cannot handle. It
is named by a word, the same in findings (as evidence), in the catalog of clients and in the kit.
Types and constraints have a word for each type or construct: `type void`, `expression size()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ABSOLUTE_PATHS = "absolute-paths"
DELTA_RS_FILES = "delta-rs-files"
DELTA_RS_REWRITES = "delta-rs-rewrites"
MAPPED_PARTITIONS = "mapped-partitions"
MAPPING_ADDED_LATER = "mapping-added-later"
UNMAPPED_COLUMNS = "unmapped-columns"
DUPLICATE_COLUMNS = "duplicate-columns"
PARTITION_NOT_IN_SCHEMA = "partition-not-in-schema"
NON_ASCII_PATHS = "non-ascii-paths"
ESCAPED_PATHS = "escaped-paths"
SPECIAL_LOCATION = "special-location"
HIVE_LOCATION = "hive-location"
NON_ASCII_LOCATION = "non-ascii-location"
ODD_LOCATION = "odd-location"
PERCENT_IN_PATH = "percent-in-path"
BYTE_ORDER_MARK = "byte-order-mark"
UNNAMED_ROW_IDS = "unnamed-row-ids"
APPEND_ONLY = "append-only"
TYPE, EXPRESSION = "type ", "expression "
"""the beginnings of words for a type and for a construct in a constraint"""
OTHER = "*"
"""any other type or construct, after `TYPE` or `EXPRESSION`"""

_TEXTS = {
    ABSOLUTE_PATHS: "data files are named by absolute paths, as in a shallow clone",
    DELTA_RS_FILES: "delta-rs wrote data files, whose Arrow types depend on who called it",
    DELTA_RS_REWRITES: "a DELETE, UPDATE or MERGE of delta-rs wrote data files",
    MAPPED_PARTITIONS: "a partition column is stored under another name",
    MAPPING_ADDED_LATER: "column mapping was enabled on files that have no column ids",
    UNMAPPED_COLUMNS: "column mapping is on, and a column has no id or no physical name",
    DUPLICATE_COLUMNS: "columns differ only in the case of their names",
    PARTITION_NOT_IN_SCHEMA: "a partition column is not in the schema",
    NON_ASCII_PATHS: "the paths of data files hold characters beyond ASCII, from partition values",
    ESCAPED_PATHS: "the paths of data files hold escapes, from partition values",
    SPECIAL_LOCATION: "the table's path holds a character that URLs escape, such as a space",
    NON_ASCII_LOCATION: "the table's path ends in a character beyond ASCII",
    HIVE_LOCATION: "a folder of the table's path looks like a partition, as in a=b",
    ODD_LOCATION: "the table's path holds brackets or one of ^ | \\ `",
    PERCENT_IN_PATH: "the table's path holds a percent sign",
    BYTE_ORDER_MARK: "a commit begins with a byte order mark",
    UNNAMED_ROW_IDS: "row tracking is enabled without the names of its columns",
    APPEND_ONLY: "the table is append-only",
}
HARMLESS_UNLESS_KNOWN = frozenset(
    {DELTA_RS_FILES, DELTA_RS_REWRITES, MAPPING_ADDED_LATER, ESCAPED_PATHS, HIVE_LOCATION}
)
"""readers that go by the Arrow schema or the column ids in a Parquet file notice three, and
escapes are usual: who was not measured is taken to be unaffected"""
WORDS = frozenset(_TEXTS)
"""every hazard that is not a type or a construct"""


OF_FEATURES: Mapping[str, frozenset[str]] = {
    "columnMapping": frozenset({MAPPED_PARTITIONS, MAPPING_ADDED_LATER, UNMAPPED_COLUMNS}),
    "appendOnly": frozenset({APPEND_ONLY}),
    "rowTracking": frozenset({UNNAMED_ROW_IDS}),
}
"""hazards that are gone once a feature is no longer used"""
ENABLED_LATER = {"columnMapping": MAPPING_ADDED_LATER, "appendOnly": APPEND_ONLY}
"""hazards that a table gets when a feature is enabled on it"""


def without(hazards: frozenset[str], features: Iterable[str]) -> frozenset[str]:
    """The hazards that are left once nothing uses these features."""
    return hazards.difference(*(OF_FEATURES.get(name, ()) for name in features))


def is_hazard(word: str) -> bool:
    """Whether `word` names a hazard."""
    return word in WORDS or any(
        word.startswith(kind) and len(word) > len(kind) for kind in (TYPE, EXPRESSION)
    )


def described(hazard: str) -> str:
    """The hazard as a clause about the table."""
    if hazard.startswith(TYPE):
        return f"a column has the type {hazard.removeprefix(TYPE)}"
    if hazard.startswith(EXPRESSION):
        return f"a constraint or generated column uses {hazard.removeprefix(EXPRESSION)}"
    return _TEXTS[hazard]


def more_general(hazard: str) -> str | None:
    """The word that stands for every hazard of the same kind; None where there is none."""
    for kind in (TYPE, EXPRESSION):
        if hazard.startswith(kind):
            return kind + OTHER
    return None
