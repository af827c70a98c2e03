"""A table's requirements for clients: protocol, use, layout and contents."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from deltaproto.protocol import feature_catalog
from deltaproto.protocol.layers import FeatureState
from deltaproto.protocol.protocol import Protocol

ABSOLUTE_PATHS = "absolute-paths"
DELTA_RS_FILES = "delta-rs-files"
DELTA_RS_REWRITES = "delta-rs-rewrites"
MAPPED_PARTITIONS = "mapped-partitions"
MAPPING_ADDED_LATER = "mapping-added-later"
UNMAPPED_COLUMNS = "unmapped-columns"
AMBIGUOUS_COLUMNS = "ambiguous-columns"
MAPPED_COLLECTIONS = "mapped-collections"
DROPPED_COLUMNS = "dropped-columns"
MAPPED_NAMES = "names-that-need-mapping"
DUPLICATE_COLUMNS = "duplicate-columns"
COLUMNS_WITHOUT_METADATA = "columns-without-metadata"
UNKNOWN_MEMBERS = "unknown-members-in-schema"
PARTITION_NOT_IN_SCHEMA = "partition-not-in-schema"
ONLY_PARTITIONS = "only-partition-columns"
REPEATED_PARTITIONS = "repeated-partition-columns"
NON_ASCII_PATHS = "non-ascii-paths"
ESCAPED_PATHS = "escaped-paths"
VECTORS_ON_SPECIAL_PATHS = "deletion-vectors-on-special-paths"
SPECIAL_LOCATION = "special-location"
HIVE_LOCATION = "hive-location"
PARTITIONS_AT_HIVE_LOCATION = "partitions-at-hive-location"
NON_ASCII_LOCATION = "non-ascii-location"
PARTITIONS_AT_NON_ASCII_LOCATION = "partitions-at-non-ascii-location"
ODD_LOCATION = "odd-location"
PERCENT_IN_PATH = "percent-in-path"
HIDDEN_PARTITIONS = "hidden-partitions"
STORED_PARTITIONS = "stored-partitions"
BINARY_PARTITIONS = "binary-partitions"
DECIMAL_PARTITIONS = "decimal-partitions"
NEGATIVE_PARTITIONS = "negative-decimal-partitions"
MISFIT_PARTITIONS = "misfit-partition-values"
UNWIDENED_PARTITIONS = "unwidened-partition-values"
RANDOM_PREFIXES = "random-prefixes"
ISO_TIMESTAMPS = "iso-timestamp-partitions"
MIXED_TIMESTAMPS = "mixed-timestamp-partitions"
BYTE_ORDER_MARK = "byte-order-mark"
UNSIZED_FILES = "files-without-size"
IMPOSSIBLE_SIZES = "impossible-file-sizes"
NO_PARTITION_VALUES = "files-without-partition-values"
INCOMPLETE_ADDS = "incomplete-add-actions"
MISTYPED_ADDS = "mistyped-add-actions"
INCOMPLETE_REMOVES = "incomplete-remove-actions"
MISTYPED_INFO = "mistyped-commit-info"
MALFORMED_VECTORS = "malformed-deletion-vectors"
UNENCODED_PATHS = "unencoded-paths"
UNREADABLE_STATISTICS = "unreadable-statistics"
UNREADABLE_WITH_BOOLEANS = "unreadable-statistics-with-booleans"
MISTYPED_STATISTICS = "mistyped-statistics"
LACKING_COLUMNS = "files-without-not-null-columns"
MISTYPED_WITH_BOOLEANS = "mistyped-statistics-with-booleans"
UNBOUNDED_COLUMNS = "columns-without-bounds"
UNBOUNDED_BOOLEANS = "booleans-without-bounds"
UNBOUNDED_LATER_COLUMNS = "later-columns-without-bounds"
UNREAD_BOOLEAN_BOUNDS = "unread-boolean-bounds"
NAN_BOUNDS = "nan-bounds"
EXPONENT_BOUNDS = "bounds-with-exponents"
ROUNDED_TIMESTAMPS = "rounded-timestamp-bounds"
UNNAMED_ROW_IDS = "unnamed-row-ids"
UNTRACKED_FILES = "files-without-row-ids"
UNSTAMPED = "commit-without-timestamp"
APPEND_ONLY = "append-only"
MAPPING_MODE_CASE = "mapping-mode-in-another-case"
SWITCHES_CASE = "switches-in-another-case"
TYPE_PREFIX, EXPRESSION_PREFIX = "type ", "expression "
"""prefixes of hazards for a column type and for a construct in a constraint"""
MALFORMED = "malformed"
"""a type that lacks a part, after `TYPE_PREFIX`"""
OF_EXPRESSIONS = "a constraint or generated column uses"
"""begins the description of each hazard with `EXPRESSION_PREFIX`"""
ANY_OTHER = "*"
"""any other type or construct, after `TYPE_PREFIX` or `EXPRESSION_PREFIX`"""

_TEXTS = {
    ABSOLUTE_PATHS: "data files are named by absolute paths, as in a shallow clone",
    DELTA_RS_FILES: "delta-rs wrote data files, whose Arrow types depend on the caller",
    DELTA_RS_REWRITES: "a delta-rs DELETE, UPDATE or MERGE wrote data files",
    MAPPED_PARTITIONS: "a partition column is stored under a physical name",
    MAPPING_ADDED_LATER: "column mapping was enabled on files that have no column ids",
    UNMAPPED_COLUMNS: "column mapping is enabled, and a column has no id or no physical name",
    AMBIGUOUS_COLUMNS: "column mapping is enabled, and two columns have the same id or physical "
    "name",
    MAPPED_COLLECTIONS: "column mapping is enabled, and a column contains an array, map or variant",
    DROPPED_COLUMNS: "column mapping is enabled, and data files may contain dropped columns",
    MAPPED_NAMES: "a column has a name that needs column mapping, such as one with a space",
    DUPLICATE_COLUMNS: "columns differ only in the case of their names",
    COLUMNS_WITHOUT_METADATA: "the schema has a column without metadata",
    UNKNOWN_MEMBERS: "the schema has members that the specification does not define",
    PARTITION_NOT_IN_SCHEMA: "a partition column is not in the schema",
    ONLY_PARTITIONS: "every column is a partition column",
    REPEATED_PARTITIONS: "a partition column is listed twice",
    NON_ASCII_PATHS: "data file paths contain non-ASCII characters from partition values",
    ESCAPED_PATHS: "data file paths contain escapes from partition values",
    VECTORS_ON_SPECIAL_PATHS: "deletion vectors hide rows of data files whose paths contain "
    "escapes or non-ASCII characters",
    SPECIAL_LOCATION: "the table's path contains a character that URLs escape, such as a space",
    NON_ASCII_LOCATION: "the table's path ends in a non-ASCII character",
    PARTITIONS_AT_NON_ASCII_LOCATION: "the table is partitioned, and its path ends in a non-ASCII "
    "character",
    HIVE_LOCATION: "a folder of the table's path looks like a partition, as in a=b",
    PARTITIONS_AT_HIVE_LOCATION: "the table is partitioned, and a folder of its path looks like a "
    "partition, as in a=b",
    ODD_LOCATION: "the table's path contains brackets, a control character or one of ^ | \\ `",
    PERCENT_IN_PATH: "the table's path contains a percent sign",
    HIDDEN_PARTITIONS: "the folders of data files do not show their partition values",
    STORED_PARTITIONS: "data files contain their partition columns, without partition folders",
    BINARY_PARTITIONS: "a partition column is binary",
    DECIMAL_PARTITIONS: "a partition column is a decimal with decimal places",
    NEGATIVE_PARTITIONS: "a partition value is a negative decimal with decimal places",
    MISFIT_PARTITIONS: "a partition value does not fit the type of its column",
    UNWIDENED_PARTITIONS: "a partition value is stored in the form of a narrower type, as 1.5 for "
    "a decimal with two places",
    RANDOM_PREFIXES: "new data files are in folders with random names, not in partition folders",
    ISO_TIMESTAMPS: "timestamps in partition values are stored in ISO 8601",
    MIXED_TIMESTAMPS: "timestamps in partition values are stored in two formats",
    BYTE_ORDER_MARK: "a commit begins with a byte order mark",
    UNSIZED_FILES: "an add action lacks the size of its data file",
    IMPOSSIBLE_SIZES: "an add action has an impossible file size",
    NO_PARTITION_VALUES: "an add action lacks partition values",
    INCOMPLETE_ADDS: "an add action lacks modificationTime or dataChange",
    MISTYPED_ADDS: "a member of an add action has the wrong type",
    INCOMPLETE_REMOVES: "a remove action lacks dataChange",
    MISTYPED_INFO: "a commitInfo action has a member of a type that Delta Spark does not expect",
    MALFORMED_VECTORS: "a deletion vector in the log lacks a required member, or has a wrong one",
    UNENCODED_PATHS: "the path of a data file is not encoded as a URI, such as one with a space",
    UNREADABLE_STATISTICS: "the statistics of a data file are not a JSON object",
    UNREADABLE_WITH_BOOLEANS: "the statistics of a data file are not a JSON object, and a column "
    "is boolean",
    MISTYPED_STATISTICS: "the statistics of a data file do not fit the types of its columns",
    LACKING_COLUMNS: "a data file lacks a NOT NULL column, as its statistics show",
    MISTYPED_WITH_BOOLEANS: "the statistics of a data file do not fit the types of its columns, "
    "and a column is boolean",
    UNBOUNDED_COLUMNS: "the statistics of a data file lack the minimum or maximum of a column",
    UNBOUNDED_BOOLEANS: "the statistics of a data file lack the minimum or maximum of a boolean "
    "column",
    UNBOUNDED_LATER_COLUMNS: "the statistics of a data file lack the minimum or maximum of a "
    "column after a struct",
    UNREAD_BOOLEAN_BOUNDS: "a column is boolean, and the statistics of some files were not read",
    NAN_BOUNDS: "NaN is a minimum or maximum in the statistics of a data file",
    EXPONENT_BOUNDS: "a minimum or maximum of a decimal column is stored with an exponent",
    ROUNDED_TIMESTAMPS: "statistics round timestamps down to milliseconds",
    UNNAMED_ROW_IDS: "row tracking is enabled without the names of its columns",
    UNSTAMPED: "in-commit timestamps are enabled, and the newest commit has none",
    UNTRACKED_FILES: "row tracking is enabled, and a data file has no row ids",
    APPEND_ONLY: "the table is append-only",
    MAPPING_MODE_CASE: "the mode of column mapping is not stored in lower case",
    SWITCHES_CASE: "a property is stored as TRUE instead of true",
}
WITH_BOOLEANS: Mapping[str, str] = {
    UNREADABLE_STATISTICS: UNREADABLE_WITH_BOOLEANS,
    MISTYPED_STATISTICS: MISTYPED_WITH_BOOLEANS,
}
"""the hazard that replaces each of these if a column is boolean"""
OF_PARTITION_VALUES = frozenset(
    {
        HIDDEN_PARTITIONS,
        STORED_PARTITIONS,
        BINARY_PARTITIONS,
        RANDOM_PREFIXES,
        ISO_TIMESTAMPS,
        MIXED_TIMESTAMPS,
    }
)
"""hazards of partition values in paths and in the log"""
OF_FILTERED_READS = frozenset(
    {
        *(UNBOUNDED_COLUMNS, UNBOUNDED_BOOLEANS, UNBOUNDED_LATER_COLUMNS),
        *(NAN_BOUNDS, EXPONENT_BOUNDS),
    }
)
"""hazards that only affect reads with a filter on the column"""
HARMLESS_UNLESS_KNOWN = frozenset(
    {
        *(DELTA_RS_FILES, DELTA_RS_REWRITES, MAPPING_ADDED_LATER, MAPPED_COLLECTIONS),
        *(DROPPED_COLUMNS, MAPPED_NAMES, ESCAPED_PATHS, VECTORS_ON_SPECIAL_PATHS, HIVE_LOCATION),
        *(PARTITIONS_AT_HIVE_LOCATION, PARTITIONS_AT_NON_ASCII_LOCATION, *OF_PARTITION_VALUES),
        *(DECIMAL_PARTITIONS, NEGATIVE_PARTITIONS, MISTYPED_INFO),
        *(*OF_FILTERED_READS, UNREAD_BOOLEAN_BOUNDS, ROUNDED_TIMESTAMPS),
    }
)
"""hazards that unmeasured clients are assumed to handle: few readers depend on the Arrow schema or
the column ids in a Parquet file, escapes are common, statistics are optional, and the specification
defines where partition values are stored, and lets commitInfo have any members
"""
KNOWN_HAZARDS = frozenset(_TEXTS)
"""every hazard except types and constructs"""


HAZARDS_BY_FEATURE: Mapping[str, frozenset[str]] = {
    "columnMapping": frozenset(
        {
            *(MAPPED_PARTITIONS, MAPPING_ADDED_LATER, UNMAPPED_COLUMNS, AMBIGUOUS_COLUMNS),
            *(MAPPED_COLLECTIONS, DROPPED_COLUMNS, MAPPED_NAMES, MAPPING_MODE_CASE),
        }
    ),
    "deletionVectors": frozenset({VECTORS_ON_SPECIAL_PATHS}),
    "appendOnly": frozenset({APPEND_ONLY}),
    "rowTracking": frozenset({UNNAMED_ROW_IDS, UNTRACKED_FILES}),
    "inCommitTimestamp": frozenset({UNSTAMPED}),
}
"""hazards that disappear once a feature is no longer used"""
OF_FILE_WRITERS = frozenset({DELTA_RS_FILES, DELTA_RS_REWRITES})
"""hazards that only the commits show, not a checkpoint"""
OF_WRITTEN_FILES = frozenset(
    {ABSOLUTE_PATHS, *OF_FILE_WRITERS, HIDDEN_PARTITIONS, STORED_PARTITIONS, UNBOUNDED_COLUMNS}
)
"""hazards that disappear once Delta Spark rewrites every data file, as when it removes mapping"""
ENABLED_LATER = {"columnMapping": MAPPING_ADDED_LATER, "appendOnly": APPEND_ONLY}
"""hazards that appear when a feature is enabled on an existing table"""


def remaining_hazards(hazards: frozenset[str], features: Iterable[str]) -> frozenset[str]:
    """Return the hazards that remain once nothing uses these features."""
    return hazards.difference(*(HAZARDS_BY_FEATURE.get(name, ()) for name in features))


def is_hazard(word: str) -> bool:
    """Return True if `word` is a hazard."""
    return word in KNOWN_HAZARDS or any(
        word.startswith(kind) and len(word) > len(kind) for kind in (TYPE_PREFIX, EXPRESSION_PREFIX)
    )


def describe_construct(hazard: str) -> str:
    """Return the construct of a hazard with `EXPRESSION_PREFIX`; a sign alone reads as text."""
    construct = hazard.removeprefix(EXPRESSION_PREFIX)
    return construct if any(map(str.isalnum, construct)) else f"the operator `{construct}`"


def describe_hazard(hazard: str) -> str:
    """Describe the hazard in a clause about the table."""
    if hazard == TYPE_PREFIX + MALFORMED:
        return "the schema lacks a part of a column's definition"
    if hazard.startswith(TYPE_PREFIX):
        return f"a column has the type {hazard.removeprefix(TYPE_PREFIX)}"
    if hazard.startswith(EXPRESSION_PREFIX):
        return f"{OF_EXPRESSIONS} {describe_construct(hazard)}"
    return _TEXTS[hazard]


_INTERVALS = {
    TYPE_PREFIX + "interval " + (first if first == last else f"{first} to {last}"): kind
    for kind, fields in (
        (TYPE_PREFIX + "interval year to month", ("year", "month")),
        (TYPE_PREFIX + "interval day to second", ("day", "hour", "minute", "second")),
    )
    for at, first in enumerate(fields)
    for last in fields[at:]
}


def wider_hazards(hazard: str) -> Iterator[str]:
    """Yield the hazard, then those whose measurements apply if it was not measured itself.

    Intervals of the same kind are stored the same way: a client that supports one supports all.
    """
    yield hazard
    if hazard in WITH_BOOLEANS.values():
        yield from (word for word, combined in WITH_BOOLEANS.items() if combined == hazard)
    if hazard in _INTERVALS:
        yield _INTERVALS[hazard]
    for kind in (TYPE_PREFIX, EXPRESSION_PREFIX):
        if hazard.startswith(kind):
            yield kind + ANY_OTHER


MAPPING_MODE = "delta.columnMapping.mode"


class TableRequirements(NamedTuple):
    """A table's requirements. Tables with equal requirements get equal verdicts."""

    protocol: Protocol
    used: frozenset[str]
    """supported features that the table uses"""
    unused: frozenset[str]
    """supported features that the table does not use; features in neither set are unknown"""
    modes: tuple[tuple[str, str], ...] = ()
    """pairs of feature and mode"""
    by_name: bool = False
    """accessed by catalog name, not by path"""
    absent: frozenset[str] = frozenset()
    """supported features without any trace in files and log"""
    doubts: tuple[str, ...] = ()
    """reasons why no client can be relied on, regardless of its features"""
    hazards: frozenset[str] = frozenset()
    """layout and contents that some clients cannot handle"""
    unseen: frozenset[str] = frozenset()
    """hazards that were not checked"""

    def holds(self, feature: str) -> bool | None:
        """Return whether files or log have traces of the feature; None if unknown."""
        return False if feature in self.absent else self.uses(feature)

    def uses(self, feature: str) -> bool | None:
        """Return whether the table uses the feature; None if unknown."""
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
    """Return the requirements of a table with this protocol and usage.

    Args:
        usage: for each supported feature whether it is used; None if unknown.
        absent: supported features that certainly left no trace in files and log.
        doubts: sentences on damage and contradictions that clients handle differently.
        hazards: hazards of layout and contents.
        unseen: hazards that were not checked.
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


def with_unused_features(
    table: TableRequirements, names: tuple[str, ...]
) -> TableRequirements | None:
    """Return the table's requirements with the features added but unused."""
    protocol = table.protocol
    if protocol.violations():
        return None
    for name in names:
        protocol = protocol.with_feature(name)
    return stored_as(table, protocol)


