"""The planner's model of a table, and how statements change it.

Tables are immutable: every statement returns a new one. None means unknown; both possibilities
then count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from deltaproto.clients.requirements import remaining_hazards
from deltaproto.planning.predict.collations import COLLATION_FEATURES, has_collation
from deltaproto.planning.predict.schema import (
    Atomic,
    Struct,
    columns_of_type,
    dotted_path,
    find_unmappable,
    walk_columns,
)
from deltaproto.protocol import feature_catalog
from deltaproto.protocol.column_bounds import ColumnBounds
from deltaproto.protocol.feature import PropertyIs
from deltaproto.protocol.feature_catalog import CATALOG_MANAGED, CHECKPOINT_PROTECTION
from deltaproto.protocol.properties import CONSTRAINT_PREFIX
from deltaproto.protocol.protocol import Protocol

GEOSPATIAL_FEATURES = ("geospatial", "geospatial-dev")
MAPPING_MODE = "delta.columnMapping.mode"
MIN_READER_VERSION, MIN_WRITER_VERSION = "delta.minReaderVersion", "delta.minWriterVersion"
ROW_TRACKING = "delta.enableRowTracking"
TIMESTAMPS = "delta.enableInCommitTimestamps"
TIMESTAMPS_SINCE = (
    "delta.inCommitTimestampEnablementVersion",
    "delta.inCommitTimestampEnablementTimestamp",
)
"""properties that name the first commit with a timestamp, if it is not the table's first"""
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
ROW_TRACKING_DOMAIN = "delta.rowTracking"
PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
CHECKPOINT_POLICY = "delta.checkpointPolicy"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
ROW_ID_COLUMNS = (
    "delta.rowTracking.materializedRowIdColumnName",
    "delta.rowTracking.materializedRowCommitVersionColumnName",
)
"""properties that name the data file columns with the ids of rewritten rows"""
_RANDOM = "a random name"
_INTERVAL = 10
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NOTHING_LEFT: Mapping[str, float] = MappingProxyType({})
_NO_VERSIONS: Mapping[int, Table] = MappingProxyType({})


def checkpoint_interval(configuration: Mapping[str, str | None]) -> int:
    """Return Delta's checkpoint interval in commits (`delta.checkpointInterval`)."""
    stored = configuration.get("delta.checkpointInterval") or ""
    return int(stored) if re.fullmatch(r"0*[1-9][0-9]{0,8}", stored) else _INTERVAL


