"""What a table requires of its clients: protocol, use, layout and contents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

ABSOLUTE_PATHS = "absolute-paths"
DELTA_RS_FILES = "delta-rs-files"
DELTA_RS_REWRITES = "delta-rs-rewrites"
MAPPED_PARTITIONS = "mapped-partitions"
MAPPING_ADDED_LATER = "mapping-added-later"
UNMAPPED_COLUMNS = "unmapped-columns"
MAPPED_COLLECTIONS = "mapped-collections"
DROPPED_COLUMNS = "dropped-columns"
DUPLICATE_COLUMNS = "duplicate-columns"
PARTITION_NOT_IN_SCHEMA = "partition-not-in-schema"
NON_ASCII_PATHS = "non-ascii-paths"
ESCAPED_PATHS = "escaped-paths"
VECTORS_ON_SPECIAL_PATHS = "deletion-vectors-on-special-paths"
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
    MAPPED_COLLECTIONS: "column mapping is on, and a column holds an array, a map or a variant",
    DROPPED_COLUMNS: "column mapping is on, and data files may hold columns that were dropped",
    DUPLICATE_COLUMNS: "columns differ only in the case of their names",
    PARTITION_NOT_IN_SCHEMA: "a partition column is not in the schema",
    NON_ASCII_PATHS: "the paths of data files hold characters beyond ASCII, from partition values",
    ESCAPED_PATHS: "the paths of data files hold escapes, from partition values",
    VECTORS_ON_SPECIAL_PATHS: "deletion vectors hide rows, and the paths of data files hold "
    "escapes or characters beyond ASCII",
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
    {
        *(DELTA_RS_FILES, DELTA_RS_REWRITES, MAPPING_ADDED_LATER, MAPPED_COLLECTIONS),
        *(DROPPED_COLUMNS, ESCAPED_PATHS, VECTORS_ON_SPECIAL_PATHS, HIVE_LOCATION),
    }
)
"""readers that go by the Arrow schema or the column ids in a Parquet file notice the first five,
and escapes are usual: who was not measured is taken to be unaffected"""
WORDS = frozenset(_TEXTS)
"""every hazard that is not a type or a construct"""


OF_FEATURES: Mapping[str, frozenset[str]] = {
    "columnMapping": frozenset(
        {
            *(MAPPED_PARTITIONS, MAPPING_ADDED_LATER, UNMAPPED_COLUMNS),
            *(MAPPED_COLLECTIONS, DROPPED_COLUMNS),
        }
    ),
    "deletionVectors": frozenset({VECTORS_ON_SPECIAL_PATHS}),
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


MAPPING_MODE = "delta.columnMapping.mode"


class TableRequirements(NamedTuple):
    """Equal needs get equal verdicts, so that a fleet's tables are judged once for each."""

    protocol: Protocol
    used: frozenset[str]
    """supported features that something on the table uses"""
    unused: frozenset[str]
    """supported features that nothing uses; those in neither set cannot be told"""
    modes: tuple[tuple[str, str], ...] = ()
    """feature and mode, where it has modes"""
    by_name: bool = False
    """reached by catalog name, not by path"""
    absent: frozenset[str] = frozenset()
    """supported features of which no trace is left in files and log"""
    doubts: tuple[str, ...] = ()
    """why no client can be counted on, whatever it supports"""
    hazards: frozenset[str] = frozenset()
    """what its layout and contents show that some clients cannot handle: see `hazards`"""
    unseen: frozenset[str] = frozenset()
    """hazards that nobody looked for"""

    def holds(self, feature: str) -> bool | None:
        """Whether files or log hold traces of the feature; None when that cannot be told."""
        return False if feature in self.absent else self.uses(feature)

    def uses(self, feature: str) -> bool | None:
        """Whether something on the table uses the feature; None when that cannot be told."""
        if feature in self.used:
            return True
        return False if feature in self.unused else None


def table_requirements(
    protocol: Protocol,
    usage: Mapping[str, bool | None],
    configuration: Mapping[str, str | None],
    *,
    by_name: bool = False,
    absent: Iterable[str] = (),
    doubts: Iterable[str] = (),
    hazards: Iterable[str] = (),
    unseen: Iterable[str] = (),
) -> TableRequirements:
    """What a table with this protocol and usage asks.

    Args:
        usage: for each supported feature whether it is used; None when that cannot be told.
        absent: supported features that surely left no trace in files and log.
        doubts: sentences on damage and contradictions that clients take differently.
        hazards: what layout and contents show, in the words of `hazards`.
        unseen: hazards that nobody looked for.
    """
    modes: list[tuple[str, str]] = []
    if "columnMapping" in protocol.supported:
        modes.append(("columnMapping", (configuration.get(MAPPING_MODE) or "none").lower()))
    absent, hazards, unseen = frozenset(absent), frozenset(hazards), frozenset(unseen)
    if "deletionVectors" in protocol.supported - absent:
        hazards |= _of_vectors(hazards)
        unseen |= _of_vectors(unseen)
    return TableRequirements(
        protocol,
        frozenset(name for name, used in usage.items() if used is True),
        frozenset(name for name, used in usage.items() if used is False),
        tuple(modes),
        by_name,
        absent,
        tuple(doubts),
        hazards,
        unseen,
    )


def _of_vectors(hazards: frozenset[str]) -> frozenset[str]:
    special = hazards & {ESCAPED_PATHS, NON_ASCII_PATHS}
    return frozenset({VECTORS_ON_SPECIAL_PATHS} if special else ())


def usage(states: Iterable[FeatureState]) -> dict[str, bool | None]:
    """For each supported feature whether it is enabled or present; None when not to be told."""
    return {state.name: used(state.name, state.enabled, state.present) for state in states}


def used(name: str, enabled: bool | None, present: bool | None) -> bool | None:
    """A feature is used when it is enabled or present, and unused when it is surely neither.

    Files of a change feed that was switched off bind nobody: clients look at the property only.
    """
    if name == "changeDataFeed" and enabled is not None:
        return enabled
    if enabled or present:
        return True
    return False if enabled is False and present is False else None
