"""What one record of the feature catalogue holds.

A record is data about one table feature: its place in the protocol, what switches it on and
off, what it needs, and what DROP FEATURE does to it. Records live in `records/`, look-ups in
`catalogue.py`, and the rules that turn a record and a table's metadata into the layers
*listed, implied, enabled, present* in `layers.py`.

Records are named tuples: the catalogue is part of every start, and a dataclass costs eight times
as much to define.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

EVERY_RUNTIME = "all supported"
"""how a record says that every supported Databricks Runtime knows the feature"""


class FeatureKind(StrEnum):
    """Who must understand the feature (PROTOCOL.md, "Table Features")."""

    WRITER = "writer"
    READER_WRITER = "reader-writer"


class FeatureStatus(StrEnum):
    """How far the feature has come, and who knows it."""

    STABLE = "stable"
    PREVIEW = "preview"
    DATABRICKS = "databricks-only"
    KERNEL = "kernel-only"
    RFC = "rfc"
    RETIRED = "retired"
    TESTING = "testing"
    UNKNOWN = "unknown"


class Need(StrEnum):
    """The four kinds of requirement one feature can put on another (delta-kernel's words)."""

    SUPPORTED = "supported"
    ENABLED = "enabled"
    NOT_SUPPORTED = "not-supported"
    NOT_ENABLED = "not-enabled"


class Trait(StrEnum):
    """Something a table schema can hold that a feature stands for."""

    NON_NULLABLE = "a column that is NOT NULL or carries delta.invariants"
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
    """Something the files or the log of the current version can hold."""

    DELETION_VECTORS = "data files with deletion vectors"
    CHANGE_FILES = "change data files"
    ROW_IDS = "data files with base row ids"
    V2_CHECKPOINT = "a V2 checkpoint"
    COMMIT_TIMESTAMP = "an in-commit timestamp"
    DOMAINS = "metadata domains"
    ABSOLUTE_PATHS = "data files with absolute paths"
    NON_ASCII_PATHS = "data files whose paths hold characters beyond ASCII"
    ESCAPED_PATHS = "data files whose paths hold escapes"
    DELTA_RS_FILES = "data files that delta-rs wrote from Arrow data"
    DELTA_RS_REWRITES = "data files that a DELETE, UPDATE or MERGE of delta-rs wrote"
    BYTE_ORDER_MARK = "a commit that begins with a byte order mark"


class PropertyIs(NamedTuple):
    """Enabled when table property `key` has one of `values` (compared without case)."""

    key: str
    values: tuple[str, ...] = ("true",)
    older: tuple[str, ...] = ()
    """former names of the property, which count where `key` is not set"""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every name of the property, the one that counts first first."""
        return (self.key, *self.older)

    def key_in(self, configuration: Mapping[str, str | None]) -> str:
        """The name of the property that counts among these; `key` where none is set."""
        return next((key for key in self.keys if key in configuration), self.key)

    def holds(self, value: str | None) -> bool:
        """Whether `value`, None when the property is not set, is one of `values`."""
        return value is not None and value.strip().lower() in {v.lower() for v in self.values}


class PropertyPrefix(NamedTuple):
    """Enabled when any table property starts with `prefix`."""

    prefix: str


class SchemaHas(NamedTuple):
    """Enabled when the schema holds `trait`."""

    trait: Trait


class DomainHas(NamedTuple):
    """Enabled when metadata domain `domain` exists and its list `key` is not empty."""

    domain: str
    key: str


class AlwaysWhenSupported(NamedTuple):
    """The feature has no switch: being supported is being enabled."""


Enablement = PropertyIs | PropertyPrefix | SchemaHas | DomainHas | AlwaysWhenSupported


class Requirement(NamedTuple):
    """`feature` must be (or must not be) supported or enabled for the record's feature."""

    need: Need
    feature: str
    source: str
    """where the rule is written: a spec section, a Delta class, a document"""


class Trigger(NamedTuple):
    """One act by which people switch the feature on."""

    act: str
    """as it is written: a property assignment, a column type, a clause of a statement"""
    by: str
    """one of `property`, `schema`, `command`, `feature-property`"""
    new_tables: bool = True
    existing_tables: bool = True
    """False when the act fails on an existing table until the feature is added by hand"""
    note: str = ""


class DropRefusal(NamedTuple):
    """A reason for which DROP FEATURE stops before it commits anything."""

    when: str
    error: str
    remedy: str


class Drop(NamedTuple):
    """What `ALTER TABLE … DROP FEATURE` does to the feature (Delta 4.x, fast drop).

    `commits` counts every commit of one fast drop, from the least to the most; `preparation`
    names the operations that come before the final `DROP FEATURE` commit, without the
    barrier `Empty Commit`s of a history-protected feature.
    """

    delta_spark: str | None
    """first delta-spark release that drops it; None: no release can"""
    databricks: str | None
    """first Databricks Runtime documented to drop it; None: none documented"""
    commits: tuple[int, int] = (1, 1)
    preparation: tuple[str, ...] = ()
    rewrites: str = "none"
    """data files rewritten: `none`, `affected` (those that carry traces) or `all`"""
    protects_history: bool = False
    """leaves `checkpointProtection` behind, or else needs TRUNCATE HISTORY"""
    needs_truncate: bool = False
    """only `DROP FEATURE … TRUNCATE HISTORY` is accepted"""
    refusals: tuple[DropRefusal, ...] = ()
    note: str = ""

    @property
    def rewrites_data(self) -> bool:
        return self.rewrites != "none"


class Since(NamedTuple):
    """First versions that know the feature in production; None: none does."""

    delta_spark: str | None
    databricks: str | None
    """minimum Databricks Runtime for full support; `all supported` as the platform says it"""
    databricks_note: str = ""


class Dispute(NamedTuple):
    """A point on which two authorities disagree, and when each one applies."""

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
    """what it lets a table do, in one plain sentence"""
    min_reader: int
    """lowest minReaderVersion that can carry it: 1 for writer features"""
    min_writer: int
    """lowest minWriterVersion that can carry it; below 7 the feature is a legacy one"""
    enablement: Enablement
    since: Since
    drop: Drop
    triggers: tuple[Trigger, ...] = ()
    switch_off: str = ""
    """what stops its use while it stays in the protocol; empty: there is no switch"""
    requires: tuple[Requirement, ...] = ()
    traces: tuple[Trace, ...] = ()
    """what shows in files or log that the feature is present"""
    renamed_to: str | None = None
    aliases: tuple[str, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the properties that switch it on, or what these names begin with."""
        match self.enablement:
            case PropertyIs() as rule:
                return rule.keys
            case PropertyPrefix(prefix):
                return (prefix,)
            case _:
                return ()

    @property
    def switchless(self) -> bool:
        """True when nothing switches it on or off: a table that supports it uses it."""
        return isinstance(self.enablement, AlwaysWhenSupported)

    @property
    def legacy(self) -> bool:
        """True when a version number below 7 can imply the feature."""
        return self.min_writer < 7

    @property
    def droppable(self) -> bool:
        """True when some released delta-spark can drop it."""
        return self.drop.delta_spark is not None

    @property
    def required_features(self) -> tuple[str, ...]:
        """Names that must be supported with this one, in the catalogue's order."""
        positive = (Need.SUPPORTED, Need.ENABLED)
        return tuple(r.feature for r in self.requires if r.need in positive)
