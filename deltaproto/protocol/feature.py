"""The data model of a feature catalog record.

A record is data about one table feature: its place in the protocol, how it is enabled and
disabled, its requirements, and what DROP FEATURE does. Records are in `records/`, look-ups in
`feature_catalog.py`. `layers.py` has the rules that combine a record and a table's metadata to
the layers *listed, implied, enabled, present*.

Records are named tuples: every start loads the catalog, and a dataclass takes eight times as
long to define.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

EVERY_RUNTIME = "all supported"
"""marks features that every supported Databricks Runtime supports"""
CLUSTERING_DOMAIN = "delta.clustering"
"""metadata domain that holds the clustering columns"""


class FeatureKind(StrEnum):
    """Who must support the feature (PROTOCOL.md, "Table Features")."""

    WRITER = "writer"
    READER_WRITER = "reader-writer"


class FeatureStatus(StrEnum):
    """Maturity of the feature."""

    STABLE = "stable"
    PREVIEW = "preview"
    DATABRICKS = "databricks-only"
    KERNEL = "kernel-only"
    RFC = "rfc"
    RETIRED = "retired"
    TESTING = "testing"
    UNKNOWN = "unknown"


class RequirementKind(StrEnum):
    """The four kinds of requirement between features (delta-kernel's terms)."""

    SUPPORTED = "supported"
    ENABLED = "enabled"
    NOT_SUPPORTED = "not-supported"
    NOT_ENABLED = "not-enabled"


class Trait(StrEnum):
    """Something in a table schema that requires a feature."""

    NON_NULLABLE = "a column that is NOT NULL or has delta.invariants"
    GENERATED = "a generated column"
    IDENTITY = "an identity column"
    DEFAULT = "a column with a default"
    MAPPING = "columns with mapping ids"
    TIMESTAMP_NTZ = "a TIMESTAMP_NTZ column"
    TIMESTAMP_NANOS = "a nanosecond timestamp column"
    VARIANT = "a VARIANT column"
    GEOSPATIAL = "a GEOMETRY or GEOGRAPHY column"
    COLLATION = "a string column with a collation"
    INTERVAL = "an interval column"
    TYPE_CHANGE = "a column whose type was widened"


class Trace(StrEnum):
    """Evidence of a feature in the files or the log of the current version."""

    DELETION_VECTORS = "data files with deletion vectors"
    CHANGE_FILES = "change data files"
    ROW_IDS = "data files with base row ids"
    UNTRACKED_FILES = "data files without base row ids"
    UNCOUNTED_FILES = "data files without base row ids and without a number of rows"
    V2_CHECKPOINT = "a V2 checkpoint"
    COMMIT_TIMESTAMP = "an in-commit timestamp"
    DOMAINS = "metadata domains"
    ABSOLUTE_PATHS = "data files with absolute paths"
    NON_ASCII_PATHS = "data files with non-ASCII characters in their paths"
    ESCAPED_PATHS = "data files with escapes in their paths"
    HIDDEN_PARTITIONS = "data files whose paths do not show their partition values"
    STORED_PARTITIONS = "data files that have their partition columns, and no folders of partitions"
    NON_ASCII_VALUES = "partition values with non-ASCII characters"
    ESCAPED_VALUES = "partition values that paths can only show with escapes"
    ISO_TIMESTAMPS = "partition values with timestamps in ISO 8601"
    MIXED_TIMESTAMPS = "a partition column with timestamps in two forms"
    MISFIT_VALUES = "partition values that do not fit the types of their columns"
    NEGATIVE_DECIMALS = "negative partition values of decimals with decimal places"
    UNWIDENED_VALUES = "partition values in the form of a narrower type"
    DELTA_RS_FILES = "data files that delta-rs wrote from Arrow data"
    DELTA_RS_REWRITES = "data files written by a delta-rs DELETE, UPDATE or MERGE"
    BYTE_ORDER_MARK = "a commit that begins with a byte order mark"
    UNSIZED_FILES = "an add action without the size of its data file"
    IMPOSSIBLE_SIZES = "an add action with an impossible file size"
    NO_PARTITION_VALUES = "an add action without partition values"
    INCOMPLETE_ADDS = "an add action without another required member"
    MISTYPED_ADDS = "an add action with a member of another type"
    INCOMPLETE_REMOVES = "a remove action without dataChange"
    MISTYPED_INFO = "a commitInfo action with a member of another type"
    MALFORMED_VECTORS = "a deletion vector without a required member, or with a wrong one"
    UNENCODED_PATHS = "an add action whose path is not encoded as a URI"
    UNREADABLE_STATISTICS = "statistics of a data file that are not a JSON object"
    MISTYPED_STATISTICS = "statistics of a data file that do not fit the types of its columns"
    LACKING_COLUMNS = "statistics of a data file that lack a NOT NULL column"
    UNBOUNDED_COLUMNS = "statistics of a data file with bounds, but not of every indexed column"
    UNBOUNDED_BOOLEANS = "statistics of a data file with bounds, but not of an indexed boolean"
    UNBOUNDED_LATER_COLUMNS = (
        "statistics of a data file with bounds, but not of the columns after indexed structs"
    )
    NAN_BOUNDS = "statistics of a data file with NaN as a bound"
    EXPONENT_BOUNDS = "statistics of a data file with a decimal as a bound that has an exponent"


class PropertyIs(NamedTuple):
    """Enabled if table property `key` has one of `values` (case-insensitive)."""

    key: str
    values: tuple[str, ...] = ("true",)
    older: tuple[str, ...] = ()
    """former names of the property, used if `key` is not set"""

    @property
    def keys(self) -> tuple[str, ...]:
        """All names of the property, in order of precedence."""
        return (self.key, *self.older)

    def key_in(self, configuration: Mapping[str, str | None]) -> str:
        """Return the name that is in effect; `key` if none is set."""
        if not self.older or self.key in configuration:
            return self.key
        return next((key for key in self.older if key in configuration), self.key)

    def holds(self, value: str | None) -> bool:
        """Return True if `value` (None: not set) is one of `values`."""
        return value is not None and value.strip().lower() in {v.lower() for v in self.values}


class PropertyPrefix(NamedTuple):
    """Enabled if the name of any table property starts with `prefix`."""

    prefix: str
    any_case: bool = False
    """True if Delta ignores the case of the prefix, which is then in lower case"""

    def keys_in(self, configuration: Iterable[str]) -> list[str]:
        """Return the names of properties that start with `prefix`, sorted."""
        return sorted(
            key
            for key in configuration
            if (key.lower() if self.any_case else key).startswith(self.prefix)
        )


class SchemaHas(NamedTuple):
    """Enabled if the schema has `trait`."""

    trait: Trait


class DomainHas(NamedTuple):
    """Enabled if metadata domain `domain` exists and its list `key` is not empty."""

    domain: str
    key: str


class AlwaysWhenSupported(NamedTuple):
    """The feature has no switch: if supported, it is enabled."""


Enablement = PropertyIs | PropertyPrefix | SchemaHas | DomainHas | AlwaysWhenSupported


class Requirement(NamedTuple):
    """`feature` must be (or must not be) supported or enabled for the record's feature."""

    need: RequirementKind
    feature: str
    source: str
    """source of the rule: a spec section, a Delta class, a document"""


class EnablementTrigger(NamedTuple):
    """One way to enable the feature."""

    act: str
    """the trigger as written: a property assignment, a column type, or a clause of a statement"""
    by: str
    """one of `property`, `schema`, `command`, `feature-property`"""
    new_tables: bool = True
    existing_tables: bool = True
    """False if it fails on an existing table until the feature is added manually"""
    note: str = ""


class DropRefusal(NamedTuple):
    """A reason why DROP FEATURE fails before it commits anything."""

    when: str
    error: str
    remedy: str


class DropBehavior(NamedTuple):
    """What `ALTER TABLE … DROP FEATURE` does (Delta 4.x, fast drop).

    `commits` is the minimum and maximum number of commits of one fast drop. `preparation` lists
    the operations before the final `DROP FEATURE` commit, without the barrier `Empty Commit`s of a
    history-protected feature.
    """

    delta_spark: str | None
    """first delta-spark release that can drop it; None: no release can"""
    databricks: str | None
    """first Databricks Runtime documented to drop it; None: not documented"""
    commits: tuple[int, int] = (1, 1)
    preparation: tuple[str, ...] = ()
    rewrites: str = "none"
    """rewritten data files: `none`, `affected` (those with traces) or `all`"""
    protects_history: bool = False
    """adds `checkpointProtection`, unless dropped with TRUNCATE HISTORY"""
    needs_truncate: bool = False
    """True if only `DROP FEATURE … TRUNCATE HISTORY` is accepted"""
    refusals: tuple[DropRefusal, ...] = ()
    note: str = ""
    databricks_doubt: str = ""
    """why it is not certain that Databricks can drop it"""

    @property
    def rewrites_data(self) -> bool:
        return self.rewrites != "none"


class FirstVersions(NamedTuple):
    """First versions that support the feature in production; None: no version does."""

    delta_spark: str | None
    databricks: str | None
    """minimum Databricks Runtime for full support; `all supported` as in the Databricks docs"""
    databricks_note: str = ""


class AuthorityDispute(NamedTuple):
    """A point on which two sources disagree, and when each one applies."""

    about: str
    oss: str
    databricks: str
    applies: str


class Feature(NamedTuple):
    """One table feature. `name` is the exact, case-sensitive name in the Delta log."""

    name: str
    kind: FeatureKind
    status: FeatureStatus
    summary: str
    """the purpose of the feature, in one plain sentence"""
    min_reader: int
    """lowest minReaderVersion that supports it: 1 for writer features"""
    min_writer: int
    """lowest minWriterVersion that supports it; below 7 for legacy features"""
    enablement: Enablement
    since: FirstVersions
    drop: DropBehavior
    triggers: tuple[EnablementTrigger, ...] = ()
    switch_off: str = ""
    """how to stop its use without removing it from the protocol; empty: impossible"""
    requires: tuple[Requirement, ...] = ()
    traces: tuple[Trace, ...] = ()
    """traces in files or log that show the feature"""
    renamed_to: str | None = None
    aliases: tuple[str, ...] = ()
    disputes: tuple[AuthorityDispute, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Feature {self.name}: {self.kind}, {self.status}>"

    @property
    def switches(self) -> tuple[str, ...]:
        """Names (or name prefixes) of the properties that enable it."""
        match self.enablement:
            case PropertyIs() as rule:
                return rule.keys
            case PropertyPrefix(prefix):
                return (prefix,)
            case _:
                return ()

    @property
    def switchless(self) -> bool:
        """True if nothing switches it on or off, so every table that supports it uses it."""
        return isinstance(self.enablement, AlwaysWhenSupported)

    @property
    def legacy(self) -> bool:
        """True if a version number below 7 can imply the feature."""
        return self.min_writer < 7

    @property
    def droppable(self) -> bool:
        """True if a released delta-spark can drop it."""
        return self.drop.delta_spark is not None

    @property
    def required_features(self) -> tuple[str, ...]:
        """Names of required features, in catalog order."""
        positive = (RequirementKind.SUPPORTED, RequirementKind.ENABLED)
        return tuple(r.feature for r in self.requires if r.need in positive)