class Table(NamedTuple):
    """One table before or after a statement."""

    protocol: Protocol
    configuration: Mapping[str, str] = _NOTHING
    """the stored table properties"""
    vectors: bool | None = None
    """True if live files have deletion vectors"""
    widened: bool | None = None
    """True if the schema records type changes"""
    unmappable: tuple[str, ...] = ()
    """columns whose names require column mapping"""
    geospatial: tuple[str, ...] = ()
    """columns with geospatial types"""
    collated: tuple[str, ...] = ()
    """columns with a collation other than the default"""
    v2_checkpoint: bool | None = None
    """True if the newest checkpoint is a V2 checkpoint"""
    row_ids: bool | None = None
    """True if live files have row ids"""
    domains: tuple[str, ...] | None = ()
    """live metadata domains"""
    clustering: tuple[str, ...] | None = ()
    """clustering columns"""
    partition_columns: tuple[str, ...] = ()
    rewritten: bool = False
    """True if the plan itself wrote every data file"""
    stray_columns: bool | None = False
    """True if data files have columns missing from the schema, which REORG treats as dropped"""
    traced: frozenset[str] | None = None
    """features in history that no truncation may remove yet; None: unknown"""
    unsure: frozenset[str] = frozenset()
    """features for which it is unknown whether the history shows them"""
    hours_left: Mapping[str, float] = _NOTHING_LEFT
    """hours until a truncation may remove a feature's traces in history, if at all possible"""
    aged: frozenset[str] | None = None
    """features shown only by history that a truncation removes; None: unknown"""
    aged_in_newest_run: frozenset[str] = frozenset()
    """features in `aged` that become too recent again with the next commit, unless a checkpoint
    comes first: Delta deletes the log between two checkpoints by the age of its last file
    """
    hours_ahead: float = 0
    """hours by which the newest file of the log is ahead of the clock: Delta counts later files as
    newer, so history expires that much later"""
    unpublished: bool = False
    """True if a catalog has unpublished commits, which get a new age when it publishes them before
    the next checkpoint
    """
    schema: Struct | None = None
    """None: unknown"""
    spark_text: bool | None = True
    """True if the log's schema text is the one that Spark writes, or if that does not matter; None:
    unknown
    """
    version: int | None = None
    """the newest version, for statements that refer to one; None: unknown, or not needed"""
    protected_versions: int = 0
    """how many versions the table is behind the limit of checkpointProtection: a clone has the
    limit of its source
    """
    absolute_without_vectors: bool = True
    """False if every live file with an absolute path has a deletion vector"""
    all_vectors: bool = False
    """True if certainly every live file has a deletion vector"""
    absolute_rewritten: bool = False
    """True if the plan itself rewrote every file that had an absolute path"""
    unreadable: str = ""
    """why Delta Spark cannot read the metadata; empty: it can"""
    unstamped: str = ""
    """the error class of every write by Delta Spark if in-commit timestamps are enabled and the
    newest commit has none; empty: it has one, or none is needed
    """
    unmapped: bool = False
    """True if column mapping is enabled, and a column has no id or no physical name"""
    untracked: bool | None = False
    """True if row tracking is enabled, and some live files have no row ids; None: unknown"""
    uncounted_files: bool | None = False
    """True if some live files have neither row ids nor a number of rows; None: maybe no longer"""
    uncounted: bool = False
    """True if column mapping is enabled, and the table does not store the highest id"""
    ambiguous: bool | None = False
    """True if mapping gives two columns the same id or physical name; None: maybe no longer"""
    delta_rs_files: bool = False
    """True if delta-rs wrote some data files"""
    bounds: ColumnBounds | None = None
    """what the data files' statistics show about each column, by logical name; None: unknown"""
    unsure_bounds: frozenset[str] = frozenset()
    """columns whose bounds in the files that the plan wrote are unknown"""
    bounds_changed: bool = False
    """True if the plan changed the bounds, or which of them readers expect"""
    added_hazards: frozenset[str] = frozenset()
    """hazards that the plan's statements added and that the columns do not show"""
    folder_hazards: frozenset[str] = frozenset()
    """hazards of the folders that files get when they are rewritten without column mapping"""
    unpredicted: str = ""
    """why columns, constraints or files that the plan adds are unknown, as a clause; empty: they
    are known, or nothing is added"""
    to_checkpoint: int | None = None
    """commits until Delta writes a checkpoint automatically; None: unknown or irrelevant"""
    earlier: Mapping[int, Table] = _NO_VERSIONS
    """known versions before this one, for RESTORE"""

    @property
    def constraints(self) -> Mapping[str, str]:
        """The properties that store CHECK constraints, by the constraint's name.

        Delta enforces them whatever the case of the property's name (Constraints.scala).
        """
        keys = sorted(key for key in self.configuration if is_constraint(key))
        return {key[len(CONSTRAINT_PREFIX) :]: key for key in keys}

    def constraint_key(self, name: str) -> str | None:
        """Return the property of the constraint that Delta's statements find by name, or None.

        They find properties in lower case only: other engines keep the case of the name.
        """
        wanted = CONSTRAINT_PREFIX + name.lower()
        return wanted if wanted in self.configuration else None

    def is_on(self, key: str) -> bool:
        """Return True if a boolean property is true."""
        return self.configuration.get(key, "").strip().lower() == "true"

    def with_properties(self, properties: Mapping[str, str]) -> Table:
        """Return the table with these properties set."""
        return self._replace(configuration={**self.configuration, **properties})

    def without_properties(self, *keys: str) -> Table:
        """Return the table without these properties."""
        kept = dict(self.configuration)
        for key in keys:
            kept.pop(key, None)
        return self._replace(configuration=kept)

    def with_row_id_names(self, names: Mapping[str, str]) -> Table:
        """Return the table with these names of the columns for row ids; missing ones are random."""
        return self.with_properties({key: names.get(key, _RANDOM) for key in ROW_ID_COLUMNS})

    def waited(self, hours: float = 0) -> Table:
        """Return the table after a wait: removable history can now be removed."""
        ahead = max(self.hours_ahead - hours, 0)
        if self.traced is None:
            return self._replace(
                traced=frozenset(), unsure=frozenset(), aged=None, hours_ahead=ahead
            )
        # Dropping checkpointProtection writes a checkpoint before it deletes anything.
        protection = set[str]() if self.unpublished else {CHECKPOINT_PROTECTION}
        old = self.traced & {*self.hours_left, *protection}
        aged = old | (self.aged or frozenset())
        return self._replace(
            traced=self.traced - old, hours_left=_NOTHING_LEFT, aged=aged, hours_ahead=ahead
        )

    def ended(self, hours: float) -> Table:
        """End the log's newest run with a checkpoint, so it is old enough after `hours`."""
        if self.traced is None:
            return self
        hours += self.hours_ahead
        left = {name: self.hours_left.get(name, hours) for name in self.traced | self.unsure}
        return self._replace(hours_left=left, unpublished=False)

    def grown(self, hours: float, *, sure: bool) -> Table:
        """Append a commit (uncertain unless `sure`) to the log's newest run."""
        young = self.aged_in_newest_run & (self.aged or frozenset())
        if not young:
            return self._replace(aged_in_newest_run=frozenset())
        known = self._replace(
            aged_in_newest_run=frozenset(), aged=(self.aged or frozenset()) - young
        )
        if not sure or self.traced is None:
            return known._replace(unsure=self.unsure | young)
        known = known._replace(traced=self.traced | young, unpublished=self.managed)
        if self.managed:
            return known
        return known._replace(
            hours_left={**self.hours_left, **dict.fromkeys(young, hours + self.hours_ahead)}
        )

    def without_history(self) -> Table:
        """Return the table with unknown history."""
        nothing = frozenset[str]()
        return self._replace(
            traced=None,
            aged=None,
            unsure=nothing,
            aged_in_newest_run=nothing,
            hours_left=_NOTHING_LEFT,
        )

    def checkpointed(self) -> Table:
        """Return the table with a new checkpoint, of the kind set by its checkpoint policy."""
        policy = self.configuration.get(CHECKPOINT_POLICY, "classic")
        return self._replace(v2_checkpoint=policy.strip().lower() == "v2")

    def committed(self, fewest: int, most: int) -> Table:
        """Return the table after these commits, including Delta's automatic checkpoints."""
        version = None
        if self.version is not None and fewest == most:
            version = self.version + most
        table = self._replace(
            version=version, protected_versions=max(self.protected_versions - fewest, 0)
        )
        if version is not None and most:
            table = table.with_earlier({version: table})
        left = table.to_checkpoint
        if left is None or most == 0:
            return table
        if self.version is not None:
            # The statement itself may have set another interval.
            interval = checkpoint_interval(table.configuration)
            left = interval - self.version % interval
        after = table.checkpointed() if "v2Checkpoint" in table.protocol.supported else table
        kind = after.v2_checkpoint
        if fewest < left and (most >= left or fewest < most):
            # The next checkpoint may now be at any commit.
            kind = table.v2_checkpoint if table.v2_checkpoint is kind else None
        elif fewest < left:
            kind = table.v2_checkpoint
        coming = None
        if fewest == most:
            interval = checkpoint_interval(table.configuration)
            coming = left - most if most < left else interval - (most - left) % interval
        return table._replace(v2_checkpoint=kind, to_checkpoint=coming)

    def with_earlier(self, versions: Mapping[int, Table]) -> Table:
        """Return the table with more known versions."""
        known = {
            number: each._replace(version=number, earlier=_NO_VERSIONS)
            for number, each in versions.items()
        }
        return self._replace(earlier={**self.earlier, **known})

    def with_schema(self, schema: Struct | None) -> Table:
        """Return the table with these columns and the facts derived from them."""
        if schema is None:
            return self._replace(schema=None, widened=None)
        return self._replace(
            schema=schema,
            widened=any(column.widened for _, column in walk_columns(schema)),
            unmappable=find_unmappable(schema),
            geospatial=columns_of_type(schema, "geometry", "geography"),
            collated=tuple(
                dotted_path(path)
                for path, column in walk_columns(schema)
                if isinstance(column.type, Atomic) and has_collation(column.type.name)
            ),
        )

    @property
    def typed_features(self) -> frozenset[str]:
        """The supported features that types of columns need, which a copy of the columns keeps."""
        collated = COLLATION_FEATURES if self.collated else ()
        geospatial = GEOSPATIAL_FEATURES if self.geospatial else ()
        return self.protocol.supported.intersection((*collated, *geospatial))

    def with_new_files(self, *, sure: bool = False, rewritten: bool = False) -> Table:
        """Return the table after a statement that writes data files, certainly if `sure`.

        They have row ids as soon as row tracking is supported, whether or not it is enabled, unless
        it is suspended. `rewritten`: they may replace all others.
        """
        if "rowTracking" not in self.protocol.supported:
            return self
        if self.is_on(ROW_TRACKING_SUSPENDED):
            return self._replace(row_ids=self.row_ids and None) if rewritten else self
        domains = self.domains
        if domains is not None and ROW_TRACKING_DOMAIN not in domains:
            domains = (*domains, ROW_TRACKING_DOMAIN) if sure else None
        return self._replace(row_ids=sure or self.row_ids or None, domains=domains)

    @property
    def names_row_ids(self) -> bool:
        """True if properties name data file columns for the ids of rewritten rows."""
        return any(name in self.configuration for name in ROW_ID_COLUMNS)

    @property
    def keeps_changes(self) -> bool:
        """True if the change data feed is enabled."""
        rule = feature_catalog.feature_record("changeDataFeed").enablement
        assert isinstance(rule, PropertyIs)
        return self.is_on(rule.key_in(self.configuration))

    @property
    def managed(self) -> bool:
        """True if a catalog manages its commits."""
        return bool(CATALOG_MANAGED & self.protocol.supported)

    @property
    def mapped(self) -> bool:
        """True if column mapping is enabled."""
        return self.configuration.get(MAPPING_MODE, "none").strip().lower() in ("name", "id")

    def shows(self, feature: str) -> bool | None:
        """Return True if the history shows the feature, so a truncating drop has to wait."""
        if self.traced is None or feature in self.unsure:
            return None
        return feature in self.traced

    def tracing(self, *features: str) -> Table:
        """Return the table with these features added to its history."""
        if self.traced is None:
            return self
        return self._replace(traced=self.traced | {*features}, unsure=self.unsure - {*features})

    def without_mapping(self) -> Table:
        """Return the table without column mapping, after rewriting every file."""
        plain = self.without_properties(MAPPING_MODE, MAX_COLUMN_ID)
        added = remaining_hazards(self.added_hazards, ("columnMapping",))
        if not self.is_on("delta.randomizeFilePrefixes"):
            added |= self.folder_hazards
        return plain._replace(
            vectors=False,
            rewritten=True,
            stray_columns=False,
            ambiguous=False,
            # The domain keeps the physical names.
            clustering=None if self.mapped and self.clustering else self.clustering,
            added_hazards=added,
        )


def is_constraint(key: str) -> bool:
    """Return True for the property of a CHECK constraint, in any case."""
    return key.lower().startswith(CONSTRAINT_PREFIX)