def without_features(table: TableRequirements, names: tuple[str, ...]) -> TableRequirements | None:
    """Return the table's requirements without the features; None if others require them."""
    protocol = table.protocol
    if protocol.violations():
        return None
    kept = protocol.supported - set(names)
    if any(set(names) & set(feature_catalog.required_features(name)) for name in kept):
        return None
    protocol = protocol.without_features(names)
    left = protocol.supported
    modes = tuple((name, mode) for name, mode in table.modes if name in left)
    return table._replace(
        protocol=protocol,
        used=table.used & left,
        unused=table.unused & left,
        modes=modes,
        hazards=remaining_hazards(table.hazards, names),
    )


def stored_as(table: TableRequirements, protocol: Protocol) -> TableRequirements:
    """Return the table's requirements with this protocol; features that it adds are unused."""
    new = protocol.supported - table.protocol.supported
    return table._replace(protocol=protocol, unused=table.unused | new)


def with_checkpoint_protection(table: TableRequirements) -> TableRequirements:
    """Return the requirements after a fast drop, which adds checkpointProtection."""
    name = feature_catalog.CHECKPOINT_PROTECTION
    return table._replace(protocol=table.protocol.with_feature(name), used=table.used | {name})


def _of_vectors(hazards: frozenset[str]) -> frozenset[str]:
    special = hazards & {ESCAPED_PATHS, NON_ASCII_PATHS}
    return frozenset({VECTORS_ON_SPECIAL_PATHS} if special else ())


def feature_usage(states: Iterable[FeatureState]) -> dict[str, bool | None]:
    """Return for each supported feature whether it is enabled or present; None if unknown."""
    return {state.name: is_used(state.name, state.enabled, state.present) for state in states}


def is_used(name: str, enabled: bool | None, present: bool | None) -> bool | None:
    """Return True if enabled or present, False if certainly neither, None if unknown.

    Files of a disabled change data feed affect no client: clients check only the property.
    """
    if name == "changeDataFeed" and enabled is not None:
        return enabled
    if enabled or present:
        return True
    return False if enabled is False and present is False else None
